"""`trace`: each request that a broker answers, to those who asked to see some of them.

Whoever does not read in time is not waited for: beyond QUEUED_BYTES lines are left out, and the next one that fits is
preceded by their number. So that a connection which only reads is not taken for an idle one, an empty line is sent now
and then.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

from pykafkad.control.lines import CommandError, check_known, encoded, flag, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.control.server import Client
    from pykafkad.request_watch import Watched
    from pykafkad.server import Broker

QUEUED_BYTES = 256 * 1024  # that a reader has not taken
ALIVE_MS = 60_000  # between two empty lines, at the most
FILTERS = ("api", "client", "topic", "group")
WELL = ("OK", "no answer")


def begin(broker: Broker, client: Client, arguments: dict[str, Any]) -> Iterator[None]:
    check_known(arguments, *FILTERS, "errors", "bodies")
    patterns = {name: pattern for name in FILTERS if (pattern := text(arguments, name)) is not None}
    trace = Trace(broker, client, patterns, flag(arguments, "errors"), flag(arguments, "bodies"))
    if client.leave is not None:
        raise CommandError("this connection has a trace already")
    trace.start()
    yield


class Trace:
    def __init__(
        self, broker: Broker, client: Client, patterns: dict[str, str], only_errors: bool, bodies: bool
    ) -> None:
        self._broker = broker
        self._client = client
        self._patterns = patterns
        self._only_errors = only_errors
        self._bodies = bodies
        self._left_out = 0
        self._timer: Any = None

    def start(self) -> None:
        self._broker.dispatcher.watch(self.seen, bodies=self._bodies)
        self._client.leave = self.stop
        self._live_on(first=True)

    def stop(self) -> None:
        self._broker.dispatcher.unwatch(self.seen)
        if self._timer is not None:
            self._timer.cancel()

    def _live_on(self, *, first: bool = False) -> None:
        if not first and not self._client.connection.queued_bytes:
            self._client.connection.send(b"\n")
        idle_ms: int = self._broker.config["connections.max.idle.ms"]
        pause_ms = ALIVE_MS if idle_ms < 0 else max(1, min(ALIVE_MS, idle_ms // 3))
        self._timer = self._broker.reactor.call_later(pause_ms, self._live_on)

    def seen(self, watched: Watched) -> None:
        if not self.wants(watched):
            return
        connection = self._client.connection
        if connection.queued_bytes >= QUEUED_BYTES:
            self._left_out += 1
            return
        if self._left_out:
            connection.send(encoded({"left_out": self._left_out}))
            self._left_out = 0
        now_ms = self._broker.clock.now_ms()
        connection.send(encoded({"request": {"time_ms": now_ms, **watched.as_json(body=self._bodies)}}))

    def wants(self, watched: Watched) -> bool:
        if self._only_errors and not set(watched.errors).difference(WELL):
            return False
        found = {
            "api": [watched.api.partition(" ")[0]],
            "client": [watched.client_id],
            "topic": watched.topics,
            "group": watched.groups,
        }
        return all(
            any(fnmatchcase(each.lower(), pattern.lower()) for each in found[name])
            for name, pattern in self._patterns.items()
        )
