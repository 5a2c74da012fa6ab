"""The topic configs of Kafka 3.9 in a cluster on ZooKeeper: a real 3.9.2 and ours take, show and refuse the same ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.cluster.brokers import DEADLINE_S, KAFKA, OURS, MixedCluster
from pykafkad import errors
from pykafkad.messages import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
)
from pykafkad.testing.client import Client

REAL, OUR = 0, 1
TOPIC, BROKER = 2, 4
SET = 0
FORMAT, DOWN = "message.format.version", "message.downconversion.enable"
DIFFERENCE, BEFORE, AFTER = (
    f"message.timestamp.{which}.max.ms" for which in ("difference", "before", "after")
)


class Configured(MixedCluster):
    def ask(self, id: int, request: Any, version: int) -> Any:
        broker = self.home.brokers[id]
        with Client(broker.host, broker.port) as client:
            return client.call(request, version)

    def create(self, name: str, configs: dict[str, str]) -> tuple[int, str | None]:
        """Through the one that is the controller, whichever it is."""
        controller = self.ask(OUR, MetadataRequest(topics=[]), 9).controller_id
        given = [CreateTopicsRequest.CreatableTopicConfig(name=key, value=configs[key]) for key in configs]
        topic = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=1, replication_factor=2, configs=given
        )
        answer = self.ask(controller, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics[0]
        return answer.error_code, answer.error_message

    def validated(self, id: int, name: str, key: str, value: str) -> int:
        config = AlterConfigsRequest.AlterableConfig(name=key, value=value)
        wanted = AlterConfigsRequest.AlterConfigsResource(
            resource_type=TOPIC, resource_name=name, configs=[config]
        )
        code: int = (
            self.ask(id, AlterConfigsRequest(resources=[wanted], validate_only=True), 2)
            .responses[0]
            .error_code
        )
        return code

    def set(self, id: int, kind: int, name: str, key: str, value: str) -> None:
        config = IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=SET, value=value)
        wanted = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=kind, resource_name=name, configs=[config]
        )
        answer = self.ask(id, IncrementalAlterConfigsRequest(resources=[wanted], validate_only=False), 1)
        assert answer.responses[0].error_code == errors.NONE, answer

    def shown(self, id: int, name: str) -> dict[str, Any]:
        wanted = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=TOPIC, resource_name=name, configuration_keys=None
        )
        request = DescribeConfigsRequest(
            resources=[wanted], include_synonyms=True, include_documentation=False
        )
        return {each.name: each for each in self.ask(id, request, 4).results[0].configs}

    def until_same(self, name: str) -> dict[str, Any]:
        """What both show; one of them may hear of a change later."""
        deadline = time.monotonic() + DEADLINE_S
        while (ours := self.shown(OUR, name)) != (real := self.shown(REAL, name)):
            assert time.monotonic() < deadline, (ours, real)
            time.sleep(0.02)
        assert ours
        return ours


@pytest.fixture(scope="module")
def cluster() -> Iterator[Configured]:
    with Configured([KAFKA, OURS]) as started:
        yield started


@pytest.mark.parametrize(
    ("name", "configs"),
    [
        ("nothing", {}),
        ("format", {FORMAT: "0.10.2"}),
        ("format-and-more", {FORMAT: "2.3.1-IV1", DOWN: "false", "retention.ms": "60000"}),
        ("difference", {DIFFERENCE: "1000"}),
        ("one-direction", {DIFFERENCE: "1000", BEFORE: "5"}),
        ("tiny", {"segment.bytes": "14"}),
    ],
)
def test_both_show_the_same(cluster: Configured, name: str, configs: dict[str, str]) -> None:
    assert cluster.create(name, configs) == (errors.NONE, None)
    shown = cluster.until_same(name)
    assert {key: shown[key].value for key in configs} == configs and len(shown) == 36


def test_both_take_and_refuse_the_same(cluster: Configured) -> None:
    assert cluster.create("asked", {})[0] == errors.NONE
    cluster.until_same("asked")
    versions = (
        "0.8.0",
        "1.0.2",
        "2.8",
        "2.8-IV2",
        "3.0.",
        "3.9",
        "3.9-IV1",
        "4.0",
        "4.0-IV1",
        "4.0-IV2",
        "x",
        "",
    )
    asked = [*((FORMAT, each) for each in versions), (DIFFERENCE, "-1"), (DOWN, "x"), ("segment.bytes", "13")]
    verdicts = {
        id: [(key, value, cluster.validated(id, "asked", key, value)) for key, value in asked]
        for id in (REAL, OUR)
    }
    assert verdicts[OUR] == verdicts[REAL]
    assert {code for _, _, code in verdicts[OUR]} == {errors.NONE, errors.INVALID_CONFIG}


def test_what_brokers_say_of_all_topics_counts_in_both(cluster: Configured) -> None:
    assert cluster.create("inheriting", {})[0] == errors.NONE
    for id in (REAL, OUR):
        cluster.set(id, BROKER, str(id), f"log.{DIFFERENCE}", "77")
        cluster.set(id, BROKER, str(id), "log.segment.bytes", "20000")
    cluster.set(OUR, BROKER, "", f"log.{DOWN}", "false")
    deadline = time.monotonic() + DEADLINE_S
    while (shown := cluster.until_same("inheriting"))[DOWN].value != "false":
        assert time.monotonic() < deadline
    wanted = {DIFFERENCE: "77", BEFORE: "77", AFTER: "77", "segment.bytes": "20000"}
    assert {key: shown[key].value for key in wanted} == wanted
