"""Fetch in a cluster: who is asked instead, what a follower gives, and what a leader gives its followers."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, messages
from tests.unit.cluster_kit import TOPIC_ID, ClusterDesk, UpdateMetadata, known, state, told, topic_known
from tests.unit.data_kit import batch, fetch, produce, values_of

OTHER_ID = b"another-topic-id"
LAG_MS = 10_000
OFFLINE_AND_NOBODY = -1
READ_COMMITTED = 1
FOLLOWED, ELSEWHERE, LED, ORPHANED = range(4)  # partitions, by what broker 0 is to them
RACKS = {0: "a", 1: "b", 2: None}


class Node(ClusterDesk):
    """Broker 0 of three: it leads a partition, follows one, follows one without a leader, and has nothing of another."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, replica_lag_time_max_ms=str(LAG_MS))
        self.parts.replication.selects_by_rack = False  # type: ignore[attr-defined]
        self.connection.listener = SimpleNamespace(owner=SimpleNamespace(name="PLAINTEXT"))  # type: ignore[attr-defined]
        self.told(0, 1, 2)
        self.lead_and_follow(
            state(LED, leader=0, epoch=5),
            state(FOLLOWED, leader=1, epoch=5),
            state(ORPHANED, leader=OFFLINE_AND_NOBODY, epoch=5),
        )
        states = [
            known(FOLLOWED, leader=1, epoch=5),
            known(ELSEWHERE, leader=2, epoch=7, replicas=[1, 2], isr=[1, 2]),
            known(LED, leader=0, epoch=5),
            known(ORPHANED, leader=OFFLINE_AND_NOBODY, epoch=5),
        ]
        self.told(0, 1, 2, topic_states=[topic_known(*states)])

    def told(self, *ids: int, **fields: Any) -> None:
        point = UpdateMetadata.UpdateMetadataEndpoint
        brokers = [
            UpdateMetadata.UpdateMetadataBroker(
                id=each,
                rack=RACKS[each],
                endpoints=[point(host=f"host{each}", port=9092 + each, listener="PLAINTEXT")],
            )
            for each in ids
        ]
        self.ask(UpdateMetadata(live_brokers=brokers, **told(fields)), 8)

    def fetched(self, partition: int, version: int = 17, **fields: Any) -> Any:
        """The answer; `partition` has what is asked of it under its name."""
        asked = {"partition": partition, **fields.pop("asked", {})}
        topic_id = fields.pop("topic_id", TOPIC_ID)
        given = self.send(fetch("orders", asked, topic_id=topic_id, **fields), version)
        for _ in range(5):
            self.end_pass()
            self.advance(0)
        return self.answer_of(given, "FetchRequest", version)

    def row(self, *arguments: Any, **fields: Any) -> Any:
        answer = self.fetched(*arguments, **fields)
        assert answer is not None
        ((row,),) = (topic.partitions for topic in answer.responses)
        return row

    def by(self, follower: int, version: int = 17) -> dict[str, Any]:
        """The fields of a follower's request."""
        if version < 15:
            return {"replica_id": follower}
        return {"replica_state": messages.FetchRequest.ReplicaState(replica_id=follower, replica_epoch=7)}

    def append(self, *values: bytes) -> None:
        request = produce("orders", LED, batch(*values))
        request.acks = 1
        assert self.ask(request, 9).responses[0].partition_responses[0].error_code == errors.NONE


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


# -- who leads instead


