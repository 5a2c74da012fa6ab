"""From a frame to a handler and back: header, version check, decode, handle, encode.

Owns the table of routes, made from what the handlers declare. A request that cannot be read closes its
connection with one line in the log, as in Kafka; nothing else is touched. An ApiVersions request of a version we
do not serve is the one exception: it is answered in the layout of version 0 (KIP-511).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pykafkad import handlers, messages
from pykafkad.handlers import Unanswerable
from pykafkad.hot.wire import Exchange, HeaderReader, WireError
from pykafkad.logs import logger

if TYPE_CHECKING:
    from pykafkad.server import Broker

API_VERSIONS = 18

Context = Exchange  # what a handler is given of its request

log = logger("dispatcher")


class Route:
    """A handler with what the dispatcher needs of it, looked up once."""

    __slots__ = (
        "decode",
        "flexible_header_since",
        "flexible_since",
        "handle",
        "max_version",
        "min_version",
        "name",
    )

    def __init__(self, module: Any) -> None:
        request = getattr(messages, module.REQUEST)
        self.name: str = module.REQUEST.removesuffix("Request")
        self.handle: Callable[[Broker, Any, Context], Any] = module.handle
        self.decode: Callable[..., Any] = request.decode
        self.min_version = max(module.VERSIONS[0], request.min_version)
        self.max_version: int = module.VERSIONS[1]
        self.flexible_since: int = request.flexible_since
        # The answer to ApiVersions always has the old header: the client does not know yet what we speak.
        self.flexible_header_since: int = 32767 if module.API_KEY == API_VERSIONS else self.flexible_since


class Dispatcher:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._routes = {key: Route(module) for key, module in handlers.served().items()}
        self._read_header = HeaderReader(
            {key: each.flexible_since for key, each in self._routes.items()}
        ).read

    def on_frame(self, connection: Any, buffer: Any, start: int, end: int) -> Any:
        """The loop's call for each frame: the answer, its ticket, or None; whatever is wrong ends here."""
        try:
            api_key, version, correlation_id, client_id, body = self._read_header(buffer, start, end)
            route = self._routes.get(api_key)
            if route is None or not route.min_version <= version <= route.max_version:
                return self._unserved(route, api_key, version, correlation_id)
            request = route.decode(buffer, version, body, end)
            context = Context(
                connection, version, correlation_id, client_id, version >= route.flexible_header_since
            )
            response = route.handle(self._broker, request, context)
        except (WireError, Unanswerable) as problem:
            connection.finish(str(problem))  # what was asked before it is still answered
        except Exception as error:
            log.exception("a request failed; its connection is closed", error)
            connection.finish()
        else:
            if response is context:
                return context.ticket
            if response is not None:
                context.response = response
                return context
        return None

    def _unserved(self, route: Route | None, api_key: int, version: int, correlation_id: int) -> Any:
        if route is None:
            raise Unanswerable(f"a request for API key {api_key}, which is not served")
        if api_key == API_VERSIONS:
            return handlers.api_versions_refusal(correlation_id)
        raise Unanswerable(
            f"{route.name} version {version}; versions {route.min_version} to {route.max_version} are served"
        )
