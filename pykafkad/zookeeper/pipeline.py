"""What was submitted and has no answer yet, in order: what clients of ZooKeeper share, whatever carries the operations.

Invariants: answers are told in the order of submission, whatever order they come in; at most `max_in_flight` operations
are on their way; when a connection is open again, all that has no answer is sent again, in order, and answers over older
connections count no more. (What was handed over after the old connection was lost and before anybody knew may be carried
out twice by that, but never before what was submitted earlier.)
"""

from __future__ import annotations

from collections import deque
from functools import partial

from pykafkad.logs import logger
from pykafkad.zookeeper.client import CONNECTION_LOST, Result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.zookeeper.client import Done, Operation

    Answer = Callable[[Result], None]
    Send = Callable[[Operation, Answer], None]

MAX_IN_FLIGHT = 10  # zookeeper.max.in.flight.requests

log = logger("zookeeper")


class Batch:
    """What one `submit` asked for."""

    __slots__ = ("done", "left", "results")

    def __init__(self, count: int, done: Done) -> None:
        self.results: list[Result] = []
        self.left = count
        self.done = done

    def add(self, result: Result) -> None:
        self.results.append(result)
        self.left -= 1
        if not self.left:
            self.tell()

    def tell(self) -> None:
        try:
            self.done(self.results)
        except Exception as error:  # one's mishap is not the next one's
            log.exception("an answer of ZooKeeper could not be handled", error)


class Asked:
    """One operation; None: the end of a batch of none, whose answer is only its place among the others."""

    __slots__ = ("batch", "op", "result")

    def __init__(self, op: Operation | None, batch: Batch) -> None:
        self.op = op
        self.batch = batch
        self.result: Result | None = None

    def tell(self, result: Result) -> None:
        if self.op is None:
            self.batch.tell()
        else:
            self.batch.add(result)


class Pipeline:
    def __init__(self, send: Send, max_in_flight: int = MAX_IN_FLIGHT) -> None:
        self._send = send
        self._max_in_flight = max_in_flight
        self._waiting: deque[Asked] = deque()
        self._in_flight: deque[Asked] = deque()
        self._connection = 0
        self._is_open = False

    def submit(self, ops: Sequence[Operation], done: Done) -> None:
        batch = Batch(len(ops), done)
        self._waiting.extend(Asked(op, batch) for op in ops or (None,))
        self._fill()

    def opened(self) -> None:
        """There is a connection, over which nothing was sent yet."""
        self._connection += 1
        self._waiting.extendleft(reversed(self._in_flight))
        self._in_flight.clear()
        self._is_open = True
        self._fill()

    def cut(self) -> None:
        self._is_open = False

    def end(self, error: int) -> None:
        """The session is over: this is the answer to all that has none."""
        self._is_open = False
        asked = [*self._in_flight, *self._waiting]
        self._in_flight.clear()
        self._waiting.clear()
        for each in asked:
            each.tell(Result(error))

    def _fill(self) -> None:
        while self._is_open and self._waiting and len(self._in_flight) < self._max_in_flight:
            asked = self._waiting.popleft()
            self._in_flight.append(asked)
            if asked.op is None:
                self._answered(asked, self._connection, Result())
            else:
                self._send(asked.op, partial(self._answered, asked, self._connection))

    def _answered(self, asked: Asked, connection: int, result: Result) -> None:
        if connection != self._connection or result.error == CONNECTION_LOST or asked not in self._in_flight:
            return
        asked.result = result
        while self._in_flight and (first := self._in_flight[0]).result is not None:
            self._in_flight.popleft()
            first.tell(first.result)
        self._fill()
