"""A small blocking client of a cluster, for the command line tools.

Owns what is known of the cluster (bootstrap addresses, brokers, the controller) and one connection a broker.
`attempt` is the one place of retries: what Kafka calls retriable, and what happens to connections, is tried
again with growing pauses until the time for the whole call is up (default.api.timeout.ms, 60 s). An address
that never answered is given up much earlier (net/reaching.py): Unreachable says which, and why. The tools and
their consumer and producer stand on it; nothing else of them touches sockets.
"""

from __future__ import annotations

import sys
import time
from typing import TypeVar

from pykafkad import errors
from pykafkad.messages import DescribeClusterRequest, FindCoordinatorRequest, MetadataRequest
from pykafkad.net import reaching
from pykafkad.net.connection import CONNECT_TIMEOUT_S, Connection, UnsupportedVersion
from pykafkad.net.reaching import REACH_S, Address, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from pykafkad.hot.wire import Message

T = TypeVar("T")

GROUP, TRANSACTION = 0, 1  # kinds of coordinators
BACKOFF_MAX_S = 1.0
SET_UP_LEAST_S = 0.2  # what the last try to reach an address gets
SHARE_LEAST_S = 1.0  # what each of many bootstrap addresses gets at first

RETRIABLE = frozenset(
    {
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.LEADER_NOT_AVAILABLE,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.REQUEST_TIMED_OUT,
        errors.REPLICA_NOT_AVAILABLE,
        errors.NETWORK_EXCEPTION,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.NOT_ENOUGH_REPLICAS,
        errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        errors.NOT_CONTROLLER,
        errors.KAFKA_STORAGE_ERROR,
        errors.FENCED_LEADER_EPOCH,
        errors.UNKNOWN_LEADER_EPOCH,
        errors.OFFSET_NOT_AVAILABLE,
        errors.UNSTABLE_OFFSET_COMMIT,
        errors.THROTTLING_QUOTA_EXCEEDED,
        errors.UNKNOWN_TOPIC_ID,
        errors.INCONSISTENT_TOPIC_ID,
        errors.CONCURRENT_TRANSACTIONS,
        errors.CORRUPT_MESSAGE,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
    }
)


class ClientError(Exception):
    """Nothing to be done about: a wrong address or config. str() is what to tell."""


class CallTimeout(errors.KafkaError):
    """The time for a call is up; `call` is the admin client's name of it."""

    def __init__(self, message: str) -> None:
        super().__init__(errors.REQUEST_TIMED_OUT, message)


def addresses(text: str) -> list[Address]:
    """`host:port,[::1]:port`, each with or without a `PROTOCOL://`, which Kafka's clients skip as well; ClientError
    with Kafka's words for anything else."""
    found = []
    for entry in (part.strip() for part in text.split(",")):
        if not entry:
            continue
        host, _, port = entry.rpartition("://")[2].rpartition(":")
        if not host or "/" in host or not port.isdecimal():
            raise ClientError(f"Invalid url in bootstrap.servers: {entry} (HOST:PORT is expected)")
        if int(port) > 65535:
            raise ClientError(f"Invalid port in bootstrap.servers: {entry}")
        found.append((host.removeprefix("[").removesuffix("]"), int(port)))
    if not found:
        raise ClientError("No resolvable bootstrap urls given in bootstrap.servers")
    return found


def resolves(host: str) -> bool:
    """Whether the name or address leads to anything."""
    import socket

    try:
        return bool(socket.getaddrinfo(host, None))
    except (OSError, UnicodeError):
        return False


