"""What replication may take: rates over windows, and which replicas they are of."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pykafkad.clock import ManualClock
from pykafkad.cluster.image import ALL_BROKERS, BROKER_RESOURCE
from pykafkad.errors import StartupError
from pykafkad.pure.rates import Rate
from pykafkad.pure.replica_selection import Candidate, by_rack
from pykafkad.replication.quotas import FOLLOWER, LEADER, ReplicationQuota
from pykafkad.replication.replication import selects_by_rack
from pykafkad.replication.requests import versions_for
from tests.unit.data_kit import Image, Topic

CONFIG = {"node.id": 3, "replication.quota.window.num": 11, "replication.quota.window.size.seconds": 1}


def test_a_rate_is_of_the_last_windows() -> None:
    rate = Rate(3, 1000)
    assert rate.per_second(0) == 0
    rate.record(500, 0)
    assert rate.per_second(10) == 500, "less than a window counts as one"
    rate.record(500, 900)
    rate.record(500, 1500)
    assert rate.per_second(2000) == 750
    assert rate.per_second(3100) == 500 / 1.6
    assert rate.per_second(10_000) == 0
    for now_ms in (20_000, 21_000, 22_000):
        rate.record(600, now_ms)
    assert rate.per_second(22_500) == 1800 / 2.5
    rate.record(600, 23_000)
    assert rate.per_second(23_000) == 1800 / 2, "the fourth window takes the place of the first"


class World:
    def __init__(self, side: str = LEADER) -> None:
        self.clock = ManualClock()
        self.image = Image()
        self.image.topics["t"] = topic = Topic("t", b"i" * 16, 4)
        self.configs: dict[str, str] = {}
        cast(Any, topic).configs = self.configs
        self.quota = ReplicationQuota(side, CONFIG, self.clock, cast(Any, self.image))


@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_a_quota_is_exceeded_by_what_its_replicas_take(side: str) -> None:
    world = World(side)
    assert world.quota.limit is None and not world.quota.is_exceeded
    world.image.configs[BROKER_RESOURCE, "3"] = {f"{side}.replication.throttled.rate": "1000"}
    world.quota.record("t", 0, 50_000)
    assert not world.quota.is_exceeded, "none of its replicas is said to be throttled"
    world.configs[f"{side}.replication.throttled.replicas"] = "0:3, 1:3,2:4"
    assert [world.quota.covers("t", index) for index in range(4)] == [True, True, False, False]
    world.quota.record("t", 2, 50_000)
    assert not world.quota.is_exceeded
    world.quota.record("t", 1, 5_000)
    assert world.quota.is_exceeded
    world.clock.advance(6_000)
    assert not world.quota.is_exceeded


def test_all_replicas_of_a_topic_and_all_brokers_can_be_named_at_once() -> None:
    world = World()
    world.image.configs[BROKER_RESOURCE, ALL_BROKERS] = {"leader.replication.throttled.rate": "7"}
    world.configs["leader.replication.throttled.replicas"] = "*"
    assert world.quota.limit == 7 and world.quota.covers("t", 3) and not world.quota.covers("other", 0)
    world.image.configs[BROKER_RESOURCE, "3"] = {"leader.replication.throttled.rate": "8"}
    assert world.quota.limit == 8, "a broker's own value comes first"


def test_consumers_are_sent_to_the_replica_in_their_rack_that_has_the_most() -> None:
    leader = Candidate("a", 100, 50, 0)
    followers = [
        Candidate("b", 90, 50, 1),
        Candidate("b", 95, 40, 2),
        Candidate("b", 95, 45, 3),
        Candidate("b", 95, 45, 4),
    ]
    assert by_rack("b", leader, followers) == 4
    assert by_rack("b", leader, followers[:3]) == 3
    assert (
        by_rack("a", leader, followers)
        == by_rack("c", leader, followers)
        == by_rack("", leader, followers)
        == 0
    )
    assert by_rack("b", leader._replace(rack="b"), followers) == 0, "the leader, if it is as near"


def test_which_selectors_there_are() -> None:
    assert not selects_by_rack(None) and not selects_by_rack("")
    assert selects_by_rack("org.apache.kafka.common.replica.RackAwareReplicaSelector")
    with pytest.raises(StartupError, match=r"com\.example\.Mine is not known"):
        selects_by_rack("com.example.Mine")


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("3.9-IV0", (17, 9, 4, True)),
        ("3.9", (17, 9, 4, True)),
        ("3.8", (16, 8, 4, True)),
        ("3.7-IV3", (15, 8, 4, True)),
        ("3.5-IV0", (14, 8, 4, True)),
        ("3.0", (12, 7, 4, True)),
        ("2.7-IV1", (12, 5, 3, False)),
        ("2.7-IV0", (11, 5, 3, False)),
        ("2.6", (11, 5, 3, False)),
        ("2.1-IV2", (10, 4, 2, False)),
    ],
)
def test_an_inter_broker_protocol_means_versions(text: str, versions: tuple[Any, ...]) -> None:
    assert versions_for(text) == versions


@pytest.mark.parametrize("text", ["2.0", "0.11.0-IV2", "next", "3.x", ""])
def test_protocols_that_are_too_old_or_none_are_refused(text: str) -> None:
    with pytest.raises(StartupError, match=r"inter\.broker\.protocol\.version"):
        versions_for(text)
