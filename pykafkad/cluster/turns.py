"""Changes one after the other: each begins when the one before has come to its end, in the order asked.

What a large request comes to is decided in slices (pykafkad/slices.py), and what is written is waited for; two requests
about the same things must not go on side by side, or the second would not see what the first one changes.
Rules for what goes wrong: a KafkaError is the answer; anything else is logged and becomes UNKNOWN_SERVER_ERROR; whatever
a callback does, what waits behind it is next.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from pykafkad.errors import UNKNOWN_SERVER_ERROR, KafkaError
from pykafkad.logs import logger
from pykafkad.slices import Wait, is_work

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.cluster.controller import Plan, Told
    from pykafkad.slices import Done, Run, Work

    Begin = Callable[[Done], None]  # calls what it is given when the turn is over, with the result

log = logger("controller")


def through(line: Callable[[Work, Done], object], work: Work) -> Work[None]:
    """Wait until this work, in another line than one's own, is done; what ended it is raised."""
    wait = Wait()
    line(work, wait.come)
    result = yield from wait.result()
    if isinstance(result, Exception):
        raise result


class Turns:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._waiting: deque[tuple[Begin, Done]] = deque()
        self._is_busy = False
        self._is_starting = False

    def run(self, work: Work, done: Done) -> None:
        """A turn that is work, never given up: it yields GO_ON. `done` is called with the result, or with the exception
        that ended it."""
        self.take(partial(self._run, work), done)

    def take(self, begin: Begin, done: Done) -> None:
        self._waiting.append((begin, done))
        self._start()

    def _start(self) -> None:
        if self._is_starting:
            return
        self._is_starting = True
        try:
            while self._waiting and not self._is_busy:
                begin, done = self._waiting.popleft()
                self._is_busy = True
                begin(partial(self._ended, done))
        finally:
            self._is_starting = False

    def _ended(self, done: Done, result: Any) -> None:
        self._is_busy = False
        try:
            done(result)
        finally:
            self._start()


def commit_planned(
    plan: Plan,
    line: Turns,
    commit: Callable[[Any, Told], None],
    error_of: Callable[[Exception], KafkaError],
    ended: Done,
) -> None:
    """A turn of Controller.in_turn: what `plan` makes of the image is committed, if it is anything. A plan that is work
    is done in `line`."""

    def planned(records: Any) -> None:
        if isinstance(records, Exception):
            ended(error_of(records))
        elif records:
            commit(records, ended)
        else:
            ended(None)

    records: Any
    try:
        records = plan()
    except Exception as error:
        records = error
    if is_work(records):
        line.run(records, planned)
    else:
        planned(records)


def as_kafka_error(error: Exception) -> KafkaError:
    """What to answer with where a change could not be planned; a surprise is logged."""
    if isinstance(error, KafkaError):
        return error
    log.exception("a change of the metadata could not be planned", error)
    return KafkaError(UNKNOWN_SERVER_ERROR)


def tell(done: Callable[[Any], Any], result: Any) -> None:
    """One request's mishap is not the next one's."""
    try:
        done(result)
    except Exception as error:
        log.exception("a change of the metadata could not be answered", error)