class Cluster:
    """The brokers behind `bootstrap`; close() ends it."""

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str = "adminclient-1",
        request_timeout_ms: int = 30_000,
        api_timeout_ms: int = 60_000,
        retry_backoff_ms: int = 100,
        setup_timeout_ms: int = int(REACH_S * 1000),
        send_bytes: int = -1,
        receive_bytes: int = -1,
    ) -> None:
        self._bootstrap = addresses(bootstrap)
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self.api_timeout_ms = api_timeout_ms
        self.retry_backoff_ms = retry_backoff_ms
        self._reach_s = min(setup_timeout_ms, api_timeout_ms) / 1000
        self._tried: dict[
            Address, float
        ] = {}  # addresses that have not answered yet, since when they are tried
        self._reached: dict[Address, None] = {}  # those that have answered, the first of them first
        self._buffers = (send_bytes, receive_bytes)
        self.brokers: dict[int, Address] = {}
        self.controller_id = -1
        self._connections: dict[Address, Connection] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self._complained: set[Address] = set()

    # -- retries

    def attempt(
        self,
        name: str,
        call: Callable[[], T],
        *,
        timeout_ms: int | None = None,
        retriable: Callable[[int], bool] = RETRIABLE.__contains__,
        after_failure: Callable[[], object] | None = None,
    ) -> T:
        """call() until it succeeds; its last fault when the time is up. `name`: what Kafka's client calls it."""
        deadline = time.monotonic() + (self.api_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        pause = self.retry_backoff_ms / 1000
        while True:
            try:
                return call()
            except errors.KafkaError as problem:
                if isinstance(problem, (UnsupportedVersion, CallTimeout)) or not retriable(problem.code):
                    raise
                if time.monotonic() + pause >= deadline:
                    raise
            except OSError as problem:
                if time.monotonic() + pause >= deadline:
                    raise CallTimeout(f"Timed out waiting for a node assignment. Call: {name}") from problem
            time.sleep(pause)
            pause = min(pause * 2, BACKOFF_MAX_S)
            self.forget_coordinators()
            if after_failure is not None:
                after_failure()

    def request_deadline(self) -> float:
        return time.monotonic() + self.request_timeout_ms / 1000

    # -- connections

    def connect(self, address: Address) -> Connection:
        """A connection to that address that knows the broker's versions; OSError when there is none."""
        connection = self._connections.get(address)
        if connection is None:
            connection = self.fresh(address)
            self._connections[address] = connection
        return connection

    def fresh(self, address: Address) -> Connection:
        """A connection that is the caller's alone. Unreachable: a broker's own address, which never answered."""
        try:
            connection = self._set_up(address)
        except OSError as problem:
            if address in self._reached:
                self._complain(address)
            elif address not in self._bootstrap and self._is_time_up(address):
                raise self._misadvertised(address, problem) from problem
            raise
        self._reached[address] = None
        return connection

    def _set_up(self, address: Address) -> Connection:
        limit_s = None if address in self._reached else self._time_to_reach(address)
        send_bytes, receive_bytes = self._buffers
        deadline = self.request_deadline() if limit_s is None else time.monotonic() + limit_s
        connection = Connection(
            *address,
            self.client_id,
            send_bytes=send_bytes,
            receive_bytes=receive_bytes,
            timeout_s=CONNECT_TIMEOUT_S if limit_s is None else limit_s,
        )
        try:
            connection.learn_versions(deadline)
        except BaseException:
            connection.close()
            raise
        return connection

    # -- addresses that have not answered yet

    def _time_to_reach(self, address: Address) -> float:
        """How long this try may take: what is left, and of the bootstrap addresses each has its share."""
        now = time.monotonic()
        left = self._tried.setdefault(address, now) + self._reach_s - now
        if address in self._bootstrap:
            left = min(left, max(SHARE_LEAST_S, self._reach_s / len(self._bootstrap)))
        return max(SET_UP_LEAST_S, left)

    def _is_time_up(self, address: Address) -> bool:
        """Whether the next try, after a pause, would come too late."""
        return time.monotonic() + BACKOFF_MAX_S / 2 >= self._tried[address] + self._reach_s

    def _is_hopeless(self, address: Address, problem: OSError) -> bool:
        return isinstance(problem, reaching.NotKafka) or self._is_time_up(address)

    def _misadvertised(self, address: Address, problem: OSError) -> Unreachable:
        node_id = next((id for id, known in self.brokers.items() if known == address), -1)
        return reaching.misadvertised(next(iter(self._reached)), node_id, address, problem)

    def _complain(self, address: Address) -> None:
        if address not in self._complained:
            self._complained.add(address)
            sys.stderr.write(
                f"WARN Connection to {address[0]}:{address[1]} could not be established. "
                "Broker may not be available.\n"
            )

    def drop(self, connection: Connection) -> None:
        connection.close()
        for address, other in list(self._connections.items()):
            if other is connection:
                del self._connections[address]

    def call(
        self, connection: Connection, request: Message, *, at_most: int = 1 << 15, wait_ms: int = 0
    ) -> Any:
        """One request on one connection, which is dropped when it fails."""
        try:
            return connection.call(request, self.request_deadline() + wait_ms / 1000, at_most=at_most)
        except (OSError, ValueError):
            self.drop(connection)
            raise

    def any_broker(self) -> Connection:
        """Some broker that answers: a known one, or one of the bootstrap addresses."""
        for connection in self._connections.values():
            return connection
        problems: dict[Address, OSError] = {}
        for address in dict.fromkeys([*self.brokers.values(), *self._bootstrap]):
            try:
                return self.connect(address)
            except OSError as problem:
                problems[address] = problem
        if not self._reached and all(self._is_hopeless(*pair) for pair in problems.items()):
            raise reaching.nowhere(problems)
        raise next(reversed(problems.values()))

    def broker(self, node_id: int) -> Connection:
        """The broker of that id; its address may have to be learned first."""
        if node_id not in self.brokers:
            self.metadata([])
        if node_id not in self.brokers:
            raise errors.KafkaError(errors.BROKER_NOT_AVAILABLE, f"Node {node_id} is not known")
        return self.connect(self.brokers[node_id])

    def controller(self) -> Connection:
        if self.controller_id < 0 or self.controller_id not in self.brokers:
            self.metadata([])
        return self.broker(self.controller_id) if self.controller_id >= 0 else self.any_broker()

    # -- requests that any tool needs

    def ask_any(self, name: str, request: Message, *, at_most: int = 1 << 15) -> Any:
        """The answer of any broker; errors in it are the caller's to look at."""
        return self.attempt(name, lambda: self.call(self.any_broker(), request, at_most=at_most))

    def metadata(
        self, topics: Sequence[str] | None, *, topic_ids: Sequence[bytes] = (), auto_create: bool = False
    ) -> Any:
        """What the cluster looks like; None: all topics. The brokers in it are remembered."""
        request = MetadataRequest(
            topics=None
            if topics is None
            else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
            + [MetadataRequest.MetadataRequestTopic(topic_id=id, name=None) for id in topic_ids],
            allow_auto_topic_creation=auto_create,
        )
        response = self.call(self.any_broker(), request)
        if not response.brokers:
            raise errors.KafkaError(errors.BROKER_NOT_AVAILABLE)
        self.brokers = {row.node_id: (row.host, row.port) for row in response.brokers}
        self.controller_id = response.controller_id
        return response

    def describe_cluster(self) -> Any:
        """Brokers, controller and cluster id, by the API the admin client uses for it."""
        response = self.ask_any("describeCluster", DescribeClusterRequest())
        check(response.error_code, response.error_message)
        self.brokers = {row.broker_id: (row.host, row.port) for row in response.brokers}
        self.controller_id = response.controller_id
        return response

    def coordinator_id(self, key: str, kind: int = GROUP) -> int:
        """The broker that coordinates this group or transactional id."""
        known = self._coordinators.get((kind, key))
        if known is not None:
            return known
        request = FindCoordinatorRequest(key=key, key_type=kind, coordinator_keys=[key])
        connection = self.any_broker()
        if connection.version_for(request) < 4:
            request.coordinator_keys = []
        else:
            request.key = ""
        response = self.call(connection, request)
        row = response.coordinators[0] if response.coordinators else response
        check(row.error_code, row.error_message)
        self.brokers[row.node_id] = (row.host, row.port)
        self._coordinators[kind, key] = row.node_id
        return int(row.node_id)

    def forget_coordinators(self) -> None:
        self._coordinators.clear()

    def coordinator(self, key: str, kind: int = GROUP) -> Connection:
        return self.broker(self.coordinator_id(key, kind))

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()


def check(code: int, message: str | None = None) -> None:
    """Raise what an answer's error code says."""
    if code:
        raise errors.KafkaError(code, message)


def api_timeouts(configs: Mapping[str, str]) -> dict[str, int]:
    """The timeouts among a client's configs, for Cluster()."""
    found = {}
    for key, name in (
        ("request.timeout.ms", "request_timeout_ms"),
        ("default.api.timeout.ms", "api_timeout_ms"),
        ("retry.backoff.ms", "retry_backoff_ms"),
        ("socket.connection.setup.timeout.ms", "setup_timeout_ms"),
        ("send.buffer.bytes", "send_bytes"),
        ("receive.buffer.bytes", "receive_bytes"),
    ):
        if key in configs:
            found[name] = whole_number(key, configs[key])
    return found


def whole_number(key: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ClientError(f"Invalid value {text} for configuration {key}: Not a number of type INT") from None
