"""Transactions through requests: the records and markers in the logs, restarts, and who else asks for partitions."""

from __future__ import annotations

import gc
import io
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.coordinator.opened_transactions import OpenedTransactions
from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.hot.wire import Exchange
from pykafkad.pure.transactions.records import decode
from pykafkad.pure.transactions.transaction import Partition
from tests.unit.coordinator_kit import GroupDesk, RestartedDesk
from tests.unit.data_kit import batch

STATE = "__transaction_state"
OFFSETS = "__consumer_offsets"
A, B = ("t", 0), ("t", 1)
Topic = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
Asked = messages.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction


class Desk(GroupDesk):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.create(STATE, cleanup_policy="compact")
        self.create("t", 2)

    def init(self, name: str = "x", version: int = 5, **fields: Any) -> Any:
        fields = {"transaction_timeout_ms": 60_000, **fields}
        return self.ask(messages.InitProducerIdRequest(transactional_id=name, **fields), version)

    def begun(self, name: str = "x") -> tuple[int, int]:
        answer = self.init(name)
        assert answer.error_code == errors.NONE
        return answer.producer_id, answer.producer_epoch

    def join(
        self, producer: tuple[int, int], *partitions: Partition, name: str = "x", version: int = 3
    ) -> list[int]:
        request = messages.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[Topic(name=topic, partitions=[index]) for topic, index in partitions],
        )
        answer = self.ask(request, version)
        return [
            row.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        ]

    def send_end(self, producer: tuple[int, int], committed: bool, version: int = 5, name: str = "x") -> Any:
        request = messages.EndTxnRequest(
            transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], committed=committed
        )
        return self.send(request, version)

    def end(self, producer: tuple[int, int], committed: bool = True, version: int = 5) -> Any:
        given = self.send_end(producer, committed, version)
        for _ in range(3):
            self.advance(0)
            self.end_pass()
        return self.answer_of(given, "EndTxnRequest", version)

    def produce(self, producer: tuple[int, int], partition: Partition) -> None:
        producer_id, epoch = producer
        data = batch(b"v", producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        self.storage.partitions[partition].append(data, self.clock.now_ms(), verified=True)
        self.end_pass()

    def data(self, partition: Partition) -> bytes:
        """The batches, of all segments."""
        replica = self.storage.partitions[partition]
        data, offset = b"", 0
        while offset < replica.high_watermark:
            found = replica.read(offset, 1 << 30, limit_offset=replica.high_watermark, at_least_one=True)
            assert found is not None
            data += found.read()
            offset = records.scan(data)[-1].last_offset + 1
        return data

    def states(self) -> list[str]:
        """What the records of `__transaction_state` say."""
        values = [decode(row.key, row.value)[1] for row in records.read(self.data((STATE, 0)))]
        return ["tombstone" if value is None else value.state_name for value in values]

    def client_versions(self) -> list[int]:
        """Of each of these records: the transaction version that the client follows."""
        values = [decode(row.key, row.value)[1] for row in records.read(self.data((STATE, 0)))]
        return [value.client_version for value in values if value is not None]

    def kinds(self, partition: Partition) -> list[int | None]:
        """Of each batch: which marker it is; None for data."""
        data = self.data(partition)
        return [
            next(iter(records.read(data[each.position : each.position + each.size]))).control_type
            if each.is_control
            else None
            for each in records.scan(data)
        ]


class Restarted(RestartedDesk, Desk):
    pass


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk = Desk(tmp_path)
    yield desk
    desk.storage.close()


def restarted(desk: Desk) -> Restarted:
    desk.group_coordinator.stop()
    desk.transaction_coordinator.stop()
    desk.storage.close(clean=False)
    after = Restarted(desk)
    for _ in range(10):
        after.settle()
        after.end_pass()
    return after


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_ends_within_three_passes(desk: Desk, committed: bool) -> None:
    producer = desk.begun()
    assert desk.join(producer, A, B) == [0, 0]
    desk.produce(producer, A)
    desk.produce(producer, B)
    answer = desk.end(producer, committed)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == (0, producer[0], 1)
    word = "Commit" if committed else "Abort"
    assert desk.states() == ["Empty", "Ongoing", f"Prepare{word}", f"Complete{word}"]
    assert desk.kinds(A) == desk.kinds(B) == [None, int(committed)]
    assert desk.replicas.table[A].last_stable_offset == 2
    assert not [timer for timer in desk.timers if not timer.cancelled]


def test_old_clients_are_told_of_fences_in_their_words(desk: Desk) -> None:
    producer_id, epoch = desk.begun()
    old = producer_id, epoch
    desk.begun()
    desk.begun()
    fenced, old_word = errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH
    fields: dict[str, Any] = {"producer_id": old[0], "producer_epoch": old[1]}
    assert [desk.init(version=version, **fields).error_code for version in (3, 4)] == [old_word, fenced]
    assert [desk.join(old, A, version=version) for version in (1, 2)] == [[old_word], [fenced]]
    assert [desk.end(old, version=version).error_code for version in (1, 2)] == [old_word, fenced]
    answers = [desk.ask(offsets(old), version).error_code for version in (1, 2)]
    assert answers == [old_word, fenced]


def offsets(producer: tuple[int, int], group_id: str = "g", name: str = "x") -> Any:
    return messages.AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=producer[0], producer_epoch=producer[1], group_id=group_id
    )


