"""What Java's own classes do that shows in Kafka's answers: hash codes, the order of hash maps, parsing of numbers.

A hash map grows while keys are put into it and never shrinks, so its order also depends on the largest size it ever
had. Keys of the same bucket come in the order in which they were put there.
"""

from __future__ import annotations

from pykafkad.hot.wire import hash_code as hash_code  # String.hashCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SMALLEST_TABLE = 16

# String.trim() removes all characters up to U+0020, and nothing else (no non-breaking space).
BLANKS = "".join(map(chr, range(0x21)))


def map_order(names: Iterable[str], most: int = 0) -> list[str]:
    """The keys of a HashMap in its order. They are given in the order of insertion; `most` is its largest size ever."""
    found = list(dict.fromkeys(names))
    table = table_for(max(len(found), most))
    return sorted(found, key=lambda name: place_of(name, table))


def table_for(most: int) -> int:
    """How many buckets a HashMap has whose largest size was this."""
    table = SMALLEST_TABLE
    while most > table * 3 // 4:
        table *= 2
    return table


def place_of(name: str, table: int) -> int:
    return spread(hash_code(name)) & (table - 1)


def spread(code: int) -> int:
    """HashMap selects a bucket by the low bits, so it mixes the high ones into them."""
    return code ^ code >> 16


def set_order(names: Iterable[str]) -> list[str]:
    """The elements of a HashSet in its order, given in the order of insertion."""
    return map_order(names)


def concurrent_order(keys: Iterable[int], code_of: Callable[[int], int]) -> list[int]:
    """The keys of a ConcurrentHashMap in its order; no two may be in the same bucket. It grows a little earlier than a
    HashMap."""
    found = list(keys)
    table = SMALLEST_TABLE
    while len(found) >= table * 3 // 4:
        table *= 2
    return sorted(found, key=lambda key: spread(code_of(key)) & (table - 1))


def as_int(number: int) -> int:
    """The low 32 bits as Java's int."""
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def uuid_hash_code(identifier: bytes) -> int:
    """The hashCode of Kafka's Uuid, as an unsigned number: the xor of its four quarters."""
    both = int.from_bytes(identifier[:8]) ^ int.from_bytes(identifier[8:])
    return (both >> 32 ^ both) & 0xFFFFFFFF


# -- parsing of numbers: ValueError where Java throws a NumberFormatException


def parse_int(text: str) -> int:
    """Integer.parseInt."""
    return _parse_whole(text, 32)


def parse_long(text: str) -> int:
    """Long.parseLong."""
    return _parse_whole(text, 64)


def parse_short(text: str) -> int:
    """Short.parseShort."""
    return _parse_whole(text, 16)


def _parse_whole(text: str, bits: int) -> int:
    """At most one sign, then any number of decimal digits of any script (but none beyond U+FFFF)."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal():
        raise ValueError(text)
    if not digits.isascii():
        if max(digits) > "\uffff":
            raise ValueError(text)
        digits = "".join(str(int(digit)) for digit in digits)
    digits = digits.lstrip("0") or "0"
    if len(digits) > 19:  # no number of so many digits fits, and Python does not parse more than 4,300
        raise ValueError(text)
    value = -int(digits) if text[0] == "-" else int(digits)
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(text)
    return value


_HEXADECIMAL = r"[-+]?0x(?:[0-9a-f]+\.?|[0-9a-f]*\.[0-9a-f]+)p[-+]?[0-9]+"


def parse_double(text: str) -> float:
    """Double.parseDouble: NaN and Infinity spelled exactly so, hexadecimals with an exponent, a suffix d or f."""
    text = text.strip(BLANKS)
    sign = -1.0 if text[:1] == "-" else 1.0
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned in ("NaN", "Infinity"):
        return sign * float(unsigned)
    if not text.isascii():
        raise ValueError(text)
    lowered = text.lower()
    number = lowered[:-1] if lowered[-1:] in ("d", "f") else lowered
    if "x" in number:
        return _parse_hexadecimal(number, sign)
    if "n" in number or "_" in number or number != number.strip():
        raise ValueError(text)
    return float(number)


def _parse_hexadecimal(text: str, sign: float) -> float:
    import re  # rarely used

    if re.fullmatch(_HEXADECIMAL, text) is None:
        raise ValueError(text)
    try:
        return float.fromhex(text)
    except OverflowError:
        return sign * float("inf")


_DURATION = (  # days, then hours, minutes and seconds after a T, each of which may have a sign
    r"([-+]?)P(?:([-+]?[0-9]+)D)?"
    r"(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?"
)


def parse_duration(text: str) -> int:
    """Duration.parse, as nanoseconds."""
    import re  # needed for share groups alone

    match = re.fullmatch(_DURATION, text, re.IGNORECASE | re.ASCII)
    if match is None or match[3] in ("T", "t") or not any((match[2], match[3])):
        raise ValueError(text)
    seconds = 0
    for number, unit in ((match[6], 1), (match[5], 60), (match[4], 3600), (match[2], 86400)):
        seconds = _as_long(seconds + _as_long(parse_long(number or "0") * unit))
    fraction = int((match[7] or "0").ljust(9, "0"))
    nanoseconds = seconds * 10**9 + (-fraction if (match[6] or "").startswith("-") else fraction)
    _as_long(nanoseconds // 10**9)
    return -nanoseconds if match[1] == "-" else nanoseconds


def _as_long(number: int) -> int:
    if not -(1 << 63) <= number < 1 << 63:
        raise ValueError(number)
    return number
