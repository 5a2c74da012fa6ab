"""Messages with many elements: put aside by the loop, read and written by a thread, one request at a time."""

from __future__ import annotations

import threading
from collections import deque
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pykafkad import large, messages
from pykafkad.errors import KAFKA_STORAGE_ERROR
from pykafkad.handlers import list_offsets
from pykafkad.hot import wire
from pykafkad.large import ELEMENTS_A_PIECE, free
from pykafkad.slices import finish
from tests.unit.data_kit import Connection, Desk, Ticket, batch, produce

MANY = 50_000  # more elements than are written in one turn, or read


VERSION = 7


def offsets(count: int) -> Any:
    kind = messages.ListOffsetsRequest
    asked = [kind.ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(count)]
    return kind(replica_id=-1, topics=[kind.ListOffsetsTopic(name="t", partitions=asked)])


class Thread:
    """A `submit` whose work the test runs."""

    def __init__(self) -> None:
        self.jobs: deque[tuple[Any, Any]] = deque()

    def submit(self, work: Any, done: Any) -> None:
        self.jobs.append((work, done))

    def step(self) -> None:
        work, done = self.jobs.popleft()
        try:
            result = work()
        except Exception as error:
            result = error
        done(result)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.create("t")
    desk.connection.closed = None
    return desk


def with_thread(desk: Desk) -> Thread:
    thread = Thread()
    desk.submit_large = thread.submit
    desk.connection = OpenConnection()
    return thread