def test_partitions_are_added_all_or_none(desk: Desk) -> None:
    producer = desk.begun()
    unknown, not_tried = errors.UNKNOWN_TOPIC_OR_PARTITION, errors.OPERATION_NOT_ATTEMPTED
    assert desk.join(producer, A, ("t", 2), ("no", 0)) == [not_tried, unknown, unknown]
    assert desk.join(producer, (OFFSETS, 0), A) == [errors.TOPIC_AUTHORIZATION_FAILED, not_tried]
    assert desk.join(producer, A, name="") == [errors.INVALID_REQUEST]
    assert desk.join(producer, A, name="y") == [errors.INVALID_PRODUCER_ID_MAPPING]
    assert desk.states() == ["Empty"]


@pytest.mark.parametrize(
    ("verify_only", "topic", "shown"),
    [
        (False, "t", [("t", [0, 0]), ("t", [1]), ("u", [])]),
        (True, "t", [("t", [0, 1])]),
        (False, "no", [("no", [0, 1])]),
    ],
)
def test_what_is_said_of_partitions_is_said_once(
    desk: Desk, verify_only: bool, topic: str, shown: list[tuple[str, list[int]]]
) -> None:
    """What is said of the transaction is repeated for everything that was asked for, as in Kafka."""
    topics = [Topic(name=topic, partitions=[0, 0]), Topic(name=topic, partitions=[1]), Topic(name="u")]
    asked = Asked(transactional_id="z", producer_id=7, verify_only=verify_only, topics=topics)
    answer = desk.ask(messages.AddPartitionsToTxnRequest(transactions=[asked]), 5)
    rows = answer.results_by_transaction[0].topic_results
    found = [(row.name, [each.partition_index for each in row.results_by_partition]) for row in rows]
    assert found == shown


def test_brokers_ask_for_many_producers_at_once(desk: Desk) -> None:
    producers = {name: desk.begun(name) for name in ("x", "y")}
    assert desk.join(producers["x"], A) == [0]
    request = messages.AddPartitionsToTxnRequest(
        transactions=[
            Asked(
                transactional_id=name,
                producer_id=producers.get(name, (7, 0))[0],
                verify_only=verify_only,
                topics=[Topic(name="t", partitions=[0, 1])],
            )
            for name, verify_only in (("x", True), ("y", False), ("z", False))
        ]
    )
    answer = desk.ask(request, 4)
    assert answer.error_code == errors.NONE
    assert {
        each.transactional_id: [
            row.partition_error_code for topic in each.topic_results for row in topic.results_by_partition
        ]
        for each in answer.results_by_transaction
    } == {
        "x": [errors.NONE, errors.TRANSACTION_ABORTABLE],
        "y": [errors.NONE] * 2,
        "z": [errors.INVALID_PRODUCER_ID_MAPPING] * 2,
    }


def test_topics_of_coordinators_are_added_by_brokers_alone(desk: Desk) -> None:
    """A group's coordinator adds the partition of its offsets; no client writes there."""
    producer = desk.begun()
    internal = ("__consumer_offsets", 0)
    denied, others = errors.TOPIC_AUTHORIZATION_FAILED, errors.OPERATION_NOT_ATTEMPTED
    for version in range(4):
        assert desk.join(producer, internal, A, version=version) == [denied, others]
    topics = [Topic(name=name, partitions=[index]) for name, index in (internal, A)]
    asked = Asked(transactional_id="x", producer_id=producer[0], topics=topics)
    for version in (4, 5):
        answer = desk.ask(messages.AddPartitionsToTxnRequest(transactions=[asked]), version)
        rows = [
            row
            for topic in answer.results_by_transaction[0].topic_results
            for row in topic.results_by_partition
        ]
        assert [row.partition_error_code for row in rows] == [errors.NONE] * 2


