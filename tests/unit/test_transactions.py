"""What the machine of the transaction coordinator answers, refuses, writes, and asks for."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.records import read
from pykafkad.hot.wire import WireError
from pykafkad.pure.effects import UnknownRecord
from pykafkad.pure.transactions import records
from pykafkad.pure.transactions.ending import ANSWER_MS, RETRY_MS
from pykafkad.pure.transactions.transaction import LARGEST_EPOCH, Transaction
from tests.transactions_kit import EXPIRATION_MS, MAX_TIMEOUT_MS, NOW_MS, Asked, Producer, Room

A, B, C = ("a", 0), ("a", 1), ("b", 0)
LAST_EPOCH = LARGEST_EPOCH - 1  # the last one that a producer may have
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture(params=(0, 1, 2), ids=("TV0", "TV1", "TV2"))
def room(request: pytest.FixtureRequest) -> Room:
    return Room(request.param)


def done(room: Room, asked: Asked) -> Asked:
    room.settle()
    assert asked.answer is not None
    return asked


def begun(room: Room, **fields: Any) -> Producer:
    asked = done(room, room.init(**fields))
    assert asked.code == errors.NONE
    return asked.producer


def exhausted(room: Room) -> Producer:
    """A producer that has no epoch left."""
    producer_id, _ = begun(room)
    old = room.transaction()
    room.machine.by_id["t"] = old.begun(LAST_EPOCH, LAST_EPOCH - 1, old.timeout_ms, NOW_MS)
    return producer_id, LAST_EPOCH


# -- InitProducerId


def test_who_comes_with_the_id_alone_gets_the_next_epoch(room: Room) -> None:
    assert [begun(room) for _ in range(3)] == [(1000, 0), (1000, 1), (1000, 2)]
    assert begun(room, name="u") == (1001, 0)
    assert room.states() == ["Empty"] * 4


@pytest.mark.parametrize("timeout_ms", [0, -1, MAX_TIMEOUT_MS + 1])
def test_timeouts_have_bounds(room: Room, timeout_ms: int) -> None:
    assert done(room, room.init(timeout_ms=timeout_ms)).code == errors.INVALID_TRANSACTION_TIMEOUT
    assert begun(room, timeout_ms=MAX_TIMEOUT_MS)


def test_a_producer_that_names_what_it_was_goes_on_and_may_repeat_that(room: Room) -> None:
    first = begun(room)
    second = begun(room, expected=first)
    assert second == (first[0], first[1] + 1) == begun(room, expected=first)
    assert begun(room, expected=second) == (first[0], 2)


def test_a_producer_that_somebody_came_after_is_fenced(room: Room) -> None:
    first = begun(room)
    begun(room)
    begun(room)
    for expected in (first, (first[0], 7), (999, 2)):
        assert done(room, room.init(expected=expected)).code == errors.PRODUCER_FENCED
    assert len(room.log) == 3


def test_a_producer_whose_id_was_forgotten_gets_a_new_one(room: Room) -> None:
    assert begun(room, expected=(7, 3)) == (1000, 0)


def test_an_id_without_epochs_left_is_replaced(room: Room) -> None:
    old = exhausted(room)
    assert begun(room) == (1001, 0)
    assert done(room, room.init(expected=(old[0], LAST_EPOCH - 1))).code == errors.PRODUCER_FENCED


def test_a_replaced_id_may_be_asked_for_again(room: Room) -> None:
    old = exhausted(room)
    assert begun(room, expected=old) == (1001, 0) == begun(room, expected=old)


def test_an_open_transaction_is_aborted_first_and_its_producer_fenced(room: Room) -> None:
    producer = begun(room)
    done(room, room.add(producer, A))
    asked = room.init()
    assert done(room, asked).code == errors.CONCURRENT_TRANSACTIONS
    assert room.states()[-2:] == ["PrepareAbort", "CompleteAbort"]
    assert begun(room) == (producer[0], 2)
    assert done(room, room.add(producer, A)).code == errors.PRODUCER_FENCED


def test_who_comes_while_a_transaction_ends_is_sent_away(room: Room) -> None:
    producer = begun(room)
    done(room, room.add(producer, A))
    room.end(producer)
    room.end_pass()
    for asked in (room.init(), room.init(expected=producer), room.add(producer, B), room.end(producer)):
        room.end_pass()
        assert asked.code == errors.CONCURRENT_TRANSACTIONS


# -- partitions


@pytest.mark.parametrize(
    ("name", "producer", "code"),
    [
        ("unknown", (1000, 0), errors.INVALID_PRODUCER_ID_MAPPING),
        ("t", (1001, 0), errors.INVALID_PRODUCER_ID_MAPPING),
        ("t", (1000, 1), errors.PRODUCER_FENCED),
        ("t", (1000, -1), errors.PRODUCER_FENCED),
    ],
)
def test_only_the_producer_adds_partitions_asks_for_them_and_ends(
    room: Room, name: str, producer: Producer, code: int
) -> None:
    done(room, room.add(begun(room), A))
    assert done(room, room.add(producer, A, name=name)).code == code
    assert done(room, room.end(producer, name=name)).code == code
    assert done(room, room.end(producer, name=name, version=0)).code == code
    with pytest.raises(KafkaError) as caught:
        room.machine.taking_part(name, producer)
    assert caught.value.code == code
    assert room.states() == ["Empty", "Ongoing"]


def test_what_takes_part_already_is_not_written_again(room: Room) -> None:
    producer = begun(room)
    for partitions, count in (((A, B), 2), ((A,), 2), ((B, C), 3), ((A, B, C), 3)):
        assert done(room, room.add(producer, *partitions)).code == errors.NONE
        assert len(room.log) == count
    assert room.machine.taking_part("t", producer) == {A, B, C}
    assert room.transaction().start_ms == NOW_MS


def test_a_transaction_begins_with_its_first_partition(room: Room) -> None:
    producer = begun(room)
    room.now_ms += 7
    done(room, room.add(producer, A))
    room.now_ms += 5
    done(room, room.add(producer, B))
    assert (room.transaction().start_ms, room.transaction().updated_ms) == (NOW_MS + 7, NOW_MS + 12)


# -- ends


@pytest.mark.parametrize("committed", [True, False])
def test_an_end_is_decided_marked_and_complete_in_this_order(room: Room, committed: bool) -> None:
    producer = begun(room)
    done(room, room.add(producer, A, C))
    asked = room.end(producer, committed)
    assert not room.marks  # nothing is marked before it is decided for good
    room.end_pass()
    ((_, prepared, partitions),) = room.marks
    assert room.states()[-1] == prepared.state_name == ("PrepareCommit" if committed else "PrepareAbort")
    assert (partitions, prepared.producer_id, prepared.epoch) == (frozenset((A, C)), producer[0], 1)
    room.mark_all()
    assert asked.answer is None
    room.end_pass()
    assert room.states()[-1] == ("CompleteCommit" if committed else "CompleteAbort")
    assert (asked.code, asked.producer) == (errors.NONE, (producer[0], 1))
    assert not room.timers
    assert done(room, room.add(asked.producer, A)).code == errors.NONE


def test_with_version_1_the_epoch_stays(room: Room) -> None:
    producer = begun(room)
    done(room, room.add(producer, A, version=0))
    room.end(producer, version=0)
    room.end_pass()
    assert room.marks[0][1].epoch == 0
    assert room.marks[0][1].client_version == 0
    room.settle()
    assert done(room, room.add(producer, A, version=0)).code == errors.NONE


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize("version", [0, 2])
def test_an_end_may_be_repeated_and_not_changed(
    room: Room, version: int, committed: bool, ended: bool
) -> None:
    producer = begun(room)
    done(room, room.add(producer, A, version=version))
    first = done(room, room.end(producer, ended, version=version))
    length = len(room.log)
    again = done(room, room.end(producer, committed, version=version))
    assert again.code == (errors.NONE if committed == ended else errors.INVALID_TXN_STATE)
    assert committed != ended or again.producer == first.producer
    assert len(room.log) == length


@pytest.mark.parametrize("version", [0, 2])
def test_nothing_cannot_be_committed(room: Room, version: int) -> None:
    producer = begun(room)
    assert done(room, room.end(producer, version=version)).code == errors.INVALID_TXN_STATE
    aborted = done(room, room.end(producer, False, version=version))
    assert aborted.code == (errors.NONE if version else errors.INVALID_TXN_STATE)


def test_with_version_2_an_abort_of_nothing_gives_the_next_epoch(room: Room) -> None:
    producer = begun(room)
    for epoch in range(1, 4):
        asked = done(room, room.end((producer[0], epoch - 1), False))
        assert (asked.code, asked.producer) == (errors.NONE, (producer[0], epoch))
    done(room, room.add(asked.producer, A))
    committed = done(room, room.end(asked.producer))
    assert done(room, room.end(committed.producer)).code == errors.INVALID_TXN_STATE
    assert done(room, room.end(committed.producer, False)).producer == (producer[0], 5)


def test_with_version_2_a_late_end_does_not_reach_into_the_next_transaction(room: Room) -> None:
    producer = begun(room)
    done(room, room.add(producer, A))
    after = done(room, room.end(producer)).producer
    done(room, room.add(after, A))
    for committed in (True, False):
        assert done(room, room.end(producer, committed)).code == errors.PRODUCER_FENCED
    assert room.transaction().state_name == "Ongoing"


def test_with_version_1_a_late_end_ends_the_next_transaction(room: Room) -> None:
    """A weakness of the protocol that version 2 was made for."""
    producer = begun(room)
    for _ in range(2):
        done(room, room.add(producer, A, version=0))
        assert done(room, room.end(producer, version=0)).code == errors.NONE
    assert room.states()[-1] == "CompleteCommit"


@pytest.mark.parametrize("reloaded", [False, True])
def test_the_end_of_the_last_epoch_gives_a_new_id(room: Room, reloaded: bool) -> None:
    room.transaction_version = 2  # the ids are in records of version 1
    old = exhausted(room)
    done(room, room.add(old, A))
    room.end(old)
    room.end_pass()
    if reloaded:
        room.unload()
        room.load()
        room.advance(0)
    ((_, prepared, _),) = room.marks
    assert (prepared.producer_id, prepared.epoch) == (old[0], LARGEST_EPOCH)
    room.settle()
    if reloaded:
        room.load()
    again = done(room, room.end(old))
    assert (again.code, again.producer) == (errors.NONE, (1001, 0))
    assert done(room, room.add((1001, 0), A)).code == errors.NONE
    assert done(room, room.end(old)).code == errors.INVALID_PRODUCER_ID_MAPPING


def test_an_open_transaction_of_the_last_epoch_can_be_fenced(room: Room) -> None:
    old = exhausted(room)
    done(room, room.add(old, A))
    assert done(room, room.init()).code == errors.CONCURRENT_TRANSACTIONS
    new = begun(room)
    assert new[0] != old[0]


# -- markers


def test_what_is_not_marked_is_asked_for_again_and_nothing_else(room: Room) -> None:
    producer = begun(room)
    done(room, room.add(producer, A, B, C))
    asked = room.end(producer)
    room.end_pass()
    name, prepared, _ = room.marks.pop()
    room.marked(name, prepared, {A: 0, B: errors.KAFKA_STORAGE_ERROR, C: errors.NOT_LEADER_OR_FOLLOWER})
    room.end_pass()
    assert asked.code == errors.NONE  # it does not wait for partitions that are not there
    assert room.states()[-1] == "PrepareCommit"
    assert not room.marks
    room.advance(RETRY_MS)
    assert room.marks == [(name, prepared, frozenset((B, C)))]
    room.marks.clear()
    room.marked(name, prepared, {B: errors.UNKNOWN_TOPIC_OR_PARTITION, C: errors.INVALID_PRODUCER_EPOCH})
    room.end_pass()
    assert room.states()[-1] == "CompleteCommit"


def test_an_answer_does_not_wait_for_ever(room: Room) -> None:
    producer = begun(room)
    done(room, room.add(producer, A))
    asked = room.end(producer)
    room.end_pass()
    room.advance(ANSWER_MS - 1)
    room.end_pass()
    assert asked.answer is None
    room.advance(1)
    room.end_pass()
    assert asked.code == errors.NONE
    assert room.transaction().is_prepared
    room.settle()
    assert room.states()[-1] == "CompleteCommit"


@pytest.mark.parametrize("committed", [True, False])
def test_what_was_decided_is_done_by_the_next_coordinator(room: Room, committed: bool) -> None:
    producer = begun(room)
    done(room, room.add(producer, A, B))
    asked = room.end(producer, committed)
    room.end_pass()
    old = room.marks[0][1]
    room.unload()
    assert asked.code == errors.NOT_COORDINATOR
    room.load()
    assert not room.marks
    room.advance(0)
    ((name, prepared, partitions),) = room.marks
    assert (name, partitions, prepared.epoch) == ("t", frozenset((A, B)), old.epoch)
    room.marked("t", old, {A: 0, B: 0})  # of the coordinator before
    assert room.transaction().is_prepared
    room.settle()
    assert room.states()[-1] == ("CompleteCommit" if committed else "CompleteAbort")
    assert done(room, room.end(producer, committed)).code == errors.NONE


def test_what_was_not_decided_for_good_is_still_open(room: Room) -> None:
    producer = begun(room)
    done(room, room.add(producer, A))
    room.end(producer)
    room.load()  # killed in the pass of the request
    assert room.transaction().state_name == "Ongoing"
    assert done(room, room.end(producer, False)).code == errors.NONE
    assert room.states()[-1] == "CompleteAbort"


# -- time


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(room: Room) -> None:
    producer = begun(room, timeout_ms=1_000)
    done(room, room.add(producer, A))
    room.now_ms += 1_000
    room.abort_overdue()
    assert room.transaction().state_name == "Ongoing"
    room.now_ms += 1
    room.abort_overdue()
    room.settle()
    assert room.states()[-2:] == ["PrepareAbort", "CompleteAbort"]
    assert not room.machine.open_ids
    for asked in (room.add(producer, A), room.end(producer, version=0)):
        assert done(room, asked).code == errors.PRODUCER_FENCED
    assert begun(room) == (producer[0], 2)


def test_ids_that_are_not_used_are_forgotten(room: Room) -> None:
    begun(room)
    open_one = begun(room, name="open")
    done(room, room.add(open_one, A, name="open"))
    room.now_ms += EXPIRATION_MS - 1
    begun(room, name="new")
    for passed_ms, left in ((0, {"t", "open", "new"}), (1, {"open", "new"})):
        room.now_ms += passed_ms
        for name in room.machine.expired(list(room.machine.by_id), room.now_ms):
            room.perform(room.machine.forget(name))
        room.settle()
        assert room.machine.by_id.keys() == left
    room.load()
    assert room.machine.by_id.keys() == {"open", "new"}
    assert room.states()[-1] == "tombstone"


# -- records


def test_records_are_what_kafka_writes() -> None:
    transaction = Transaction(7, 60_000, NOW_MS)
    transaction.previous_producer_id = 7
    assert records.encode_key("t") == b"\0\0\0\1t"
    ongoing = transaction.begun(3, 2, 60_000, NOW_MS).joined_by(frozenset((A,)), 2, NOW_MS)
    at, previous = NOW_MS.to_bytes(8), b"\0\x08" + (7).to_bytes(8)
    head = b"\0\0\0\0\0\0\0\7" + b"\0\3" + b"\0\0\xea\x60" + b"\1"
    assert records.encode_value(ongoing, 0) == (
        b"\0\0" + head + b"\0\0\0\1" + b"\0\1a" + b"\0\0\0\1\0\0\0\0" + at + at
    )
    assert records.encode_value(ongoing, 1) == (
        b"\0\1" + head + b"\2" + b"\2a" + b"\2\0\0\0\0" + b"\0" + at + at + b"\2" + previous + b"\2\2\0\2"
    )
    empty = transaction.begun(0, -1, 60_000, NOW_MS)
    none = b"\xff" * 8
    assert records.encode_value(empty, 2).endswith(b"\0" + b"\0" + at + none + b"\1" + previous)


@pytest.mark.parametrize("version", [0, 1])
def test_records_are_read_as_they_were_written(version: int) -> None:
    begun = Transaction(7, 60_000, NOW_MS).begun(3, 2, 60_000, NOW_MS)
    for written in (begun, begun.joined_by(frozenset((A, B, C)), 0, NOW_MS + 1)):
        name, read = records.decode(records.encode_key("t"), records.encode_value(written, version))
        assert read is not None
        unwritten = {"last_epoch"} if version else {"last_epoch", "previous_producer_id"}
        for field in set(Transaction.__slots__) - unwritten:
            assert getattr(read, field) == getattr(written, field), field
        assert (name, read.last_epoch) == ("t", -1)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (None, b"\0\0", UnknownRecord),
        (b"\0", b"\0\0", WireError),
        (b"\0\1\0\1t", b"\0\0", UnknownRecord),
        (b"\0\0\0\1t", b"\0", WireError),
        (b"\0\0\0\1t", b"\0\2", UnknownRecord),
        (b"\0\0\0\1t", b"\0\0\0", WireError),
        (b"\0\0\0\1t", b"\0\0" + bytes(14) + b"\x09" + bytes(20), UnknownRecord),
    ],
)
def test_strange_records_are_told_apart(key: bytes | None, value: bytes, problem: type[Exception]) -> None:
    with pytest.raises(problem):
        records.decode(key, value)


# -- what Kafka wrote


def kafkas(name: str) -> list[tuple[bytes, bytes]]:
    """The records of a partition of `__transaction_state`."""
    with tarfile.open(GOLDEN / "logs.tar.gz") as archive:
        file = archive.extractfile(f"logs/{name}/{0:020}.log")
        assert file is not None
        rows = file.read()
    return [(bytes(row.key or b""), bytes(row.value or b"")) for row in read(rows)]


def do_the_same(room: Room, name: str, theirs: Transaction) -> None:
    """What must have been asked for, since it came to this."""
    ours = room.machine.by_id.get(name)
    room.now_ms = theirs.updated_ms
    if theirs.state_name == "Empty":
        room.producer_ids = iter((theirs.producer_id,))
        room.init(name, theirs.timeout_ms)
        return
    assert ours is not None
    producer = ours.producer_id, ours.epoch
    if theirs.state_name == "Ongoing":
        room.add(producer, *theirs.partitions, name=name, version=theirs.client_version)
    elif theirs.is_prepared:
        room.end(producer, theirs.state_name == "PrepareCommit", name, theirs.client_version)
    else:
        room.mark_all()


@pytest.mark.parametrize(
    "name", ["transactions/data/__transaction_state-0", "compacted/data/__transaction_state-1"]
)
def test_what_kafka_wrote_is_what_the_machine_writes(name: str) -> None:
    room = Room(2)
    for key, value in kafkas(name):
        transactional_id, theirs = records.decode(key, value)
        assert theirs is not None
        do_the_same(room, transactional_id, theirs)
        room.end_pass()
        our_key, our_value = room.log[-1]
        ours = records.decode(our_key, our_value)[1]
        for field in Transaction.__slots__:
            assert getattr(ours, field) == getattr(theirs, field), (field, theirs.state_name)
        if len(theirs.partitions) < 2:  # whose order is no matter
            assert (our_key, our_value) == (key, value)
    assert len(room.log) == len(kafkas(name)) > 4


def test_an_end_that_could_not_be_written_may_be_asked_for_again(room: Room) -> None:
    producer = begun(room)
    done(room, room.add(producer, A))
    version = min(room.transaction_version, 1)
    effects = room.machine.end("t", producer, True, version, Asked(), NOW_MS, 99)
    assert effects.on_refused is not None
    with pytest.raises(KafkaError) as refused:
        effects.on_refused(errors.COORDINATOR_NOT_AVAILABLE)
    assert refused.value.code == errors.COORDINATOR_NOT_AVAILABLE
    assert done(room, room.end(producer, committed=False, version=version)).code == errors.NONE
    assert room.states()[-1] == "CompleteAbort"


def test_a_transaction_that_has_time_left_is_not_aborted(room: Room) -> None:
    producer = begun(room, timeout_ms=10_000)
    done(room, room.add(producer, A))
    for name, now_ms in (("t", room.now_ms + 9_999), ("never", NOW_MS)):
        effects = room.machine.abort(name, now_ms, 99)
        assert not effects.records and not effects.replies
    assert room.states()[-1] == "Ongoing"
