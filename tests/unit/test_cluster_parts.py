"""What the parts of a broker in a cluster ask of each other, where they are put together."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from pykafkad.cluster.delta import Delta
from pykafkad.cluster.zookeeper.cluster import Cluster
from pykafkad.cluster.zookeeper.topic_logs import TopicLogs
from pykafkad.pure.controller.events import UncleanElectionEnabled
from pykafkad.slices import finish
from pykafkad.zookeeper.client import Create, Result
from tests.unit.cluster_kit import ClusterDesk, state

UNCLEAN = "unclean.leader.election.enable"


class Parts:
    """Everything that is asked is noted."""

    def __init__(self) -> None:
        self.is_active = True
        self.told: list[Any] = []
        self.submitted: list[Any] = []

    def tell(self, event: Any) -> None:
        self.told.append(event)

    def submit(self, ops: list[Any], done: Any) -> None:
        self.submitted += ops
        done([Result()])


@pytest.fixture
def desk(tmp_path: Path) -> ClusterDesk:
    desk = ClusterDesk(tmp_path)
    desk.live(0, 1)
    return desk


def made(desk: ClusterDesk, listener: str = "INTERNAL") -> tuple[Cluster, Parts]:
    parts: Any = Parts()
    cluster = Cluster(parts, cast(Any, None), desk.image, 3, listener)
    cluster.controlling = parts
    return cluster, parts


def test_another_broker_is_reached_through_the_listener_between_brokers(desk: ClusterDesk) -> None:
    cluster, _ = made(desk)
    assert cluster.address_of(1) == ("host1", 9093)
    assert cluster.address_of(7) is None
    assert made(desk, "NONE")[0].address_of(1) is None


def configs(*resources: tuple[int, str, str, str | None]) -> Delta:
    delta = Delta()
    for kind, name, key, value in resources:
        delta.configs.setdefault((kind, name), {})[key] = value
    return delta


def test_the_controller_is_told_where_unclean_leaders_are_allowed_now(desk: ClusterDesk) -> None:
    cluster, parts = made(desk)
    delta = configs((2, "a", UNCLEAN, "true"), (2, "b", UNCLEAN, "false"), (2, "c", "retention.ms", "true"))
    cluster.publish(delta)
    assert parts.told == [UncleanElectionEnabled("a")]
    delta = configs((4, "", UNCLEAN, "true"))
    delta.broker_keys = {UNCLEAN}
    cluster.publish(delta)
    assert parts.told[1:] == [UncleanElectionEnabled(None)]
    parts.is_active = False
    cluster.publish(delta)
    assert len(parts.told) == 2


def test_a_failed_log_directory_is_told_by_a_sequential_node(desk: ClusterDesk) -> None:
    cluster, parts = made(desk)
    cluster.tell_of_failed_directory()
    (made_node,) = parts.submitted
    assert isinstance(made_node, Create) and made_node.sequential and not made_node.ephemeral
    assert made_node.path == "/log_dir_event_notification/log_dir_event_"
    assert made_node.data == b'{"version":1,"broker":3,"event":1}'


def test_logs_follow_the_configs_of_their_topic_and_of_the_broker(desk: ClusterDesk) -> None:
    logs = TopicLogs(desk.config, desk.image, desk.storage)
    desk.lead_and_follow(state(0), state(1))
    shared = logs.config_of("others")
    assert logs.config_of("orders") is shared  # as long as it has none of its own
    desk.image.configs[2, "orders"] = {"cleanup.policy": "compact"}
    finish(logs.publish(configs((2, "orders", "cleanup.policy", "compact"))))
    assert [each.log.settings.compacts for each in desk.replicas.table.values()] == [True, True]
    assert logs.config_of("others") is shared
    delta = Delta()
    delta.broker_keys = {"log.cleanup.policy"}
    desk.image.configs[2, "orders"] = {}
    finish(logs.publish(delta))
    assert logs.config_of("others") is not shared
    assert [each.log.settings.compacts for each in desk.replicas.table.values()] == [False, False]
