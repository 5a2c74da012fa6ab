"""Vectors made by Kafka's own classes decode to the values they stand for, and encode to the same bytes."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.hot import wire
from tests.reference.forms import from_json

GOLDEN = Path(__file__).parents[1] / "golden"


def lines(name: str) -> list[dict[str, Any]]:
    with gzip.open(GOLDEN / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


# What only Kafka 3.9 has, between the brokers of a cluster and in versions that 4.0 dropped, is in a file of its own.
BY_MESSAGE = {
    name: list(vectors)
    for name, vectors in itertools.groupby(
        sorted(
            [*lines("messages.jsonl.gz"), *lines("messages-3.9.jsonl.gz")], key=lambda each: each["message"]
        ),
        key=lambda vector: vector["message"],
    )
}


def test_every_message_of_kafka_has_vectors() -> None:
    assert set(messages.names()) == set(BY_MESSAGE)
    assert sum(map(len, BY_MESSAGE.values())) == 3640 + 510


@pytest.mark.parametrize("name", BY_MESSAGE)
def test_vectors_decode_and_encode_to_the_same_bytes(name: str) -> None:
    cls = getattr(messages, name)
    for vector in BY_MESSAGE[name]:
        data, version = bytes.fromhex(vector["hex"]), vector["version"]
        decoded, end = cls.decode_prefix(data, version)
        assert end == len(data), vector["kind"]
        assert decoded.encode(version) == data, vector["kind"]
        built = from_json(cls, vector["json"], vector.get("unknownTags"))
        assert decoded == built, vector["kind"]
        assert built.encode(version) == data, vector["kind"]


@pytest.mark.parametrize("name", BY_MESSAGE)
def test_facts_of_a_class_are_those_of_its_vectors(name: str) -> None:
    cls = getattr(messages, name)
    versions = [vector["version"] for vector in BY_MESSAGE[name]]
    assert (cls.min_version, cls.max_version) == (min(versions), max(versions))
    for vector in BY_MESSAGE[name]:
        assert vector["flexible"] == (vector["version"] >= cls.flexible_since)
        assert vector.get("apiKey") == (None if cls.api_key < 0 else cls.api_key)


@pytest.mark.parametrize("name", BY_MESSAGE)
def test_every_cut_of_a_message_is_refused(name: str) -> None:
    cls = getattr(messages, name)
    for vector in BY_MESSAGE[name]:
        data = bytes.fromhex(vector["hex"])
        for end in range(0, len(data), 1 + len(data) // 50):
            with pytest.raises(wire.WireError):
                cls.decode(data, vector["version"], 0, end)


def test_the_exchange_of_the_java_client_and_a_broker_is_read_and_written_back() -> None:
    exchanges = lines("exchanges.jsonl.gz")
    assert len(exchanges) == 171
    requests = [getattr(messages, exchange["api"] + "Request") for exchange in exchanges]
    reader = wire.RequestReader({each.api_key: wire.Route(each, (0, 99), None) for each in requests}.get)
    for exchange in exchanges:
        check_request(reader, exchange)
        check_response(exchange)


def check_request(reader: wire.RequestReader, exchange: dict[str, Any]) -> None:
    data = bytes.fromhex(exchange["request"])
    read, decoded = reader.read(None, data, 0, len(data))
    assert (read.api_key, read.version) == (exchange["apiKey"], exchange["version"])
    assert (read.correlation_id, read.client_id) == (exchange["correlationId"], exchange["clientId"])
    assert decoded == from_json(getattr(messages, exchange["api"] + "Request"), exchange["requestJson"])
    framed = wire.request(decoded, read.version, read.correlation_id, read.client_id)
    assert framed == len(data).to_bytes(4, "big") + data


def check_response(exchange: dict[str, Any]) -> None:
    data = bytes.fromhex(exchange["response"])
    cls, version = getattr(messages, exchange["api"] + "Response"), exchange["version"]
    flexible_header = version >= cls.flexible_since and exchange["api"] != "ApiVersions"
    body = 5 if flexible_header else 4
    decoded, end = cls.decode_prefix(data, version, body)
    assert end == len(data)
    assert decoded == from_json(cls, exchange["responseJson"])
    framed = wire.frame(decoded, version, exchange["correlationId"], flexible_header)
    assert framed == len(data).to_bytes(4, "big") + data