class OpenConnection(Connection):
    """`closed` tells whether it is, as for the loop's connections."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False  # type: ignore[assignment]
        self.reason: str | None = None

    def finish(self, reason: str | None = None) -> None:
        self.reason = reason or "closed"


def answer_of(thread: Thread, ticket: Any) -> Any:
    """The answer, through the ticket of a large one."""
    parts = ticket.parts.encode()
    assert isinstance(parts, Ticket) and parts.parts is None
    thread.step()
    return messages.ListOffsetsResponse.decode(parts.parts, VERSION, 9)  # type: ignore[arg-type]


def test_a_request_of_many_elements_is_read_and_answered_by_the_thread(desk: Desk) -> None:
    thread = with_thread(desk)
    ticket = desk.send(offsets(MANY), VERSION)
    assert isinstance(ticket, Ticket) and ticket.parts is None and len(thread.jobs) == 1
    thread.step()
    assert ticket.parts is not None
    (topic,) = answer_of(thread, ticket).topics
    assert [row.partition_index for row in topic.partitions] == list(range(MANY))


@pytest.mark.parametrize("in_slices", [False, True])
def test_its_handler_may_give_an_answer_or_work(
    desk: Desk, in_slices: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    response = messages.ListOffsetsResponse()

    def work() -> Any:
        yield
        return response

    monkeypatch.setattr(list_offsets, "handle", lambda *given: work() if in_slices else response)
    thread = with_thread(desk)
    ticket = desk.send(offsets(MANY), VERSION)
    thread.step()
    assert ticket.parts.response is response and not desk.connection.closed


def test_a_request_of_few_elements_is_not(desk: Desk) -> None:
    thread = with_thread(desk)
    assert not isinstance(desk.send(offsets(100), VERSION), Ticket) and not thread.jobs


def test_one_large_request_at_a_time(desk: Desk) -> None:
    thread = with_thread(desk)
    tickets = [desk.send(offsets(MANY), VERSION) for _ in range(3)]
    for done in range(3):
        assert len(thread.jobs) == 1 and [ticket.parts is not None for ticket in tickets].count(True) == done
        thread.step()
    assert all(ticket.parts is not None for ticket in tickets) and not thread.jobs


def test_what_nobody_waits_for_is_not_read(desk: Desk) -> None:
    thread = with_thread(desk)
    first = desk.send(offsets(MANY), VERSION)
    desk.send(offsets(MANY), VERSION)
    desk.connection.closed = True  # type: ignore[assignment]
    thread.step()
    assert not thread.jobs and first.parts is None
    with_open = OpenConnection()
    desk.connection = with_open
    last = desk.send(offsets(MANY), VERSION)
    thread.step()
    assert last.parts is not None


def test_a_large_request_that_cannot_be_read_ends_its_connection_and_the_next_is_read(desk: Desk) -> None:
    thread = with_thread(desk)
    wrong = offsets(MANY)
    wrong.topics.append(offsets(1).topics[0])
    request = bytearray(wire.request(wrong, VERSION, 1, "test"))  # type: ignore[arg-type]
    bad = desk.dispatcher.on_frame(desk.connection, request, 4, len(request) - 10)
    good = desk.send(offsets(MANY), VERSION)
    thread.step()
    assert bad.parts is None and "ListOffsets" in str(desk.connection.reason)  # type: ignore[attr-defined]
    thread.step()
    assert good.parts is not None


def test_more_elements_than_a_message_may_have_are_refused_before_they_take_memory(desk: Desk) -> None:
    thread = with_thread(desk)
    count = wire.MESSAGE_ELEMENTS_MAX + 1
    head = (15).to_bytes(2) + (5).to_bytes(2) + bytes(4) + (1).to_bytes(2) + b"x" + b"\0"
    uvarint = wire_count(count + 1)
    frame = bytearray(head + uvarint + b"\1" * count + b"\0\0")
    ticket = desk.dispatcher.on_frame(desk.connection, frame, 0, len(frame))
    thread.step()
    assert ticket.parts is None
    assert f"more than {wire.MESSAGE_ELEMENTS_MAX} elements" in str(desk.connection.reason)  # type: ignore[attr-defined]


def wire_count(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def test_bytes_that_are_copied_and_tags_count_too(desk: Desk) -> None:
    thread = with_thread(desk)
    kind = messages.SyncGroupRequest
    assignments = [kind.SyncGroupRequestAssignment(member_id="m", assignment=bytes(50_000_000))]
    desk.send(kind(group_id="g", member_id="m", assignments=assignments), 5)
    assert len(thread.jobs) == 1


def test_the_thread_lets_others_have_the_interpreter() -> None:
    """While it reads a large message, another thread keeps running."""
    data = bytearray(wire.request(offsets(500_000), VERSION, 1, "test"))  # type: ignore[arg-type]
    route = wire.Route(messages.ListOffsetsRequest, (1, 11), None)
    reader = wire.RequestReader({2: route}.get)
    turns, ended = 0, threading.Event()

    def read() -> None:
        reader.read_large(None, data, 4, len(data))
        ended.set()

    thread = threading.Thread(target=read)
    thread.start()
    while not ended.is_set():
        turns += 1
        ended.wait(0)
    thread.join()
    assert turns > 500 // 2  # it releases the interpreter after every 1,000 elements


def test_an_answer_that_was_weighed_can_still_be_changed(desk: Desk) -> None:
    """As happens when the write of the pass fails."""
    partition = desk.storage.partitions["t", 0]
    given = desk.send(produce("t", 0, batch(b"x")), 9)
    weight = given.weigh()
    assert weight == len(given.encode())
    given.weigh()
    desk.promises.refuse({id(partition)})
    answer = desk.answer_of(given, "ProduceRequest", 9)
    assert answer.responses[0].partition_responses[0].error_code == KAFKA_STORAGE_ERROR


# -- what is freed


class Counted:
    """Says how many there are."""

    alive = 0

    def __init__(self) -> None:
        Counted.alive += 1

    def __del__(self) -> None:
        Counted.alive -= 1


def full_of(kind: Any, **lists: int) -> Any:
    return kind(**{name: [Counted() for _ in range(count)] for name, count in lists.items()})


def flat() -> Any:
    return full_of(messages.ConsumerGroupDescribeRequest, group_ids=MANY)


def nested() -> Any:
    kind = messages.ListOffsetsRequest
    topics = [
        full_of(kind.ListOffsetsTopic, partitions=count) for count in [1] * (MANY // 4) + [MANY, 0, MANY]
    ]
    return kind(topics=topics)


def alone() -> Any:
    kind = messages.ListOffsetsRequest
    return kind(topics=[full_of(kind.ListOffsetsTopic, partitions=MANY)])


@pytest.mark.parametrize("build", [flat, nested, alone])
def test_a_message_is_freed_some_elements_at_a_time(build: Any) -> None:
    assert Counted.alive == 0
    steps = [Counted.alive]
    for _ in free(build()):
        steps.append(Counted.alive)
    assert max(steps) >= MANY and Counted.alive == 0
    freed = [before - after for before, after in pairwise([*steps, 0])]
    assert max(freed) <= ELEMENTS_A_PIECE


def test_what_others_have_of_a_freed_message_stays() -> None:
    message = nested()
    some = message.topics
    finish(free(message))
    assert len(some) == MANY // 4 + 3 and Counted.alive == 2 * MANY + MANY // 4
    message = None
    del some[:]
    assert Counted.alive == 0


def test_large_requests_and_answers_are_freed_in_slices(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[Any] = []

    def note(message: Any) -> Any:
        freed.append(type(message))
        yield

    monkeypatch.setattr(large, "free", note)
    thread = with_thread(desk)
    ticket = desk.send(offsets(MANY), VERSION)
    thread.step()
    assert freed == [messages.ListOffsetsRequest]
    context = ticket.parts
    assert len(answer_of(thread, ticket).topics[0].partitions) == MANY
    assert freed == [messages.ListOffsetsRequest, messages.ListOffsetsResponse]
    assert context.response is None, "else the last who has it is not the work that frees it"
