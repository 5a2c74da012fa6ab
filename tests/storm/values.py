"""Values that hurt: the extremes of each type of the protocol and of the configs, texts, patterns.

Owns no state: everything is chosen by the given random generator, so that a seed makes the same again.
"""

from __future__ import annotations

import random
import struct

from pykafkad.config_def import Key

INTEGERS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
LONGEST = 32_767  # bytes of a string with a length of two bytes
SIZES = (0, 1, 2, 126, 127, 128, 249, 250, 255, 256, 4096, LONGEST - 7, LONGEST - 1, LONGEST)
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 1e-320, 1e308, -1e308, float("inf"), float("-inf"), float("nan"))

# Four bytes of UTF-8 that stand for malformed ones: making.py puts those into the frame.
NO_TEXT = "\U0010fffd"
NO_UTF8 = (
    b"\xff\xfe\xfd\xfc",
    b"\xc0\xaf\xed\xa0",
    b"\xf4\x90\x80\x80",
    b"\x80\x80\x80\xe2",
    b"\xed\xa0\x80\xf0",
)

TEXTS = (
    "", " ", ".", "..", "_", "a_b.c", "null", "-1", "*", "\0", "\n", "\t", "/", "../../etc/passwd", "%s%n",
    "{}", "a,b", ",", "=", "a=b", "ß", "ｅ", "\u202e", "İı", "\ud7ff", "\ue000", "\U0001f600" * 3, "é" * 300,
    NO_TEXT, "a" + NO_TEXT + "b", "__consumer_offsets", "__transaction_state", "__cluster_metadata",
    "<default>", "9" * 5000, "1e999", "0x1p99999",
)  # fmt: skip

PATTERNS = (
    "", ".*", "storm-.*", "(a+)+b", "(a|a)*", "(a|aa)+$", "((((){1000}){1000}){1000}){1000}",
    "(((a{1000}){1000}){1000})", "(?:){2147483647}", "a{2147483647}", "a{0,1000}" * 20, "(" * 5000, "[" * 1000,
    "(" * 500 + "a" + ")" * 500, "\\", "[", "(?", "(?i)STORM-.*", "[[:alpha:]]+", "\\p{L}+", "\\pN",
    "[^\\x00-\\x{10FFFF}]", "(?P<n>a)", "a**", "\\Q*", "(.*)(.*)(.*)(.*)(.*)x", ".{1000}",
    "(storm|made)-[0-9]{1,3}", "|" * 1000, "(|)*" * 50, "x*" * 2000, "[a-z]{1,500}[a-z]{1,500}",
    "\\b\\B^$" * 200, "(x+x+)+y", "([a-zA-Z]+)*$", "(.*){1,1000}", "^(([a-z])+.)+[A-Z]([a-z])+$", NO_TEXT,
)  # fmt: skip


