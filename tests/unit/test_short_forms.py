"""A short form has the same bytes as the whole message, and is only read if it has the same content."""

from __future__ import annotations

import array
import ast
import random
from pathlib import Path
from typing import Any

import pytest

from pykafkad import short_forms
from pykafkad.hot import wire
from pykafkad.messages import ProduceRequest, ProduceResponse
from pykafkad.short_forms import LoneProduceRequest, LoneProduceResponse

VERSIONS = range(9, 14)
WITH_IDS = 13
MUTANTS = 4000

whole_reader = wire.RequestReader(lambda key: wire.Route(ProduceRequest, (0, 13), None))
short_reader = wire.RequestReader(
    lambda key: wire.Route(ProduceRequest, (0, 13), None, short_form=LoneProduceRequest)
)


def topic(version: int, partitions: list[Any]) -> Any:
    named = {"topic_id": bytes(range(16))} if version >= WITH_IDS else {"name": "orders"}
    return ProduceRequest.TopicProduceData(partition_data=partitions, **named)


def partition(index: int = 3, records: bytes | None = b"not looked at") -> Any:
    return ProduceRequest.PartitionProduceData(index=index, records=records)


def produce(topics: list[Any], **fields: Any) -> Any:
    return ProduceRequest(acks=-1, timeout_ms=1500, topic_data=topics, **fields)


def read(reader: wire.RequestReader, data: bytes) -> Any:
    exact = array.array("B", data)  # an allocation that ends where the data ends, for the sanitizers
    return reader.read(None, exact, 0, len(data))[1]


def body(data: bytes | list[Any]) -> bytes:
    assert isinstance(data, bytes)
    return data[4:]


def assert_same(lone: Any, whole: Any) -> None:
    """The short form has the same content as the whole request."""
    (each,) = whole.topic_data
    (item,) = each.partition_data
    assert (lone.transactional_id, lone.acks, lone.timeout_ms) == (
        whole.transactional_id,
        whole.acks,
        whole.timeout_ms,
    )
    assert (lone.name, lone.topic_id, lone.index) == (each.name, each.topic_id, item.index)
    assert (lone.records is None) == (item.records is None)
    assert lone.records is None or bytes(lone.records) == bytes(item.records)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transactional_id", [None, "", "payments"])
@pytest.mark.parametrize("records", [None, b"", b"x" * 300])
def test_a_request_for_one_partition_is_read_short(
    version: int, transactional_id: str | None, records: bytes | None
) -> None:
    whole = produce([topic(version, [partition(records=records)])], transactional_id=transactional_id)
    data = body(wire.request(whole, version, 7, "me"))
    lone = read(short_reader, data)
    assert type(lone) is LoneProduceRequest
    assert_same(lone, read(whole_reader, data))
    assert lone.encode(version) == whole.encode(version)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_has_another_shape_is_read_whole(version: int) -> None:
    tagged = partition()
    tagged.unknown_tags = {5: b"kept"}
    one = topic(version, [partition()])
    shapes = [
        produce([]),
        produce([topic(version, [])]),
        produce([topic(version, [partition(1), partition(2)])]),
        produce([one, one]),
        produce([topic(version, [tagged])]),
        produce([one], unknown_tags={9: b""}),
    ]
    for whole in shapes:
        data = body(wire.request(whole, version, 7, None))
        got = read(short_reader, data)
        assert type(got) is ProduceRequest
        assert got.encode(version) == whole.encode(version)


def test_versions_before_it_are_read_whole() -> None:
    data = body(wire.request(produce([topic(8, [partition()])]), 8, 7, None))
    assert type(read(short_reader, data)) is ProduceRequest


@pytest.mark.parametrize("seed", range(4))
def test_the_verdict_on_any_bytes_is_that_of_the_whole_message(seed: int) -> None:
    chance = random.Random(seed)
    kinds = dict.fromkeys(("short", "whole", "refused"), 0)
    for _ in range(MUTANTS):
        version = chance.choice(VERSIONS)
        parts = [partition(index) for index in range(chance.choice((1, 1, 1, 2)))]
        data = bytearray(body(wire.request(produce([topic(version, parts)]), version, 7, "me")))
        if chance.random() < 0.9:
            data[chance.randrange(12, len(data))] = chance.choice((0, 1, 2, 3, 0x7F, 0x80, 0xFF))
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        kinds[compare(bytes(data))] += 1
    assert min(kinds.values()) > MUTANTS / 20, kinds


def verdict(reader: wire.RequestReader, data: bytes) -> tuple[Any, str]:
    try:
        return read(reader, data), ""
    except wire.WireError as error:
        return None, str(error)


def compare(data: bytes) -> str:
    whole, why = verdict(whole_reader, data)
    got, again = verdict(short_reader, data)
    assert again == why
    if type(got) is not LoneProduceRequest:
        assert got == whole
        return "refused" if got is None else "whole"
    assert_same(got, whole)
    return "short"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("error_code", [0, 56])
def test_the_answer_has_the_bytes_of_the_whole_one(version: int, error_code: int) -> None:
    named = {"topic_id": bytes(range(16))} if version >= WITH_IDS else {"name": "orders"}
    said: dict[str, Any] = {
        "index": 3,
        "error_code": error_code,
        "base_offset": 1 << 40,
        "log_append_time_ms": 12,
    }
    part = ProduceResponse.PartitionProduceResponse(log_start_offset=5, **said)
    each = ProduceResponse.TopicProduceResponse(partition_responses=[part], **named)
    lone = LoneProduceResponse(log_start_offset=5, **said, **named)
    assert lone.encode(version) == ProduceResponse(responses=[each]).encode(version)


def test_the_typed_face_has_the_fields_that_there_are() -> None:
    face = ast.parse(Path(short_forms.__file__).with_suffix(".pyi").read_text())
    told = {
        node.name: [ast.unparse(each.target) for each in node.body if isinstance(each, ast.AnnAssign)]
        for node in face.body
        if isinstance(node, ast.ClassDef)
    }
    kinds: tuple[type[wire.Struct], ...] = (LoneProduceRequest, LoneProduceResponse)
    assert told == {
        kind.__name__: [field.attribute for field in wire.fields(kind) if field.type != "constant"]
        for kind in kinds
    }
