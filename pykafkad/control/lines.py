"""Lines of JSON: the arguments of a command, each of the type that it wants; and the rows of an answer."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CommandError(Exception):
    """A mistake of whoever asked; the text is told in the answer."""


def check_known(arguments: dict[str, Any], *names: str) -> None:
    unknown = sorted(arguments.keys() - set(names))
    if unknown:
        raise CommandError(f"unknown argument {unknown[0]}: there are {', '.join(names) or 'none'}")


def text(arguments: dict[str, Any], name: str) -> str | None:
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise CommandError(f"{name} is a text")
    return value


def flag(arguments: dict[str, Any], name: str) -> bool:
    value = arguments.get(name, False)
    if not isinstance(value, bool):
        raise CommandError(f"{name} is true or false")
    return value


def encoded(row: dict[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"
