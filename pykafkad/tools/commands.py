"""The command line of a tool with commands: `pykafkad transactions describe --transactional-id x`.

Owns the rules of the library that Kafka's tools with commands are written with, which are others than those of
options.py: a word names the command, unique beginnings of names will do, a value does not begin with a dash unless it is
a number, and nothing unknown is ignored; and its error messages. Two things are ours: options of the whole tool may
stand behind the command as well, and a command may have --json. An option of the table counts with the commands in its
`available_with`, or with all of them.
"""

from __future__ import annotations

import re

from pykafkad.tools.names import nearest
from pykafkad.tools.options import COMMON, NONE, RANGES, SHORT, STRING, OptionError, Options, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pykafkad.tools.options import Option

NEGATIVE = re.compile(r"-\d+")
WHOLE = re.compile(r"[+-]?[0-9]+")
WORDS = {"-h": "--help", "-v": "--version"}


class Command:
    """What a command does, and the options that it needs."""

    __slots__ = ("about", "needed")

    def __init__(self, about: str, *needed: str) -> None:
        self.about = about
        self.needed = needed


class CommandLine(Options):
    """A command line with a command; of an option that is given again the last value counts."""

    def __init__(
        self, commands: Mapping[str, Command], known: Sequence[Option], arguments: Sequence[str]
    ) -> None:
        self.known = {option.name: option for option in (*known, *COMMON)}
        self.arguments = list(arguments)
        self.order = []
        self.ignored = []
        self._given = {}
        self._commands = commands
        self.command = ""
        self._read(list(reversed(arguments)))
        if not self.has("help") and not self.has("version"):
            self._check()

    def _read(self, rest: list[str]) -> None:
        while rest:
            word = WORDS.get(rest[-1], rest[-1])
            rest.pop()
            if word == "--":
                continue
            if word.startswith("-") and word != "-":
                self._take(word, rest)
            elif not self.command:
                self.command = _completed("command", word, self._commands)
            else:
                raise OptionError(_unrecognized(" ".join([word, *reversed(rest)])))

    def _take(self, word: str, rest: list[str]) -> None:
        name, equals, text = word.removeprefix("--").partition("=")
        option = self._option(name) if word.startswith("--") else None
        if option is None:
            raise OptionError(_unrecognized(word) + self._hint(name))
        self.order.append(option.name)
        if option.argument == NONE:
            self._given[option.name] = []
            return
        if not equals:
            if not rest or (
                rest[-1].startswith("-") and rest[-1] != "-" and not NEGATIVE.fullmatch(rest[-1])
            ):
                raise OptionError(f"argument --{option.name}: expected one argument")
            text = rest.pop()
        self._given[option.name] = [_converted(option, text)]

    def _option(self, name: str) -> Option | None:
        """The option of that name, or the only one whose name begins so."""
        here = [
            option.name
            for option in self.known.values()
            if not option.available_with or not self.command or self.command in option.available_with
        ]
        if name in here:
            return self.known[name]
        found = sorted(one for one in here if name and one.startswith(name))
        if len(found) > 1:
            raise OptionError(
                f"ambiguous option: --{name} could match {', '.join('--' + one for one in found)}"
            )
        return self.known[found[0]] if found else None

    def _check(self) -> None:
        if not self.command:
            raise Usage("too few arguments")
        for name in self._commands[self.command].needed:
            if not self.has(name):
                raise Usage(f"argument --{name} is required")
        misplaced = [
            f"--{name}"
            for name in self._given
            if self.known[name].available_with and self.command not in self.known[name].available_with
        ]
        if misplaced:
            raise OptionError(_unrecognized(misplaced[0]))

    def _hint(self, name: str) -> str:
        return "" if name in self.known else nearest(name, self.known, "--")


def _unrecognized(words: str) -> str:
    return f"unrecognized arguments: '{words}'"


def _completed(what: str, word: str, names: Iterable[str]) -> str:
    known = list(names)
    found = [name for name in known if word and name.startswith(word)]
    if word in known or len(found) == 1:
        return word if word in known else found[0]
    if found:
        raise OptionError(f"ambiguous {what}: {word} could match {', '.join(sorted(found))}")
    shown = ", ".join(f"'{name}'" for name in known)
    raise OptionError(f"invalid choice: '{word}' (choose from {shown}){nearest(word, known)}")


def _converted(option: Option, text: str) -> str:
    if option.kind == STRING:
        return text
    half = RANGES[option.kind]
    why = ""
    if not WHOLE.fullmatch(text) or (option.kind != SHORT and not -half <= int(text) < half):
        why = f'For input string: "{text}"'
    elif not -half <= int(text) < half:
        why = f'Value out of range. Value:"{text}" Radix:10'
    if why:
        raise OptionError(f"argument --{option.name}: could not convert '{text}' to {option.kind} ({why})")
    return text