@pytest.mark.parametrize(
    ("partition", "asked", "code", "leader"),
    [
        (ELSEWHERE, {}, errors.NOT_LEADER_OR_FOLLOWER, (2, 7)),
        (ORPHANED, {}, errors.NOT_LEADER_OR_FOLLOWER, (-1, 5)),
        (FOLLOWED, {"current_leader_epoch": 4}, errors.FENCED_LEADER_EPOCH, (1, 5)),
        (FOLLOWED, {"current_leader_epoch": 6}, errors.UNKNOWN_LEADER_EPOCH, (-1, -1)),
        (LED, {"current_leader_epoch": 4}, errors.FENCED_LEADER_EPOCH, (0, 5)),
        (9, {}, errors.UNKNOWN_TOPIC_OR_PARTITION, (-1, -1)),
    ],
)
def test_whoever_asks_the_wrong_broker_is_told_the_leader(
    node: Node, partition: int, asked: dict[str, int], code: int, leader: tuple[int, int]
) -> None:
    for version in (15, 16, 17):
        answer = node.fetched(partition, version, asked=asked)
        assert answer is not None, node.connection.closed
        ((row,),) = (topic.partitions for topic in answer.responses)
        assert row.error_code == code and (row.high_watermark, row.records or b"") == (-1, b"")
        known_leader = row.current_leader.leader_id, row.current_leader.leader_epoch
        expected = leader if version > 15 else (-1, -1)
        assert known_leader == expected
        nodes = [(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]
        told = expected[0]
        assert nodes == ([] if told < 0 else [(told, f"host{told}", 9092 + told, RACKS[told])])


def test_each_leader_is_named_once_and_only_if_it_lives(node: Node) -> None:
    row = {"current_leader_epoch": 4}
    asked = fetch("orders", {"partition": LED, **row}, {"partition": FOLLOWED, **row}, topic_id=TOPIC_ID)
    asked.topics[0].partitions += (
        fetch("orders", {"partition": ELSEWHERE}, topic_id=TOPIC_ID).topics[0].partitions
    )
    answer = node.ask(asked, 17)
    assert [each.node_id for each in answer.node_endpoints] == [0, 1, 2]
    node.told(0, 2)
    assert [each.node_id for each in node.ask(asked, 17).node_endpoints] == [0, 2]
    node.told(0, 1, 2)
    node.cluster_image.brokers[1].endpoints.clear()
    assert [each.node_id for each in node.ask(asked, 17).node_endpoints] == [0, 2]


def test_topics_are_told_apart_by_their_ids(node: Node) -> None:
    assert node.row(LED).error_code == errors.NONE
    assert node.row(LED, topic_id=OTHER_ID).error_code == errors.UNKNOWN_TOPIC_ID
    assert node.row(LED, 12, topic_id=OTHER_ID).error_code == errors.NONE, "it asks by the name"
    node.storage.partitions["orders", LED].topic_id = OTHER_ID
    assert node.row(LED).error_code == errors.INCONSISTENT_TOPIC_ID


# -- consumers


@pytest.mark.parametrize(
    ("version", "replica", "code"),
    [
        (10, -1, errors.NOT_LEADER_OR_FOLLOWER),
        (11, -1, errors.NONE),
        (10, -2, errors.NONE),
        (9, -2, errors.NONE),
        (11, -2, errors.NONE),
    ],
)
def test_newer_consumers_and_tools_read_from_a_follower(
    node: Node, version: int, replica: int, code: int
) -> None:
    assert node.row(FOLLOWED, version, replica_id=replica).error_code == code
    assert node.row(LED, version, replica_id=replica).error_code == errors.NONE
    assert node.row(ORPHANED, version, replica_id=replica).error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_consumers_read_what_is_committed_and_followers_what_is_written(node: Node) -> None:
    node.append(b"a", b"b")
    row = node.row(LED)
    assert (values_of(row), row.high_watermark, row.last_stable_offset) == ([], 0, 0)
    row = node.row(LED, **node.by(1))
    assert (values_of(row), row.high_watermark, row.log_start_offset) == ([b"a", b"b"], 0, 0)
    for follower in (1, 2):
        node.row(LED, asked={"fetch_offset": 2}, **node.by(follower))
    assert values_of(node.row(LED)) == [b"a", b"b"]


def test_a_consumer_is_sent_to_a_replica_in_its_rack_that_has_the_offset(node: Node) -> None:
    node.append(b"a", b"b")
    for follower in (1, 2):
        node.row(LED, asked={"fetch_offset": 1, "log_start_offset": 1}, **node.by(follower))

    def sent_to(rack: str, offset: int = 1, version: int = 17) -> tuple[int, list[bytes]]:
        row = node.row(LED, version, rack_id=rack, asked={"fetch_offset": offset})
        return row.preferred_read_replica, values_of(row)

    assert sent_to("b") == (-1, []), "nobody selects"
    node.parts.replication.selects_by_rack = True  # type: ignore[attr-defined]
    assert sent_to("b") == (1, [])
    for rack, offset in (("a", 1), ("c", 1), ("", 1), ("b", 0), ("b", 2)):
        assert sent_to(rack, offset)[0] == -1, (rack, offset)
    assert sent_to("b", version=11) == (1, [])
    assert node.row(FOLLOWED, rack_id="b").preferred_read_replica == -1, "only leaders know what others have"
    node.told(0, 2)
    assert sent_to("b")[0] == -1


def test_whoever_is_sent_elsewhere_does_not_wait_and_knows_how_far_the_log_goes(node: Node) -> None:
    node.append(b"a", b"b")
    for follower in (1, 2):
        node.row(LED, asked={"fetch_offset": 2}, **node.by(follower))
    node.parts.replication.selects_by_rack = True  # type: ignore[attr-defined]
    asked = {"rack_id": "b", "max_wait_ms": 500, "min_bytes": 1, "asked": {"fetch_offset": 2}}
    row = node.row(LED, isolation_level=READ_COMMITTED, **asked)
    assert (row.preferred_read_replica, row.high_watermark, row.last_stable_offset) == (1, 2, 2)
    assert row.aborted_transactions == [] and row.records == b"" and row.partition_index == LED
    asked["asked"] = {"fetch_offset": 2}
    assert node.row(LED, **asked).aborted_transactions is None


# -- followers


@pytest.mark.parametrize("version", [14, 17])
def test_only_replicas_follow(node: Node, version: int) -> None:
    stranger = node.by(9, version)
    assert node.row(LED, version, **stranger).error_code == errors.NOT_LEADER_OR_FOLLOWER
    for epoch in (5, 0):
        row = node.row(LED, version, asked={"current_leader_epoch": epoch}, **stranger)
        assert row.error_code == (errors.UNKNOWN_LEADER_EPOCH if epoch else errors.FENCED_LEADER_EPOCH)
    assert node.row(LED, version, **node.by(1, version)).error_code == errors.NONE
    assert node.row(FOLLOWED, version, **node.by(2, version)).error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_a_follower_that_asks_for_what_is_not_there_does_not_wait(node: Node) -> None:
    waits = {"max_wait_ms": 500, **node.by(1)}
    assert node.row(9, **waits).error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert node.row(LED, topic_id=OTHER_ID, **waits).error_code == errors.UNKNOWN_TOPIC_ID
    assert node.row(FOLLOWED, **waits).error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_a_follower_is_told_where_its_log_parts_from_the_leaders(node: Node) -> None:
    node.append(b"a", b"b")
    waits = {"max_wait_ms": 500, **node.by(1)}
    for last_epoch, offset, parts in ((5, 1, None), (5, 3, (5, 2)), (4, 1, (4, 0)), (-1, 1, None)):
        row = node.row(LED, asked={"fetch_offset": offset, "last_fetched_epoch": last_epoch}, **waits)
        assert (row.diverging_epoch.epoch, row.diverging_epoch.end_offset) == (parts or (-1, -1))
        assert (row.error_code, bool(row.records)) == (errors.NONE, parts is None)
    row = node.row(LED, asked={"fetch_offset": 1, "last_fetched_epoch": 6}, **waits)
    assert row.error_code == errors.OFFSET_OUT_OF_RANGE
    replica = node.replicas.table["orders", LED]
    assert replica.leadership is not None and replica.leadership.followers[1].end_offset == 1


def test_a_follower_is_told_at_once_that_the_log_begins_later(node: Node) -> None:
    """Whoever deleted records waits until its log does, too."""
    node.append(b"a", b"b")
    for follower in (1, 2):
        node.row(LED, asked={"fetch_offset": 2}, **node.by(follower))
    whole = node.fetched(LED, asked={"fetch_offset": 2, "log_start_offset": 0}, session_epoch=0, **node.by(1))
    node.replicas.table["orders", LED].delete_records(1)

    def go_on(epoch: int) -> Any:
        request = fetch("", session_id=whole.session_id, session_epoch=epoch, max_wait_ms=500, **node.by(1))
        given = node.send(request, 17)
        node.end_pass()
        return node.answer_of(given, "FetchRequest", 17)

    (row,) = go_on(1).responses[0].partitions
    assert (row.error_code, row.log_start_offset, row.records) == (errors.NONE, 1, b"")
    assert go_on(2) is None, "it was told"


def test_what_a_follower_has_is_noted_once_and_with_its_epoch(node: Node) -> None:
    node.append(b"a")
    asked = {"fetch_offset": 1, "log_start_offset": 0}
    assert node.fetched(LED, asked=asked, max_wait_ms=500, **node.by(1)) is None, "it waits"
    replica = node.replicas.table["orders", LED]
    assert replica.leadership is not None
    follower = replica.leadership.followers[1]
    assert (follower.end_offset, follower.start_offset, follower.broker_epoch) == (1, 0, 7)
    follower.end_offset = 0
    node.append(b"b")
    node.advance(500)
    assert follower.end_offset == 0


@pytest.mark.parametrize(
    ("in_sync", "covers", "limit"),
    [(True, True, 1), (False, True, 1), (False, False, 1), (False, True, None)],
)
def test_a_quota_holds_up_those_who_are_not_in_sync(
    node: Node, in_sync: bool, covers: bool, limit: int | None
) -> None:
    node.append(b"a" * 2_000)
    if not in_sync:
        node.replicas.table["orders", LED].isr_confirmed(5, (0, 2), 9)
    if limit is not None:
        node.cluster_image.configs[4, "0"] = {"leader.replication.throttled.rate": str(limit)}
    if covers:
        node.cluster_image.topics["orders"].configs["leader.replication.throttled.replicas"] = f"{LED}:0"
    found = [bool(node.row(LED, **node.by(1)).records) for _ in range(2)]
    assert found == [True, in_sync or not covers or limit is None]
    assert node.row(LED, **node.by(2)).records, "the other is in sync"
