"""Parses RE2's syntax into a tree; what RE2 refuses is refused with RE2's message (that of re2j 1.8).

A tree is a tuple: (SET, size, bits), (ASSERT, size, kind), (CAT, size, [trees]), (ALT, size, [trees]), (REPEAT, size,
tree, least, most or NO_LIMIT). It has neither groups nor greediness, since all that is asked is whether a whole text
matches.

Invariants: time and memory are in proportion to the pattern, and there is no recursion. A tree's size is the number of
states that an automaton needs for it, with each repetition written out; it is at most SIZE_MAX, and computed without
building anything. re2j has no such limit: it runs out of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from pykafkad.pure.regex.alphabets import TOPIC_NAMES, Alphabet

SET, ASSERT, CAT, ALT, REPEAT = range(5)
BEGIN, END, WORD_BOUNDARY, NO_WORD_BOUNDARY, BEGIN_LINE, END_LINE = range(6)

STEPS_AT_ONCE = 64
REPEAT_MAX = 1000
SIZE_MAX = 100_000
NAME_MAX = 249
NO_LIMIT = -1

IGNORE_CASE, ANY_LINE, DOT_ALL, UNGREEDY = 1, 2, 4, 8
ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
OCTAL = "01234567"
HEXADECIMAL = "0123456789abcdefABCDEF"
NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")
SPECIAL = "\\.+*?(){|[^$"
PLAIN = re.compile(f"[^{re.escape(SPECIAL)}]+")  # a character that means itself
COUNTS = {"*": (0, NO_LIMIT), "+": (1, NO_LIMIT), "?": (0, 1)}

Tree = tuple[Any, ...]


class InvalidPattern(Exception):
    """What is wrong with a pattern, in RE2's words."""


class _Group:
    """An open parenthesis: its finished alternatives, the one being parsed, and the flags to return to."""

    __slots__ = ("alternatives", "flags", "items")

    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.alternatives: list[Tree] = []
        self.items: list[Tree] = []

    def tree(self) -> Tree:
        self.next_alternative()
        return _several(ALT, self.alternatives)

    def next_alternative(self) -> None:
        self.alternatives.append(_several(CAT, self.items))
        self.items = []


def _several(kind: int, trees: list[Tree]) -> Tree:
    return trees[0] if len(trees) == 1 else (kind, 1 + sum([tree[1] for tree in trees]), trees)


def parser(pattern: str) -> Parser:
    """For topic names."""
    return Parser(pattern, TOPIC_NAMES, NAME_MAX)


def parse(pattern: str) -> Tree:
    return parser(pattern).parse()


