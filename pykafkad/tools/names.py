"""The name that somebody meant who misspelt one."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NEAR = 0.7  # how alike a name must be to be asked for, of 1


def nearest(name: str, known: Iterable[str], prefix: str = "") -> str:
    """The end of a message that asks for it: nothing if no name begins with this one or is like it."""
    from difflib import get_close_matches

    names = list(known)
    found = [one for one in names if name and one.startswith(name)] or get_close_matches(name, names, 1, NEAR)
    return f"; did you mean {prefix}{found[0]}?" if found else ""
