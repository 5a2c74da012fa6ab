"""Prints what pyproject.toml asks for, one requirement a line: `build`, or the names of extras."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path


def main() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    for name in sys.argv[1:]:
        for requirement in project["build-system"]["requires"] if name == "build" else extras[name]:
            print(requirement.replace(" ", ""))


main()
