"""The coordinator runtime with a machine that has nothing to do with groups: it counts, one key at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad import errors, slices
from pykafkad.cluster.delta import Delta
from pykafkad.config import TopicConfig
from pykafkad.coordinator.runtime.kind import MachineKind
from pykafkad.coordinator.runtime.runtime import CoordinatorRuntime, partition_for
from pykafkad.coordinator.runtime.shard import Shard
from pykafkad.coordinator.runtime.timers import Timers
from pykafkad.coordinator.runtime.writing import BATCH_BYTES, RECORD_BYTES
from pykafkad.errors import KafkaError
from pykafkad.hot import records
from pykafkad.hot.wire import WireError
from pykafkad.pure.effects import NO_PRODUCER, Caller, Effects, UnknownRecord
from pykafkad.storage.log.log import Log
from tests.unit.coordinator_kit import GroupDesk
from tests.unit.test_flushing import Disk, FlushedConfig

TOPIC = "__counters"
SESSION_MS = 1_000


class Counters:
    """A record has the count of a key. The timer of a key that nobody has counted for a second counts it."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.open: dict[int, dict[str, int]] = {}  # counts in transactions that have not ended
        self.waiting: list[Caller] = []

    def count(
        self, key: str, caller: Caller | None = None, producer: tuple[int, int] = NO_PRODUCER
    ) -> Effects:
        effects = Effects()
        effects.producer = producer
        effects.write(key, self.counts.get(key, 0) + 1)
        effects.after(SESSION_MS, key)
        if caller is not None:
            effects.reply(caller, self.counts.get(key, 0) + 1)
        return effects

    def wait(self, caller: Caller) -> Effects:
        self.waiting.append(caller)
        return Effects()

    # -- what the runtime calls

    def encode(self, key: str, value: int) -> tuple[bytes, bytes]:
        return key.encode(), b"%d" % value

    def decode(self, key: bytes, value: bytes) -> tuple[str, int]:
        if key.startswith(b"?"):
            raise UnknownRecord(key.decode())
        return key.decode(), int(value)

    def replay(self, key: str, value: int, offset: int, producer_id: int, producer_epoch: int) -> None:
        (self.counts if producer_id < 0 else self.open.setdefault(producer_id, {}))[key] = value

    def load(self, *record: Any) -> None:
        self.replay(*record)

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        counted = self.open.pop(producer_id, {})
        self.counts.update(counted if committed else {})

    def replayed(self) -> dict[str, int]:
        return self.counts

    def on_loaded(self, name: str, now_ms: int) -> tuple[Effects]:
        effects = Effects()
        effects.after(SESSION_MS, name)
        return (effects,)

    def on_timer(self, key: tuple[str, ...], now_ms: int) -> Effects:
        return self.count(key[0])

    def on_unloaded(self) -> Effects:
        effects = Effects()
        for caller in self.waiting:
            effects.reply(caller, -errors.NOT_COORDINATOR)
        return effects


class Request:
    """A request in progress, as a coordinator sees it. Its answer is a count, or a negated error code."""

    def __init__(self) -> None:
        self.response: int | None = None
        self.is_held = False

    def defer(self) -> Request:
        return self

    def answer(self, response: int) -> None:
        self.response = response

    def hold(self) -> None:
        self.is_held = True

    def release(self) -> None:
        self.is_held = False

    @property
    def told(self) -> int | None:
        """The answer at the end of a pass."""
        return None if self.is_held else self.response