@pytest.mark.parametrize(("version", "follows"), [(3, 0), (4, 2), (5, 2)])
def test_who_adds_partitions_says_which_protocol_the_transaction_follows(
    desk: Desk, version: int, follows: int
) -> None:
    producer = desk.begun()
    if version < 4:
        assert desk.join(producer, A, version=version) == [errors.NONE]
    else:
        topics = [Topic(name=A[0], partitions=[A[1]])]
        asked = Asked(transactional_id="x", producer_id=producer[0], topics=topics)
        desk.ask(messages.AddPartitionsToTxnRequest(transactions=[asked]), version)
    assert desk.client_versions()[-1] == follows


def test_very_many_partitions_do_not_hold_the_loop(desk: Desk) -> None:
    producer = desk.begun()
    request = messages.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[Topic(name="t", partitions=[0, 1] * 5_000)],
    )
    answer = desk.ask_in_turns(request, 3)
    (topic,) = answer.results_by_topic_v3_and_below
    assert [row.partition_error_code for row in topic.results_by_partition] == [0] * 10_000
    assert desk.states() == ["Empty", "Ongoing"]


def test_the_offsets_of_a_group_take_part(desk: Desk) -> None:
    producer = desk.begun()
    assert desk.ask(offsets(producer), 4).error_code == errors.NONE
    assert desk.ask(offsets(producer, name=""), 4).error_code == errors.INVALID_REQUEST
    assert desk.end(producer).error_code == errors.NONE
    assert desk.kinds((OFFSETS, 0)) == [1]


def test_what_was_decided_before_a_crash_is_done_after_it(desk: Desk) -> None:
    producer = desk.begun()
    desk.join(producer, A, B)
    desk.produce(producer, A)
    desk.send_end(producer, True)
    desk.end_pass()  # killed before the markers
    assert desk.states()[-1] == "PrepareCommit"
    after = restarted(desk)
    assert after.states()[-1] == "CompleteCommit"
    assert after.kinds(A) == [None, 1]
    answer = after.end(producer)
    assert (answer.error_code, answer.producer_epoch) == (errors.NONE, 1)
    after.storage.close()


def test_an_open_transaction_is_open_after_a_crash(desk: Desk) -> None:
    producer = desk.begun()
    desk.join(producer, A)
    desk.produce(producer, A)
    after = restarted(desk)
    assert after.replicas.table[A].last_stable_offset == 0
    assert after.end(producer, False).error_code == errors.NONE
    assert after.kinds(A) == [None, 0]
    after.storage.close()


def test_the_markers_of_deleted_topics_are_not_waited_for(desk: Desk) -> None:
    producer = desk.begun()
    desk.join(producer, A)
    del desk.image.topics["t"]
    desk.replicas.table.pop(A)
    assert desk.end(producer).error_code == errors.NONE
    assert desk.states()[-1] == "CompleteCommit"


def test_periodic_jobs_abort_what_takes_too_long_and_forget_ids(desk: Desk) -> None:
    producer = desk.begun()
    desk.join(producer, A)
    (abort_ms, abort), (expire_ms, expire) = desk.transaction_coordinator.jobs
    assert (abort_ms, expire_ms) == (10_000, 3_600_000)
    desk.advance(60_001)
    abort()
    for _ in range(5):
        desk.settle()
        desk.end_pass()
    assert desk.states()[-2:] == ["PrepareAbort", "CompleteAbort"]
    desk.advance(604_800_001)
    expire()
    desk.settle()
    desk.end_pass()
    assert desk.states()[-1] == "tombstone"
    assert desk.join(producer, A) == [errors.INVALID_PRODUCER_ID_MAPPING]


