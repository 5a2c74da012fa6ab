"""The requests of a broker as they are answered: who asked what, what came of it, and how long that took.

A broker whose requests nobody watches does not import this. Where somebody does, the dispatcher's routes are others:
their handlers are wrapped by `watched`, which notes what a request is about and has the exchange say when its answer is
encoded, however long that was deferred. Invariants: what is noted keeps nothing of the request; a mistake here costs
lines and no answer.
"""

from __future__ import annotations

from itertools import chain, islice

from pykafkad import errors
from pykafkad.logs import DEBUG, TRACE, logger
from pykafkad.message_views import LOOKED_AT, cut, error_codes, names, view
from pykafkad.pure.fetch_session import NO_SESSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.context import Context

    Sink = Callable[["Watched"], object]
    Handle = Callable[[Any, Any, Context], Any]

API_VERSIONS, CONSUMER_GROUP_HEARTBEAT = 18, 68
CONSUMER = "consumer"
GROUPS_KEPT = 1_000  # whose states were said
NO_ANSWER = "no answer"
TEXTS_SHOWN = 8  # topics and groups in a line

log = logger("requests")
net_log = logger("net")
groups_log = logger("groups")


class Watched:
    """A request: what it is about, and once it is answered what came of it."""

    __slots__ = ("_watch", "api", "body", "client_id", "context_view", "errors", "groups", "topics", "us")

    def __init__(self, watch: RequestWatch, broker: Any, request: Any, context: Context) -> None:
        self._watch = watch
        self.us = broker.clock.monotonic_us()  # when it began, until it has ended
        self.api = f"{context.route.name} v{context.version}"
        self.client_id = cut(context.client_id)
        topics, groups = names(request)
        self.topics = topic_names(broker, topics or followed_topics(broker, request))
        self.groups = [cut(each) for each in groups]
        self.body: dict[str, Any] = {"request": view(request, context.version)} if watch.wants_bodies else {}
        self.errors: list[str] = []
        self.context_view = connection_view(broker, context.connection)

    def answered(self, context: Context) -> None:
        try:
            response = context.response
            if self._watch.wants_bodies:
                self.body["response"] = view(response, context.version)
            self._tell(context, [name_of(code) for code in error_codes(response)])
        except Exception as error:
            log.exception("an answer could not be shown", error)

    def ended(self, context: Context, said: str) -> None:
        """Without an answer."""
        context.watcher = None
        try:
            self._tell(context, [said])
        except Exception as error:
            log.exception("a request could not be shown", error)

    def _tell(self, context: Context, errors: list[str]) -> None:
        self.errors = errors
        self.us = self._watch.clock.monotonic_us() - self.us
        if context.api_key == API_VERSIONS:
            self._watch.introduced(context)
        elif context.api_key == CONSUMER_GROUP_HEARTBEAT and groups_log.debugs:
            self._watch.say_states(self.groups)
        for sink in list(self._watch.sinks):
            sink(self)

    def as_json(self, *, body: bool) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "api": self.api,
            "client_id": self.client_id,
            **self.context_view,
            "us": self.us,
        }
        shown |= {"errors": self.errors, "topics": self.topics, "groups": self.groups}
        return shown | self.body if body else shown

    def __str__(self) -> str:
        about = [
            f"{what}={listed(found)}"
            for what, found in (("topics", self.topics), ("groups", self.groups))
            if found
        ]
        said = ",".join(self.errors) or "OK"
        where = f'{self.context_view["address"]} "{self.client_id}"'
        return " ".join([where, self.api, *about, said, f"{self.us} us"])


class RequestWatch:
    """Whom requests are told to, and how much of them."""

    def __init__(self, broker: Any) -> None:
        self.clock = broker.clock
        self.sinks: dict[Sink, bool] = {}  # and whether it wants what is in the messages
        self._broker = broker
        self._states: dict[str, tuple[str, int]] = {}  # of groups, as they were said last

    @property
    def wants_bodies(self) -> bool:
        return any(self.sinks.values())

    def watched(self, handle: Handle) -> Handle:
        """A handler that does the same, and is watched."""

        def watched(broker: Any, request: Any, context: Context) -> Any:
            try:
                seen = Watched(self, broker, request, context)
                context.watcher = seen.answered
            except Exception as error:
                log.exception("a request could not be shown", error)
                return handle(broker, request, context)
            try:
                response = handle(broker, request, context)
            except Exception as error:
                seen.ended(context, f"{type(error).__name__}: {error}")
                raise
            if response is None:
                seen.ended(context, NO_ANSWER)
            return response

        return watched

    def introduced(self, context: Context) -> None:
        """A client has said what it is."""
        state = context.connection.state
        if net_log.debugs and state is not None and state.software is not None:
            software = " ".join(state.software)
            peer = address_of(context.connection)
            net_log.debug(f'the client of {peer} is {software}, client id "{cut(context.client_id)}"')

    def say_states(self, group_ids: list[str]) -> None:
        """Groups of the consumer protocol have states that follow from those of their members, so nobody says them when
        they change. Everything else about groups is logged where it happens, at info as in Kafka."""
        for group_id in group_ids:
            group = self._group(group_id)
            if group is None or group.TYPE != CONSUMER:
                continue
            state = group.state_name, group.epoch
            if self._states.get(group_id) != state:
                if len(self._states) >= GROUPS_KEPT:
                    self._states.clear()
                self._states[group_id] = state
                groups_log.debug(
                    f"[GroupId {group_id}] {state[0]} at epoch {state[1]}, {len(group.members)} members"
                )

    def _group(self, group_id: str) -> Any:
        for shard in self._broker.group_coordinator.shards:
            if shard.is_active and group_id in shard.machine.by_id:
                return shard.machine.by_id[group_id]
        return None


def log_request(seen: Watched) -> None:
    """The sink of the log: a line for each request, at the level trace with what is in it."""
    if log.level <= TRACE and seen.body:
        import json

        log.trace(f"{seen} {json.dumps(seen.body, ensure_ascii=False)}")
    elif log.level <= DEBUG:
        log.debug(str(seen))


def address_of(connection: Any) -> str:
    host, port = connection.peer
    return f"{host}:{port}"


def connection_view(broker: Any, connection: Any) -> dict[str, Any]:
    state = connection.state
    software = "" if state is None or state.software is None else " ".join(state.software)
    return {"address": address_of(connection), "software": software}


def topic_names(broker: Any, topics: list[str | bytes]) -> list[str]:
    by_id = broker.image.topics_by_id
    return [
        cut(each) if isinstance(each, str) else by_id[each].name
        for each in topics
        if isinstance(each, str) or each in by_id
    ]


def followed_topics(broker: Any, request: Any) -> list[str | bytes]:
    """Of a fetch that names none, since its session knows them (KIP-227)."""
    session = broker.fetch_sessions.get(getattr(request, "session_id", NO_SESSION))
    return (
        []
        if session is None
        else list(
            dict.fromkeys(key[0] for key in islice(chain(session.partitions, session.resting), LOOKED_AT))
        )
    )


def name_of(code: int) -> str:
    return "OK" if code == 0 else errors.NAMES.get(code, str(code))


def listed(texts: list[str]) -> str:
    shown = ",".join(texts[:TEXTS_SHOWN])
    return f"[{shown}]" if len(texts) <= TEXTS_SHOWN else f"[{shown},… {len(texts) - TEXTS_SHOWN} more]"
