r"""The syntax of java.util.regex, as far as an automaton can match it: Kafka matches the attributes of telemetry
clients with it.

Supported are literals, `\Q..\E`, classes with ranges, `\d \s \w` and POSIX classes (`\p{Alnum}`), groups, alternatives,
greedy and reluctant repetitions, `^ $ \A \z \b \B`, and the flags i and s, with their meaning in Java 19 and later.
Everything else is refused. What Java supports and this does not raises `Unsupported`, with the reason: it needs
backtracking (backreferences, lookaround, possessive repetitions, atomic groups), or is rarely used (nested classes,
Unicode's classes, other flags and escapes, characters outside ASCII by number, expressions larger than SIZE_MAX).

Differences from Java: `$` matches at the very end only, not before a line terminator there, which matters only if
something after it matches that line terminator; and `(^|a){2}` matches `a`, where Java does not try the second
alternative. Compared with Java 17 by 80,000 generated patterns.
"""

from __future__ import annotations

from types import MappingProxyType

from pykafkad.pure.regex.alphabets import POSIX, AnyText
from pykafkad.pure.regex.parsing import DOT_ALL, IGNORE_CASE, InvalidPattern, Parser, Tree

SIZE_MAX = 2_000
LONGEST = 32_767  # of a string on the wire
NAMED_MAX = 256  # characters outside ASCII in a pattern
LINE_ENDS = "\n\r\u0085\u2028\u2029"

UNSUPPORTED_GROUPS = {
    "(?=": "lookaheads",
    "(?!": "lookaheads",
    "(?<=": "lookbehinds",
    "(?<!": "lookbehinds",
    "(?>": "atomic groups",
}
UNSUPPORTED_ESCAPES = {
    **dict.fromkeys("123456789k", "backreferences"),
    **dict.fromkeys("0ceuN", "characters by their numbers or names"),
    **dict.fromkeys("hvHRVX", "spaces, ends of lines and clusters by escapes"),
    **dict.fromkeys("GZ", r"\G and \Z"),
}
UNSUPPORTED_FLAGS = frozenset("dmuxU")
POSIX_NAMES = {"ASCII": "ascii", "XDigit": "xdigit"} | {
    name.capitalize(): name for name in POSIX if name not in ("ascii", "xdigit", "word")
}


class Unsupported(InvalidPattern):
    """Java supports it and we do not; the text is our own."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} are not supported")


class Text(AnyText):
    """An attribute of a client, as a pattern sees it."""

    def __init__(self, pattern: str) -> None:
        outside = {ord(character) for character in pattern if not character.isascii()}
        if len(outside) > NAMED_MAX:
            raise Unsupported(f"more than {NAMED_MAX} different characters outside ASCII")
        super().__init__(outside | set(map(ord, LINE_ENDS)))
        self.perl = {**self.perl, "s": self.posix["space"]}
        self.not_line_ends = self.all & ~self.of(LINE_ENDS)


def parse(pattern: str) -> Tree:
    return parser(pattern).parse()


def parser(pattern: str) -> Parser:
    return JavaParser(pattern, Text(pattern))


class JavaParser(Parser):
    FLAGS = MappingProxyType({"i": IGNORE_CASE, "s": DOT_ALL})

    def __init__(self, pattern: str, alphabet: Text) -> None:
        super().__init__(pattern, alphabet, LONGEST)
        self._text = alphabet
        self._flags_end = -1  # the end of the last (?i), which cannot be repeated

    def _step(self, character: str, was_repeat: bool) -> None:
        if was_repeat and character in "+{":
            raise Unsupported("possessive and repeated repetitions")
        if character in "*+?{" and self.at == self._flags_end:
            raise InvalidPattern("missing argument to repetition operator")
        super()._step(character, was_repeat)

    def _dot(self) -> int:
        return self._text.all if self.flags & DOT_ALL else self._text.not_line_ends

    def _checked(self, tree: Tree) -> Tree:
        if tree[1] > SIZE_MAX:
            raise Unsupported("expressions as large as this")
        return tree

    def _brace(self) -> None:
        raise InvalidPattern("a brace without counts")

    def _span(self, low: int, high: int) -> int:
        if not (self._text.tells(low) and self._text.tells(high)):
            raise Unsupported("characters outside ASCII that are given by their numbers")
        return super()._span(low, high)

    def _open(self) -> None:
        if self.text.startswith("(?", self.at):
            self._check_special_group()
        super()._open()

    def _check_special_group(self) -> None:
        for beginning, what in UNSUPPORTED_GROUPS.items():
            if self.text.startswith(beginning, self.at):
                raise Unsupported(what)
        if self.text.startswith("(?P", self.at):
            raise InvalidPattern("a group of Python's")
        if self.text[self.at + 2 : self.at + 3] in UNSUPPORTED_FLAGS:
            raise Unsupported("flags but i and s")

    def _change_flags(self) -> bool:
        is_group = super()._change_flags()
        self._flags_end = -1 if is_group else self.at
        return is_group

    def _named(self) -> None:
        start = self.at + len("(?<")
        super()._named()
        if not self.text[start].isalpha() or "_" in self.text[start : self.at]:
            raise InvalidPattern("invalid named capture")

    def _escaped(self) -> None:
        self._check_escape()
        super()._escaped()

    def _escape(self) -> int:
        self._check_escape()
        return super()._escape()

    def _check_escape(self) -> None:
        what = UNSUPPORTED_ESCAPES.get(self.text[self.at + 1 : self.at + 2])
        if what is not None:
            raise Unsupported(what)

    def _unicode_class(self, is_negated: bool) -> int:
        start = self.at + len("\\p{")
        end = self.text.find("}", start)
        name = POSIX_NAMES.get(self.text[start:end]) if self.text[start - 1 : start] == "{" else None
        if name is None:
            raise Unsupported("classes of Unicode")
        self.at = end + 1
        bits = self.alphabet.posix[name]
        if self.flags & IGNORE_CASE:
            bits = self.alphabet.without_case(bits)
        return self.alphabet.all & ~bits if is_negated else bits

    def _class_item(self) -> int:
        if self._next_is("["):
            raise Unsupported("classes within classes")
        if self.text.startswith("&&", self.at):
            raise Unsupported("intersections of classes")
        return super()._class_item()
