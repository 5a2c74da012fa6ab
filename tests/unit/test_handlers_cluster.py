"""Handlers of the cluster's APIs where recorded answers do not reach: waiting, listeners, refusals."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, handlers
from pykafkad import messages as m
from pykafkad.clock import ManualClock
from pykafkad.cluster import topic_names
from pykafkad.cluster.controller import Quorum
from pykafkad.config_listeners import Endpoint
from pykafkad.errors import KafkaError
from pykafkad.handlers import (
    api_versions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_quorum,
    describe_topic_partitions,
    find_coordinator,
    init_producer_id,
    metadata,
)
from pykafkad.slices import Slices
from tests.unit.metadata_fakes import FakeContext, Hasty, Later, call, creatable, create, handled, open_broker


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    return open_broker(tmp_path)


def named(name: str | None, topic_id: bytes = bytes(16)) -> Any:
    return m.MetadataRequest.MetadataRequestTopic(name=name, topic_id=topic_id)


# -- ApiVersions


def test_the_list_is_what_the_handlers_declare(broker: Any) -> None:
    answer = call(broker, api_versions, 4, client_software_name="test", client_software_version="1.0")
    rows = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert rows == {
        api.key: (api.listed_since, api.versions[1]) for api in handlers.APIS.values() if api.is_advertised
    }
    assert not {71, 72} & rows.keys(), "Kafka without a receiver of metrics does not advertise telemetry"
    assert list(rows) == sorted(rows)


def test_versions_are_those_of_the_running_kafka() -> None:
    """What a 4.3.1 broker lists; InitProducerId 6 is in its schemas and is not served."""
    served = {key: api.versions for key, api in handlers.APIS.items()}
    schemas = {key: getattr(m, f"{api.name}Request") for key, api in handlers.APIS.items()}
    lowest = dict.fromkeys((2, 9, 20, 27, 29, 30, 31, 32, 34, 35), 1) | dict.fromkeys((8, 19, 23), 2)
    lowest |= {0: 3, 1: 4}
    assert {key: low for key, (low, _) in served.items()} == {
        key: lowest.get(key, schema.min_version) for key, schema in schemas.items()
    }
    listed = {key: api.listed_since for key, api in handlers.APIS.items()}
    assert listed == {key: low for key, (low, _) in served.items()} | {0: 0}, "for the sake of old clients"
    assert {key: high for key, (_, high) in served.items()} == {
        key: schema.max_version for key, schema in schemas.items()
    } | {22: 5}


def test_every_api_has_a_handler_and_messages() -> None:
    for key, api in handlers.APIS.items():
        request = getattr(m, f"{api.name}Request")
        assert (api.key, request.api_key) == (key, key)
        assert callable(api.load().handle)
        assert api.versions[1] <= request.max_version


def test_an_unserved_version_is_refused_in_the_oldest_layout() -> None:
    frame = handlers.api_versions_refusal(77)
    assert isinstance(frame, bytes)
    assert frame[:8].hex() == "00000010" + "0000004d"
    answer = m.ApiVersionsResponse.decode(frame, 0, 8)
    assert answer.error_code == errors.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [(18, 0, 4)]


def test_older_clients_are_not_told_of_features_that_begin_at_level_0(broker: Any) -> None:
    """They reject the whole answer (KAFKA-17011)."""

    def told(version: int) -> dict[str, int]:
        answer = call(broker, api_versions, version, client_software_name="a", client_software_version="1")
        return {row.name: row.min_version for row in answer.supported_features}

    everything = told(4)
    assert 0 in everything.values()
    assert told(3) == {name: lowest for name, lowest in everything.items() if lowest}


def test_many_connections_of_the_same_software_share_its_name(broker: Any) -> None:
    def told(name: str, version: str = "1.0") -> Any:
        context: Any = FakeContext(4)
        request = m.ApiVersionsRequest(client_software_name=name, client_software_version=version)
        assert handled(broker, api_versions, request, context).error_code == 0
        return context.connection.software

    assert told("librdkafka") is told("librdkafka")
    assert told("librdkafka", "2.0") == ("librdkafka", "2.0")
    for number in range(3_000):
        told(f"software{number}")
    assert len(api_versions._software) <= api_versions.SOFTWARE_MAX, "whatever clients say of themselves"
    assert len(told("x" * 1_000)[0]) == api_versions.SOFTWARE_CHARACTERS


def test_the_features_epoch_grows_with_the_metadata(broker: Any) -> None:
    fields = {"client_software_name": "test", "client_software_version": "1"}
    before = call(broker, api_versions, 3, **fields).finalized_features_epoch
    create(broker, creatable("orders"))
    assert call(broker, api_versions, 3, **fields).finalized_features_epoch == before + 2


# -- Metadata


def test_existing_topics_come_first_then_bad_names_then_those_that_could_not_be_created(
    tmp_path: Path,
) -> None:
    broker = open_broker(tmp_path, default_replication_factor="2")
    create(broker, creatable("orders"), creatable("bills"))
    asked = [named("new"), named("bills"), named("b/d"), named("orders")]
    answer = call(broker, metadata, 12, topics=asked)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("bills", 0),
        ("orders", 0),
        ("b/d", errors.INVALID_TOPIC_EXCEPTION),
        ("new", errors.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_a_topic_is_answered_from_memory_as_it_was_before(broker: Any) -> None:
    create(broker, creatable("orders", 2), creatable("bills"))
    orders = broker.image.topics["orders"].id
    by_id = m.MetadataRequest.MetadataRequestTopic(name=None, topic_id=orders)
    for version, asked in (
        (12, [named("bills"), named("orders"), named("bills")]),
        (12, [by_id]),
        (12, [named("orders"), named("a/b")]),
        (1, []),
        (0, [named("orders")]),
    ):
        for topic in broker.image.topics.values():
            topic.cache.clear()
        first, again = (call(broker, metadata, version, topics=asked) for _ in range(2))
        assert first == again
        expected = {"bills", "orders", "a/b"} & {each.name for each in asked} or (
            {"orders"} if asked else set()
        )
        assert {topic.name for topic in again.topics} == expected


def test_no_answer_waits_for_many_partitions(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, num_partitions="101")
    answer = call(broker, metadata, 12, topics=[named("new")])
    assert [topic.error_code for topic in answer.topics] == [errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert len(broker.image.topics["new"].partitions) == 101


def test_the_first_answer_has_the_topics_that_it_creates(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later, num_partitions="2")
    contexts = [FakeContext(12), FakeContext(12)]
    for context in contexts:  # the second one waits for what the first one creates
        assert handled(broker, metadata, m.MetadataRequest(topics=[named("new")]), context) is context
        assert not context.answers
    later.all()
    for context in contexts:
        (topic,) = context.answers[0].topics
        assert (topic.error_code, [each.leader_id for each in topic.partitions]) == (0, [1, 1])


@pytest.mark.parametrize(("version", "expected"), [(0, ["orders"]), (1, [])])
def test_an_empty_list_means_all_in_version_0_alone(broker: Any, version: int, expected: list[str]) -> None:
    create(broker, creatable("orders"))
    answer = call(broker, metadata, version, topics=[])
    assert [topic.name for topic in answer.topics] == expected


def test_nothing_is_created_where_the_broker_or_the_client_forbids_it(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, auto_create_topics_enable="false")
    call(broker, metadata, 4, topics=[named("one")], allow_auto_topic_creation=True)
    assert not broker.image.topics
    broker.controller.stop()
    broker = open_broker(tmp_path)
    call(broker, metadata, 4, topics=[named("one")], allow_auto_topic_creation=False)
    assert not broker.image.topics


def test_a_partition_without_leader_says_so(broker: Any) -> None:
    create(broker, creatable("orders", 2))
    topic = broker.image.topics["orders"]
    call(broker, metadata, 12, topics=[named("orders")])  # its cached answer must not be used again
    broker.log.append([(m.PartitionChangeRecord(partition_id=1, topic_id=topic.id, leader=-1), 2)])
    answer = call(broker, metadata, 12, topics=[named("orders")])
    assert [(item.error_code, item.leader_id, item.leader_epoch) for item in answer.topics[0].partitions] == [
        (0, 1, 0),
        (errors.LEADER_NOT_AVAILABLE, -1, 1),
    ]


def test_a_broker_is_named_as_the_listener_reaches_it(tmp_path: Path, monkeypatch: Any) -> None:
    broker = open_broker(tmp_path)
    endpoints = [Endpoint("IN", "PLAINTEXT", "10.0.0.1", 9092), Endpoint("OUT", "SSL", "example.org", 443)]
    broker.controller.take_over(endpoints, [b"\x11" * 16], "rack-7")
    for listener, host, port in (("IN", "10.0.0.1", 9092), ("OUT", "example.org", 443)):
        context: Any = FakeContext(9, listener)
        answer = metadata.handle(broker, m.MetadataRequest(topics=[]), context)
        assert isinstance(answer, m.MetadataResponse)
        (found,) = answer.brokers
        assert (found.host, found.port, found.rack) == (host, port, "rack-7")
    assert [point.security_protocol for point in broker.image.brokers[1].endpoints.values()] == [0, 1]


# -- the controller


@pytest.mark.parametrize("controller_id", [7, -1])
def test_clients_are_told_who_the_controller_is_whoever_that_is(broker: Any, controller_id: int) -> None:
    """Where another node leads the metadata, or nobody is known to."""
    quorum = Quorum(7, 3, 90, b"\x07" * 16)
    broker.controller = SimpleNamespace(controller_id=controller_id, quorum=quorum)
    assert call(broker, metadata, 12, topics=[]).controller_id == controller_id
    assert call(broker, describe_cluster, 2).controller_id == controller_id
    kind = m.DescribeQuorumRequest
    asked = [
        kind.TopicData(topic_name="__cluster_metadata", partitions=[kind.PartitionData(partition_index=0)])
    ]
    broker.clock = ManualClock()
    answer = call(broker, describe_quorum, 2, topics=asked)
    (found,) = answer.topics[0].partitions
    (voter,) = found.current_voters
    assert (found.leader_id, found.leader_epoch, found.high_watermark) == quorum[:3]
    assert (voter.replica_id, voter.log_end_offset, voter.replica_directory_id) == (7, 90, b"\x07" * 16)
    assert [node.node_id for node in answer.nodes] == [7]


# -- DescribeCluster


def test_fenced_brokers_are_shown_on_demand(broker: Any) -> None:
    record = m.BrokerRegistrationChangeRecord(
        broker_id=1, broker_epoch=broker.controller.broker_epoch, fenced=1
    )
    broker.log.append([(record, 0)])
    assert call(broker, describe_cluster, 2).brokers == []
    (found,) = call(broker, describe_cluster, 2, include_fenced_brokers=True).brokers
    assert found.is_fenced


# -- DescribeTopicPartitions


def test_pages_put_together_are_the_whole(broker: Any) -> None:
    create(broker, creatable("a", 3), creatable("b", 5), creatable("c", 1))
    seen = []
    cursor = None
    for _ in range(20):
        fields = {"response_partition_limit": 2, "cursor": cursor}
        answer = call(broker, describe_topic_partitions, 0, **fields)
        seen += [(topic.name, item.partition_index) for topic in answer.topics for item in topic.partitions]
        if answer.next_cursor is None:
            break
        cursor = m.DescribeTopicPartitionsRequest.Cursor(
            topic_name=answer.next_cursor.topic_name, partition_index=answer.next_cursor.partition_index
        )
    assert seen == [(name, index) for name, count in (("a", 3), ("b", 5), ("c", 1)) for index in range(count)]


def test_the_brokers_bound_on_a_page_counts(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, max_request_partition_size_limit="4")
    create(broker, creatable("a", 9))
    answer = call(broker, describe_topic_partitions, 0, response_partition_limit=100)
    assert len(answer.topics[0].partitions) == 4 and answer.next_cursor.partition_index == 4


# -- CreateTopics and DeleteTopics


def test_a_creation_is_answered_when_it_is_durable(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    context: Any = FakeContext(7)
    request = m.CreateTopicsRequest(topics=[creatable("orders")], timeout_ms=1000)
    assert handled(broker, create_topics, request, context) is context
    assert context.answers == []
    later.all()
    (answer,) = context.answers
    assert answer.topics[0].topic_id == broker.image.topics["orders"].id


def test_a_deletion_is_answered_when_it_is_durable(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    create(broker, creatable("orders"))
    later.all()
    context: Any = FakeContext(5)
    request = m.DeleteTopicsRequest(topic_names=["orders", "nope"], timeout_ms=1000)
    assert handled(broker, delete_topics, request, context) is context
    assert context.answers == [] and "orders" in broker.image.topics
    later.all()
    (answer,) = context.answers
    assert [(each.name, each.error_code) for each in answer.responses] == [
        ("orders", 0),
        ("nope", errors.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert not broker.image.topics and not broker.storage.partitions


def test_a_metadata_log_that_cannot_be_written_is_a_storage_error(broker: Any, monkeypatch: Any) -> None:
    create(broker, creatable("orders"))

    def full(fd: int, data: bytes, offset: int) -> int:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.pwrite", full)
    answer = call(broker, create_topics, 7, topics=[creatable("bills")], timeout_ms=1000)
    assert answer.topics[0].error_code == errors.KAFKA_STORAGE_ERROR
    answer = call(broker, delete_topics, 5, topic_names=["orders"], timeout_ms=1000)
    assert answer.responses[0].error_code == errors.KAFKA_STORAGE_ERROR
    assert "orders" in broker.image.topics


@pytest.mark.parametrize(
    ("version", "code"), [(2, errors.INVALID_REQUEST), (3, errors.TOPIC_DELETION_DISABLED)]
)
def test_deletion_may_be_disabled(tmp_path: Path, version: int, code: int) -> None:
    broker = open_broker(tmp_path, delete_topic_enable="false")
    create(broker, creatable("orders"))
    answer = call(broker, delete_topics, version, topic_names=["orders", "orders"], timeout_ms=1000)
    assert [(each.name, each.error_code) for each in answer.responses] == [("orders", code)] * 2
    assert "orders" in broker.image.topics


# -- FindCoordinator


def test_coordinators_that_are_not_served_are_refused_in_words(broker: Any) -> None:
    answer = call(broker, find_coordinator, 6, coordinator_keys=["a", "b"], key_type=2)
    for found in answer.coordinators:
        assert found.error_code == errors.INVALID_REQUEST
        assert found.error_message.startswith("This broker does not serve share groups")
    assert not broker.image.topics


def test_the_first_request_makes_the_offsets_topic_and_is_answered_then(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later)
    broker.group_coordinator = SimpleNamespace(partition_of=lambda group: 7)
    contexts: list[Any] = [FakeContext(2), FakeContext(4)]
    find_coordinator.handle(broker, m.FindCoordinatorRequest(key="g"), contexts[0])
    find_coordinator.handle(broker, m.FindCoordinatorRequest(coordinator_keys=["g", "h"]), contexts[1])
    assert contexts[0].answers == contexts[1].answers == []
    later.all()
    assert len(broker.image.topics[topic_names.CONSUMER_OFFSETS].partitions) == 50
    assert (contexts[0].answers[0].node_id, contexts[0].answers[0].port) == (1, 9092)
    assert [(found.key, found.node_id) for found in contexts[1].answers[0].coordinators] == [
        ("g", 1),
        ("h", 1),
    ]


def test_many_keys_are_answered_when_their_topic_is_made(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()))
    context: Any = FakeContext(4)
    keys = [f"g{number % 150}" for number in range(300)]
    find_coordinator.handle(broker, m.FindCoordinatorRequest(coordinator_keys=keys), context)
    assert context.answers == []
    later.all()
    (answer,) = context.answers
    assert [(row.key, row.node_id, row.port) for row in answer.coordinators] == [
        (key, 1, 9092) for key in keys
    ]


def test_one_group_waits_for_no_more_than_its_own_partition(tmp_path: Path) -> None:
    later = Later()
    clock = Hasty()
    broker = open_broker(tmp_path, later, Slices(later.soon, clock))
    broker.group_coordinator = SimpleNamespace(partition_of=lambda group: {"g": 41, "late": 43}[group])
    first, second, many = contexts = [FakeContext(2), FakeContext(2), FakeContext(4)]
    asked: list[Any] = contexts
    find_coordinator.handle(broker, m.FindCoordinatorRequest(key="g"), asked[0])
    while not first.answers:
        later.step()
    assert ("__consumer_offsets", 41) in broker.storage.partitions and len(broker.storage.partitions) < 10
    find_coordinator.handle(broker, m.FindCoordinatorRequest(key="late"), asked[1])
    find_coordinator.handle(broker, m.FindCoordinatorRequest(coordinator_keys=["g", "late"]), asked[2])
    assert second.answers and not many.answers
    later.all()
    assert many.answers
    assert len(broker.storage.partitions) == 50


def test_an_offsets_topic_that_cannot_be_made_is_no_coordinator(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, offsets_topic_replication_factor="3")
    answer = call(broker, find_coordinator, 3, key="g")
    assert (answer.error_code, answer.node_id) == (errors.COORDINATOR_NOT_AVAILABLE, -1)
    assert answer.error_message == "The coordinator is not available."
    answer = call(broker, find_coordinator, 4, coordinator_keys=["g"])
    assert answer.coordinators[0].error_message == ""


def test_a_key_whose_partition_has_no_leader_has_no_coordinator(broker: Any) -> None:
    """Its log directory is offline; the keys of the others have theirs."""
    broker.group_coordinator = SimpleNamespace(partition_of=int)
    create(broker, creatable("__consumer_offsets", 3))
    broker.image.topics["__consumer_offsets"].partitions[1].leader = -1
    nobody = errors.COORDINATOR_NOT_AVAILABLE, -1
    expected = {"0": (errors.NONE, 1), "1": nobody, "2": (errors.NONE, 1)}
    for version in (0, 3):
        found = {key: call(broker, find_coordinator, version, key=key) for key in expected}
        assert {key: (row.error_code, row.node_id) for key, row in found.items()} == expected
    rows = call(broker, find_coordinator, 4, coordinator_keys=list(expected)).coordinators
    assert {row.key: (row.error_code, row.node_id) for row in rows} == expected
    assert [(row.host, row.port) for row in rows][1] == ("", -1)


# -- InitProducerId


def test_producers_ids_go_on_from_block_to_block_and_from_start_to_start(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    told: list[Any] = []
    for _ in range(2_500):
        broker.controller.take_producer_id(told.append)
    assert told == list(range(2_500))
    taken = broker.image.next_producer_id
    assert taken % 1_000 == 0 and taken >= 3_000
    broker.controller.stop()
    open_broker(tmp_path).controller.take_producer_id(told.append)
    assert told[-1] == taken, "what was left of the last block is lost, as in Kafka"


def test_who_waits_for_a_producers_id_is_told_that_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = open_broker(tmp_path)
    told: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(broker.log, "write", lambda data, **how: no_space())
        broker.controller.take_producer_id(told.append)
    assert [type(each) for each in told] == [KafkaError]
    broker.controller.take_producer_id(told.append)
    assert told[1:] == [0]


def no_space() -> None:
    raise OSError("no space left on device")


def test_an_empty_transactional_id_is_refused(broker: Any) -> None:
    answer = call(broker, init_producer_id, 5, transactional_id="", transaction_timeout_ms=1)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (42, -1, -1)


def test_an_idempotent_producer_gets_a_new_id_every_time(broker: Any) -> None:
    fields = {"transactional_id": None, "transaction_timeout_ms": 1}
    assert [call(broker, init_producer_id, 4, **fields).producer_id for _ in range(3)] == [0, 1, 2]
    answer = call(broker, init_producer_id, 4, **fields, producer_id=1, producer_epoch=0)
    assert (answer.producer_id, answer.producer_epoch) == (3, 0)