@pytest.mark.parametrize("refused", [False, True])
def test_what_is_aborted_when_its_epochs_are_used_up_waits_for_a_producer_id(
    desk: Desk, refused: bool, said: io.StringIO
) -> None:
    asked: list[Any] = []
    desk.join(desk.begun(), A)
    coordinator = desk.transaction_coordinator
    machine = coordinator.shard(0).machine
    machine.by_id["x"].epoch = 32_766
    coordinator._take_producer_id = asked.append
    desk.advance(60_001)
    coordinator.jobs[0][1]()
    desk.settle()
    (done,) = asked
    assert desk.states()[-1] == "Ongoing"
    done(KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS) if refused else 77)
    for _ in range(5):
        desk.settle()
        desk.end_pass()
    assert desk.states()[-1] == ("Ongoing" if refused else "CompleteAbort")
    assert ("no producer id to fence a producer with" in said.getvalue()) is refused


def test_a_decision_that_is_not_written_is_none(desk: Desk) -> None:
    producer = desk.begun()
    desk.join(producer, A)
    desk.produce(producer, A)
    given = desk.send_end(producer, True)
    desk.storage.partitions[STATE, 0].log_directory.fail("the disk is gone")
    for _ in range(3):
        desk.end_pass()
        desk.advance(0)
    assert desk.answer_of(given, "EndTxnRequest", 5).error_code == errors.NOT_COORDINATOR
    assert desk.replicas.table[A].log_end_offset == 1


def test_a_new_leader_epoch_is_in_the_markers(desk: Desk) -> None:
    """The first markers are those of the last coordinator, and what it still writes is refused."""
    producer = desk.begun()
    desk.join(producer, A)
    desk.produce(producer, A)
    (shard,) = desk.transaction_coordinator.shards
    desk.transaction_coordinator.elected(0, shard.leader_epoch + 5)
    assert desk.end(producer).error_code == errors.NONE
    entry = desk.storage.partitions[A].producers.producers[producer[0]]
    assert entry.coordinator_epoch == shard.leader_epoch == 5


def test_who_leads_again_finishes_what_was_decided(desk: Desk) -> None:
    producer = desk.begun()
    desk.join(producer, A)
    desk.produce(producer, A)
    given = desk.send_end(producer, True)
    desk.end_pass()
    coordinator = desk.transaction_coordinator
    coordinator.resigned(0, 5)
    assert desk.answer_of(given, "EndTxnRequest", 5).error_code == errors.NOT_COORDINATOR
    assert desk.init().error_code == errors.NOT_COORDINATOR
    for _ in range(5):
        desk.settle()
        desk.end_pass()
    assert desk.states()[-1] == "PrepareCommit"  # which is not ours to complete
    coordinator.elected(0, 6)
    for _ in range(5):
        desk.settle()
        desk.end_pass()
    assert desk.states()[-1] == "CompleteCommit"
    entry = desk.storage.partitions[A].producers.producers[producer[0]]
    assert (desk.kinds(A), entry.coordinator_epoch) == ([None, 1], 6)


@pytest.mark.parametrize("refused", [False, True])
def test_who_needs_a_producer_id_waits_for_one(desk: Desk, refused: bool) -> None:
    asked: list[Any] = []
    desk.take_producer_id = asked.append  # type: ignore[method-assign, assignment]
    desk.transaction_coordinator = desk.new_transaction_coordinator()
    request = messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    given = desk.send(request, 5)
    desk.end_pass()
    assert desk.answer_of(given, "InitProducerIdRequest", 5) is None
    (done,) = asked
    done(KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS) if refused else 77)
    desk.end_pass()
    answer = desk.answer_of(given, "InitProducerIdRequest", 5)
    expected = (errors.COORDINATOR_LOAD_IN_PROGRESS, -1, -1) if refused else (errors.NONE, 77, 0)
    assert (answer.error_code, answer.producer_id, answer.producer_epoch) == expected
    assert desk.states() == ([] if refused else ["Empty"])


@pytest.mark.parametrize(("level", "version"), [(0, 0), (1, 1), (2, 1)])
def test_records_are_of_the_finalized_level(desk: Desk, level: int, version: int) -> None:
    desk.image.features["transaction.version"] = level
    desk.begun()
    (row,) = records.read(desk.data((STATE, 0)))
    assert row.value is not None
    assert int.from_bytes(row.value[:2]) == version
    (each,) = records.scan(desk.data((STATE, 0)))
    assert not each.is_transactional


@pytest.mark.parametrize(("level", "last_epoch"), [(1, -1), (2, 0)])
def test_who_is_fenced_loses_the_epoch_in_the_way_of_the_finalized_level(
    desk: Desk, level: int, last_epoch: int
) -> None:
    desk.image.features["transaction.version"] = level
    producer = desk.begun()
    desk.join(producer, A)
    assert desk.init().error_code == errors.CONCURRENT_TRANSACTIONS
    (shard,) = desk.transaction_coordinator.shards
    known = shard.machine.by_id["x"]
    assert (known.epoch, known.last_epoch, known.client_version) == (1, last_epoch, level if level > 1 else 0)


