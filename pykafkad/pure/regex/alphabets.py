"""The characters that a regular expression can tell apart. A set of them is an int with a bit for each.

Topic names consist of 65 characters: the letters and digits of ASCII, `.`, `_` and `-`; other characters in a class
match nothing there. In other texts the characters of ASCII are told apart, and outside of ASCII those that the pattern
names: all characters between two of these are treated as one. Owns the names of classes, categories and scripts.
"""

from __future__ import annotations

import string
from bisect import bisect_left, bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LAST_CODE_POINT = 0x10FFFF

# Characters outside ASCII that equal an ASCII letter when case is ignored.
FOLDED = ((0x017F, "sS"), (0x212A, "kK"))

ASCII = "".join(map(chr, range(128)))
PERL = {"d": string.digits, "s": "\t\n\f\r ", "w": string.ascii_letters + string.digits + "_"}
POSIX = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "ascii": ASCII,
    "blank": " \t",
    "cntrl": ASCII[:32] + "\x7f",
    "digit": string.digits,
    "graph": ASCII[33:127],
    "lower": string.ascii_lowercase,
    "print": ASCII[32:127],
    "punct": string.punctuation,
    "space": "\t\n\v\f\r ",
    "upper": string.ascii_uppercase,
    "word": PERL["w"],
    "xdigit": string.hexdigits,
}
ASCII_SETS = [
    {name: sum(1 << ord(character) for character in text) for name, text in texts.items()}
    for texts in (PERL, POSIX)
]
# As far as topic names can have them.
UNICODE = {
    "Any": ASCII,
    "L": string.ascii_letters,
    "Lu": string.ascii_uppercase,
    "Ll": string.ascii_lowercase,
    "N": string.digits,
    "Nd": string.digits,
    "P": "._-",
    "Po": ".",
    "Pc": "_",
    "Pd": "-",
    "Latin": string.ascii_letters,
    "Common": string.digits + "._-",
}
WITHOUT_TOPIC_CHARACTERS = """
Lt Lm Lo M Mn Me Mc Nl No Z Zs Zl Zp C Cc Cf Co Cs Ps Pe Pi Pf S Sm Sc Sk So Inherited Arabic Armenian Avestan
Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Cham Cherokee Coptic
Cuneiform Cypriot Cyrillic Deseret Devanagari Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati
Gurmukhi Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inscriptional_Pahlavi Inscriptional_Parthian Javanese
Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Lao Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic
Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian Old_Turkic
Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian Sinhala Sundanese Syloti_Nagri Syriac
Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh Ugaritic Unknown Vai Yi
"""
ELSEWHERE = frozenset(WITHOUT_TOPIC_CHARACTERS.split())


class Alphabet:
    """Bits in the order of code points; `starts` are the first code points of what each bit stands for."""

    __slots__ = ("_between", "_lower", "_upper", "all", "perl", "posix", "starts", "word")

    def __init__(self, starts: list[int]) -> None:
        self.starts = starts
        self.all = (1 << len(starts)) - 1
        self.perl = self._named_sets(PERL)
        self.posix = self._named_sets(POSIX)
        self.word = self.perl["w"]
        self._upper, self._lower = self.posix["upper"], self.posix["lower"]
        self._between = self._lower.bit_length() - self._upper.bit_length()  # both cases of a letter

    def _named_sets(self, texts: Mapping[str, str]) -> Mapping[str, int]:
        return {name: self.of(text) for name, text in texts.items()}

    def bit(self, character: str) -> int:
        """The bit of one character of a text."""
        raise NotImplementedError

    def of(self, characters: Iterable[str]) -> int:
        bits = 0
        for character in characters:
            bits |= self.bit(character)
        return bits

    def span(self, low: int, high: int, ignore_case: bool = False) -> int:
        """The characters with code points from `low` to `high`."""
        bits = (1 << bisect_right(self.starts, high)) - (1 << bisect_left(self.starts, low))
        return self.without_case(bits | self.folded(low, high)) if ignore_case else bits

    def folded(self, low: int, high: int) -> int:
        """What else these characters equal when case is ignored, besides the other case of ASCII letters."""
        return 0

    def without_case(self, bits: int) -> int:
        """The set with both cases of each letter."""
        return bits | (bits & self._upper) << self._between | (bits & self._lower) >> self._between

    def unicode_class(self, name: str) -> int | None:
        """A category or script by name; None if there is none of that name."""
        raise NotImplementedError


class TopicNames(Alphabet):
    __slots__ = ("_bits", "_unicode")

    def __init__(self) -> None:
        starts = sorted(map(ord, string.ascii_letters + string.digits + "._-"))
        self._bits = {chr(code_point): 1 << index for index, code_point in enumerate(starts)}
        super().__init__(starts)
        self._unicode = {name: self.of(text) for name, text in UNICODE.items()}

    def bit(self, character: str) -> int:
        return self._bits.get(character, 0)

    def folded(self, low: int, high: int) -> int:
        bits = 0
        for code_point, letters in FOLDED:
            if low <= code_point <= high:
                bits |= self.of(letters)
        return bits

    def unicode_class(self, name: str) -> int | None:
        found = self._unicode.get(name)
        return 0 if found is None and name in ELSEWHERE else found


class AnyText(Alphabet):
    """`named`: the code points outside ASCII that are told apart from those around them."""

    __slots__ = ("_named",)

    def __init__(self, named: Iterable[int]) -> None:
        self._named = frozenset(code_point for code_point in named if code_point > 127)
        beyond = {128} | self._named | {code_point + 1 for code_point in self._named}
        super().__init__([*range(128), *sorted(beyond)])

    def _named_sets(self, texts: Mapping[str, str]) -> Mapping[str, int]:
        """The sets of the named classes; they are in ASCII, whose bits are the same in every alphabet of this kind."""
        return ASCII_SETS[texts is POSIX]

    def bit(self, character: str) -> int:
        return 1 << bisect_right(self.starts, ord(character)) - 1

    def tells(self, code_point: int) -> bool:
        return code_point < 128 or code_point in self._named

    def unicode_class(self, name: str) -> int | None:
        return None


TOPIC_NAMES = TopicNames()
