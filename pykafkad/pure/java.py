"""What Java's own classes do that Kafka's answers show: hash codes, and the order of a HashSet."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

SMALLEST_TABLE = 16


def hash_code(text: str) -> int:
    """String.hashCode, without its sign."""
    found = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        found = (found * 31 + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return found


def set_order(names: Iterable[str]) -> list[str]:
    """These in the order in which a HashSet of them, none of which shares a place, gives them."""
    found = dict.fromkeys(names)
    table = SMALLEST_TABLE
    while len(found) > table * 3 // 4:
        table *= 2

    def place(name: str) -> int:
        code = hash_code(name)
        return (code ^ code >> 16) & (table - 1)

    return sorted(found, key=place)


def shown_set(names: Iterable[str]) -> str:
    """HashSet.toString."""
    return f"[{', '.join(set_order(names))}]"


def as_int(number: int) -> int:
    """The low 32 bits as Java's int."""
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


def uuid_hash_code(identifier: bytes) -> int:
    """Uuid.hashCode of Kafka's, without its sign: its halves, and theirs, one over the other."""
    both = int.from_bytes(identifier[:8]) ^ int.from_bytes(identifier[8:])
    return (both >> 32 ^ both) & 0xFFFFFFFF