def test_the_transactions_of_an_opened_directory_are_nobodys_to_change(desk: Desk) -> None:
    desk.join(desk.begun(), A)
    shown = OpenedTransactions(
        desk.config,
        desk.coordinator_loop,
        desk.replicas,
        desk.image,
        desk.take_producer_id,
        lambda: desk.ending_markers,
    )
    machine: Any = shown._new_machine()
    for change in (machine.init_producer, machine.add, machine.end):
        with pytest.raises(KafkaError, match="opened read-only") as refused:
            change("x", (1, 0), True)
        assert refused.value.code == errors.POLICY_VIOLATION
    assert not machine.on_loaded("x", 0), "what was decided is not done here"


def test_no_coordinator_without_its_topic(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    request = messages.InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    assert desk.ask(request, 5).error_code == errors.NOT_COORDINATOR
    desk.storage.close()


# -- who writes to partitions asks for them


def taken(desk: Desk, producer: tuple[int, int], *partitions: Partition, add: bool) -> list[dict[Any, int]]:
    told: list[dict[Any, int]] = []
    desk.transaction_coordinator.take_part("x", *producer, list(partitions), add, told.append)
    return told


def test_who_writes_lets_partitions_take_part(desk: Desk) -> None:
    producer = desk.begun()
    told = taken(desk, producer, A, B, add=True)
    assert told == []
    desk.end_pass()
    desk.settle()
    assert told == [{A: errors.NONE, B: errors.NONE}]
    assert desk.states() == ["Empty", "Ongoing"]
    assert taken(desk, producer, A, add=True) == [{A: errors.NONE}]  # at once: nothing is to be written
    assert taken(desk, (7, 0), A, add=True) == [{A: errors.INVALID_PRODUCER_ID_MAPPING}]


def test_who_writes_asks_whether_partitions_take_part(desk: Desk) -> None:
    producer = desk.begun()
    desk.join(producer, A)
    assert taken(desk, producer, A, B, add=False) == [{A: errors.NONE, B: errors.TRANSACTION_ABORTABLE}]
    assert taken(desk, (producer[0], 7), A, add=False) == [{A: errors.PRODUCER_FENCED}]
    assert desk.states() == ["Empty", "Ongoing"]


def test_who_waits_is_told_that_the_coordinator_is_gone(desk: Desk) -> None:
    told = taken(desk, desk.begun(), A, add=True)
    desk.transaction_coordinator.stop()
    assert told == [{A: errors.NOT_COORDINATOR}]
    desk.end_pass()
    desk.settle()
    assert len(told) == 1


def test_whoever_waits_for_an_end_is_told_that_the_coordinator_is_gone(desk: Desk) -> None:
    producer = desk.begun()
    desk.join(producer, A)
    given = desk.send_end(producer, True)
    desk.end_pass()
    desk.transaction_coordinator.stop()
    desk.end_pass()
    assert desk.answer_of(given, "EndTxnRequest", 5).error_code == errors.NOT_COORDINATOR


@pytest.mark.parametrize("name", ["x", "unknown", ""])
def test_requests_are_freed_without_the_cycle_collector(desk: Desk, name: str) -> None:
    """The collector runs rarely, and requests may be large."""

    def ask_all() -> None:
        producer = desk.begun()
        desk.join(producer, A, ("no", 0), name=name)
        desk.join(producer, A, name=name)
        desk.ask(offsets(producer, name=name), 4)
        row = Asked(transactional_id=name, producer_id=producer[0], topics=[Topic(name="t", partitions=[0])])
        desk.ask(messages.AddPartitionsToTxnRequest(transactions=[row]), 5)
        desk.send_end(producer, True, name=name)
        for _ in range(5):
            desk.settle()
            desk.end_pass()

    ask_all()
    gc.collect()
    gc.disable()
    try:
        ask_all()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        functions = [each for each in gc.garbage if isinstance(each, FunctionType)]
        known = [cell.cell_contents for each in functions for cell in each.__closure__ or ()]
        left = {type(each).__name__ for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert not left & {"KafkaError", "frame"}
    assert not [each for each in known if isinstance(each, Exchange)], "a context knows who refuses"
