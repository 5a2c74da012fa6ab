"""Connections to the other brokers of a cluster: one for each broker and purpose, opened by the first request.

Owns which connection serves whom, when it is opened again after it was lost (a fixed pause, as in Kafka's clients between
brokers), and what a broker has said that it serves where a purpose asks for that first. The endpoint is looked up at each
opening, since a broker that comes back may be at another. What the connection itself does is net/peer.py's.

Invariants: each ask is followed by exactly one call of its `done`, later, with the answer or an OSError, and the answers
of a link come in the order of the asks. Nothing is sent twice: whoever is told of an error decides whether to ask again.
A link can be asked again after close().
"""

from __future__ import annotations

import errno
from collections import deque
from typing import NamedTuple

from pykafkad import __version__, errors
from pykafkad.messages import ApiVersionsRequest
from pykafkad.net.peer import REQUEST_TIMEOUT_MS, UNDER_WAY_MAX, Peer, TooManyUnderWay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from pykafkad.hot.reactor import Reactor, Timer
    from pykafkad.hot.wire import Message
    from pykafkad.messages import ApiVersionsResponse
    from pykafkad.net.hosts import LookUp

    Address = tuple[str, int]
    Done = Callable[[Any], object]  # given the answer, or an OSError
    Ranges = dict[int, tuple[int, int]]  # API key -> the oldest and newest version that a broker serves

    class Connections(Protocol):
        """What those who ask other brokers are given: Peers, or a test's fake of it."""

        def to(self, broker_id: int, purpose: Purpose) -> Asking: ...

    class Asking(Protocol):
        def ask(
            self, request: Message, version: int, done: Done, *, timeout_ms: int | None = None
        ) -> None: ...
        def ask_built(
            self,
            api_key: int,
            newest: int,
            build: Callable[[int], Message],
            done: Done,
            *,
            oldest: int = 0,
            timeout_ms: int | None = None,
        ) -> None: ...
        def close(self) -> None: ...


API_VERSIONS, API_VERSIONS_NEWEST = 18, 4
RECONNECT_BACKOFF_MS = 50


class Purpose(NamedTuple):
    """What a connection is for. Kafka's brokers say it by the client id, which may hold a number of the asker."""

    client_id: str
    # ApiVersions first, and the newest version that both know; else the sender's own is sent.
    asks_versions: bool = False
    backoff_ms: int = RECONNECT_BACKOFF_MS
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    under_way_max: int = UNDER_WAY_MAX


class Ask(NamedTuple):
    """A request that waits for its connection."""

    api_key: int
    newest: int
    oldest: int
    build: Callable[[int], Message]  # given the version that is sent
    done: Done
    timeout_ms: int | None


class UnsupportedByPeer(ConnectionError):
    """The other broker serves no version of the request that is known here."""


class Peers:
    """All links of a broker."""

    def __init__(
        self, reactor: Reactor, look_up: LookUp, endpoint_of: Callable[[int], Address | None]
    ) -> None:
        """`endpoint_of`: where a broker listens for other brokers; None while it is not known."""
        self.reactor, self.look_up, self.endpoint_of = reactor, look_up, endpoint_of
        self._links: dict[tuple[int, Purpose], Link] = {}
        self.is_cut = False  # nobody is reached

    def to(self, broker_id: int, purpose: Purpose) -> Link:
        key = broker_id, purpose
        link = self._links.get(key)
        if link is None:
            link = self._links[key] = Link(self, broker_id, purpose)
        return link

    def drop(self, broker_id: int) -> None:
        """That broker is gone: what waits for its answer ends with an error."""
        for key in [key for key in self._links if key[0] == broker_id]:
            self._links.pop(key).close()

    def cut(self) -> None:
        """From now on nobody is reached, until mend(): what waits ends with an error, and so does what is asked."""
        self.is_cut = True
        for link in list(self._links.values()):
            link.close()

    def mend(self) -> None:
        self.is_cut = False

    def close(self) -> None:
        for link in self._links.values():
            link.close()
        self._links.clear()


