"""What a test does with a running broker besides starting and stopping it: produce, read, wait, look.

Each method opens its own connections and closes them, so they can be called from several threads at once. Every
method that waits has a timeout in seconds.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, overload

from pykafkad.testing.errors import BrokerError, BrokerTimeout
from pykafkad.testing.record import Record, decoded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from pykafkad.hot.records import Record as Raw
    from pykafkad.net.client import Cluster
    from pykafkad.testing.groups import Group
    from pykafkad.testing.record import HeaderList

V = TypeVar("V")

CLIENT_ID = "pykafkad.testing"
TIMEOUT_S = 10.0
IDLE_S = 0.5


class Operations(ABC):
    """The methods, for a broker that says where it is."""

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """HOST:PORT, for a client's bootstrap.servers."""

    @property
    @abstractmethod
    def running(self) -> bool: ...

    @abstractmethod
    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None: ...

    @contextmanager
    def connected(self, timeout_s: float) -> Iterator[Cluster]:
        """A client of the broker, for what follows; whatever goes wrong with it is a BrokerError."""
        from pykafkad.errors import KafkaError
        from pykafkad.net.client import Cluster
        from pykafkad.net.reaching import Unreachable

        if not self.running:
            raise BrokerError("the broker is not running")
        began, limit_ms = time.monotonic(), max(1, int(timeout_s * 1000))
        cluster = Cluster(
            self.bootstrap_servers,
            client_id=CLIENT_ID,
            request_timeout_ms=limit_ms,
            api_timeout_ms=limit_ms,
            setup_timeout_ms=limit_ms,
        )
        try:
            yield cluster
        except BrokerError:
            raise
        except Unreachable as problem:
            why = str(problem).partition(" --bootstrap-server")[0]
            raise BrokerTimeout(f"the broker did not answer for {timeout_s:g} s: {why}") from problem
        except (KafkaError, OSError) as problem:
            if isinstance(problem, OSError) and time.monotonic() - began >= timeout_s:
                raise BrokerTimeout(f"the broker did not answer for {timeout_s:g} s") from problem
            raise BrokerError(f"the broker refused or broke off: {problem}") from problem
        finally:
            cluster.close()

    # -- records

    def produce(
        self,
        topic: str,
        *values: object,
        key: object = None,
        headers: Mapping[str, object] | HeaderList = (),  # type: ignore[assignment]
        partition: int | None = None,
        timestamp_ms: int | None = None,
        codec: str = "none",
        timeout: float = TIMEOUT_S,
    ) -> list[Record[bytes]]:
        """Write values to a topic, which is made if it is not there: bytes, text, None (a tombstone), anything else as
        JSON, or a Record with a key, headers, partition and timestamp of its own. Returns what was written."""
        from pykafkad.testing import data
        from pykafkad.testing.record import header_list

        own = header_list(headers)
        wanted = [
            value if isinstance(value, Record) else Record(value, key, own, partition, timestamp_ms)
            for value in values
        ]
        with self.connected(timeout) as cluster:
            partitions = data.partitions_of(cluster, topic)
            if not partitions:
                self._make_topic(topic)
                partitions = data.partitions_of(cluster, topic)
            return data.produce(cluster, topic, wanted, codec, partitions)

    def _make_topic(self, topic: str) -> None:
        try:
            self.create_topic(topic, -1)
        except BrokerError as problem:
            if "TOPIC_ALREADY_EXISTS" not in str(problem):  # somebody else was faster
                raise

    @overload
    def records(
        self, topic: str, n: int | None = None, *, partition: int | None = None, timeout: float = TIMEOUT_S
    ) -> list[Record[bytes]]: ...
    @overload
    def records(
        self,
        topic: str,
        n: int | None = None,
        *,
        decode: Callable[[bytes], V],
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[V]]: ...
    def records(
        self,
        topic: str,
        n: int | None = None,
        *,
        decode: Callable[[bytes], Any] = bytes,
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[Any]]:
        """The first `n` records of a topic, waited for; without `n` those that are there now. The values are decoded by
        a function of bytes: `bytes`, `str` (which decodes the keys, too), `json.loads`, one of your own."""
        from pykafkad.testing.data import Reader

        with self.connected(timeout) as cluster:
            reader = Reader(cluster, topic, partition, timeout)
            try:
                spans = reader.begin(wait=n is not None)
                reader.until(lambda: reader.reached(spans) if n is None else reader.count >= n)
                return self._decoded(topic, reader.merged(n), decode)
            finally:
                reader.close()

    @overload
    def collect_until_idle(
        self,
        topic: str,
        *,
        idle: float = IDLE_S,
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[bytes]]: ...
    @overload
    def collect_until_idle(
        self,
        topic: str,
        *,
        decode: Callable[[bytes], V],
        idle: float = IDLE_S,
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[V]]: ...
    def collect_until_idle(
        self,
        topic: str,
        *,
        decode: Callable[[bytes], Any] = bytes,
        idle: float = IDLE_S,
        partition: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> list[Record[Any]]:
        """All records of a topic, once none has come for `idle` seconds; BrokerTimeout if they do not end."""
        from pykafkad.testing.data import Reader

        with self.connected(timeout) as cluster:
            reader = Reader(cluster, topic, partition, timeout)
            quiet_since, seen = time.monotonic(), 0

            def is_idle() -> bool:
                nonlocal quiet_since, seen
                if reader.count > seen:
                    quiet_since, seen = time.monotonic(), reader.count
                return time.monotonic() - quiet_since >= idle

            try:
                reader.begin(wait=True)
                reader.until(is_idle, step_s=idle / 4)
                return self._decoded(topic, reader.merged(), decode)
            finally:
                reader.close()

    @staticmethod
    def _decoded(
        topic: str, rows: list[tuple[int, Raw]], decode: Callable[[bytes], Any]
    ) -> list[Record[Any]]:
        keys = str if decode is str else bytes
        return [
            Record(
                decoded(row.value, decode),
                decoded(row.key, keys),
                row.headers,
                index,
                row.timestamp,
                row.offset,
                topic,
            )
            for index, row in rows
        ]

    def wait_for(
        self, topic: str, n: int, *, partition: int | None = None, timeout: float = TIMEOUT_S
    ) -> None:
        """Until a topic holds `n` records."""
        self.records(topic, n, partition=partition, timeout=timeout)

    # -- groups

    def group(self, group: str, *, timeout: float = TIMEOUT_S) -> Group:
        """The group as it is now: its state, its members and what they have."""
        from pykafkad.testing import groups

        with self.connected(timeout) as cluster:
            return groups.look_at(cluster, group, timeout)

    def wait_for_group(
        self,
        group: str,
        *,
        state: str | None = None,
        members: int | None = None,
        lag: int | None = None,
        timeout: float = TIMEOUT_S,
    ) -> Group:
        """Until the group is in this state (Stable, Empty, Dead...), has so many members, is no further behind than
        `lag`; with none of these, until there is such a group."""
        from pykafkad.testing import groups

        def is_as_wanted(found: Group) -> bool:
            if state is not None and found.state.lower() != state.lower():
                return False
            if members is not None and len(found.members) != members:
                return False
            if lag is not None and self._lag_or_none(cluster, group, timeout) not in range(lag + 1):
                return False
            return state is not None or found.state != groups.NO_GROUP

        with self.connected(timeout) as cluster:
            what = groups.wanted_words(state, members, lag)
            return groups.wait_for(cluster, group, is_as_wanted, what, timeout)

    @staticmethod
    def _lag_or_none(cluster: Cluster, group: str, timeout: float) -> int | None:
        from pykafkad.testing import groups

        try:
            return groups.lag(cluster, group, None, timeout)
        except BrokerError:
            return None

    def wait_for_assignment(
        self, group: str, *topics: str, members: int | None = None, timeout: float = TIMEOUT_S
    ) -> Group:
        """Until a stable group has all partitions of these topics; without topics, until it has any."""
        from pykafkad.testing import groups

        with self.connected(timeout) as cluster:
            return groups.wait_for_assignment(cluster, group, topics, members, timeout)

    def committed(self, group: str, *, timeout: float = TIMEOUT_S) -> dict[tuple[str, int], int]:
        """The offsets that the group has committed, by topic and partition."""
        from pykafkad.testing import groups

        with self.connected(timeout) as cluster:
            return groups.committed(cluster, group, timeout)

    def lag(self, group: str, topic: str | None = None, *, timeout: float = TIMEOUT_S) -> int:
        """How many records the group is behind: those after what it has committed, of this topic or of all that it has
        offsets or partitions of."""
        from pykafkad.testing import groups

        with self.connected(timeout) as cluster:
            return groups.lag(cluster, group, topic, timeout)
