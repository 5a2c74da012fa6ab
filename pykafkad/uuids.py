"""Kafka's UUIDs: 16 bytes on the wire and in logs, 22 characters of unpadded base64url for people.

The all-zero id means "none", and ids 0 and 1 are reserved (ONE is the metadata topic's). Random ones are
version 4, and Kafka never draws one whose text starts with a dash (it would look like an option to its
tools).
"""

from __future__ import annotations

import os
from binascii import Error, a2b_base64, b2a_base64

ZERO = bytes(16)
ONE = bytes(15) + b"\x01"
METADATA_TOPIC_ID = ONE

_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")


def random_uuid() -> bytes:
    """A new version 4 id whose text does not start with '-'."""
    while True:
        raw = bytearray(os.urandom(16))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        if raw[0] >> 2 != 62:  # the first six bits are the first character; 62 is '-'
            return bytes(raw)


def to_text(uuid: bytes) -> str:
    """The 22 characters that Kafka shows for 16 bytes."""
    if len(uuid) != 16:
        raise ValueError(f"a uuid has 16 bytes, not {len(uuid)}")
    return b2a_base64(uuid, newline=False).translate(_TO_URL)[:22].decode()


def from_text(text: str) -> bytes:
    """The 16 bytes for 22 characters; ValueError with Kafka's message for anything else."""
    if len(text) > 24:
        raise ValueError(f"Input string with prefix `{text[:24]}` is too long to be decoded as a base64 UUID")
    digits = text.rstrip("=")
    for character in digits:
        if not (character.isascii() and (character.isalnum() or character in "-_")):
            raise ValueError(f"Illegal base64 character {ord(character):x}")
    try:
        raw = a2b_base64(digits.encode().translate(_FROM_URL) + b"=" * (-len(digits) % 4))
    except Error as problem:
        raise ValueError(f"`{text}` is not a base64-encoded UUID") from problem
    if len(raw) != 16:
        raise ValueError(
            f"Input string `{text}` decoded as {len(raw)} bytes, which is not equal to the expected 16 bytes"
            " of a base64-encoded UUID"
        )
    return raw