class Link:
    """The connection to one broker for one purpose, or the place where it will be."""

    def __init__(self, owner: Peers, broker_id: int, purpose: Purpose) -> None:
        self.broker_id, self.purpose = broker_id, purpose
        self._owner, self._reactor = owner, owner.reactor
        self._waiting: deque[Ask] = deque()
        self._peer: Peer | None = None
        self._ranges: Ranges | None = None
        self._pause: Timer | None = None  # set: the connection was lost, and is not opened before it is over

    @property
    def is_full(self) -> bool:
        under_way = 0 if self._peer is None or self._wants_versions else self._peer.under_way
        return len(self._waiting) + under_way >= self.purpose.under_way_max

    # -- what others ask for

    def ask(self, request: Message, version: int, done: Done, *, timeout_ms: int | None = None) -> None:
        """Sends the request in that version; where the purpose asks for versions, in an older one if need be."""
        self._ask(Ask(request.api_key, version, 0, lambda _: request, done, timeout_ms))

    def ask_built(
        self,
        api_key: int,
        newest: int,
        build: Callable[[int], Message],
        done: Done,
        *,
        oldest: int = 0,
        timeout_ms: int | None = None,
    ) -> None:
        """The same for a request whose fields depend on its version: `build` is called when that is known. A broker that
        serves none from `oldest` on is not asked: UnsupportedByPeer."""
        self._ask(Ask(api_key, newest, oldest, build, done, timeout_ms))

    def close(self) -> None:
        """What is under way, or waits, ends with an error."""
        peer, self._peer = self._peer, None
        pause, self._pause = self._pause, None
        if peer is not None:
            peer.close()
        if pause is not None:
            pause.cancel()
        self._refuse(
            ConnectionError(errno.ECONNABORTED, f"the connection to broker {self.broker_id} was closed")
        )

    # -- asking

    def _ask(self, each: Ask) -> None:
        if self.is_full:
            raise TooManyUnderWay(f"too many requests to broker {self.broker_id} are under way")
        if self._peer is not None and not self._wants_versions:
            self._send(self._peer, each)
            return
        self._waiting.append(each)
        if self._peer is None and self._pause is None:
            self._open()

    @property
    def _wants_versions(self) -> bool:
        return self.purpose.asks_versions and self._ranges is None

    def _send(self, peer: Peer, each: Ask) -> None:
        version = each.newest
        if self._ranges is not None:
            oldest, newest = self._ranges.get(each.api_key, (0, -1))
            version = min(version, newest)
            if version < max(oldest, each.oldest):
                self._reactor.call_soon(
                    each.done, UnsupportedByPeer(errno.EPROTONOSUPPORT, self._unsupported(each))
                )
                return
        peer.ask(each.build(version), version, each.done, timeout_ms=each.timeout_ms)

    def _unsupported(self, each: Ask) -> str:
        api = f"the API with key {each.api_key}"
        return f"broker {self.broker_id} serves no version from {each.oldest} to {each.newest} of {api}"

    def _send_waiting(self, peer: Peer) -> None:
        while self._waiting and self._peer is peer:
            self._send(peer, self._waiting.popleft())

    # -- the connection

    def _open(self) -> None:
        self._pause = None
        if not self._waiting:
            return
        if self._owner.is_cut:
            self._lost(ConnectionError(errno.ENETUNREACH, "this broker is cut off from the others"))
            return
        address = self._owner.endpoint_of(self.broker_id)
        if address is None:
            self._lost(
                ConnectionError(errno.ENOTCONN, f"it is not known where broker {self.broker_id} listens")
            )
            return
        purpose = self.purpose
        peer = self._peer = Peer(
            self._reactor,
            address,
            purpose.client_id,
            self._owner.look_up,
            request_timeout_ms=purpose.request_timeout_ms,
            under_way_max=purpose.under_way_max + 1,  # the question for versions comes on top
            on_lost=lambda error: self._lost(error, peer),
        )
        peer.connect()
        if purpose.asks_versions:
            self._ask_versions(peer, API_VERSIONS_NEWEST)
        else:
            self._send_waiting(peer)

    def _ask_versions(self, peer: Peer, version: int) -> None:
        request = ApiVersionsRequest(client_software_name="pykafkad", client_software_version=__version__)
        peer.ask(request, version, lambda answer: self._on_versions(peer, version, answer))

    def _on_versions(self, peer: Peer, version: int, answer: ApiVersionsResponse | OSError) -> None:
        if peer is not self._peer or isinstance(answer, OSError):
            return  # whoever lost it says so
        if answer.error_code == errors.UNSUPPORTED_VERSION and version > 0:
            self._ask_versions(peer, 0)
        elif answer.error_code:
            self._end(peer, f"it does not say what it serves: error {answer.error_code}")
        else:
            self._ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
            self._send_waiting(peer)

    def _end(self, peer: Peer, why: str) -> None:
        peer.close()
        self._lost(ConnectionError(errno.ECONNABORTED, f"broker {self.broker_id}: {why}"), peer)

    def _lost(self, error: OSError, peer: Peer | None = None) -> None:
        """Who waits is told, and the next attempt comes after a pause."""
        if peer is not self._peer:
            return
        self._peer = None
        self._refuse(error)
        self._pause = self._reactor.call_later(self.purpose.backoff_ms, self._open)

    def _refuse(self, error: OSError) -> None:
        self._ranges = None
        waiting, self._waiting = self._waiting, deque()
        for each in waiting:
            self._reactor.call_soon(each.done, error)
