"""From a frame to a handler and back: header, version check, decode, handle, encode.

Owns the routes, made from the table of APIs. A request that cannot be read closes its
connection with one line in the log, as in Kafka; nothing else is touched. An ApiVersions request of a version we
do not serve is the one exception: it is answered in the layout of version 0 (KIP-511).

A handler gives its response, or the context whose answer it keeps for later, or None where there is no answer, or work
that is done in slices and comes to one of these (slices.py). Large messages are read and written by a thread (large.py).

Requests can be watched (request_watch.py): then the routes are made anew, with handlers that tell of their requests. So
what is done for a request that nobody watches is the same, and asks nothing.
"""

from __future__ import annotations

from functools import partial
from types import GeneratorType

from pykafkad import handlers, messages
from pykafkad.context import Context
from pykafkad.handlers import Unanswerable
from pykafkad.hot.wire import RequestReader, Route, WireError, WorkInSlices
from pykafkad.logs import TRACE, follow, logger, unfollow, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.handlers.broker import Broker
    from pykafkad.large import LargeMessages
    from pykafkad.pure.authorization import Authorizer
    from pykafkad.request_watch import RequestWatch, Sink
    from pykafkad.workers import Done, Work

    class Serving(Broker, Protocol):
        """What the dispatcher needs of the broker, besides what its handlers do."""

        authorizer: Authorizer | None

        def submit_large(self, work: Work, done: Done) -> None: ...


API_VERSIONS = 18

log = logger("dispatcher")
requests_log = logger("requests")


class Dispatcher:
    _large_messages: LargeMessages | None = None
    _watch: RequestWatch | None = None  # None: nobody watches

    def __init__(self, broker: Serving) -> None:
        self._broker = broker
        self._make_routes()

    def _make_routes(self) -> None:
        self._reader = RequestReader(self._route_of)
        self._read = self._reader.read

    def on_frame(self, connection: Any, buffer: Any, start: int, end: int) -> Any:
        """The loop's call for each frame: the answer, its ticket, or None; whatever is wrong ends here."""
        try:
            context, request = self._read(connection, buffer, start, end)
            if request is None:
                if context.is_large:
                    return self._large.read(context, buffer, start, end)
                return self._unserved(context)
            response = context.route.handle(self._broker, request, context)
            if response is context:
                return context.ticket
            if response is None:
                return None
            context.response = response
        except WorkInSlices:
            context.defer()
            self._work(context, response, partial(self.give, context))
            return context.ticket
        except Exception as error:
            self._end_with(connection, error)
            return None
        return context

    # -- watching

    def watch(self, sink: Sink, *, bodies: bool = False) -> None:
        """`sink` is called with each request from now on, when it is answered; `bodies`: with what is in its messages."""
        from pykafkad.request_watch import RequestWatch

        before, self._watch = self._watch, self._watch or RequestWatch(self._broker)
        self._watch.sinks[sink] = bodies
        if before is None:
            self._make_routes()

    def unwatch(self, sink: Sink) -> None:
        if (
            self._watch is not None
            and self._watch.sinks.pop(sink, None) is not None
            and not self._watch.sinks
        ):
            self._watch = None
            self._make_routes()

    def follow_levels(self) -> None:
        """Requests are logged at the level debug, and at trace with what is in them."""
        follow(self._levels_changed)

    def unfollow_levels(self) -> None:
        unfollow(self._levels_changed)

    def _levels_changed(self) -> None:
        if requests_log.debugs:
            from pykafkad.request_watch import log_request

            self.watch(log_request, bodies=requests_log.level <= TRACE)
        elif self._watch is not None:
            from pykafkad.request_watch import log_request

            self.unwatch(log_request)

    # -- handling

    def _handle(self, context: Context, request: Any, done: Callable[[Any], None]) -> None:
        """A large request, once it is read; `done` is told the handler's result, or what ended it."""
        try:
            response = context.route.handle(self._broker, request, context)
        except Exception as error:
            done(error)
            return
        if type(response) is GeneratorType:
            self._work(context, response, done)
        else:
            done(response)

    def _work(self, context: Context, work: Any, done: Callable[[Any], None]) -> None:
        connection = context.connection
        self._broker.slices.run(work, done, lambda: not connection.closed)

    @property
    def _large(self) -> LargeMessages:
        """Made for the first large message."""
        if self._large_messages is None:
            from pykafkad.large import LargeMessages

            self._large_messages = LargeMessages(
                self._broker.submit_large,
                self._broker.slices.run,
                self._reader.read_large,
                self._handle,
                self.give,
            )
        return self._large_messages

    def _write_large(self, context: Context) -> Any:
        return self._large.write(context)

    def _route_of(self, api_key: int) -> Route | None:
        """Asked when the first request for an API comes: its handler, with what reading its requests takes."""
        api = self._broker.apis.get(api_key)
        if api is None:
            return None
        module = api.load()
        handle, short_form = module.handle, getattr(module, "short_form", None)
        if self._broker.authorizer is not None:
            from pykafkad.handlers.authorized import guarded

            handle, short_form = guarded(api, module, self._broker.authorizer), None
        if self._watch is not None:
            handle, short_form = self._watch.watched(handle), None
        # The answer to ApiVersions always has the old header: the client does not know yet what we speak.
        return Route(
            getattr(messages, f"{api.name}Request"),
            api.versions,
            handle,
            old_answer_header=api_key == API_VERSIONS,
            short_form=short_form,
            write_large=self._write_large,
        )

    def give(self, context: Context, response: Any) -> None:
        """Answers a request whose answer has its place already: by a response, by work that comes to one, or by what
        ended it."""
        if type(response) is GeneratorType:
            self._work(context, response, partial(self.give, context))
            return
        if isinstance(response, BaseException):
            self._end_with(context.connection, response)
            response = None
        if response is None:
            context.ticket.answer(None)
        elif response is not context:
            context.answer(response)

    def _unserved(self, context: Context) -> Any:
        if context.api_key == API_VERSIONS:
            return handlers.api_versions_refusal(context.correlation_id)
        from pykafkad import unserved

        unserved.say_api(self._broker.quiet, context)
        raise Unanswerable

    def _end_with(self, connection: Any, error: BaseException) -> None:
        """What was asked before is still answered; then the connection ends."""
        if isinstance(error, (WireError, Unanswerable)):
            connection.finish(str(error) or None)
            return
        kind = f"requests that failed ({type(error).__name__}{where(error)})"
        if self._broker.quiet.allows(log, kind, connection.peer[0]):
            log.exception("a request failed; its connection is closed", error)
        connection.finish()
