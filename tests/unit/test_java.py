"""What Java's classes do, as far as Kafka's answers show it."""

from __future__ import annotations

import pytest

from pykafkad.pure import java


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("😀", 1772899), ("polygenelubricants", 2**31)],
)
def test_hash_codes(text: str, code: int) -> None:
    assert java.hash_code(text) == code


def test_a_set_gives_its_names_by_their_hash_codes() -> None:
    assert java.shown_set(["b", "a", "b", "P"]) == "[P, a, b]"
    letters = [chr(number) for number in range(ord("a"), ord("a") + 20)]
    assert java.set_order(reversed(letters)) == letters, "twenty need a table of 32"
    few = [chr(number) for number in range(ord("h"), ord("h") + 12)]
    assert java.set_order(few) == [*few[8:], *few[:8]], "twelve still fit into one of 16"


def test_numbers_are_javas() -> None:
    assert [java.as_int(number) for number in (0, 2**31 - 1, 2**31, 2**32 - 1, -1)] == [
        0,
        2**31 - 1,
        -(2**31),
        -1,
        -1,
    ]
    assert java.uuid_hash_code(bytes(16)) == 0
    assert java.uuid_hash_code(bytes(15) + b"\1") == 1