def integer(chance: random.Random, kind: str) -> int:
    """An extreme of the type, or a neighbour of one."""
    bits = INTEGERS[kind]
    least = 0 if kind.startswith("u") else -(1 << (bits - 1))
    most = least + (1 << bits) - 1
    extremes = (least, least + 1, -1, 0, 1, 2, most // 2, most - 1, most, chance.randint(least, most))
    return max(least, min(most, chance.choice((*extremes, -2, 10, 100, 1000, 65_536, 100_000, 10_000_000))))


def text(chance: random.Random) -> str:
    """A text of a kind that is seldom thought of."""
    if chance.random() < 0.7:
        return chance.choice(TEXTS)
    size = chance.choice(SIZES)
    letter = chance.choice(("a", "_", ".", "0", "é", "\u3042", NO_TEXT, "\0"))
    return letter * (size // len(letter.encode()))


def number(chance: random.Random) -> float:
    return chance.choice((*FLOATS, chance.random(), float(chance.randint(-(1 << 63), 1 << 63))))


def some_bytes(chance: random.Random) -> bytes:
    size = chance.choice((0, 1, 2, 3, 4, 8, 16, 61, 100, 1000, 70_000))
    return chance.choice((bytes(size), b"\xff" * size, chance.randbytes(size)))


def uuid(chance: random.Random) -> bytes:
    return chance.choice((bytes(16), bytes(15) + b"\1", b"\xff" * 16, chance.randbytes(16)))


HUGE = (
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\xff\xff\xff\xff\x07",
    bytes(4),
    b"\x80\x80\x80\x80\x10",
)  # counts

# -- configs

WHOLE_NUMBERS = (
    "0", "1", "-1", "2", "100", "1000", "2147483647", "-2147483648", "4294967296", "9223372036854775807",
    "-9223372036854775808", "9223372036854775808", " 7 ", "+1", "1_000", "٣", "1e3", "0x10", "", "9" * 5000,
)  # fmt: skip
REAL_NUMBERS = (
    "0", "-0.0", "1", "0.5", "1.0000001", "-1", "1e308", "1e-320", "NaN", "Infinity", "0x1p99999", "0x1p3",
    "1d", "1e999999999", "9" * 5000, "",
)  # fmt: skip
BOOLEANS = ("true", "false", "TRUE", "yes", "")
LISTS = (
    "", ",", "a", "a,a", " a , b ", "*", "h:²", "h:-+5", "0:1", "0:1,1:1", "compact", "delete",
    "compact,delete", "9" * 5000 + ":1", ",".join(["0:1"] * 3000), "client_id=(a+)+b",
    "client_id=((((){1000}){1000}){1000}){1000}", "client_software_name=.*",
)  # fmt: skip
STRINGS = (
    "", " ", "none", "producer", "gzip", "zstd", "LogAppendTime", "CreateTime", "earliest",
    "by_duration:P9999999999D", "by_duration:PT1S", "read_committed", "x" * 30_000, NO_TEXT, "é", "\0", "../..",
)  # fmt: skip
CONFIG_VALUES = {
    "BOOLEAN": BOOLEANS, "SHORT": WHOLE_NUMBERS, "INT": WHOLE_NUMBERS, "LONG": WHOLE_NUMBERS, "DOUBLE": REAL_NUMBERS,
    "LIST": LISTS, "CLASS": STRINGS, "PASSWORD": STRINGS, "STRING": STRINGS,
}  # fmt: skip


def config_values(key: Key) -> tuple[str, ...]:
    """Values that the type can and cannot hold, the bounds of the key, and its enumerated values."""
    named = key.validator.replace("?", "").split(" ", 1)
    words = named[-1].split("|") if len(named) > 1 else []
    bounds = [
        bound
        for bound in key.validator.split("|")[0].split("..")
        if bound.lstrip("-").replace(".", "").isdigit()
    ]
    return tuple(dict.fromkeys((*bounds, *words, *CONFIG_VALUES[key.type])))


# -- bytes that hold a message of another protocol


def consumer_subscription(chance: random.Random, topics: list[str]) -> bytes:
    """A consumer's metadata for joining a classic group: well formed, or with changed counts."""
    body = struct.pack(">hi", chance.choice((0, 1, 2, 3)), len(topics))
    for topic in topics:
        encoded = topic.encode()[:LONGEST]
        body += struct.pack(">h", len(encoded)) + encoded
    return damaged(chance, body + struct.pack(">iiih", -1, 0, -1, -1))


def consumer_assignment(chance: random.Random, topics: list[str]) -> bytes:
    body = struct.pack(">hi", chance.choice((0, 1, 2, 3)), len(topics))
    for topic in topics:
        encoded = topic.encode()[:LONGEST]
        body += struct.pack(">h", len(encoded)) + encoded + struct.pack(">iii", 2, 0, 1)
    return damaged(chance, body + struct.pack(">i", -1))


def damaged(chance: random.Random, body: bytes, likely: float = 0.3) -> bytes:
    """The same bytes, cut or with some of them changed, as often as given."""
    if not body or chance.random() >= likely:
        return body
    at = chance.randrange(len(body))
    if chance.random() < 0.4:
        return body[:at]
    put = chance.choice(
        (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80", b"\xff\xff\xff\xff\x0f", chance.randbytes(1))
    )
    return body[:at] + put + body[at + len(put) :]
