"""The arguments of `pykafkad sql`'s commands: files, options with values, flags. Nothing unknown is ignored."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pykafkad.tools.names import nearest


class UsageError(Exception):
    """A wrong command line; str() is what to say."""


class Arguments:
    """What was given: `files` in their order, `values` by option, `flags`."""

    def __init__(self, given: Sequence[str], options: Collection[str], flags: Collection[str] = ()) -> None:
        self.files: list[str] = []
        self.values: dict[str, str] = {}
        self.flags: set[str] = set()
        rest = list(reversed(given))
        while rest:
            self._take(rest, options, flags)

    def _take(self, rest: list[str], options: Collection[str], flags: Collection[str]) -> None:
        word = rest.pop()
        name, equals, value = word.partition("=")
        if not word.startswith("-") or word == "-":
            self.files.append(word)
        elif name in flags and not equals:
            self.flags.add(name)
        elif name in options:
            if not equals and not rest:
                raise UsageError(f"{name} needs a value")
            self.values[name] = value if equals else rest.pop()
        else:
            raise UsageError(f"unknown option {name}{nearest(name, [*options, *flags])}")

    def file(self) -> str:
        """The one file."""
        if len(self.files) != 1:
            raise UsageError(
                "which file? FILE.sql is expected"
                if not self.files
                else f"one file only: {', '.join(self.files)}"
            )
        return self.files[0]
