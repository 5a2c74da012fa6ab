"""From a frame to a handler and back: header, version check, decode, handle, encode.

Owns the table of routes, made from what the handlers declare. A request that cannot be read closes its
connection with one line in the log, as in Kafka; nothing else is touched. An ApiVersions request of a version we
do not serve is the one exception: it is answered in the layout of version 0 (KIP-511).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pykafkad import handlers, messages
from pykafkad.hot.wire import HeaderReader, WireError, frame
from pykafkad.logs import logger

if TYPE_CHECKING:
    from pykafkad.server import Broker

API_VERSIONS = 18

log = logger("dispatcher")


class BadRequest(Exception):
    """What the client sent cannot be answered; its connection is closed and the text is logged."""


class Context:
    """One request under way, and the promise of its answer.

    The loop asks for `encode()` after the pass's appends are on disk, so a handler may still change its response
    until then.
    """

    __slots__ = ("client_id", "connection", "correlation_id", "response", "route", "ticket", "version")

    def __init__(
        self, route: Route, connection: Any, version: int, correlation_id: int, client_id: str | None
    ) -> None:
        self.route = route
        self.connection = connection
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id

    def defer(self) -> Context:
        """Keep this request's place in the order of answers; `answer` is called later, once."""
        self.ticket = self.connection.defer()
        return self

    def answer(self, response: Any) -> None:
        self.response = response
        self.ticket.answer(self.encode())

    def encode(self) -> Any:
        route = self.route
        return frame(
            self.response, self.version, self.correlation_id, self.version >= route.flexible_header_since
        )


class Route:
    """A handler with what the dispatcher needs of it, looked up once."""

    __slots__ = ("decode", "flexible_header_since", "handle", "max_version", "min_version", "name")

    def __init__(self, module: Any) -> None:
        request = getattr(messages, module.REQUEST)
        self.name: str = module.REQUEST.removesuffix("Request")
        self.handle: Callable[[Broker, Any, Context], Any] = module.handle
        self.decode: Callable[..., Any] = request.decode
        self.min_version = max(module.VERSIONS[0], request.min_version)
        self.max_version: int = module.VERSIONS[1]
        # The answer to ApiVersions always has the old header: the client does not know yet what we speak.
        self.flexible_header_since: int = 32767 if module.API_KEY == API_VERSIONS else request.flexible_since


class Dispatcher:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._routes = {key: Route(module) for key, module in handlers.served().items()}
        flexible_since = {key: route_flexible_since(key) for key in self._routes}
        self._read_header = HeaderReader(flexible_since).read

    def on_frame(self, connection: Any, buffer: Any, start: int, end: int) -> Any:
        try:
            api_key, version, correlation_id, client_id, body = self._read_header(buffer, start, end)
        except WireError as error:
            raise BadRequest(f"unreadable request header: {error}") from None
        route = self._routes.get(api_key)
        if route is None:
            raise BadRequest(f"request for API key {api_key}, which is not served")
        if not route.min_version <= version <= route.max_version:
            if api_key == API_VERSIONS:
                return handlers.api_versions_refusal(correlation_id)
            raise BadRequest(
                f"{route.name} version {version}; versions {route.min_version} to {route.max_version} are served"
            )
        try:
            request = route.decode(buffer, version, body, end)
        except WireError as error:
            raise BadRequest(f"malformed {route.name} version {version} request: {error}") from None
        context = Context(route, connection, version, correlation_id, client_id)
        response = route.handle(self._broker, request, context)
        if response is context:
            return context.ticket
        if response is None:
            return None
        context.response = response
        return context


def route_flexible_since(api_key: int) -> int:
    module = handlers.served()[api_key]
    since: int = getattr(messages, module.REQUEST).flexible_since
    return since