class Parser:
    """The pattern's `tree` is there when `parsing` is through.

    `longest`: no text has more characters, so a repetition with a higher count never matches, or repeats nothing."""

    FLAGS: Mapping[str, int] = MappingProxyType(
        {"i": IGNORE_CASE, "m": ANY_LINE, "s": DOT_ALL, "U": UNGREEDY}
    )

    def __init__(self, pattern: str, alphabet: Alphabet, longest: int) -> None:
        self.text = pattern
        self.alphabet = alphabet
        self.longest = longest
        self.at = 0
        self.flags = 0
        self.groups = [_Group(0)]
        self.names: set[str] = set()
        self.after_repeat = False  # the last item was a repetition, which must not be repeated itself
        self._literals: dict[tuple[str, int], Tree] = {}
        self._last_posix_end = pattern.rfind(":]")
        self.tree: Tree = ()

    def parse(self) -> Tree:
        """At once, where nobody has to be served in between."""
        for _ in self.parsing():
            pass
        return self.tree

    def parsing(self) -> Iterator[None]:
        """InvalidPattern says what is wrong."""
        text, steps = self.text, 0
        while self.at < len(text):
            steps += 1
            if not steps % STEPS_AT_ONCE:
                yield
            was_repeat, self.after_repeat = self.after_repeat, False
            if text[self.at] in SPECIAL:
                self._step(text[self.at], was_repeat)
            else:
                end = PLAIN.match(text, self.at).end()  # type: ignore[union-attr]
                self._add_all(text[self.at : end])
                self.at = end
        if len(self.groups) != 1:
            raise InvalidPattern("missing closing )")
        self.tree = self._checked(self.groups[0].tree())

    def _step(self, character: str, was_repeat: bool) -> None:
        if character == "|":
            self.at += 1
            self.groups[-1].next_alternative()
        elif character in COUNTS:
            self.at += 1
            self._repeat(*COUNTS[character], was_repeat)
        elif character == "{":
            self._counted(was_repeat)
        elif character == "(":
            self._open()
        elif character == ")":
            self._close()
        elif character == "[":
            self._add_set(self._class())
        elif character == "\\":
            self._escaped()
        else:
            self.at += 1
            self._special(character)

    def _special(self, character: str) -> None:
        if character == "^":
            self._add((ASSERT, 1, BEGIN_LINE if self.flags & ANY_LINE else BEGIN))
        elif character == "$":
            self._add((ASSERT, 1, END_LINE if self.flags & ANY_LINE else END))
        else:
            assert character == "."
            self._add_set(self._dot())

    def _dot(self) -> int:
        return self.alphabet.all  # no topic name has a line terminator

    def _add(self, tree: Tree) -> None:
        self.groups[-1].items.append(tree)

    def _add_set(self, bits: int) -> None:
        self._add((SET, 1, bits))

    def _add_all(self, text: str) -> None:
        """Add each of its characters, which mean themselves."""
        self.groups[-1].items += [self._literal(character) for character in text]

    def _literal(self, character: str) -> Tree:
        key = character, self.flags & IGNORE_CASE
        found = self._literals.get(key)
        if found is None:
            found = self._literals[key] = SET, 1, self._span(ord(character), ord(character))
        return found

    def _span(self, low: int, high: int) -> int:
        return self.alphabet.span(low, high, bool(self.flags & IGNORE_CASE))

    # -- repetitions

    def _repeat(self, least: int, most: int, was_repeat: bool) -> None:
        if self._next_is("?"):
            self.at += 1
        if was_repeat:
            raise InvalidPattern("invalid nested repetition operator")
        items = self.groups[-1].items
        if not items:
            raise InvalidPattern("missing argument to repetition operator")
        items[-1] = self._repeated(items[-1], least, most)
        self.after_repeat = True

    def _repeated(self, tree: Tree, least: int, most: int) -> Tree:
        least = min(least, self.longest + 1)
        copies = max(least, 1)
        if most != NO_LIMIT:
            copies = most = min(most, self.longest + 1)
        return self._checked((REPEAT, 1 + copies * (tree[1] + 1), tree, least, most))

    def _checked(self, tree: Tree) -> Tree:
        if tree[1] > SIZE_MAX:
            raise InvalidPattern("expression too large")
        return tree

    def _counted(self, was_repeat: bool) -> None:
        start = self.at
        counts = self._counts()
        if counts is None:
            self.at = start + 1
            self._brace()
            return
        least, most = counts
        if not 0 <= least <= REPEAT_MAX or most > REPEAT_MAX or (most != NO_LIMIT and least > most):
            raise InvalidPattern("invalid repeat count")
        self._repeat(least, most, was_repeat)

    def _brace(self) -> None:
        """A brace that means itself."""
        self._add_all("{")
        self.after_repeat = True  # RE2 treats it as a repetition all the same

    def _counts(self) -> tuple[int, int] | None:
        """The numbers of {n}, {n,} or {n,m}; None for braces that mean themselves."""
        self.at += 1
        least = self._number()
        if least is None:
            return None
        most: int | None = least
        if self._next_is(","):
            self.at += 1
            most = NO_LIMIT if self._next_is("}") else self._number()
        if most is None or not self._next_is("}"):
            return None
        self.at += 1
        return least, most

    def _number(self) -> int | None:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] in "0123456789":
            self.at += 1
        digits = self.text[start : self.at]
        if not digits or (digits[0] == "0" and len(digits) > 1):
            return None
        return int(digits) if len(digits) <= 8 else REPEAT_MAX + 1

    # -- groups

    def _open(self) -> None:
        outer = self.flags
        if self.text.startswith(("(?P<", "(?<"), self.at):
            self._named()
        elif self.text.startswith("(?", self.at):
            if not self._change_flags():
                return
        else:
            self.at += 1
        self.groups.append(_Group(outer))

    def _named(self) -> None:
        start = self.text.index("<", self.at) + 1
        end = self.text.find(">", start)
        name = self.text[start:end]
        if end < 0 or not name or not NAME_CHARACTERS.issuperset(name):
            raise InvalidPattern("invalid named capture")
        if name in self.names:
            raise InvalidPattern("duplicate capture group name")
        self.names.add(name)
        self.at = end + 1

    def _change_flags(self) -> bool:
        """Parse (?flags) or (?flags:; whether a group begins."""
        self.at += 2
        flags, turn_on, saw_flag = self.flags, True, False
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            flag = self.FLAGS.get(character)
            if flag is not None:
                flags = flags | flag if turn_on else flags & ~flag
                saw_flag = True
            elif character == "-" and turn_on:
                turn_on = saw_flag = False
            elif character in ":)" and (turn_on or saw_flag):
                self.flags = flags
                return character == ":"
            else:
                break
        raise InvalidPattern("invalid or unsupported Perl syntax")

    def _close(self) -> None:
        self.at += 1
        if len(self.groups) == 1:
            raise InvalidPattern("regexp/syntax: internal error")  # re2j's message for it
        group = self.groups.pop()
        self.flags = group.flags
        self._add(group.tree())

    # -- escapes

    def _escaped(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if following == "A":
            self._assertion(BEGIN)
        elif following == "z":
            self._assertion(END)
        elif following == "b":
            self._assertion(WORD_BOUNDARY)
        elif following == "B":
            self._assertion(NO_WORD_BOUNDARY)
        elif following == "C":
            raise InvalidPattern("invalid escape sequence")
        elif following == "Q":
            self._quoted()
        else:
            bits = self._class_escape()
            if bits is not None:
                self._add_set(bits)
            else:
                self._add_all(chr(self._escape()))

    def _assertion(self, kind: int) -> None:
        self.at += 2
        self._add((ASSERT, 1, kind))

    def _quoted(self) -> None:
        start = self.at + 2
        end = self.text.find("\\E", start)
        quoted = self.text[start:] if end < 0 else self.text[start:end]
        self.at = len(self.text) if end < 0 else end + 2
        self._add_all(quoted)

    def _class_escape(self) -> int | None:
        r"""\d and the like, \pN and \p{Name}; None for anything else."""
        following = self.text[self.at + 1 : self.at + 2]
        if following in "pP" and following:
            return self._unicode_class(following == "P")
        bits = self.alphabet.perl.get(following.lower())
        if bits is None:
            return None
        self.at += 2
        return bits if following.islower() else self.alphabet.all & ~bits  # they tell no case

    def _unicode_class(self, is_negated: bool) -> int:
        self.at += 2
        name = self.text[self.at : self.at + 1]
        if name == "{":
            end = self.text.find("}", self.at)
            name = self.text[self.at + 1 : end] if end > 0 else ""
            self.at = end
        self.at += 1
        if name.startswith("^"):
            is_negated = not is_negated
            name = name[1:]
        bits = self.alphabet.unicode_class(name)
        if bits is None:
            raise InvalidPattern("invalid character class range")
        if self.flags & IGNORE_CASE:
            bits = self.alphabet.without_case(bits)
        return self.alphabet.all & ~bits if is_negated else bits

    def _escape(self) -> int:
        """The code point of an escape, which begins at the backslash."""
        self.at += 1
        if self.at >= len(self.text):
            raise InvalidPattern("trailing backslash at end of expression")
        character = self.text[self.at]
        self.at += 1
        if character in OCTAL and (character == "0" or self._peek() in tuple(OCTAL)):
            return self._octal(int(character))
        if character == "x":
            return self._hexadecimal()
        if character in ESCAPES:
            return ESCAPES[character]
        if character.isascii() and character.isalnum():
            raise InvalidPattern("invalid escape sequence")
        return ord(character)

    def _octal(self, value: int) -> int:
        for _ in range(2):
            if self._peek() not in tuple(OCTAL):
                break
            value = value * 8 + int(self.text[self.at])
            self.at += 1
        return value

    def _hexadecimal(self) -> int:
        if self._next_is("{"):
            end = self.text.find("}", self.at)
            digits = self.text[self.at + 1 : end] if end > 0 else ""
            self.at = end + 1
        else:
            digits = self.text[self.at : self.at + 2]
            self.at += 2
            digits = digits if len(digits) == 2 else ""
        if not digits or any(digit not in HEXADECIMAL for digit in digits):
            raise InvalidPattern("invalid escape sequence")
        value = int(digits.lstrip("0")[:8] or "0", 16)
        if value > 0x10FFFF:
            raise InvalidPattern("invalid escape sequence")
        return value

    # -- classes in brackets

    def _class(self) -> int:
        self.at += 1
        is_negated = self._next_is("^")
        self.at += is_negated
        bits = 0
        is_first = True
        while is_first or not self._next_is("]"):
            is_first = False
            bits |= self._class_item()
        self.at += 1
        return self.alphabet.all & ~bits if is_negated else bits

    def _class_item(self) -> int:
        if self.text.startswith("[:", self.at) and self.at + 2 <= self._last_posix_end:
            return self._posix_class(self.text.find(":]", self.at + 2))
        if self._next_is("\\"):
            found = self._class_escape()
            if found is not None:
                return found
        low = high = self._class_character()
        if self._next_is("-") and self.text[self.at + 1 : self.at + 2] != "]":
            self.at += 1
            high = self._class_character()
            if high < low:
                raise InvalidPattern("invalid character class range")
        return self._span(low, high)

    def _posix_class(self, end: int) -> int:
        name = self.text[self.at + 2 : end]
        is_negated = name.startswith("^")
        bits = self.alphabet.posix.get(name[is_negated:])
        if bits is None:
            raise InvalidPattern("invalid character class range")
        self.at = end + 2
        if self.flags & IGNORE_CASE:
            bits = self.alphabet.without_case(bits)
        return self.alphabet.all & ~bits if is_negated else bits

    def _class_character(self) -> int:
        if self.at >= len(self.text):
            raise InvalidPattern("missing closing ]")
        if self._next_is("\\"):
            return self._escape()
        self.at += 1
        return ord(self.text[self.at - 1])

    # -- looking ahead

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _next_is(self, character: str) -> bool:
        return self.text.startswith(character, self.at)
