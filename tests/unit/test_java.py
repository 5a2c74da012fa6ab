"""What Java's classes do, as far as Kafka's answers show it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pykafkad.pure import java, timeline


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("😀", 1772899), ("polygenelubricants", 2**31)],
)
def test_hash_codes(text: str, code: int) -> None:
    assert java.hash_code(text) == code


def test_a_set_gives_its_names_by_their_hash_codes() -> None:
    assert java.set_order(["b", "a", "b", "P"]) == ["P", "a", "b"]
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


def read(parse: Callable[[str], float], text: str) -> float | None:
    try:
        return parse(text)
    except ValueError:
        return None


ZEROS = "0" * 5_000
REFUSED = None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("+7", 7),
        ("-0012", -12),
        (ZEROS + "5", 5),
        ("٣１", 31),
        ("2147483647", 2**31 - 1),
        ("-2147483648", -(2**31)),
        *dict.fromkeys(
            ["", "+", "-", "--1", "+-1", "-+5", " 1", "1 ", "1_0", "²", "\U0001d7ce", "1L", "1.0", "0x1"], REFUSED
        ).items(),
        ("2147483648", REFUSED),
        ("-2147483649", REFUSED),
        ("1" * 5_000, REFUSED),
    ],
)  # fmt: skip
def test_whole_numbers_are_read_as_java_does(text: str, number: int | None) -> None:
    assert read(java.parse_int, text) == number


def test_longs_and_shorts_have_bounds_of_their_own() -> None:
    assert java.parse_long("9223372036854775807") == 2**63 - 1
    assert java.parse_short("-32768") == -32768
    for parse, text in ((java.parse_long, "9223372036854775808"), (java.parse_short, "32768")):
        with pytest.raises(ValueError, match=text):
            parse(text)


INFINITY = float("inf")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0x1p99999", INFINITY),
        ("-0x1p99999", -INFINITY),
        ("0x0p99999999999999999999", 0.0),
        ("0x1p-99999999999999999999", 0.0),
        ("0X1.8P3f", 12.0),
        ("0x.8p1", 1.0),
        ("1e400", INFINITY),
        ("1e-400", 0.0),
        (" -1.5e3D\t", -1500.0),
        ("1.", 1.0),
        (".5f", 0.5),
        ("+Infinity", INFINITY),
        ("9" * 5_000, INFINITY),
        *dict.fromkeys(
            ["", ".", "1e", "inf", "nan", "INFINITY", "NaNd", "0x", "0x1", "0x1p", "0x.p1", "1dd", "1 d", "1L"], REFUSED
        ).items(),
        ("1_0", REFUSED),
        ("１", REFUSED),
        ("1\xa0", REFUSED),
    ],
)  # fmt: skip
def test_numbers_with_fractions_are_read_as_java_does(text: str, number: float | None) -> None:
    assert read(java.parse_double, text) == number


def test_not_a_number_has_one_name() -> None:
    assert str(java.parse_double("-NaN")) == "nan"


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("PT0.5S", 500_000_000),
        ("PT-0.5S", -500_000_000),
        ("-PT-1M", 60 * 10**9),
        ("p1dT1h", 90_000 * 10**9),
        ("PT1,S", 10**9),
        ("PT9223372036854775807S", (2**63 - 1) * 10**9),
        *dict.fromkeys(["", "P", "PT", "1H", "PT1", "PT1H1D", "PT1.1M", "P1.5D", "PT１S"], REFUSED).items(),
        ("PT9223372036854775808S", REFUSED),
        ("P106751991167301D", REFUSED),
    ],
)
def test_durations_are_read_as_java_does(text: str, nanoseconds: int | None) -> None:
    assert read(java.parse_duration, text) == nanoseconds


def test_a_map_keeps_the_table_of_the_most_it_ever_held() -> None:
    names = [chr(number) for number in range(ord("h"), ord("h") + 12)]
    assert java.map_order(names, 12) == [*names[8:], *names[:8]]
    assert java.map_order(names, 13) == names
    together = ["Aa", "BB"]  # one hash code
    assert java.map_order(together) == together and java.map_order(together[::-1]) == together[::-1]


def test_a_concurrent_map_grows_one_earlier() -> None:
    numbers = [*range(1, 11), 33]
    assert java.concurrent_order(numbers, lambda number: number) == [1, 33, *range(2, 11)]
    numbers = [*range(2, 12), 33, 17]
    assert java.concurrent_order(numbers, lambda number: number) == [33, *range(2, 12), 17]


# As Kafka 4.3.1 lists members that came in the order of their numbers (compat_tests/differential/test_map_orders.py).
MEMBERS = [f"member-{number}" for number in range(20)]
FIVE = ["member-3", "member-0", "member-2", "member-4", "member-1"]
TWENTY = [
    "member-13",
    "member-18",
    "member-3",
    "member-10",
    "member-8",
    "member-0",
    "member-15",
    "member-5",
    "member-12",
    "member-17",
    "member-2",
    "member-7",
    "member-14",
    "member-19",
    "member-4",
    "member-11",
    "member-9",
    "member-1",
    "member-16",
    "member-6",
]


@pytest.mark.parametrize(
    ("most", "bits"), [(1, 1), (2, 1), (3, 2), (5, 2), (6, 3), (10, 3), (11, 4), (21, 4), (22, 5)]
)
def test_the_table_of_kafkas_map(most: int, bits: int) -> None:
    assert timeline.bits_for(most) == bits


def test_the_order_of_kafkas_map() -> None:
    assert timeline.map_order(MEMBERS[:5], 6) == FIVE
    assert timeline.map_order(MEMBERS, 21) == TWENTY
    assert timeline.map_order(["Aa", "BB"], 2) == ["BB", "Aa"], (
        "the last one that was put into a place is first"
    )
