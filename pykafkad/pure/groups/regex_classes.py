"""Sets of the characters that topic names are made of, as bits of an int; what classes mean within that alphabet.

A regular expression is only ever asked about topic names, so a class of it is at most 65 characters wide: the letters
and digits of ASCII, `.`, `_` and `-`. Everything else that a class can name is the empty set here. Owns the names of
classes, categories and scripts that RE2 (Kafka uses re2j 1.8) knows.
"""

from __future__ import annotations

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
ALL = (1 << len(ALPHABET)) - 1
BITS = {character: 1 << index for index, character in enumerate(ALPHABET)}

# Characters outside the alphabet that are the same letter as one of it when case is ignored.
FOLDED = {0x017F: BITS["s"] | BITS["S"], 0x212A: BITS["k"] | BITS["K"]}


def of(characters: str) -> int:
    bits = 0
    for character in characters:
        bits |= BITS[character]
    return bits


UPPER = of("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LOWER = of("abcdefghijklmnopqrstuvwxyz")
LETTERS = UPPER | LOWER
DIGITS = of("0123456789")
WORD = LETTERS | DIGITS | BITS["_"]
PUNCTUATION = of("._-")

PERL = {"d": DIGITS, "s": 0, "w": WORD}
POSIX = {
    "alnum": LETTERS | DIGITS,
    "alpha": LETTERS,
    "ascii": ALL,
    "blank": 0,
    "cntrl": 0,
    "digit": DIGITS,
    "graph": ALL,
    "lower": LOWER,
    "print": ALL,
    "punct": PUNCTUATION,
    "space": 0,
    "upper": UPPER,
    "word": WORD,
    "xdigit": of("0123456789abcdefABCDEF"),
}
UNICODE = {
    "Any": ALL,
    "L": LETTERS,
    "Lu": UPPER,
    "Ll": LOWER,
    "N": DIGITS,
    "Nd": DIGITS,
    "P": PUNCTUATION,
    "Po": BITS["."],
    "Pc": BITS["_"],
    "Pd": BITS["-"],
    "Latin": LETTERS,
    "Common": DIGITS | PUNCTUATION,
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


def span(low: int, high: int, ignore_case: bool = False) -> int:
    """The characters with code points from `low` to `high`."""
    bits = 0
    for character, bit in BITS.items():
        if low <= ord(character) <= high:
            bits |= bit
    if ignore_case:
        for code_point, folded in FOLDED.items():
            if low <= code_point <= high:
                bits |= folded
        bits = without_case(bits)
    return bits


def without_case(bits: int) -> int:
    """With each letter the other case of it."""
    return bits | (bits & UPPER) << 26 | (bits & LOWER) >> 26


def unicode_class(name: str) -> int | None:
    """A category or script by name; None where RE2 knows none of that name."""
    found = UNICODE.get(name)
    if found is None and name in ELSEWHERE:
        return 0
    return found
