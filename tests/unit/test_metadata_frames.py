"""The frame of a metadata record (frame version, API key and version, as varints), and control records."""

from __future__ import annotations

import pytest

from pykafkad.cluster.metadata_records import (
    MetadataError,
    control_key,
    control_type,
    decode,
    encode,
    frame,
    has_unknown_tags,
    kraft_version_of,
    quorum,
    read_uvarint,
    type_of,
    uvarint,
    version_of,
)
from pykafkad.messages import ClientQuotaRecord, RegisterBrokerRecord, TopicRecord

TOPIC = TopicRecord(name="orders", topic_id=bytes(range(16)))


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        ((1 << 32) - 1, "ffffffff0f"),
    ],
)
def test_numbers_are_written_and_read_in_groups_of_seven_bits(number: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert uvarint(number) == data
    assert read_uvarint(data, 0) == (number, len(data))
    assert read_uvarint(b"\xff" + data + b"\xff", 1) == (number, 1 + len(data))


@pytest.mark.parametrize("encoded", ["", "80", "ffff", "8080808080", "808080808001"])
def test_a_number_that_does_not_end_is_malformed(encoded: str) -> None:
    with pytest.raises(MetadataError, match="malformed record frame"):
        read_uvarint(bytes.fromhex(encoded), 0)


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        ("010200", (1, 2, 0, 3)),
        ("01020033", (1, 2, 0, 3)),
        ("0102ac0200", (1, 2, 300, 4)),
        ("ac020201", (300, 2, 1, 4)),
        ("01ac0201", (1, 300, 1, 4)),
        ("80000000", (0, 0, 0, 4)),
        ("7f7f7f", (127, 127, 127, 3)),
    ],
)
def test_a_frame_is_read_whatever_its_numbers_take(encoded: str, expected: tuple[int, int, int, int]) -> None:
    data = bytes.fromhex(encoded)
    assert frame(data) == frame(memoryview(data)) == expected
    assert (type_of(data), version_of(data)) == expected[1:3]


@pytest.mark.parametrize("encoded", ["", "01", "0102", "0102ac", "8001"])
def test_a_frame_that_is_cut_off_is_malformed(encoded: str) -> None:
    with pytest.raises(MetadataError, match="malformed record frame"):
        frame(bytes.fromhex(encoded))


def test_a_record_is_framed_and_read_again() -> None:
    value = encode(TOPIC, 0)
    assert value[:3] == b"\x01\x02\x00"
    assert decode(value) == decode(memoryview(value)) == TOPIC


def test_what_is_not_known_is_told_apart_from_what_is_wrong() -> None:
    value = encode(TOPIC, 0)
    assert decode(b"\x01\xac\x02\x00rest") is None, "a type of a newer Kafka"
    for changed, why in (
        (b"\x02" + value[1:], "unknown frame version 2"),
        (b"\x01\x02\x7f" + value[3:], "unknown version 127 of TopicRecord"),
        (value[:-3], "malformed TopicRecord"),
    ):
        with pytest.raises(MetadataError, match=why):
            decode(changed)


def test_what_is_not_known_may_stand_in_a_part_of_a_record() -> None:
    for record in (
        RegisterBrokerRecord(end_points=[RegisterBrokerRecord.BrokerEndpoint()]),
        RegisterBrokerRecord(features=[RegisterBrokerRecord.BrokerFeature()]),
        ClientQuotaRecord(entity=[ClientQuotaRecord.EntityData()]),
        TopicRecord(),
    ):
        assert has_unknown_tags(record) is False
        parts = [
            each for field in ("end_points", "features", "entity") for each in getattr(record, field, [])
        ]
        (parts or [record])[0].unknown_tags = {99: b"x"}
        assert has_unknown_tags(record) is True


def test_control_records_name_their_type_and_the_kraft_version() -> None:
    (level_type, level), (_, voters) = quorum(1, b"voters")
    assert kraft_version_of(level) == 1 and voters == b"voters"
    assert control_type(control_key(level_type)) == level_type
    assert control_key(3) == b"\0\0\0\3" and control_type(b"\0\1\1\2rest") == 258
    assert kraft_version_of(b"\0\0\xff\xff") == -1
    for short in (None, b"", b"\0\0\0"):
        with pytest.raises(MetadataError, match="control record without a type"):
            control_type(short)
        with pytest.raises(MetadataError, match=r"control record without a kraft\.version"):
            kraft_version_of(short)
