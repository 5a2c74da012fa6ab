"""From a frame to a handler and back: header, version check, decode, handle, encode.

Owns the routes, made from the table of APIs. A request that cannot be read closes its
connection with one line in the log, as in Kafka; nothing else is touched. An ApiVersions request of a version we
do not serve is the one exception: it is answered in the layout of version 0 (KIP-511).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import handlers, messages
from pykafkad.handlers import Unanswerable
from pykafkad.hot.wire import Exchange, RequestReader, Route, WireError
from pykafkad.logs import logger

if TYPE_CHECKING:
    from pykafkad.server import Broker

API_VERSIONS = 18

Context = Exchange  # what a handler is given of its request

log = logger("dispatcher")


class Dispatcher:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._read = RequestReader(route_of).read

    def on_frame(self, connection: Any, buffer: Any, start: int, end: int) -> Any:
        """The loop's call for each frame: the answer, its ticket, or None; whatever is wrong ends here."""
        try:
            context, request = self._read(connection, buffer, start, end)
            if request is None:
                return unserved(context)
            response = context.route.handle(self._broker, request, context)
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


def route_of(api_key: int) -> Route | None:
    """Asked when the first request for an API comes: its handler, with what reading its requests takes."""
    api = handlers.APIS.get(api_key)
    if api is None:
        return None
    module = api.load()
    # The answer to ApiVersions always has the old header: the client does not know yet what we speak.
    return Route(
        getattr(messages, f"{api.name}Request"),
        api.versions,
        module.handle,
        old_answer_header=api_key == API_VERSIONS,
        short_form=getattr(module, "short_form", None),
    )


def unserved(context: Context) -> Any:
    route = context.route
    if route is None:
        raise Unanswerable(f"a request for API key {context.api_key}, which is not served")
    if context.api_key == API_VERSIONS:
        return handlers.api_versions_refusal(context.correlation_id)
    raise Unanswerable(
        f"{route.name} version {context.version}; versions {route.min_version} to {route.max_version} are served"
    )
