"""Where a user's data is, when nobody says where."""

from __future__ import annotations

import os
import sys


def data_directory() -> str | None:
    """By the conventions of the operating system; None: there is no home directory."""
    home = os.path.expanduser("~")
    xdg = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(home) and not os.path.isabs(xdg):
        return None
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Application Support", "pykafkad")
    return os.path.join(xdg if os.path.isabs(xdg) else os.path.join(home, ".local", "share"), "pykafkad")