class CounterDesk:
    """A broker that coordinates groups and, on the same loop, counters."""

    def __init__(
        self, broker: GroupDesk, partitions: int | None = None, load_buffer_bytes: int = 1 << 20
    ) -> None:
        self.broker = broker
        self.load_buffer_bytes = load_buffer_bytes
        if partitions is not None:
            broker.create(TOPIC, partitions, cleanup_policy="compact")
        kind = MachineKind(TOPIC, "counter", cast(Any, Counters), load_buffer_bytes=load_buffer_bytes)
        self.runtime: CoordinatorRuntime[Counters] = CoordinatorRuntime(
            kind, broker.coordinator_loop, broker.replicas, broker.image
        )
        self.runtime.start()

    def restarted(self, clean: bool = True) -> CounterDesk:
        self.runtime.stop()
        return CounterDesk(self.broker.restarted(clean), load_buffer_bytes=self.load_buffer_bytes)

    def partition(self, index: int = 0) -> Log:
        return self.broker.storage.partitions[TOPIC, index]

    def ask(self, operation: Callable[[Counters, Caller], Effects], key: str = "a") -> Request:
        """A request in a pass that continues."""
        request: Any = Request()
        given = self.runtime.ask(key, request, operation, lambda error: -error.code)
        if given is not request:
            request.response = given
        return request

    def count(self, key: str = "a", producer: tuple[int, int] = NO_PRODUCER) -> Request:
        return self.ask(lambda counters, caller: counters.count(key, caller, producer), key)

    def counted(self, key: str = "a", producer: tuple[int, int] = NO_PRODUCER) -> int | None:
        """The same, and the end of its pass."""
        request = self.count(key, producer)
        self.broker.end_pass()
        return request.told

    def end_transaction(self, producer: tuple[int, int], committed: bool, epoch: int = 0) -> int:
        """Write the marker to partition 0; returns the error code."""
        try:
            self.runtime.end_transaction(0, producer, epoch, committed, 1)
        except KafkaError as error:
            return error.code
        self.broker.end_pass()
        return errors.NONE

    @property
    def counts(self) -> dict[str, int]:
        """The counts that a request reads."""
        asker = self.runtime.asker_in_slices(Request(), lambda error: -error.code)  # type: ignore[arg-type]
        return {
            key: value
            for machine in self.runtime.look_everywhere(asker)
            for key, value in machine.counts.items()
        }

    def batches(self, index: int = 0) -> list[tuple[int, int, int]]:
        """Producer id, epoch and number of records of each batch in the log."""
        partition = self.partition(index)
        found = partition.read(0, 1 << 30, limit_offset=partition.high_watermark, at_least_one=True)
        return (
            [(batch.producer_id, batch.producer_epoch, batch.count) for batch in records.scan(found.read())]
            if found
            else []
        )


@pytest.fixture
def desk(tmp_path: Path) -> CounterDesk:
    return CounterDesk(GroupDesk(tmp_path), partitions=1)


