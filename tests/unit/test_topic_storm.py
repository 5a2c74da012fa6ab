"""Very large requests about topics: their cost is in proportion to their size, no number in them is used before it is
checked, and the loop serves others in between.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pykafkad import errors, messages
from pykafkad.cluster import topic_names
from pykafkad.handlers import (
    alter_partition_reassignments,
    create_partitions,
    create_topics,
    delete_topics,
    describe_quorum,
    describe_topic_partitions,
    elect_leaders,
    find_coordinator,
    metadata,
)
from pykafkad.slices import Slices, is_work
from tests.unit.metadata_fakes import (
    DIRECTORY_ID,
    FakeContext,
    Hasty,
    Later,
    call,
    creatable,
    create,
    handled,
    open_broker,
)

POLICY = (errors.POLICY_VIOLATION, "Excessively large number of partitions per request.")
LARGEST = 2**31 - 1
MIB = 1 << 20

Creatable = messages.CreateTopicsRequest.CreatableTopic
Assignment = messages.CreateTopicsRequest.CreatableReplicaAssignment
Growing = messages.CreatePartitionsRequest.CreatePartitionsTopic
State = messages.DeleteTopicsRequest.DeleteTopicState
Named = messages.MetadataRequest.MetadataRequestTopic
Reassigned = messages.AlterPartitionReassignmentsRequest


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    return open_broker(tmp_path)


def peak_mib(action: Callable[[], Any]) -> float:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def created(broker: Any, *topics: Any, **fields: Any) -> list[tuple[int, str | None]]:
    answer = call(broker, create_topics, 7, topics=list(topics), timeout_ms=1000, **fields)
    return [(each.error_code, each.error_message) for each in answer.topics]


# -- numbers


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize(
    "counts",
    [
        (LARGEST,),
        (LARGEST, -LARGEST),
        (10_001, -1_000_000, 0),
        (5_000, 5_001),
        (LARGEST, LARGEST),  # which is -2 in an int; Kafka runs out of memory
        (9_000, -1),  # the broker's default of 1,001
    ],
)
def test_more_partitions_than_a_request_may_make(
    tmp_path: Path, counts: tuple[int, ...], validate_only: bool
) -> None:
    broker = open_broker(tmp_path, num_partitions="1001")
    topics = [creatable(f"t{place}", count) for place, count in enumerate(counts)]
    found: list[Any] = []
    peak = peak_mib(lambda: found.extend(created(broker, *topics, validate_only=validate_only)))
    assert found == [POLICY] * len(counts)
    assert peak < 1 and not broker.image.topics


def test_what_is_no_number_of_partitions_adds_nothing(broker: Any) -> None:
    found = created(broker, creatable("fine", 9_000), creatable("none", 0), creatable("less", -LARGEST))
    assert [code for code, _ in found] == [0, errors.INVALID_PARTITIONS, errors.INVALID_PARTITIONS]


def test_assignments_count_as_partitions(broker: Any) -> None:
    topic = creatable("many", -1, -1)
    topic.assignments = [Assignment(partition_index=0, broker_ids=[1]) for _ in range(10_001)]
    assert created(broker, topic) == [POLICY]


@pytest.mark.parametrize("count", [10_002, 1_000_000, LARGEST])
def test_more_partitions_than_a_topic_may_get_at_once(broker: Any, count: int) -> None:
    create(broker, creatable("orders"))
    topics = [Growing(name="orders", count=count, assignments=None)]
    for validate_only in (True, False):
        fields = {"topics": topics, "timeout_ms": 1000, "validate_only": validate_only}
        peak = peak_mib(lambda: answers.append(call(broker, create_partitions, 3, **fields)))  # noqa: B023
        assert answers.pop().results[0].error_code == errors.UNKNOWN_SERVER_ERROR
        assert peak < 1
    assert len(broker.image.topics["orders"].partitions) == 1


answers: list[Any] = []


def test_a_huge_replication_factor_is_a_number(broker: Any) -> None:
    assert created(broker, creatable("wide", 1, 32_767))[0][0] == errors.INVALID_REPLICATION_FACTOR


def test_a_default_of_two_thousand_million_partitions_makes_nothing(tmp_path: Path) -> None:
    broker = open_broker(
        tmp_path,
        num_partitions=str(LARGEST),
        offsets_topic_num_partitions=str(LARGEST),
        log_retention_hours="5",
    )

    def ask() -> None:
        call(broker, metadata, 12, topics=[Named(name="orders")], allow_auto_topic_creation=True)
        answers.append(call(broker, find_coordinator, 4, coordinator_keys=["group"], key_type=0))

    assert peak_mib(ask) < 1
    assert answers.pop().coordinators[0].error_code == errors.COORDINATOR_NOT_AVAILABLE
    assert not broker.image.topics
    assert created(broker, creatable("orders", -1, -1)) == [POLICY]


@pytest.mark.parametrize(
    ("replicas", "said"),
    [
        ([7, 3, 9, 3], "broker 3, but no such broker is registered."),
        ([9, 1, 5, 1], "the broker 1 more than once."),
        ([1, 0], "broker 0, but no such broker is registered."),
        ([1] * 5_000, "the broker 1 more than once."),
        ([*range(5_000, 0, -1)], "broker 2, but no such broker is registered."),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_smallest_wrong_replica_is_named(broker: Any, replicas: list[int], said: str) -> None:
    topic = creatable("orders", -1, -1)
    topic.assignments = [Assignment(partition_index=0, broker_ids=replicas)]
    ((code, text),) = created(broker, topic)
    assert code == errors.INVALID_REPLICA_ASSIGNMENT
    assert text == f"The manual partition assignment includes {said}"


def test_texts_that_no_answer_can_carry(broker: Any) -> None:
    """Kafka notices it when it writes the answer, and then fails the whole request."""
    name = "n" * 32_760
    failed = (errors.UNKNOWN_SERVER_ERROR, None)
    assert created(broker, creatable(name), creatable("fine"), validate_only=True) == [failed] * 2
    kind = messages.ElectLeadersRequest.TopicPartitions
    asked = [kind(topic=name, partitions=[0]), kind(topic="x", partitions=[0])]
    answer = call(broker, elect_leaders, 2, topic_partitions=asked, timeout_ms=1000)
    results = [each for topic in answer.replica_election_results for each in topic.partition_result]
    assert answer.error_code == failed[0]
    assert [(each.error_code, each.error_message) for each in results] == [failed] * 2
    part = Reassigned.ReassignablePartition(partition_index=0, replicas=[1])
    topics = [Reassigned.ReassignableTopic(name=each, partitions=[part]) for each in (name, "x")]
    answer = call(broker, alter_partition_reassignments, 1, topics=topics, timeout_ms=1000)
    results = [each for topic in answer.responses for each in topic.partitions]
    assert answer.error_code == failed[0] and answer.allow_replication_factor_change
    assert [(each.error_code, each.error_message) for each in results] == [failed] * 2


# -- many elements


def cost(tmp_path: Path, count: int, request: Callable[[int], Any], handler: Any, version: int) -> float:
    """CPU seconds for a request with that many elements, to a broker with 500 topics; the lesser of two."""
    taken = []
    for attempt in ("first", "second"):
        broker = open_broker(tmp_path / f"{attempt} {count}")
        create(broker, *(creatable(f"t_{number}") for number in range(500)))
        asked = request(count)
        begin = time.thread_time()
        handled(broker, handler, asked, FakeContext(version))
        taken.append(time.thread_time() - begin)
    return min(taken)


def deletion_by_id(count: int) -> Any:
    states = [State(name=None, topic_id=number.to_bytes(16)) for number in range(1, count + 1)]
    return messages.DeleteTopicsRequest(topics=states, timeout_ms=1000)


def deletion_by_name(count: int) -> Any:
    states = [State(name=f"t_{number % 900}_{number}") for number in range(count)]
    return messages.DeleteTopicsRequest(topics=states, timeout_ms=1000)


def deletion_by_both(count: int) -> Any:
    return messages.DeleteTopicsRequest(
        topics=deletion_by_id(count // 2).topics + deletion_by_name(count // 2).topics, timeout_ms=1000
    )


def auto_creation(count: int) -> Any:
    topics = [Named(name=f"new_{number}") for number in range(count)]
    return messages.MetadataRequest(topics=topics, allow_auto_topic_creation=True)


def creation(count: int) -> Any:
    topics = [creatable(f"new_{number}", 0) for number in range(count)]
    return messages.CreateTopicsRequest(topics=topics, timeout_ms=1000)


@pytest.mark.parametrize(
    ("request_of", "handler", "version"),
    [
        (deletion_by_id, delete_topics, 6),
        (deletion_by_name, delete_topics, 6),
        (deletion_by_both, delete_topics, 6),
        (auto_creation, metadata, 12),
        (creation, create_topics, 7),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_a_request_costs_goes_with_its_size(
    tmp_path: Path, request_of: Callable[[int], Any], handler: Any, version: int
) -> None:
    small, large = (cost(tmp_path, count, request_of, handler, version) for count in (1_000, 8_000))
    assert large < 40 * small, "eight times as much; with the square it would be 64 times"


def test_an_auto_creation_is_one_request_of_the_brokers(tmp_path: Path) -> None:
    """So Kafka's bound for one request counts: of 10,001 missing topics none is created."""
    broker = open_broker(tmp_path)
    answer = call(broker, metadata, 12, topics=auto_creation(10_001).topics, allow_auto_topic_creation=True)
    assert {topic.error_code for topic in answer.topics} == {errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert not broker.image.topics
    before = broker.log.bytes_appended
    call(broker, metadata, 12, topics=auto_creation(100).topics, allow_auto_topic_creation=True)
    assert len(broker.image.topics) == 100
    assert broker.log.bytes_appended - before < 100 * 150, "in one batch"


def test_more_missing_topics_than_one_request_may_create_cost_nothing_each(
    broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All would be refused: none is planned, and whoever waits is told at once."""
    monkeypatch.setattr("pykafkad.cluster.internal_topics.creatable", None)
    told: list[int] = []
    broker.controller.auto_create_all([f"t{number}" for number in range(10_001)], lambda: told.append(1))
    assert told == [1] and not broker.controller.is_auto_creating("t0")


@pytest.mark.parametrize("broken", ["topic_creation.Planner.plan", "internal_topics.creatable"])
def test_topics_can_be_auto_created_again_after_a_failure(
    broker: Any, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    def breaks(*_: Any) -> Any:
        raise RuntimeError("a bug of ours")

    told: list[Any] = []
    with monkeypatch.context() as patch:
        patch.setattr(f"pykafkad.cluster.{broken}", breaks)
        broker.controller.auto_create("orders", told.append)
    assert told[0].error.code == errors.UNKNOWN_SERVER_ERROR
    broker.controller.auto_create("orders", told.append)
    assert told[1].error is None and "orders" in broker.image.topics


def test_ten_thousand_topics_are_deleted_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pykafkad.cluster.local_controller.MAX_RECORDS_IN_REQUEST", 3)
    broker = open_broker(tmp_path)
    create(broker, *(creatable(f"t{number}") for number in range(5)))
    states = [State(name=f"t{number}") for number in range(5)]
    answer = call(broker, delete_topics, 6, topics=states, timeout_ms=1000)
    failed = (errors.UNKNOWN_SERVER_ERROR, None)
    found = [(each.error_code, each.error_message) for each in answer.responses]
    assert found == [(0, None)] * 3 + [failed] * 2
    assert list(broker.image.topics) == ["t3", "t4"]


# -- in slices


def sliced(tmp_path: Path) -> tuple[Any, Later]:
    """A broker whose slices end after a yield or two, with topics of one partition and one of 200."""
    later = Later()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()))
    create(broker, creatable("wide", 2_000), *(creatable(f"t{number}") for number in range(300)))
    later.all()
    return broker, later


def turns(broker: Any, later: Later, handler: Any, request: Any, version: int) -> tuple[Any, int]:
    """The answer, and over how many turns of the loop it was computed."""
    context = FakeContext(version)
    result = handler.handle(broker, request, context)
    if is_work(result):
        broker.slices.run(result, lambda answer: answer is not context and context.answer(answer))
    elif result is not context:
        context.answer(result)
    count = 0
    while later.waiting:
        later.step()
        count += 1
    (answer,) = context.answers
    return answer, count


def elections() -> Any:
    kind = messages.ElectLeadersRequest
    asked = [kind.TopicPartitions(topic="wide", partitions=list(range(1000)))]
    return kind(topic_partitions=asked, timeout_ms=1000)


def reassignments() -> Any:
    parts = [Reassigned.ReassignablePartition(partition_index=each, replicas=[1]) for each in range(300)]
    return Reassigned(topics=[Reassigned.ReassignableTopic(name="wide", partitions=parts)], timeout_ms=1000)


def quorums() -> Any:
    kind = messages.DescribeQuorumRequest
    parts = [kind.PartitionData(partition_index=each) for each in range(5_000)]
    return kind(topics=[kind.TopicData(topic_name="x", partitions=parts)])


def growth() -> Any:
    topics = [Growing(name=f"t{number}", count=3, assignments=None) for number in range(300)]
    return messages.CreatePartitionsRequest(topics=topics, timeout_ms=1000)


def deletion() -> Any:
    states = [State(name=f"t{number}") for number in range(300)]
    return messages.DeleteTopicsRequest(topics=states, timeout_ms=1000)


@pytest.mark.parametrize(
    ("handler", "version", "request_of"),
    [
        (metadata, 12, lambda: messages.MetadataRequest(topics=None)),
        (metadata, 12, lambda: messages.MetadataRequest(topics=[Named(name="wide")])),
        (metadata, 12, lambda: messages.MetadataRequest(topics=[Named(name=f"t{n}") for n in range(300)])),
        (metadata, 12, lambda: auto_creation(300)),
        (create_topics, 7, lambda: creation(300)),
        (create_topics, 7, lambda: messages.CreateTopicsRequest(topics=[creatable("x", 99)], timeout_ms=9)),
        (create_partitions, 3, growth),
        (delete_topics, 6, deletion),
        (describe_topic_partitions, 0, lambda: messages.DescribeTopicPartitionsRequest()),
        (elect_leaders, 2, elections),
        (alter_partition_reassignments, 1, reassignments),
        (describe_quorum, 2, quorums),
    ],
)
def test_large_requests_are_worked_on_in_slices(
    tmp_path: Path, handler: Any, version: int, request_of: Callable[[], Any]
) -> None:
    broker, later = sliced(tmp_path)
    expected = handled(open_again(tmp_path / "other"), handler, request_of(), context := FakeContext(version))
    expected = context.answers[0] if expected is context else expected
    answer, count = turns(broker, later, handler, request_of(), version)
    assert count >= 5
    assert codes(answer) == codes(expected)


def open_again(directory: Path) -> Any:
    broker = open_broker(directory)
    create(broker, creatable("wide", 2_000), *(creatable(f"t{number}") for number in range(300)))
    return broker


def codes(answer: Any) -> list[Any]:
    """The codes in an answer, without its ids."""
    rows = getattr(answer, "topics", None) or getattr(answer, "results", None)
    rows = rows or getattr(answer, "responses", None) or getattr(answer, "replica_election_results", [])
    return [
        (
            getattr(row, "name", None),
            getattr(row, "error_code", None),
            [repr(part) for part in getattr(row, "partitions", getattr(row, "partition_result", ()))],
        )
        for row in rows
    ]


def test_small_requests_for_metadata_are_answered_at_once(tmp_path: Path) -> None:
    broker, _ = sliced(tmp_path)
    request = messages.MetadataRequest(topics=[Named(name="t1")])
    assert not is_work(metadata.handle(broker, request, cast(Any, FakeContext(12))))
    request = messages.MetadataRequest(topics=[Named(name="wide")])
    assert is_work(metadata.handle(broker, request, cast(Any, FakeContext(12)))), "its partitions are many"
    handled(broker, metadata, request, cast(Any, FakeContext(12)))
    assert not is_work(metadata.handle(broker, request, cast(Any, FakeContext(12)))), "they are kept"


def test_views_made_while_a_partition_changes_are_not_kept(tmp_path: Path) -> None:
    broker = open_broker(tmp_path)
    create(broker, creatable("wide", 2_000))
    topic = broker.image.topics["wide"]
    work = metadata.handle(broker, messages.MetadataRequest(topics=None), cast(Any, FakeContext(12)))
    assert is_work(work)
    while "metadata, being made" not in topic.cache:
        next(work)
    change = messages.PartitionChangeRecord(partition_id=0, topic_id=topic.id, leader=-1, isr=[])
    broker.controller.commit([(change, 2)], lambda error: None)
    for _ in work:
        pass
    answer = call(broker, metadata, 12, topics=None)
    assert answer.topics[0].partitions[0].leader_id == -1


def test_a_name_is_free_again_only_when_what_lay_under_it_is_gone(tmp_path: Path) -> None:
    """Otherwise records for the new topic would be written to the old log, and deleted with it."""
    later, clock = Later(), Hasty()
    broker = open_broker(tmp_path, later, Slices(later.soon, clock))
    create(broker, creatable("orders", 30))
    later.all()
    old = broker.image.topics["orders"].id
    gone: list[Any] = []
    clock.step_us = 0  # both are planned in the same pass
    broker.controller.delete_topics([old], gone.append)
    planned = create(broker, creatable("orders", 30))
    clock.step_us = 1_000
    while later.waiting:
        later.step()
        topic = broker.image.topics.get("orders")
        if topic is not None and topic.id != old:
            lying = {each[0] for key, each in broker.storage.partitions.items() if key[0] == "orders"}
            assert old not in lying
    assert gone == [{}] and planned[0].error is None
    assert len(broker.storage.partitions) == 30
    assert broker.storage.partitions["orders", 0] == (broker.image.topics["orders"].id, 0, DIRECTORY_ID)


def test_requests_see_each_others_topics_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    later = Later()
    broker = open_broker(tmp_path, later, Slices(later.soon, Hasty()))
    first = create(broker, *(creatable(f"t{number}") for number in range(50)))
    second = create(broker, creatable("t49"), creatable("other"))
    later.all()
    assert [topic.error for topic in first] == [None] * 50
    assert [topic.error and topic.error.code for topic in second] == [errors.TOPIC_ALREADY_EXISTS, None]
    assert topic_names.CONSUMER_OFFSETS not in broker.image.topics
