"""Requests and answers with so many elements that reading or writing one would hold the loop: a thread does it.

Reading 10,000 elements takes some 2 ms, as writing 32,000 does (ext/wire_budget.pxi). A larger message is put aside here,
and its connection waits. The thread gives the interpreter away every moment, so that the loop continues beside it.

Invariant: one such request at a time is read and handled, so the memory for all of them is what one may take
(MESSAGE_ELEMENTS), besides the frames in which they came.

Freeing one takes long, too: the last who has such a request or answer is the work that takes it apart in slices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any

from pykafkad import slices
from pykafkad.hot import wire
from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.workers import Done, Work

Read = Callable[[Any, Any, int, int], tuple[Any, Any]]
Give = Callable[[Any, Any], None]
Handle = Callable[[Any, Any, Callable[[Any], None]], None]

LONG = 256  # elements of a list in an element, which are not freed with it
ELEMENTS_A_PIECE, LISTS_A_PIECE = 1024, 64

log = logger("dispatcher")


class LargeMessages:
    def __init__(
        self,
        submit: Callable[[Work, Done], None],
        run: slices.Run,
        read: Read,
        handle: Handle,
        give: Give,
    ) -> None:
        """`run` does work in slices; `handle(context, request, done)` has a request handled and tells `done` the
        result, or the exception that ended it; `give(context, result)` answers."""
        self._submit = submit
        self._run = run
        self._read = read
        self._handle = handle
        self._give = give
        self._waiting: deque[tuple[Context, Any, int, int]] = deque()
        self._busy = False

    def read(self, context: Context, buffer: Any, start: int, end: int) -> Any:
        """Read the request in buffer[start:end] and have it handled. Returns the place of its answer."""
        context.defer()
        self._waiting.append((context, buffer, start, end))
        if not self._busy:
            self._next()
        return context.ticket

    def _next(self) -> None:
        self._busy = False
        while self._waiting and not self._busy:
            context, buffer, start, end = self._waiting.popleft()
            if not context.connection.closed:
                self._busy = True
                self._submit(
                    partial(self._read, context.connection, buffer, start, end),
                    partial(self._was_read, context),
                )

    def _was_read(self, context: Context, result: Any) -> None:
        if isinstance(result, BaseException):
            self._ended(context, None, result)
            return
        _, request = result
        self._handle(context, request, partial(self._ended, context, request))

    def _ended(self, context: Context, request: Any, result: Any) -> None:
        try:
            self._give(context, result)
        finally:
            self._let_go(request)
            self._next()

    def write(self, context: Context) -> Any:
        """Have an answer encoded by a thread. Returns the place of the answer."""
        ticket = context.connection.defer()
        self._submit(context.encode_large, partial(self._written, context, ticket))
        return ticket

    def _written(self, context: Context, ticket: Any, parts: Any) -> None:
        response, context.response = context.response, None
        self._let_go(response)
        if isinstance(parts, BaseException):
            context.connection.finish(f"no answer to {context.route.name} v{context.version}: {parts}")
            parts = None
        ticket.answer(parts)

    def _let_go(self, message: Any) -> None:
        """Whoever calls this returns before much of it is done, and is not the last who has the message."""
        if message is not None:
            self._run(free(message), lambda result: None)


def free(message: Any) -> slices.Work:
    """Frees a message some elements at a time, where nobody else has it. What others have of it stays as it is."""
    held = []
    for some in pieces(message):
        held.append(some)
        yield
    del message
    held.reverse()  # a container goes before its contents, else it would free them all at once
    yield from slices.let_go(held, at_once=1)


def pieces(message: Any) -> Iterator[Sequence[Any]]:
    """All that makes the message long: its lists, in parts, and the long ones in their elements."""
    owners = [message]
    for owner in owners:
        for get in list_fields(owner.__class__):
            values = get(owner) or ()
            inner = list_fields(values[0].__class__) if values else ()
            for some in slices.chunks(values, LISTS_A_PIECE if inner else ELEMENTS_A_PIECE):
                for get_inner in inner:
                    owners += [each for each in some if len(get_inner(each) or ()) > LONG]
                yield some


@cache
def list_fields(kind: Any) -> tuple[Callable[[Any], Any], ...]:
    """What gives the lists of such a struct."""
    if not issubclass(kind, wire.Struct):
        return ()
    return tuple(attrgetter(field.attribute) for field in wire.fields(kind) if field.type.startswith("[]"))
