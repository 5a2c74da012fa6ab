"""More partitions for existing topics, requests in quick succession, and the removal of brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.cluster import topic_creation
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.errors import KafkaError
from pykafkad.handlers import (
    alter_partition_reassignments,
    create_partitions,
    describe_quorum,
    elect_leaders,
    list_partition_reassignments,
    unregister_broker,
    update_features,
)
from pykafkad.messages import RegisterBrokerRecord
from tests.unit.metadata_fakes import DIRECTORY_ID, Later, call, creatable, create, open_broker

Topic = messages.CreatePartitionsRequest.CreatePartitionsTopic
Update = messages.UpdateFeaturesRequest.FeatureUpdateKey


def grow(broker: Any, *wanted: tuple[str, int], validate_only: bool = False) -> list[Any]:
    """The controller's results; empty while they are being written."""
    grown: list[Any] = []
    topics = [Topic(name=name, count=count, assignments=None) for name, count in wanted]
    broker.controller.create_partitions(topics, validate_only, grown.extend)
    return grown


def codes(grown: list[Any]) -> list[int]:
    return [topic.error.code if topic.error else 0 for topic in grown]


def sizes(broker: Any) -> dict[str, int]:
    return {name: len(topic.partitions) for name, topic in broker.image.topics.items()}


def test_partitions_are_added_behind_those_there_are(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders", 2))
    assert codes(grow(broker, ("orders", 5))) == [0]
    topic = broker.image.topics["orders"]
    assert [each.replicas for each in topic.partitions] == [[1]] * 5
    assert [each.directories for each in topic.partitions] == [[DIRECTORY_ID]] * 5
    assert [each.leader_epoch for each in topic.partitions] == [0] * 5
    assert broker.storage.events[2:] == ["create orders-2", "create orders-3", "create orders-4"]


def test_they_are_there_after_a_restart(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders", 2))
    grow(broker, ("orders", 5))
    broker.log.close()
    assert sizes(open_broker(tmp_path)) == {"orders": 5}


def test_to_validate_only_changes_nothing(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders", 2))
    end = broker.log.end_offset
    assert codes(grow(broker, ("orders", 5), ("never", 2), validate_only=True)) == [
        0,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert sizes(broker) == {"orders": 2} and broker.log.end_offset == end


def test_a_request_sees_the_one_before_it(tmp_path: Path) -> None:
    """A topic is created, grown twice and deleted, all before anything is on the disk."""
    later = Later()
    broker = open_broker(tmp_path, later)
    create(broker, creatable("orders", 2))
    first = grow(broker, ("orders", 4))
    second = grow(broker, ("orders", 3))
    third = grow(broker, ("orders", 6))
    later.all()
    assert [codes(each) for each in (first, second, third)] == [[0], [errors.INVALID_PARTITIONS], [0]]
    assert sizes(broker) == {"orders": 6}
    broker.controller.delete_topics([broker.controller.names.id_of("orders")], lambda error: None)
    last = grow(broker, ("orders", 9))
    later.all()
    assert codes(last) == [errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert MetadataLog(str(tmp_path), broker.log.clock).open() is None  # and it can be replayed


def test_a_topic_that_is_deleted_while_it_grows(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    create(broker, creatable("orders"))
    later.all()
    grown = grow(broker, ("orders", 30))
    broker.controller.delete_topics([broker.controller.names.id_of("orders")], lambda error: None)
    later.all()
    assert codes(grown) == [0] and sizes(broker) == {} and broker.storage.partitions == {}


def test_a_write_that_fails_adds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    with monkeypatch.context() as broken:
        broken.setattr(broker.log, "write", lambda data: (_ for _ in ()).throw(OSError(28, "No space left")))
        assert codes(grow(broker, ("orders", 3))) == [errors.KAFKA_STORAGE_ERROR]
    assert codes(grow(broker, ("orders", 2))) == [0]
    assert sizes(broker) == {"orders": 2}


def test_too_many_partitions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_creation, "MAX_RECORDS_IN_REQUEST", 10)
    monkeypatch.setattr("pykafkad.cluster.partition_changes.MAX_RECORDS_IN_REQUEST", 10)
    broker = open_broker(tmp_path)
    create(broker, creatable("a"), creatable("b"), creatable("c"))
    assert codes(grow(broker, ("a", 6), ("b", 7), ("c", 3))) == [0, -1, -1]
    assert codes(grow(broker, ("b", 11))) == [0]
    assert sizes(broker) == {"a": 6, "b": 11, "c": 1}


def test_two_billion_partitions_cost_nothing(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    assert codes(grow(broker, ("orders", 2**31 - 1))) == [errors.UNKNOWN_SERVER_ERROR]


def test_answers_of_create_partitions(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"), creatable("others"))
    topics = [Topic(name=name, count=2, assignments=None) for name in ("orders", "others", "orders", "none")]
    for version in range(4):
        answer = call(broker, create_partitions, version, topics=topics, timeout_ms=1000, validate_only=True)
        found = {result.name: (result.error_code, result.error_message) for result in answer.results}
        assert found == {
            "orders": (errors.INVALID_REQUEST, "Duplicate topic name."),
            "others": (0, None),
            "none": (errors.UNKNOWN_TOPIC_OR_PARTITION, None),
        }
    late = call(broker, create_partitions, 3, topics=topics[:2], timeout_ms=0)
    assert [result.error_code for result in late.results] == [errors.REQUEST_TIMED_OUT] * 2


def test_a_reassignment_to_where_it_is_changes_nothing(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    end = broker.log.end_offset
    kind = messages.AlterPartitionReassignmentsRequest
    parts = [
        kind.ReassignablePartition(partition_index=0, replicas=replicas) for replicas in ([1], [2], None)
    ]
    topics = [kind.ReassignableTopic(name="orders", partitions=parts)]
    answer = call(broker, alter_partition_reassignments, 1, topics=topics)
    assert [part.error_code for part in answer.responses[0].partitions] == [
        errors.NONE,
        errors.INVALID_REPLICA_ASSIGNMENT,
        errors.NO_REASSIGNMENT_IN_PROGRESS,
    ]
    assert broker.log.end_offset == end
    for timeout_ms, code in ((1, errors.NONE), (0, errors.REQUEST_TIMED_OUT), (-1, errors.REQUEST_TIMED_OUT)):
        for flag in (True, False):
            fields = {"timeout_ms": timeout_ms, "allow_replication_factor_change": flag}
            answer = call(broker, alter_partition_reassignments, 1, topics=topics, **fields)
            assert answer.error_code == code
            assert answer.allow_replication_factor_change == (flag or code != errors.NONE), (
                "an answer that is an error has the default"
            )
    nothing = call(broker, alter_partition_reassignments, 1, topics=[], timeout_ms=0)
    assert (nothing.error_code, nothing.responses) == (errors.NONE, []), "what is nothing is never late"


def test_no_reassignment_is_ever_in_progress(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    kind = messages.ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    for asked in (None, [], [kind(name="orders", partition_indexes=[0])]):
        answer = call(broker, list_partition_reassignments, 0, topics=asked)
        assert (answer.error_code, answer.error_message, answer.topics) == (errors.NONE, None, [])


def test_elections_of_a_partition_without_a_leader(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("orders"))
    broker.image.topics["orders"].partitions[0].leader = -1
    kind = messages.ElectLeadersRequest
    asked = [kind.TopicPartitions(topic="orders", partitions=[0])]
    found = [
        call(broker, elect_leaders, 2, election_type=election, topic_partitions=asked)
        .replica_election_results[0]
        .partition_result[0]
        .error_code
        for election in (0, 1)
    ]
    assert found == [errors.PREFERRED_LEADER_NOT_AVAILABLE, errors.ELIGIBLE_LEADERS_NOT_AVAILABLE]


def test_a_broker_that_will_not_come_back_is_forgotten(tmp_path: Path) -> None:
    """A data directory may know such brokers from the cluster that it came from."""
    broker = open_broker(tmp_path)
    gone = RegisterBrokerRecord(broker_id=2, broker_epoch=5, incarnation_id=bytes(16))
    broker.controller.commit([(gone, 1)], lambda error: None)
    answers = [call(broker, unregister_broker, 0, broker_id=number) for number in (2, 2, 1)]
    assert [answer.error_code for answer in answers] == [
        errors.NONE,
        errors.BROKER_ID_NOT_REGISTERED,
        errors.INVALID_REQUEST,
    ]
    assert list(broker.image.brokers) == [1]
    broker.log.close()
    assert list(open_broker(tmp_path).image.brokers) == [1]


def test_two_who_forget_the_same_broker_at_once(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    gone = RegisterBrokerRecord(broker_id=2, broker_epoch=5, incarnation_id=bytes(16))
    broker.controller.commit([(gone, 1)], lambda error: None)
    later.all()
    found: list[KafkaError | None] = []
    for _ in range(2):
        broker.controller.in_turn(lambda: unregister_broker.plan(broker, 2), found.append)
    later.all()
    assert found[0] is None and isinstance(found[1], KafkaError)
    assert found[1].code == errors.BROKER_ID_NOT_REGISTERED


def update(broker: Any, *updates: tuple[str, int, int], **fields: Any) -> tuple[int, str | None]:
    keys = [Update(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
    answer = call(broker, update_features, 2, feature_updates=keys, **fields)
    return answer.error_code, answer.error_message


def test_feature_levels_survive_a_restart(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    assert update(broker, ("group.version", 0, 2), ("transaction.version", 1, 2)) == (0, None)
    assert update(broker, ("share.version", 0, 2), validate_only=True) == (0, None)
    assert (
        update(broker, ("streams.version", 0, 2), ("group.version", 9, 1))[0] == errors.INVALID_UPDATE_VERSION
    )
    broker.log.close()
    levels = open_broker(tmp_path).image.features
    assert "group.version" not in levels
    assert (levels["transaction.version"], levels["share.version"], levels["streams.version"]) == (1, 1, 1)


@pytest.mark.parametrize("version", [1, 2])
def test_older_clients_are_told_of_each_feature(tmp_path: Path, version: int) -> None:
    broker = open_broker(tmp_path)
    names = ("group.version", "transaction.version")
    keys = [Update(feature=name, max_version_level=1, upgrade_type=2) for name in names]
    answer = call(broker, update_features, version, feature_updates=keys)
    assert (answer.error_code, answer.error_message) == (0, None)
    rows = [(row.feature, row.error_code, row.error_message) for row in answer.results]
    assert rows == ([(name, 0, "NONE") for name in names] if version == 1 else [])
    refused = call(
        broker, update_features, version, feature_updates=[*keys, Update(feature="no", max_version_level=1)]
    )
    assert refused.error_code == errors.INVALID_UPDATE_VERSION and not refused.results


@pytest.mark.parametrize(
    ("current", "to", "kind", "said"),
    [
        (22, 23, 1, None),
        (22, 20, 2, None),  # no record changed in between
        (22, 18, 3, None),
        (29, 24, 2, None),
        (29, 22, 2, "Unsupported metadata.version downgrade from 29 to 22. Refusing"),
        (30, 29, 3, "Unsupported metadata.version downgrade from 30 to 29. Unsafe"),
        (22, 20, 1, "Can't downgrade the version of this feature without"),
        (22, 23, 2, "Can't downgrade to a newer version."),
    ],
)
def test_metadata_version(tmp_path: Path, current: int, to: int, kind: int, said: str | None) -> None:
    broker = open_broker(tmp_path)
    broker.image.features["metadata.version"] = current
    code, text = update(broker, ("metadata.version", to, kind), validate_only=True)
    assert (code, text) == (0, None) if said is None else said in (text or "")


def test_eligible_leader_replicas_need_records_that_know_them(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    name = "eligible.leader.replicas.version"
    update(broker, (name, 0, 2))
    broker.image.features["metadata.version"] = 20
    code, text = update(broker, (name, 1, 1))
    assert code == errors.INVALID_UPDATE_VERSION and text is not None
    assert text.endswith(f"{name} could not be set to 1 because it depends on metadata.version level 23")
    assert update(broker, (name, 1, 1), ("metadata.version", 23, 1))[0] == 0


def test_eligible_leader_replicas_make_min_isr_the_clusters(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, min_insync_replicas="2")
    name, key = "eligible.leader.replicas.version", "min.insync.replicas"
    update(broker, (name, 0, 2))
    broker.image.configs[4, ""].pop(key)
    broker.image.configs[4, "1"] = {key: "3", "compression.type": "zstd"}
    assert update(broker, (name, 1, 1)) == (0, None)
    assert broker.image.broker_configs("")[key] == "2"
    assert broker.image.broker_configs("1") == {"compression.type": "zstd"}


def test_the_quorum_is_this_node(tmp_path: Path) -> None:
    from pykafkad.clock import ManualClock

    broker = open_broker(tmp_path)
    broker.clock = ManualClock(1234)
    kind = messages.DescribeQuorumRequest
    asked = kind.TopicData(
        topic_name="__cluster_metadata", partitions=[kind.PartitionData(partition_index=0)]
    )
    for version in range(3):
        answer = call(broker, describe_quorum, version, topics=[asked])
        part = answer.topics[0].partitions[0]
        assert (part.leader_id, part.leader_epoch, part.high_watermark) == (1, 1, broker.log.end_offset)
        assert [voter.replica_id for voter in part.current_voters] == [1]
        assert [node.node_id for node in answer.nodes] == ([1] if version == 2 else [])


def test_whoever_asks_for_more_than_the_quorums_one_partition_is_told_of_none(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    kind = messages.DescribeQuorumRequest

    def asked(name: str, *indexes: int) -> Any:
        return kind.TopicData(
            topic_name=name, partitions=[kind.PartitionData(partition_index=index) for index in indexes]
        )

    meta, gone = "__cluster_metadata", errors.UNKNOWN_TOPIC_OR_PARTITION
    for topics in (
        [asked(meta, 0, 1)],
        [asked(meta, 0), asked(meta, 0)],
        [asked(meta, 1)],
        [asked("orders", 0)],
        [asked(meta)],
        [],
    ):
        answer = call(broker, describe_quorum, 2, topics=topics)
        told = [
            (
                topic.topic_name,
                [(row.partition_index, row.error_code, row.leader_id) for row in topic.partitions],
            )
            for topic in answer.topics
        ]
        assert told == [
            (topic.topic_name, [(row.partition_index, gone, 0) for row in topic.partitions])
            for topic in topics
        ]
