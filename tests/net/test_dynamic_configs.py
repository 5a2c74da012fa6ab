"""Configs altered while the program runs: they take effect at once, and are there after a stop and after a kill."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from pykafkad.hot import records
from pykafkad.messages import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ProduceRequest,
)
from pykafkad.testing import Broker

TOPIC, BROKER, GROUP = 2, 4, 32
MESSAGE_TOO_LARGE = 10
NOW_MS = 1_700_000_000_000


def alter(broker: Broker, resource_type: int, name: str, **configs: str) -> None:
    kind = IncrementalAlterConfigsRequest
    entries = [
        kind.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
        for key, value in configs.items()
    ]
    resource = kind.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=entries)
    with broker.client() as client:
        (answer,) = client.call(kind(resources=[resource]), 1).responses
    assert answer.error_code == 0, answer


def described(broker: Broker, resource_type: int, name: str, key: str) -> tuple[str, int]:
    kind = DescribeConfigsRequest
    resource = kind.DescribeConfigsResource(
        resource_type=resource_type, resource_name=name, configuration_keys=[key]
    )
    with broker.client() as client:
        (entry,) = client.call(kind(resources=[resource]), 4).results[0].configs
    return entry.value, entry.config_source


def produce(broker: Broker, topic: str, size: int) -> int:
    data = records.build([(None, bytes(size), [], NOW_MS)])
    part = ProduceRequest.PartitionProduceData(index=0, records=data)
    request: Any = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[part])],
    )
    with broker.client() as client:
        return int(client.call(request, 9).responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_what_was_changed_counts_at_once_and_after_a_restart(way: str) -> None:
    with Broker(topics=["orders", "bills"]) as broker:
        assert produce(broker, "orders", 1000) == 0
        alter(broker, BROKER, "", message_max_bytes="500")
        alter(broker, TOPIC, "bills", max_message_bytes="2000")
        alter(broker, GROUP, "readers", consumer_session_timeout_ms="50000")
        quota = AlterClientQuotasRequest.EntryData(
            entity=[AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="ann")],
            ops=[AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=5.0)],
        )
        with broker.client() as client:
            client.call(AlterClientQuotasRequest(entries=[quota]), 1)
        for turn in range(2):
            assert produce(broker, "orders", 1000) == MESSAGE_TOO_LARGE
            assert produce(broker, "bills", 1000) == 0
            assert described(broker, TOPIC, "orders", "max.message.bytes") == ("500", 3)
            assert described(broker, TOPIC, "bills", "max.message.bytes") == ("2000", 1)
            assert described(broker, GROUP, "readers", "consumer.session.timeout.ms") == ("50000", 8)
            with broker.client() as client:
                (entry,) = client.call(DescribeClientQuotasRequest(), 1).entries
            assert entry.values[0].value == 5.0
            if turn == 0:
                getattr(broker, way)()
                broker.restart()
        assert "Traceback" not in broker.log_text()


def test_connections_are_bounded_from_the_change_on() -> None:
    with Broker() as broker:
        alter(broker, BROKER, "1", max_connections_per_ip="1")
        with socket.create_connection(("127.0.0.1", broker.port)) as first:
            first.settimeout(10)
            with socket.create_connection(("127.0.0.1", broker.port)) as second:
                second.settimeout(10)
                assert second.recv(1) == b"", "the second is shown out"