@contextmanager
def slow_loading(desk: CounterDesk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A slice is one step, so loading takes more than a few of them."""
    with monkeypatch.context() as patch:
        patch.setattr(slices, "SLICE_US", 0)
        yield


# -- append and replay


def test_what_a_pass_counts_is_one_batch_and_each_sees_those_before_it(desk: CounterDesk) -> None:
    requests = [desk.count("a"), desk.count("b"), desk.count("a")]
    assert desk.batches() == []
    desk.broker.end_pass()
    assert [request.told for request in requests] == [1, 1, 2]
    assert desk.batches() == [(-1, -1, 3)]
    assert desk.counts == {"a": 2, "b": 1}


def test_two_coordinators_share_a_pass(desk: CounterDesk) -> None:
    request = desk.count()
    assert desk.broker.commit("g", (0, 5)) == [0]
    assert request.told == 1 and len(desk.batches()) == 1
    assert desk.broker.committed("g") == {("orders", 0): 5}


def test_counts_are_there_after_a_restart_and_their_timers_go_on(desk: CounterDesk) -> None:
    desk.counted("a")
    desk.counted("b")
    desk.counted("a")
    for clean in (True, False):
        desk = desk.restarted(clean)
        desk.broker.settle()
        assert desk.counts == {"a": 2, "b": 1}
    desk.broker.advance(SESSION_MS)
    desk.broker.end_pass()
    assert desk.counts == {"a": 3, "b": 2}


def test_what_was_not_committed_when_the_broker_was_killed_is_not_seen(desk: CounterDesk) -> None:
    assert desk.counted() == 1
    desk.count()
    desk = desk.restarted(clean=False)
    desk.broker.settle()
    assert desk.counts == {"a": 1}
    assert desk.counted() == 2


def test_a_log_is_read_in_pieces(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    desk = CounterDesk(GroupDesk(tmp_path), partitions=1, load_buffer_bytes=100)
    for number in range(9):
        desk.counted(f"k{number}")
    desk = desk.restarted()
    desk.broker.settle()
    assert f"loaded 9 counters from 9 records of {TOPIC}-0" in capfd.readouterr().err
    assert desk.counts == {f"k{number}": 1 for number in range(9)}


def test_while_it_loads_nobody_is_told_anything_but_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = CounterDesk(GroupDesk(tmp_path), partitions=2)
    keys = {partition_for(key, 2): key for key in "ab"}
    for _ in range(20):
        desk.counted(keys[0])
    desk = desk.restarted()
    with slow_loading(desk, monkeypatch):
        desk.broker.advance(0)
        assert desk.counted(keys[0]) == -errors.COORDINATOR_LOAD_IN_PROGRESS
        with pytest.raises(KafkaError) as refusal:
            desk.counts  # noqa: B018
        assert refusal.value.code == errors.COORDINATOR_LOAD_IN_PROGRESS
        assert desk.counted(keys[1]) == 1, "there is nothing to load of it"
    desk.broker.settle()
    assert desk.counts == {keys[0]: 20, keys[1]: 1}


def test_unknown_records_are_left_alone_and_ten_of_them_are_named(
    desk: CounterDesk, capfd: pytest.CaptureFixture[str]
) -> None:
    desk.counted("a")
    desk.partition().append_built(records.build([(b"?%d" % number, b"1", (), 1) for number in range(12)]), 1)
    desk.broker.end_pass()
    desk = desk.restarted()
    desk.broker.settle()
    assert desk.counts == {"a": 1}
    lines = [line for line in capfd.readouterr().err.splitlines() if "left alone" in line]
    assert [line.rpartition(" ")[2] for line in lines] == [*(f"?{number}" for number in range(10)), "alone"]


def test_a_timer_that_is_refused_is_logged_and_does_not_keep_the_others(
    desk: CounterDesk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    desk.counted("a")
    desk.counted("b")
    on_timer = Counters.on_timer

    def refuse(counters: Counters, key: tuple[str, ...], now_ms: int) -> Effects:
        if key == ("a",):
            raise KafkaError(errors.INVALID_REQUEST, "not this one")
        return on_timer(counters, key, now_ms)

    monkeypatch.setattr(Counters, "on_timer", refuse)
    desk.broker.advance(SESSION_MS)
    desk.broker.end_pass()
    assert desk.counts == {"a": 1, "b": 2}
    told = capfd.readouterr().err
    assert f"{TOPIC}-0: INVALID_REQUEST: not this one" in told and "failed" not in told


def test_the_topic_may_be_created_again_with_more_partitions(desk: CounterDesk) -> None:
    assert desk.counted("a") == desk.counted("b") == 1
    del desk.broker.image.topics[TOPIC]
    desk.broker.storage.delete(TOPIC, 0)
    desk.runtime.drop_all()
    assert desk.counted("a") == -errors.NOT_COORDINATOR
    desk.broker.create(TOPIC, 2)
    assert desk.counted("a") == desk.counted("b") == 1
    assert [len(desk.batches(index)) for index in range(2)] == [1, 1]


def test_machines_are_read_in_the_order_of_javas_hash_maps(tmp_path: Path) -> None:
    desk = CounterDesk(GroupDesk(tmp_path), partitions=4)
    keys = {partition_for(key, 4): key for key in "abcd"}
    for index in range(4):
        desk.counted(keys[index])
    assert list(desk.counts) == [keys[index] for index in (0, 3, 1, 2)]


def test_a_machine_is_told_where_its_records_are(desk: CounterDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    offsets: dict[str, int] = {}

    def note(machine: Counters, key: str, value: int, offset: int, *producer: int) -> None:
        offsets[key] = offset

    monkeypatch.setattr(Counters, "replay", note)
    desk.counted("x")

    def count_two(counters: Counters, caller: Caller) -> Effects:
        effects = counters.count("a", caller)
        effects.write("b", 1)
        return effects

    desk.ask(count_two)
    desk.counted("c")
    assert offsets == {"x": 0, "a": 1, "b": 2, "c": 3}


def test_what_a_machine_refuses_is_told_in_the_coordinators_words(desk: CounterDesk) -> None:
    def refuse(*arguments: Any) -> Effects:
        raise KafkaError(errors.NOT_ENOUGH_REPLICAS, "not told")

    asker = desk.runtime.asker(Request(), lambda error: -error.code)  # type: ignore[arg-type]
    for perform in (desk.runtime.perform, desk.runtime.do):
        with pytest.raises(KafkaError) as refused:
            perform("a", asker, refuse)
        assert refused.value.code == errors.COORDINATOR_NOT_AVAILABLE
    assert desk.ask(refuse).told == -errors.COORDINATOR_NOT_AVAILABLE


def test_timers_that_were_all_cancelled_can_be_set_anew(desk: CounterDesk) -> None:
    told: list[int] = []
    timers = Timers(desk.broker.coordinator_loop, lambda: told.append(1))
    timers.set([(("a",), 10)])
    timers.cancel_all()
    desk.broker.advance(10)
    assert not timers.due and not told
    timers.set([(("a",), 20), (("b",), 10)])
    desk.broker.advance(10)
    timers.cancel_all()
    assert not timers.due
    timers.set([(("a",), 5)])
    desk.broker.advance(5)
    assert timers.take_due() == ("a",) and not timers.due and told == [1, 1]


# -- appends that fail


def test_a_log_that_refuses_a_batch_has_no_coordinator(
    desk: CounterDesk, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: Any, **how: Any) -> Any:
        raise KafkaError(errors.CORRUPT_MESSAGE)

    assert desk.counted() == 1
    with monkeypatch.context() as patch:
        patch.setattr(Log, "append_built", refuse)
        requests = [desk.count(), desk.count()]
        desk.broker.end_pass()
    assert f"{TOPIC}-0 does not take records of counters: CORRUPT_MESSAGE" in capfd.readouterr().err
    assert [request.told for request in requests] == [-errors.NOT_COORDINATOR] * 2
    assert desk.counted() == -errors.NOT_COORDINATOR
    desk = desk.restarted()
    desk.broker.settle()
    assert desk.counts == {"a": 1}


def test_nothing_of_a_transaction_follows_a_batch_that_the_log_refused(
    desk: CounterDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = Log.append_built
    refusals = [KafkaError(errors.CORRUPT_MESSAGE)]

    def refuse_once(*arguments: Any, **how: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return append(*arguments, **how)

    monkeypatch.setattr(Log, "append_built", refuse_once)
    requests = [desk.count("a"), desk.count("b", (7, 0))]
    desk.broker.end_pass()
    assert [request.told for request in requests] == [-errors.NOT_COORDINATOR] * 2
    assert desk.batches() == []


def test_after_a_batch_that_was_lost_the_counts_are_what_the_log_says(
    desk: CounterDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any, **how: Any) -> bytes:
        raise MemoryError

    assert desk.counted() == 1
    with monkeypatch.context() as patch:
        patch.setattr("pykafkad.coordinator.runtime.writing.build", fail)
        assert desk.counted() == -errors.NOT_COORDINATOR
    desk.counted("b")  # then the partition is asked for, and loaded
    desk.broker.settle()
    assert desk.counts["a"] == 1
    assert desk.counted() == 2


def test_a_disk_that_fails_takes_all_answers_of_the_pass_back(desk: CounterDesk) -> None:
    waiting = desk.ask(lambda counters, caller: counters.wait(caller))
    requests = [desk.count(), desk.count("b")]
    desk.partition().log_directory.fail("the disk is gone")
    desk.broker.end_pass()
    assert [request.told for request in (waiting, *requests)] == [-errors.NOT_COORDINATOR] * 3
    assert desk.counted() == -errors.NOT_COORDINATOR


@pytest.mark.parametrize("producer", [NO_PRODUCER, (7, 0)])
def test_what_no_batch_holds_is_refused_and_changes_nothing(
    desk: CounterDesk, producer: tuple[int, int]
) -> None:
    desk.partition().settings.segment_bytes = 200
    assert desk.counted("k" * 200, producer) == -errors.UNKNOWN_SERVER_ERROR
    assert desk.counts == {} and desk.batches() == []
    assert desk.counted("k", producer) == 1


@pytest.mark.parametrize("producer", [NO_PRODUCER, (7, 0)])
def test_what_no_record_holds_is_refused_and_said(
    desk: CounterDesk,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    producer: tuple[int, int],
) -> None:
    def encode(counters: Counters, key: str, value: int) -> tuple[bytes, bytes]:
        raise WireError(f"{key} is too long")

    with monkeypatch.context() as patch:
        patch.setattr(Counters, "encode", encode)
        assert desk.counted("a", producer) == -errors.UNKNOWN_SERVER_ERROR
    said = "a request about counters is refused, since no record holds its texts: a is too long"
    assert said in capfd.readouterr().err
    assert desk.counts == {} and desk.counted("a") == 1


def test_a_batch_may_be_as_large_as_the_topic_allows(desk: CounterDesk) -> None:
    desk.partition().settings.segment_bytes = 200
    longest = 200 - BATCH_BYTES - RECORD_BYTES - len("1")
    assert desk.counted("k" * (longest + 1)) == -errors.UNKNOWN_SERVER_ERROR
    assert desk.counted("k" * longest) == 1
    requests = [desk.count(key * 50) for key in "abcd"]
    desk.broker.end_pass()
    assert [request.told for request in requests] == [1] * 4
    assert [count for _, _, count in desk.batches()] == [1] * 5, "each does not fit to the one before it"
    requests = [desk.count(key) for key in "abcdefgh"]
    desk.broker.end_pass()
    assert [count for _, _, count in desk.batches()][5:] == [4, 4]


def test_when_a_directory_fails_the_shards_in_it_alone_are_closed(tmp_path: Path) -> None:
    desk = CounterDesk(GroupDesk(tmp_path), partitions=2)
    keys = {partition_for(key, 2): key for key in "ab"}
    assert desk.counted(keys[0]) == desk.counted(keys[1]) == 1
    waiting = [desk.ask(lambda counters, caller: counters.wait(caller), keys[index]) for index in (0, 1)]
    desk.runtime.drop_offline()
    assert [each.told for each in waiting] == [None, None] and len(list(desk.runtime.shards)) == 2
    with pytest.MonkeyPatch.context() as patch:
        offline = desk.runtime.shard(0).partition
        patch.setattr(type(offline), "is_online", property(lambda replica: replica is not offline))
        desk.runtime.drop_offline()
        assert [each.told for each in waiting] == [-errors.NOT_COORDINATOR, None]
        assert [desk.counted(keys[index]) for index in (0, 1)] == [-errors.NOT_COORDINATOR, 2]


def test_a_coordinator_that_stopped_leads_nothing_any_more(desk: CounterDesk) -> None:
    waiting = desk.ask(lambda counters, caller: counters.wait(caller))
    desk.runtime.stop()
    assert waiting.told == -errors.NOT_COORDINATOR
    desk.runtime.elected(0, 1)
    assert desk.counted() == -errors.COORDINATOR_NOT_AVAILABLE
    assert desk.end_transaction((7, 0), True) == errors.COORDINATOR_NOT_AVAILABLE
    desk.broker.advance(SESSION_MS)
    desk.broker.end_pass()
    assert desk.batches() == []


# -- leadership


def test_who_loses_the_leadership_refuses_whoever_waits_and_what_it_promised(desk: CounterDesk) -> None:
    assert desk.counted() == 1
    waiting, promised = desk.ask(lambda counters, caller: counters.wait(caller)), desk.count()
    desk.runtime.resigned(0, 1)
    desk.broker.end_pass()
    assert waiting.told == promised.told == desk.counted() == -errors.NOT_COORDINATOR
    assert desk.end_transaction((7, 0), True) == errors.NOT_COORDINATOR
    assert desk.batches() == [(-1, -1, 1)], "what was pending is never written"
    assert desk.counts == {}


def test_a_partition_that_is_removed_and_comes_back_is_led_in_any_epoch(desk: CounterDesk) -> None:
    assert desk.counted() == 1
    waiting, promised = desk.ask(lambda counters, caller: counters.wait(caller)), desk.count()
    desk.runtime.resigned(0, 5)
    desk.runtime.removed(0)
    desk.broker.end_pass()
    assert waiting.told == promised.told == -errors.NOT_COORDINATOR
    desk.runtime.elected(0, 1)
    desk.broker.settle()
    assert desk.counts == {"a": 1}


def test_answers_that_wait_for_the_disk_are_refused_when_the_partition_is_removed(flushed: Any) -> None:
    counted = flushed.count()
    flushed.broker.end_pass()
    assert counted.told is None
    flushed.runtime.removed(0)
    assert counted.told == -errors.NOT_COORDINATOR


def test_a_request_in_slices_is_refused_where_the_leadership_is_lost_meanwhile(desk: CounterDesk) -> None:
    desk.count()
    asker = desk.runtime.asker_in_slices(Request(), lambda error: -error.code)  # type: ignore[arg-type]
    assert desk.runtime.look("a", asker).counts == {"a": 1}
    desk.runtime.resigned(0, 1)
    assert asker.answer(1) == -errors.NOT_COORDINATOR


def test_a_shard_that_is_closed_while_it_begins_does_not_serve(desk: CounterDesk) -> None:
    shard = Shard(desk.runtime, desk.broker.replicas.table[TOPIC, 0], Counters(), 0)  # type: ignore[arg-type]
    work = shard._begin(["a", "b"])
    next(work)
    shard.close()
    assert list(work) == [] and not shard.is_active


def test_no_timer_of_a_lost_epoch_fires(desk: CounterDesk) -> None:
    assert desk.counted() == 1
    desk.runtime.resigned(0, 1)
    desk.broker.advance(SESSION_MS)
    desk.broker.end_pass()
    assert len(desk.batches()) == 1
    desk.runtime.elected(0, 2)
    desk.broker.advance(SESSION_MS - 1)
    desk.broker.end_pass()
    assert desk.counts == {"a": 1}, "the new epoch has timers of its own"
    desk.broker.advance(1)
    desk.broker.end_pass()
    assert desk.counts == {"a": 2}


def test_who_wins_the_leadership_again_has_what_others_wrote_meanwhile(desk: CounterDesk) -> None:
    assert desk.counted() == 1
    desk.runtime.resigned(0, 1)
    desk.partition().append_built(records.build([(b"a", b"40", (), 1)]), 1)
    desk.broker.end_pass()
    desk.runtime.elected(0, 2)
    assert desk.counted() == 41


@pytest.mark.parametrize(
    ("events", "is_led", "epoch"),
    [
        ([("elected", 3), ("resigned", 3)], True, 3),
        ([("elected", 3), ("resigned", 2)], True, 3),
        ([("elected", 3), ("resigned", 4)], False, None),
        ([("resigned", 4), ("elected", 3)], False, None),
        ([("resigned", 4), ("resigned", 2), ("elected", 3)], False, None),
        ([("resigned", 4), ("elected", 4)], False, None),
        ([("resigned", 4), ("elected", 5)], True, 5),
        ([("elected", 3), ("elected", 2)], True, 3),
        ([("elected", 3), ("elected", 4)], True, 4),
    ],
)
def test_news_of_an_older_epoch_change_nothing(
    desk: CounterDesk, events: list[tuple[str, int]], is_led: bool, epoch: int | None
) -> None:
    assert desk.counted() == 1
    for what, leader_epoch in events:
        getattr(desk.runtime, what)(0, leader_epoch)
    assert desk.counted() == (2 if is_led else -errors.NOT_COORDINATOR)
    if is_led:
        assert desk.runtime.shard(0).leader_epoch == epoch


def says(desk: CounterDesk, leader: int, leader_epoch: int) -> None:
    """What the metadata says of partition 0."""
    topic: Any = desk.broker.image.topics[TOPIC]
    topic.partitions = [SimpleNamespace(leader=leader, leader_epoch=leader_epoch)]
    if leader != desk.broker.node_id:
        desk.broker.storage.follow(TOPIC, 0, leader_epoch, leader)
    else:
        desk.broker.storage.create(TOPIC, 0, topic.id, TopicConfig(desk.broker.config), leader_epoch)
    delta = Delta()
    delta.elected[topic.id] = {0}
    desk.runtime.follow(delta)


def test_it_follows_the_metadata_in_who_leads(desk: CounterDesk) -> None:
    assert desk.counted() == 1
    says(desk, 1, 1)
    assert desk.counted() == 2 and desk.runtime.shard(0).leader_epoch == 1
    waiting, promised = desk.ask(lambda counters, caller: counters.wait(caller)), desk.count()
    says(desk, 2, 2)
    desk.broker.end_pass()
    assert waiting.told == promised.told == desk.counted() == -errors.NOT_COORDINATOR
    says(desk, 1, 3)
    desk.broker.settle()
    assert desk.counts == {"a": 2} and desk.runtime.shard(0).leader_epoch == 3
    says(desk, -1, 4)
    assert desk.counted() == -errors.NOT_COORDINATOR, "nobody leads"


def test_a_partition_that_is_won_is_loaded_unless_it_is_empty(desk: CounterDesk) -> None:
    says(desk, 1, 1)
    assert list(desk.runtime.shards) == []
    assert desk.counted() == 1
    says(desk, 2, 2)
    says(desk, 1, 3)
    assert len(list(desk.runtime.shards)) == 1


def test_before_it_is_started_the_metadata_loads_nothing(desk: CounterDesk) -> None:
    assert desk.counted() == 1
    desk.runtime.stop()
    other = CounterDesk.__new__(CounterDesk)
    other.broker = desk.broker
    other.runtime = CoordinatorRuntime(
        desk.runtime.kind, desk.broker.coordinator_loop, desk.broker.replicas, desk.broker.image
    )
    says(other, 1, 1)
    assert list(other.runtime.shards) == []
    other.runtime.start()
    other.broker.settle()
    assert other.counts == {"a": 1} and other.runtime.shard(0).leader_epoch == 1


def test_the_loading_of_an_older_epoch_is_given_up(
    desk: CounterDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(20):
        desk.counted()
    desk = desk.restarted()
    loaded: list[int] = []
    finish = Shard.loaded

    def spy(shard: Shard) -> int:
        loaded.append(shard.leader_epoch)
        return finish(shard)

    monkeypatch.setattr(Shard, "loaded", spy)
    with slow_loading(desk, monkeypatch):
        desk.broker.advance(0)
        for change, epoch in (
            (desk.runtime.elected, 1),
            (desk.runtime.resigned, 2),
            (desk.runtime.elected, 3),
        ):
            for _ in range(3):
                desk.broker.advance(0)
            change(0, epoch)
            refusal = errors.NOT_COORDINATOR if epoch == 2 else errors.COORDINATOR_LOAD_IN_PROGRESS
            assert desk.counted() == -refusal
    desk.broker.settle()
    assert loaded == [3]
    assert desk.counts == {"a": 20}


def test_what_could_not_be_loaded_is_tried_again_in_the_next_epoch(
    desk: CounterDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert desk.counted() == 1
    desk = desk.restarted()
    with monkeypatch.context() as patch:
        patch.setattr(Counters, "decode", lambda *row: 1 / 0)
        desk.broker.settle()
    assert desk.counted() == -errors.NOT_COORDINATOR
    desk.runtime.elected(0, 1)
    desk.broker.settle()
    assert desk.counted() == 2


# -- producers


def test_each_producer_has_batches_of_its_own_in_the_order_of_the_operations(desk: CounterDesk) -> None:
    producers = [NO_PRODUCER, NO_PRODUCER, (7, 0), (8, 3), NO_PRODUCER]
    requests = [desk.count(key, producer) for key, producer in zip("abcde", producers, strict=True)]
    desk.broker.end_pass()
    assert [request.told for request in requests] == [1] * 5
    assert desk.batches() == [(-1, -1, 2), (7, 0, 1), (8, 3, 1), (-1, -1, 1)]
    assert desk.counts == {"a": 1, "b": 1, "e": 1}
    assert sorted(desk.partition().producers.ongoing.values()) == [7, 8]


def test_a_producer_of_an_old_epoch_is_refused_and_nothing_is_replayed(desk: CounterDesk) -> None:
    assert desk.counted("a", (7, 5)) == 1
    before = desk.count("b")
    assert desk.counted("c", (7, 4)) == -errors.INVALID_PRODUCER_EPOCH
    assert before.told == 1
    assert desk.runtime.shard(0).machine.open == {7: {"a": 1}}
    assert desk.counted("b") == 2, "the others go on"


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_ends_a_transaction_in_the_running_log_and_in_replay(
    desk: CounterDesk, committed: bool
) -> None:
    desk.counted("a")
    desk.counted("b", (7, 0))
    desk.count("a")  # is pending, and comes before the marker
    assert desk.end_transaction((7, 0), committed) == errors.NONE
    for _ in range(2):
        assert desk.counts == ({"a": 2, "b": 1} if committed else {"a": 2})
        assert desk.runtime.shard(0).machine.open == {}
        assert desk.batches() == [(-1, -1, 1), (7, 0, 1), (-1, -1, 1), (7, 0, 1)]
        assert not desk.partition().producers.ongoing
        desk = desk.restarted()
        desk.broker.settle()


def test_a_transaction_goes_on_after_a_restart(desk: CounterDesk) -> None:
    desk.counted("b", (7, 0))
    desk = desk.restarted(clean=False)
    desk.broker.settle()
    assert desk.counts == {}
    assert desk.end_transaction((7, 0), True) == errors.NONE
    assert desk.counts == {"b": 1}


def test_the_marker_of_an_older_transaction_coordinator_is_refused(desk: CounterDesk) -> None:
    desk.counted("b", (7, 0))
    assert desk.end_transaction((7, 0), True, epoch=4) == errors.NONE
    desk.counted("b", (7, 0))
    assert desk.end_transaction((7, 0), False, epoch=3) == errors.TRANSACTION_COORDINATOR_FENCED
    assert desk.runtime.shard(0).machine.open == {7: {"b": 2}}


def test_the_end_of_a_transaction_that_cannot_be_replayed_is_loaded_from_the_log(
    desk: CounterDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.counted("b", (7, 0))
    with monkeypatch.context() as patch:
        patch.setattr(Counters, "end_transaction", lambda *ends: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            desk.end_transaction((7, 0), True)
        desk.broker.end_pass()
    desk.runtime.shard(0)
    desk.broker.settle()
    assert desk.counts == {"b": 1}


def test_a_transactions_record_that_cannot_be_replayed_is_loaded_from_the_log(
    desk: CounterDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.counted("a")
    with monkeypatch.context() as patch:
        patch.setattr(Counters, "replay", lambda *row: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            desk.count("b", (7, 0))
        desk.broker.end_pass()
    desk.runtime.shard(0)
    desk.broker.settle()
    machine = desk.runtime.shard(0).machine
    assert (machine.counts, machine.open) == ({"a": 1}, {7: {"b": 1}})


# -- what is committed


@pytest.fixture
def flushed(desk: CounterDesk) -> CounterDesk:
    """Written records are below the high watermark after `disk.run` has synced them and a pass has ended."""
    config = FlushedConfig(desk.partition().settings.config)
    desk.broker.storage.configure(TOPIC, 1, config)
    desk.disk = Disk()  # type: ignore[attr-defined]
    desk.broker.storage.submit = desk.disk.submit  # type: ignore[attr-defined]
    return desk


def follow(counters: Counters, caller: Caller, done: list[int]) -> Effects:
    effects = counters.count("a", caller)

    def committed(now_ms: int) -> Effects:
        done.append(counters.counts["a"])
        return counters.count("b")

    effects.on_committed = committed
    return effects


def test_what_follows_a_commit_waits_for_it_and_may_write(flushed: Any) -> None:
    done: list[int] = []
    request = flushed.ask(lambda counters, caller: follow(counters, caller, done))
    flushed.broker.settle()
    for _ in range(3):
        flushed.broker.end_pass()
        assert all(timer.due_ms > flushed.broker.clock.monotonic_ms() for timer in flushed.broker.timers)
    assert (request.told, done) == (None, [])
    flushed.disk.run()
    flushed.broker.end_pass()
    assert request.told == 1 and done == [], "it is done in a pass of its own"
    flushed.broker.settle()
    assert done == [1]
    flushed.disk.run()
    flushed.broker.end_pass()
    assert flushed.batches() == [(-1, -1, 1)] * 2


def test_what_follows_a_commit_follows_at_once_where_nothing_is_written(desk: CounterDesk) -> None:
    done: list[int] = []

    def nothing(counters: Counters, caller: Caller) -> Effects:
        effects = Effects()
        effects.reply(caller, 9)
        effects.on_committed = lambda now_ms: done.append(1) or Effects()
        return effects

    assert desk.ask(nothing).told == 9
    desk.broker.settle()
    assert done == [1]


def test_what_follows_a_commit_and_fails_is_logged(
    desk: CounterDesk, capfd: pytest.CaptureFixture[str]
) -> None:
    done: list[int] = []

    def fail(counters: Counters, caller: Caller) -> Effects:
        effects = counters.count("a", caller)
        effects.on_committed = lambda now_ms: counters.count("a") if now_ms // 0 else Effects()
        return effects

    requests = [desk.ask(fail), desk.ask(lambda counters, caller: follow(counters, caller, done))]
    desk.broker.end_pass()
    desk.broker.settle()
    assert [request.told for request in requests] == [1, 2] and done == [2]
    assert f"{TOPIC}-0: what follows a commit of counters failed" in capfd.readouterr().err


def test_answers_that_wait_for_the_disk_are_refused_with_the_leadership(flushed: Any) -> None:
    done: list[int] = []
    counted = flushed.ask(lambda counters, caller: follow(counters, caller, done))
    flushed.broker.end_pass()
    assert counted.told is None
    flushed.runtime.resigned(0, 1)
    assert counted.told == -errors.NOT_COORDINATOR
    flushed.disk.run()
    flushed.broker.end_pass()
    flushed.broker.settle()
    assert (counted.told, done) == (-errors.NOT_COORDINATOR, [])


def test_a_new_leader_serves_when_what_its_log_has_is_committed(flushed: Any) -> None:
    flushed.count()
    flushed.broker.end_pass()
    flushed.runtime.resigned(0, 1)
    flushed.runtime.elected(0, 2)
    flushed.broker.advance(100)
    assert flushed.counted() == -errors.COORDINATOR_LOAD_IN_PROGRESS
    flushed.disk.run()
    flushed.broker.end_pass()
    flushed.broker.advance(100)
    assert flushed.counts == {"a": 1}
