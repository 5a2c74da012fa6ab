"""LeaderAndIsr, StopReplica and UpdateMetadata: who is obeyed, and what a broker of a cluster does then."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad import errors, messages
from pykafkad.cluster.topic_creation import Planned
from pykafkad.cluster.topic_names import CONSUMER_OFFSETS, TRANSACTION_STATE
from pykafkad.coordinator.runtime.runtime import partition_for
from pykafkad.handlers import api_versions, cluster_apis, cluster_waits
from tests.unit.cluster_kit import (
    TOPIC_ID,
    ClusterDesk,
    LeaderAndIsr,
    StopReplica,
    UpdateMetadata,
    known,
    live_broker,
    state,
    stopped,
    told,
    topic_known,
)
from tests.unit.data_kit import batch, fetch, produce, values_of

GOLDEN = Path(__file__).parents[1] / "golden" / "cluster" / "control-probes.jsonl.gz"
PROBES = [json.loads(line) for line in gzip.decompress(GOLDEN.read_bytes()).splitlines()]
STALE, OTHER_ID = errors.STALE_CONTROLLER_EPOCH, b"the-id-of-others"


@pytest.fixture
def desk(tmp_path: Path) -> ClusterDesk:
    desk = ClusterDesk(tmp_path)
    assert desk.live(0, 1, 2).error_code == errors.NONE
    return desk


def role_of(desk: ClusterDesk, index: int = 0, topic: str = "orders") -> tuple[int, int, bool] | None:
    """Leader, epoch, and whether it leads."""
    replica = desk.replicas.get((topic, index))
    if replica is None:
        return None
    return (replica.leader_id, replica.leader_epoch, replica.leadership is not None)


# -- who is obeyed


REQUESTS = (
    (LeaderAndIsr, 7),
    (StopReplica, 4),
    (UpdateMetadata, 8),
)


@pytest.mark.parametrize(("kind", "version"), REQUESTS)
def test_an_older_controller_is_not_obeyed_whatever_the_newer_one_had_sent(
    desk: ClusterDesk, kind: Any, version: int
) -> None:
    for newer, newer_version in REQUESTS:
        epoch = 10 + newer_version
        assert desk.ask(newer(**told({"controller_epoch": epoch})), newer_version).error_code == errors.NONE
        assert desk.ask(kind(**told({"controller_epoch": epoch - 1})), version).error_code == STALE
        assert desk.ask(kind(**told({"controller_epoch": epoch})), version).error_code == errors.NONE
        desk.cluster_image.brokers.clear()
        desk = ClusterDesk(Path(desk.config.log_dirs[0]) / newer.__name__)


@pytest.mark.parametrize(("kind", "version"), REQUESTS)
def test_what_was_meant_for_an_earlier_registration_is_not_obeyed(
    desk: ClusterDesk, kind: Any, version: int
) -> None:
    stale = told({"broker_epoch": 99, "controller_epoch": 50})
    assert desk.ask(kind(**stale), version).error_code == errors.STALE_BROKER_EPOCH
    for taken in (-1, 100, 101):  # unknown; ours; one that we do not know of yet
        assert desk.ask(kind(**told({"broker_epoch": taken})), version).error_code == errors.NONE


def test_a_request_that_is_refused_as_a_whole_names_its_partitions_or_none(desk: ClusterDesk) -> None:
    desk.lead_and_follow(state(), controller_epoch=5)
    assert desk.lead_and_follow(state(epoch=1), controller_epoch=4) == {0: STALE}
    assert desk.lead_and_follow(state(epoch=1), broker_epoch=99) == {0: errors.STALE_BROKER_EPOCH}
    assert desk.stop(stopped(), controller_epoch=4) == {}
    assert role_of(desk) == (0, 0, True)


def test_a_state_that_is_not_later_is_refused(desk: ClusterDesk) -> None:
    assert desk.lead_and_follow(state(epoch=3)) == {0: errors.NONE}
    for epoch in (-1, 2, 3):
        assert desk.lead_and_follow(state(leader=1, epoch=epoch)) == {0: STALE}
    assert role_of(desk) == (0, 3, True)


def test_a_log_of_another_topic_is_left_alone(desk: ClusterDesk) -> None:
    desk.lead_and_follow(state(epoch=3))
    for epoch in (3, 4):  # which is looked at before the leader epoch
        assert desk.lead_and_follow(state(epoch=epoch), topic_id=OTHER_ID) == {
            0: errors.INCONSISTENT_TOPIC_ID
        }
    assert role_of(desk) == (0, 3, True)


def test_who_is_not_among_the_replicas_makes_no_log(desk: ClusterDesk) -> None:
    assert desk.lead_and_follow(state(leader=1, replicas=[1, 2])) == {0: errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert role_of(desk) is None


def test_an_older_partition_epoch_is_skipped_in_silence(desk: ClusterDesk) -> None:
    desk.lead_and_follow(state(epoch=3, partition_epoch=7))
    assert desk.lead_and_follow(state(leader=1, epoch=4, partition_epoch=6)) == {0: errors.NONE}
    assert role_of(desk) == (0, 3, True)
    assert desk.lead_and_follow(state(leader=1, epoch=4, partition_epoch=7)) == {0: errors.NONE}
    assert role_of(desk) == (1, 4, False)


def test_an_isr_that_was_changed_since_makes_an_older_partition_epoch_be_skipped(desk: ClusterDesk) -> None:
    desk.lead_and_follow(state(epoch=3, partition_epoch=7))
    desk.replicas.table["orders", 0].isr_confirmed(3, [0], 9)
    desk.lead_and_follow(state(leader=1, epoch=4, partition_epoch=8))
    assert role_of(desk) == (0, 3, True)


def test_what_may_lie_in_a_directory_that_is_offline_is_not_made_anew(desk: ClusterDesk) -> None:
    desk.storage.directories[0].fail("the disk is gone")
    assert desk.lead_and_follow(state(is_new=False)) == {0: errors.KAFKA_STORAGE_ERROR}
    assert desk.lead_and_follow(state(is_new=True)) == {0: errors.KAFKA_STORAGE_ERROR}


def test_whose_leader_is_unknown_has_a_log_and_no_role(desk: ClusterDesk) -> None:
    """Hence the live brokers come before, by UpdateMetadata."""
    desk.live(0, 2)
    assert desk.lead_and_follow(state(leader=1), state(1, leader=-1)) == {0: errors.NONE, 1: errors.NONE}
    assert role_of(desk) == role_of(desk, 1) == (-1, -1, False)
    assert desk.parts.replication.followed == {}
    desk.live(0, 1, 2)
    assert desk.lead_and_follow(state(leader=1)) == {0: errors.NONE}
    assert role_of(desk) == (1, 0, False)


def test_stop_replica_goes_by_the_leader_epoch(desk: ClusterDesk) -> None:
    desk.lead_and_follow(state(leader=1, epoch=3))
    assert desk.stop(stopped(epoch=2, delete=True)) == {0: errors.FENCED_LEADER_EPOCH}
    assert role_of(desk) == (1, 3, False)
    assert desk.stop(stopped(7, epoch=0, delete=True)) == {7: errors.NONE}  # nobody knows of it
    for epoch in (3, 4, -1, -2):
        assert desk.stop(stopped(epoch=epoch)) == {0: errors.NONE}


K2_ID = bytes.fromhex("fd864e51db4f4f95b3fed18be7f25cef")
OF_A_CLUSTER = {"controller_epoch": 3, "broker_epoch": -1}


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe["what"])
def test_kafkas_answers_to_probes_are_ours(tmp_path: Path, probe: dict[str, Any]) -> None:
    """As brokers 1 and 2 of a 3.9.2 cluster were: k2-0 in epoch 0, t13-0 in a later one."""
    desk = ClusterDesk(tmp_path, node_id=probe["to"])
    desk.live(0, 1, 2, **OF_A_CLUSTER)
    desk.parts.broker_epoch = {1: 792, 2: 544}[probe["to"]]
    desk.lead_and_follow(
        state(leader=1, replicas=[1, 2], isr=[1, 2]), topic="k2", topic_id=K2_ID, **OF_A_CLUSTER
    )
    desk.lead_and_follow(state(leader=1, epoch=9), topic="t13", topic_id=OTHER_ID, **OF_A_CLUSTER)
    frame, wanted = bytes.fromhex(probe["request"]), bytes.fromhex(probe["response"])
    received = bytearray(len(frame).to_bytes(4) + frame)
    given = desk.dispatcher.on_frame(desk.connection, received, 4, len(received))
    desk.end_pass()
    answer = desk.answer_of(given, probe["name"] + "Request", probe["version"])
    flexible = probe["version"] >= answer.flexible_since
    assert answer.encode(probe["version"]) == wanted[5 if flexible else 4 :]


# -- roles


def test_who_leads_serves_produce_and_fetch_and_who_follows_does_not(desk: ClusterDesk) -> None:
    desk.lead_and_follow(state(isr=[0]), state(1, leader=1))
    desk.live(0, 1, 2, topic_states=[topic_known(known(), known(1, leader=1))])
    assert desk.parts.replication.followed == {"orders-1": (1, 0)}
    codes = []
    for index in (0, 1):
        answer = desk.ask(produce("orders", index, batch(b"a")), 9)
        codes.append(answer.responses[0].partition_responses[0].error_code)
    assert codes == [errors.NONE, errors.NOT_LEADER_OR_FOLLOWER]
    answer = desk.ask(fetch("orders", {"partition": 0}), 12)
    assert values_of(answer.responses[0].partitions[0]) == [b"a"]


@pytest.mark.parametrize("follower", [1, -1])
@pytest.mark.parametrize("count", [1, 80, 300])
def test_a_fetch_of_any_size_that_waits_has_its_place_and_its_answer_with_the_next_records(
    desk: ClusterDesk, count: int, follower: int
) -> None:
    """Also one that comes to waiting in the steps that are taken at once."""
    desk.lead_and_follow(*(state(index, isr=[0] if follower < 0 else [0, 1]) for index in range(count)))
    desk.live(0, 1, 2, topic_states=[topic_known(*(known(index) for index in range(count)))])
    asked = [{"partition": index, "log_start_offset": 0} for index in range(count)]
    waits = desk.send(fetch("orders", *asked, replica_id=follower, max_wait_ms=500), 12)
    desk.end_pass()
    desk.advance(0)
    assert waits is not None, "nobody would ever be answered"
    assert desk.answer_of(waits, "FetchRequest", 12) is None
    desk.ask(produce("orders", count - 1, batch(b"a")), 9)
    desk.end_pass()
    for _ in range(100):
        desk.advance(0)
    answer = desk.answer_of(waits, "FetchRequest", 12)
    found = {row.partition_index: values_of(row) for row in answer.responses[0].partitions}
    assert found[count - 1] == [b"a"]


@pytest.mark.parametrize(("acks", "in_time"), [(1, True), (-1, True), (-1, False)])
def test_a_produce_waits_for_followers_as_long_as_it_says(
    desk: ClusterDesk, acks: int, in_time: bool
) -> None:
    desk.lead_and_follow(state(isr=[0, 1]))
    desk.live(0, 1, 2, topic_states=[topic_known(known(isr=[0, 1]))])
    request = produce("orders", 0, batch(b"a"))
    request.acks, request.timeout_ms = acks, 700
    given = desk.send(request, 9)
    desk.end_pass()
    desk.advance(699)
    if in_time and acks < 0:
        desk.ask(
            fetch("orders", {"partition": 0, "fetch_offset": 1, "log_start_offset": 0}, replica_id=1), 12
        )
        desk.end_pass()
    desk.advance(1)
    answer = desk.answer_of(given, "ProduceRequest", 9)
    row = answer.responses[0].partition_responses[0]
    assert (row.error_code, row.base_offset) == (errors.NONE if in_time else errors.REQUEST_TIMED_OUT, 0)


def test_a_leader_in_a_new_epoch_goes_on_with_its_log_and_is_not_fetched_for(desk: ClusterDesk) -> None:
    desk.lead_and_follow(state(leader=1))
    assert desk.parts.replication.followed == {"orders-0": (1, 0)}
    desk.lead_and_follow(state(epoch=1, isr=[0, 2], partition_epoch=4))
    assert desk.parts.replication.followed == {}
    leadership = desk.replicas.table["orders", 0].leadership
    assert leadership is not None
    assert (leadership.epoch, leadership.partition_epoch, leadership.isr) == (1, 4, frozenset({0, 2}))
    assert desk.replicas.table["orders", 0].log.epochs.latest == 1


def test_a_stopped_replica_is_not_fetched_for_and_a_deleted_one_is_gone(desk: ClusterDesk) -> None:
    desk.lead_and_follow(state(leader=1), state(1, leader=1))
    desk.stop(stopped())
    assert desk.parts.replication.followed == {"orders-1": (1, 0)}
    assert role_of(desk) == (1, 0, False)
    desk.stop(stopped(epoch=-2, delete=True), stopped(1, delete=True))
    assert role_of(desk) is role_of(desk, 1) is None
    assert desk.parts.replication.followed == {}
    assert desk.lead_and_follow(state(), topic_id=OTHER_ID) == {0: errors.NONE}


def test_the_configs_of_a_topic_count_before_its_log_is_made(desk: ClusterDesk) -> None:
    desk.parts.waiting = []
    request = LeaderAndIsr(
        topic_states=[
            LeaderAndIsr.LeaderAndIsrTopicState(
                topic_name="orders", topic_id=TOPIC_ID, partition_states=[state(), state(1, leader=1)]
            )
        ],
        **told({}),
    )
    given = desk.send(request, 7)
    assert desk.parts.loaded == [["orders"]]
    assert role_of(desk) is None
    behind = desk.send(UpdateMetadata(live_brokers=[live_broker(0)], **told({"controller_id": 5})), 8)
    assert desk.parts.control.controller_id == 9  # it waits for its turn
    desk.cluster_image.configs[2, "orders"] = {"cleanup.policy": "compact"}
    desk.parts.waiting.pop().come()
    desk.advance(0)
    assert [each.log.settings.compacts for each in desk.replicas.table.values()] == [True, True]
    assert desk.answer_of(given, "LeaderAndIsrRequest", 7).error_code == errors.NONE
    desk.advance(0)
    assert desk.answer_of(behind, "UpdateMetadataRequest", 8).error_code == errors.NONE
    assert desk.parts.control.controller_id == 5
    desk.lead_and_follow(state(epoch=1))
    assert desk.parts.loaded == [["orders"]]  # what is here has them


def test_without_its_topics_configs_no_log_is_made(desk: ClusterDesk) -> None:
    desk.parts.waiting = []
    asked = [LeaderAndIsr.LeaderAndIsrTopicState(topic_name="orders", partition_states=[state()])]
    given = desk.send(LeaderAndIsr(topic_states=asked, **told({})), 7)
    desk.parts.waiting.pop().come(ConnectionError("ZooKeeper is gone"))
    desk.advance(0)
    answer = desk.answer_of(given, "LeaderAndIsrRequest", 7)
    assert answer.topics[0].partition_errors[0].error_code == errors.UNKNOWN_SERVER_ERROR
    assert role_of(desk) is None


def test_a_topic_whose_configs_cannot_be_read_keeps_no_other_from_its_role(desk: ClusterDesk) -> None:
    desk.live(0, 1)
    kind = LeaderAndIsr.LeaderAndIsrTopicState
    asked = [
        kind(topic_name=name, topic_id=name.encode().ljust(16), partition_states=[state()])
        for name in ("unread", "orders")
    ]
    answer = desk.ask(LeaderAndIsr(topic_states=asked, **told({})), 7)
    codes = {each.topic_id: each.partition_errors[0].error_code for each in answer.topics}
    assert codes == {asked[0].topic_id: errors.UNKNOWN_SERVER_ERROR, asked[1].topic_id: errors.NONE}


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("../evil", 0),
        ("../../../../nowhere/evil", 0),
        ("a/b", 0),
        ("..", 0),
        ("", 0),
        ("x" * 250, 0),
        ("x" * 249, 100_000),
        ("nul\0", 0),
        ("__cluster_metadata", 0),
        ("t", -1),
        ("t", 2**31 - 1),
    ],
)
def test_what_cannot_be_a_directory_is_no_partition(desk: ClusterDesk, name: str, index: int) -> None:
    """A name from the wire goes into a path: one may lead out of the log directory, and one that the file system refuses
    would take the directory offline."""
    desk.live(0, 1)
    assert desk.lead_and_follow(state(index), topic=name) == {index: errors.INVALID_TOPIC_EXCEPTION}
    assert all(each.is_online for each in desk.storage.directories)
    desk.live(0, 1, topic_states=[topic_known(known(index), topic=name)])
    assert name not in desk.cluster_image.topics


def test_an_index_from_the_wire_is_not_believed(desk: ClusterDesk) -> None:
    desk.live(0, topic_states=[topic_known(known(999_999))])
    assert "orders" not in desk.cluster_image.topics
    desk.live(0, topic_states=[topic_known(known(1000))])
    assert len(desk.cluster_image.topics["orders"].partitions) == 1001
    more = [topic_known(known(900), topic=name, topic_id=name.encode().ljust(16)) for name in "abc"]
    desk.live(0, topic_states=more)
    assert desk.cluster_image.topics.keys() == {"orders", "a"}


# -- coordinators


def test_a_coordinator_is_won_and_lost_with_its_partition(desk: ClusterDesk) -> None:
    join = messages.HeartbeatRequest(group_id="g", member_id="nobody")

    def heard() -> int:
        code: int = desk.ask(join, 4).error_code
        return code

    offsets = topic_known(known(0, leader=1, epoch=4), topic=CONSUMER_OFFSETS)
    desk.live(0, 1, 2, topic_states=[offsets])
    assert heard() == errors.NOT_COORDINATOR
    desk.lead_and_follow(state(epoch=5, isr=[0]), topic=CONSUMER_OFFSETS)
    assert heard() == errors.UNKNOWN_MEMBER_ID  # though the metadata still tells of another leader
    desk.lead_and_follow(state(leader=2, epoch=6), topic=CONSUMER_OFFSETS)
    assert heard() == errors.NOT_COORDINATOR
    desk.lead_and_follow(state(epoch=7, isr=[0]), topic=CONSUMER_OFFSETS)
    assert heard() == errors.UNKNOWN_MEMBER_ID
    desk.stop(stopped(epoch=7, delete=True), topic=CONSUMER_OFFSETS)
    assert heard() == errors.NOT_COORDINATOR
    desk.lead_and_follow(state(epoch=0, isr=[0]), topic=CONSUMER_OFFSETS, topic_id=OTHER_ID)
    assert heard() == errors.UNKNOWN_MEMBER_ID  # the topic was made anew


# -- the metadata


def image_of(desk: ClusterDesk, topic: str = "orders") -> list[tuple[int, int, int]]:
    found = desk.cluster_image.topics[topic].partitions
    return [(each.leader, each.leader_epoch, each.partition_epoch) for each in found]


def test_the_image_says_what_was_told_last(desk: ClusterDesk) -> None:
    desk.live(0, 1, topic_states=[topic_known(known(1, leader=1, epoch=8, zk_version=3))])
    assert image_of(desk) == [(-1, -1, -1), (1, 8, 3)]  # of the first nobody has told yet
    desk.live(0, 1, topic_states=[topic_known(known(0, leader=1, epoch=2), known(1, epoch=4))])
    assert image_of(desk) == [(1, 2, 0), (0, 4, 0)]
    assert desk.cluster_image.topics_by_id[TOPIC_ID].name == "orders"


def test_brokers_live_as_long_as_each_request_names_them(desk: ClusterDesk) -> None:
    assert {id: list(info.endpoints) for id, info in desk.cluster_image.brokers.items()} == {
        id: ["PLAINTEXT", "INTERNAL"] for id in (0, 1, 2)
    }
    assert not any(info.fenced for info in desk.cluster_image.brokers.values())
    desk.cluster_image.take_delta()
    desk.live(0, 2)
    assert list(desk.cluster_image.brokers) == [0, 2]
    moved = live_broker(2)
    moved.endpoints[0].host = "elsewhere"
    desk.ask(UpdateMetadata(live_brokers=[live_broker(0), moved], **told({})), 8)
    assert desk.cluster_image.brokers[2].endpoints["PLAINTEXT"].host == "elsewhere"


def test_a_topic_that_is_being_deleted_is_gone_for_clients(desk: ClusterDesk) -> None:
    desk.live(0, topic_states=[topic_known(known(), known(1))])
    for _ in range(2):
        desk.live(0, topic_states=[topic_known(known(0, leader=-2), known(1, leader=-2))])
        assert "orders" not in desk.cluster_image.topics
        assert desk.cluster_image.topics_by_id == {}


def test_a_topic_of_another_id_is_another_one(desk: ClusterDesk) -> None:
    desk.live(0, topic_states=[topic_known(known(), known(1))])
    desk.live(0, topic_states=[topic_known(known(0, epoch=0), topic_id=OTHER_ID)])
    assert image_of(desk) == [(0, 0, 0)]
    assert list(desk.cluster_image.topics_by_id) == [OTHER_ID]


def test_a_topic_without_an_id_is_known_only_where_the_id_was_told_before(desk: ClusterDesk) -> None:
    """Versions before 7 have none."""
    desk.live(0, topic_states=[topic_known(known(), topic_id=bytes(16))])
    assert desk.cluster_image.topics == {}
    desk.live(0, topic_states=[topic_known(known())])
    desk.live(0, topic_states=[topic_known(known(leader=1, epoch=1), topic_id=bytes(16))])
    assert image_of(desk) == [(1, 1, 0)]


def test_who_follows_the_metadata_is_told_of_what_changed(desk: ClusterDesk) -> None:
    heard: list[Any] = []
    desk.parts.publishers.add("telemetry", heard.append)
    desk.live(0, 1, topic_states=[topic_known(known(), known(1))])
    desk.live(0, 1, topic_states=[topic_known(known(), known(1, leader=1, epoch=1), known(2))])
    desk.live(0, 1, topic_states=[topic_known(known(leader=-2))])
    first, second, third = heard
    assert (list(first.created), first.brokers) == ([TOPIC_ID], {2})
    assert (second.grown, second.elected, second.brokers) == ({TOPIC_ID: 2}, {TOPIC_ID: {1}}, set())
    assert list(third.deleted) == [TOPIC_ID]


# -- what is served


def test_a_cluster_serves_the_versions_of_3_9_and_no_features(desk: ClusterDesk) -> None:
    request = messages.ApiVersionsRequest(client_software_name="x", client_software_version="1")
    context: Any = SimpleNamespace(version=4, client_id="x", connection=desk.connection)
    answer = api_versions.handle(cast(Any, desk), request, context)
    rows = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert rows == {key: api.versions for key, api in cluster_apis.APIS.items() if api.is_advertised}
    assert {key: rows[key] for key in (1, 4, 5, 6, 26, 27)} == {
        1: (0, 17),
        4: (0, 7),
        5: (0, 4),
        6: (0, 8),
        26: (0, 4),
        27: (0, 1),
    }
    assert not rows.keys() & {55, 64, 71, 75, 80, 81}
    assert (answer.supported_features, answer.finalized_features) == ([], [])
    assert answer.finalized_features_epoch == 0


@pytest.mark.parametrize(("version", "kind"), [(3, 0), (4, 0), (6, 1)])
def test_the_coordinator_of_a_key_is_whoever_leads_its_partition(
    desk: ClusterDesk, version: int, kind: int
) -> None:
    desk.connection.listener = SimpleNamespace(owner=SimpleNamespace(name="PLAINTEXT"))  # type: ignore[attr-defined]
    desk.controller = SimpleNamespace(is_auto_creating=lambda name: False)
    partitions = [known(index, leader=leader) for index, leader in enumerate((0, 2, -1, 7))]
    for name, topic_id in ((CONSUMER_OFFSETS, TOPIC_ID), (TRANSACTION_STATE, OTHER_ID)):
        desk.live(0, 1, 2, topic_states=[topic_known(*partitions, topic=name, topic_id=topic_id)])
    keys = ["a", "b", "c", "d"]
    assert [partition_for(key, 4) for key in keys] == [1, 2, 3, 0]
    found = []
    for key in keys:
        named: Any = {"key": key} if version < 4 else {"coordinator_keys": [key]}
        request = messages.FindCoordinatorRequest(key_type=kind, **named)
        answer = desk.ask(request, version)
        row = answer if version < 4 else answer.coordinators[0]
        found.append((row.node_id, row.host, row.error_code))
    nobody = (-1, "", errors.COORDINATOR_NOT_AVAILABLE)
    assert found == [(2, "host2", errors.NONE), nobody, nobody, (0, "host0", errors.NONE)]


def test_a_coordinator_whose_topic_cannot_be_created_is_not_waited_for_long(desk: ClusterDesk) -> None:
    """What the client asks for next on its connection is answered after this, and ZooKeeper may be away."""
    asked: list[Any] = []
    desk.controller = SimpleNamespace(
        is_auto_creating=lambda name: False, auto_create=lambda name, done, needed: asked.append(done)
    )
    given = desk.send(messages.FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)

    def said() -> int | None:
        answer = desk.answer_of(given, "FindCoordinatorRequest", 4)
        return answer if answer is None else int(answer.coordinators[0].error_code)

    desk.advance(cluster_waits.WAIT_MS - 1)
    assert said() is None
    desk.advance(1)
    assert said() == errors.COORDINATOR_NOT_AVAILABLE
    asked[0](Planned(CONSUMER_OFFSETS))  # nobody waits for that any more


def test_metadata_waits_as_long_for_a_topic_that_it_has_created(desk: ClusterDesk) -> None:
    asked: list[Any] = []
    desk.connection.listener = SimpleNamespace(owner=SimpleNamespace(name="PLAINTEXT"))  # type: ignore[attr-defined]
    controller = SimpleNamespace(
        controller_id=9, auto_create_all=lambda names, done: asked.append((list(names), done))
    )
    vars(desk).update(cluster_id="c" * 22, controller=controller)
    topic = messages.MetadataRequest.MetadataRequestTopic(name="missing")
    given = desk.send(messages.MetadataRequest(topics=[topic], allow_auto_topic_creation=True), 12)
    ((names, created),) = asked
    assert names == ["missing"] and desk.answer_of(given, "MetadataRequest", 12) is None
    desk.advance(cluster_waits.WAIT_MS)
    (found,) = desk.answer_of(given, "MetadataRequest", 12).topics
    assert found.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    created()  # nobody waits for that any more


# -- what clients are told


def test_offline_replicas_are_those_that_the_controller_names(desk: ClusterDesk) -> None:
    """One that is shutting down lives and is offline; one that is gone is, when the controller says so."""
    vars(desk).update(cluster_id="c" * 22, controller=SimpleNamespace(controller_id=9))
    desk.connection.listener = SimpleNamespace(owner=SimpleNamespace(name="PLAINTEXT"))  # type: ignore[attr-defined]

    def offline(*states: Any) -> list[list[int]]:
        live = [live_broker(broker_id) for broker_id in (0, 1)]
        desk.ask(UpdateMetadata(live_brokers=live, topic_states=[topic_known(*states)], **told({})), 8)
        topic = messages.MetadataRequest.MetadataRequestTopic(name="orders")
        (found,) = desk.ask(messages.MetadataRequest(topics=[topic]), 12).topics
        return [each.offline_replicas for each in found.partitions]

    assert offline(known(0, offline_replicas=[1]), known(2)) == [[1], [], []]
    assert offline(known(0, offline_replicas=[1, 2])) == [[1, 2], [], []]
    assert offline(known(0)) == [[], [], []]
