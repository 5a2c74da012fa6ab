r"""RE2's syntax for texts of any characters: Kafka matches transactional ids with it.

As in parsing.py, but with characters outside ASCII. Not supported, and refused, are Unicode's classes (`\pL`), characters
outside ASCII given by their numbers or as the ends of ranges unless the pattern has them as they are, and those without
regard to case; expressions are no larger than SIZE_MAX.
"""

from __future__ import annotations

from pykafkad.pure.regex.alphabets import AnyText
from pykafkad.pure.regex.parsing import DOT_ALL, IGNORE_CASE, InvalidPattern, Parser, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

SIZE_MAX = 10_000
LONGEST = 32_767  # of a string on the wire
NAMED_MAX = 256  # characters outside ASCII in a pattern


def parser(pattern: str) -> Parser:
    outside = {ord(character) for character in pattern if not character.isascii()}
    if len(outside) > NAMED_MAX:
        raise InvalidPattern(f"more than {NAMED_MAX} different characters outside ASCII are not supported")
    alphabet = AnyText(outside)
    return AnyTextParser(pattern, alphabet)


class AnyTextParser(Parser):
    def __init__(self, pattern: str, alphabet: AnyText) -> None:
        super().__init__(pattern, alphabet, LONGEST)
        self._characters = alphabet
        self._but_line_ends = alphabet.all & ~alphabet.of("\n")

    def _dot(self) -> int:
        return self.alphabet.all if self.flags & DOT_ALL else self._but_line_ends

    def _checked(self, tree: Tree) -> Tree:
        if tree[1] > SIZE_MAX:
            raise InvalidPattern("expressions as large as this are not supported")
        return tree

    def _span(self, low: int, high: int) -> int:
        if not (self._characters.tells(low) and self._characters.tells(high)):
            raise InvalidPattern("characters outside ASCII that are given by numbers are not supported")
        if high > 127 and self.flags & IGNORE_CASE:
            raise InvalidPattern("characters outside ASCII without regard to case are not supported")
        return super()._span(low, high)
