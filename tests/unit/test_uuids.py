from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from pykafkad import uuids


def test_text_and_bytes_go_both_ways() -> None:
    raw = uuids.from_text("MkU3OEVBNTcwNTJENDM2Qg")
    assert raw == b"2E78EA57052D436B"
    assert uuids.to_text(raw) == "MkU3OEVBNTcwNTJENDM2Qg"
    assert uuids.to_text(uuids.ZERO) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuids.to_text(uuids.METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.mark.parametrize(
    "text", ["MkU3OEVBNTcwNTJENDM2Qk", "MkU3OEVBNTcwNTJENDM2Qk==", "MkU3OEVBNTcwNTJENDM2Ql"]
)
def test_padding_and_spare_bits_are_taken_as_kafka_takes_them(text: str) -> None:
    assert uuids.to_text(uuids.from_text(text)) == "MkU3OEVBNTcwNTJENDM2Qg"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "abc",
            "`abc` decoded as 2 bytes, which is not equal to the expected 16 bytes of a base64-encoded UUID",
        ),
        ("", "Input string `` decoded as 0 bytes"),
        ("MkU3OEVBNTcwNTJENDM2Q+", "Illegal base64 character 2b"),
        ("MkU3OEVBNTcwNTJENDM2QkMkU3O", "prefix `MkU3OEVBNTcwNTJENDM2QkMk` is too long"),
        ("AAAAAAAAAAAAAAAAAAAAA", "not a base64-encoded UUID"),
    ],
)
def test_other_texts_are_refused_in_kafkas_words(text: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the message is what is asserted
        uuids.from_text(text)
    assert message in str(refused.value)


def test_only_sixteen_bytes_are_a_uuid() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        uuids.to_text(b"short")


def test_random_ids_are_version_4_and_never_start_with_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    draws: Iterator[bytes] = iter([b"\xf8" + bytes(15), b"\xfb" + bytes(15), b"\xfc" + bytes(15)])
    monkeypatch.setattr(os, "urandom", lambda size: next(draws))
    drawn = uuids.random_uuid()  # the first two would read "-A..." and "-w..."
    assert uuids.to_text(drawn)[0] == "_"
    assert drawn[6] >> 4 == 4
    assert drawn[8] >> 6 == 2
    assert next(draws, None) is None


def test_random_ids_differ() -> None:
    assert len({uuids.random_uuid() for _ in range(1000)}) == 1000
