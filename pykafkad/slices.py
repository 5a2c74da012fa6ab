"""Work that takes long, done in slices, so that the loop can serve others in between.

Such work is a generator that yields wherever the loop may do something else; what it returns is the result. A handler
may be one: it returns its answer, and its connection waits in the meantime. A generator continues as long as a slice
lasts (SLICE_US), so it may yield often: a yield costs a look at the clock.

    def handle(broker, request, context):
        answers = []
        for topic in request.topics:
            answers.append(answer_for(topic))
            yield
        return TheResponse(topics=answers)

Between two slices everything may change: what was looked up before a yield is looked up again after it.

Work whose connection closes is dropped at its next yield, since nobody waits for the result. Work that has begun to
change something uses `yield GO_ON` instead, and is done to its end.

What only comes later, from a thread or from another request's end, is waited for:

    wait = Wait()
    broker.controller.take_producer_id(wait.come)
    producer_id = yield from wait.result()

Invariants: one slice between two passes of the loop, shared by all work in turn; work begins in the order in which it
came; work that waits costs nothing, and goes on to its next plain yield even if nobody wants it any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from types import GeneratorType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any, TypeVar, Union

    from typing_extensions import TypeIs
    from typing_extensions import TypeVar as TypeVarWithDefault

    from pykafkad.clock import Clock

    T = TypeVar("T")
    Result = TypeVarWithDefault("Result", default=Any)
    Work = Generator[Any, None, Result]  # Work[int] returns a number
    # What a handler returns: its answer, or work that comes to it.
    OrWork = Union[Result, Work[Result]]  # noqa: UP007 (mypy takes no other form of an alias of a type variable)
    Done = Callable[[Any], None]
    Wanted = Callable[[], bool]
    Run = Callable[[Work, Done], None]  # Slices.run, for modules that do not know the broker
else:
    Work = Generator

SLICE_US = 100  # for how long the loop is held between two passes
STEPS_AT_ONCE = 16  # steps of work that may be small
ELEMENTS_AT_ONCE = 16  # cheap steps
CHUNK = 256  # items of some 0.1 us each
GO_ON = True  # yielded by work that must be done to its end, whether or not anybody waits for the result


class Wait:
    """What work waits for: `come(result)` is called once, before or after the work asks for the result."""

    __slots__ = ("_came", "_result", "go_on")

    def __init__(self) -> None:
        self.go_on: Callable[[], None] | None = None  # of work that waits already
        self._came = False
        self._result: Any = None

    def come(self, result: Any = None) -> None:
        assert not self._came
        self._came = True
        self._result = result
        if self.go_on is not None:
            self.go_on()

    def result(self) -> Generator[Wait, None, Any]:
        while not self._came:
            yield self
        return self._result


class Slices:
    def __init__(self, soon: Callable[..., Any], clock: Clock) -> None:
        self._soon = soon
        self._clock = clock
        self._waiting: deque[tuple[Work, Done, Wanted]] = deque()
        self._parked = 0  # pieces of work that wait for something
        self.last: Work | None = None  # the work advanced last, for messages about what held the loop

    @property
    def count(self) -> int:
        """How many pieces of work are in progress."""
        return len(self._waiting) + self._parked

    def run(self, work: Work, done: Done, wanted: Wanted = lambda: True) -> None:
        """Do the work, beginning now; `done` is called with the result, or with the exception that ended it. If one
        slice is enough, it is called before this returns. Work that is no longer `wanted` is dropped, with None as its
        result."""
        if self._waiting or not self._advance(work, done, wanted, self._clock.monotonic_us() + SLICE_US):
            self._join(work, done, wanted)

    def _join(self, work: Work, done: Done, wanted: Wanted) -> None:
        self._waiting.append((work, done, wanted))
        if len(self._waiting) == 1:
            self._soon(self._turn)

    def _park(self, wait: Wait, work: Work, done: Done, wanted: Wanted) -> None:
        """The work joins the others again when that has come for which it waits."""

        def go_on() -> None:
            self._parked -= 1
            self._join(work, done, wanted)

        self._parked += 1
        wait.go_on = go_on

    def _turn(self) -> None:
        """One slice, for as much of the waiting work as fits into it."""
        end_us = self._clock.monotonic_us() + SLICE_US
        try:
            for _ in range(len(self._waiting)):
                self._advance_first(end_us)
                if self._clock.monotonic_us() >= end_us:
                    break
        finally:
            if self._waiting:
                self._soon(self._turn)

    def _advance_first(self, end_us: int) -> None:
        first = self._waiting[0]
        ended = True  # also if `done` raises
        try:
            ended = self._advance(*first, end_us)
        finally:
            self._waiting.popleft()
            if not ended:
                self._waiting.append(first)

    def _advance(self, work: Work, done: Done, wanted: Wanted, end_us: int) -> bool:
        """Advance the work until the slice is over; whether it is done, or waits."""
        self.last = work
        is_asked = False  # whether it is wanted: that does not change during a slice
        read_us = self._clock.monotonic_us
        try:
            while True:
                mark = next(work)
                if mark is not GO_ON:
                    if mark.__class__ is Wait:
                        self._park(mark, work, done, wanted)
                        return True
                    if not is_asked:
                        is_asked = True
                        if not wanted():
                            work.close()
                            result = None
                            break
                if read_us() >= end_us:
                    return False
        except StopIteration as end:
            result = end.value
        except Exception as error:
            result = error
        try:
            done(result)
        finally:
            result = None  # else the error and this frame would keep each other alive, and the work
        return True


def is_work(result: object) -> TypeIs[Work]:
    """Whether a handler or an operation returned work rather than a result."""
    return type(result) is GeneratorType


def finish(work: Work[T]) -> T:
    """Do all of it now, where there is no loop, and so nothing that could be waited for."""
    while True:
        try:
            mark = next(work)
            assert mark.__class__ is not Wait, "this waits for what needs a loop"
        except StopIteration as end:
            result: T = end.value
            return result


def begun(work: Work[T], steps: int = STEPS_AT_ONCE) -> OrWork[T]:
    """The result of a handler's work, if a few steps complete it, since most requests are small and need no slices.
    Otherwise the work itself, of which these steps are done."""
    try:
        for _ in range(steps):
            next(work)
    except StopIteration as end:
        result: T = end.value
        return result
    return work


def each(elements: Iterable[T], at_once: int = ELEMENTS_AT_ONCE) -> Iterator[tuple[bool, T]]:
    """Each element, with whether the work should yield before it."""
    for place, element in enumerate(elements, 1):
        yield place % at_once == 0, element


def run_at_once(work: Work, done: Done) -> None:
    """`Slices.run` where there is no loop."""
    try:
        result = finish(work)
    except Exception as error:
        result = error
    done(result)


def chunks(items: Sequence[T], size: int = CHUNK) -> Iterator[Sequence[T]]:
    """The items in chunks, for work on them that is too little to yield after each one."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def let_go(items: list[Any], at_once: int = CHUNK) -> Work:
    """Empties a list that nobody needs any more: to free very many objects at once would hold the loop."""
    while items:
        del items[-at_once:]
        yield
