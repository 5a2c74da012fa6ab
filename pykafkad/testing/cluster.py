"""A cluster for tests: several brokers on ZooKeeper, each a process of its own, removed at the end.

    with Cluster(brokers=3, topics={"orders": 13}) as cluster:
        cluster.kill(0)
        cluster.produce("orders", "still there")

What it does with processes is local_cluster's; ZooKeeper needs Java (local_cluster/zookeeper.py). Owns that nothing
outlives the test run: a cluster that is not closed is closed at exit, and when the test run was killed, a shell that
waited for that ends the processes (local_cluster/guard.py).
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType

from pykafkad.local_cluster import cluster as local
from pykafkad.local_cluster.guard import Guard
from pykafkad.local_cluster.home import BrokerHome
from pykafkad.local_cluster.process import ClusterError
from pykafkad.testing.broker import _text, counted
from pykafkad.testing.directory import Directory
from pykafkad.testing.errors import BrokerError
from pykafkad.testing.operations import Operations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

CREATE_TOPICS_VERSION = 7
TIMEOUT_S = 30.0

_open: set[Cluster] = set()


class Cluster(Operations):
    """A running cluster. Topics are created on start, with a replica on each of three brokers, or on all there are.

    `config` are configs of all brokers (server.properties keys). `data` is a directory to keep; without it all is in a
    temporary one. `zookeeper`: HOST:PORT of one that runs already. Brokers are numbered from 0.
    """

    def __init__(
        self,
        brokers: int = 3,
        topics: Mapping[str, int] | Iterable[str] = (),
        config: Mapping[str, object] | None = None,
        *,
        zookeeper: str | None = None,
        data: str | os.PathLike[str] | None = None,
        launch: Callable[[BrokerHome], local.Launch] = local.ours,
    ) -> None:
        """`launch`: what the processes of the brokers are; another one, and other brokers stand in the cluster."""
        self.topics = counted(topics)
        self._owner = os.getpid()
        self._directory = Directory()
        path = os.fspath(data) if data is not None else os.path.join(self._directory.path, "cluster")
        overrides = {key: _text(value) for key, value in (config or {}).items()}
        self._guard: Guard | None = None
        try:
            self.home = local.open_or_make(os.path.abspath(path), brokers, zookeeper, overrides)
            self._local = local.LocalCluster(self.home, launch)
            self._guard = Guard(self.home.directory, remove=data is None)
            _open.add(self)
            self._local.start()
            self._make_topics(self.topics)
        except BaseException as problem:
            self.close()
            if isinstance(problem, ClusterError):
                raise BrokerError(str(problem)) from problem
            raise

    def __repr__(self) -> str:
        return (
            f"<Cluster {self.bootstrap_servers}, running: {[broker.id for broker in self._local.running()]}>"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            for broker in self.home.brokers.values():
                error.add_note(f"the log of broker {broker.id} ends:\n{local.log_tail(broker)}")
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT,HOST:PORT,..., for a client's bootstrap.servers."""
        return self.home.bootstrap_servers

    @property
    def running(self) -> bool:
        return bool(self._local.running())

    def status(self) -> dict[str, Any]:
        """The controller, who runs, leaders, in-sync replicas, lag and epochs, as in local_cluster/status.py."""
        from pykafkad.local_cluster import status

        return status.gather(self.home)

    # -- topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, object] | None = None,
        *,
        replication_factor: int = -1,
    ) -> None:
        """Create one topic; BrokerError with the controller's message if it refuses."""
        self._make_topics({name: partitions}, config, replication_factor)

    def _make_topics(
        self, topics: Mapping[str, int], config: Mapping[str, object] | None = None, replicas: int = -1
    ) -> None:
        from pykafkad import errors
        from pykafkad.messages import CreateTopicsRequest

        if not topics:
            return
        setting: Any = CreateTopicsRequest.CreatableTopicConfig
        wanted = [
            CreateTopicsRequest.CreatableTopic(
                name=name,
                num_partitions=partitions,
                replication_factor=replicas,
                configs=[setting(name=key, value=_text(value)) for key, value in (config or {}).items()],
            )
            for name, partitions in topics.items()
        ]
        request = CreateTopicsRequest(topics=wanted, timeout_ms=int(TIMEOUT_S * 1000))
        with self.connected(TIMEOUT_S) as client:
            answer = client.call(client.controller(), request, at_most=CREATE_TOPICS_VERSION)
        for topic in answer.topics:
            if topic.error_code != errors.NONE:
                said = errors.NAMES.get(topic.error_code, str(topic.error_code))
                raise BrokerError(f"topic {topic.name} was not created: {said}: {topic.error_message}")

    # -- brokers

    def kill(self, id: int) -> None:
        """End a broker at once (SIGKILL), as in a crash: nothing is flushed or handed over."""
        self._do(self._local.kill_broker, id)

    def stop(self, id: int) -> None:
        """Ask a broker to finish (SIGTERM), and wait for it: it hands over what it leads."""
        self._do(self._local.stop_broker, id)

    def start(self, id: int) -> None:
        """Start a broker again, with its data, and wait until it knows the cluster."""
        self._do(self._local.start_broker, id)

    def pause(self, id: int) -> None:
        """Stop a broker's process where it is (SIGSTOP), until resume()."""
        self._do(self._local.pause_broker, id)

    def resume(self, id: int) -> None:
        self._do(self._local.resume_broker, id)

    def isolate(self, id: int) -> None:
        """Cut a broker off from the other brokers and from ZooKeeper, until heal(); its clients still reach it."""
        self._do(self._local.isolate_broker, id)

    def heal(self, id: int) -> None:
        self._do(self._local.heal_broker, id)

    def log_text(self, id: int) -> str:
        """Everything that a broker logged, over all its starts."""
        with open(self.home.broker(id).log, encoding="utf-8", errors="replace") as file:
            return file.read()

    @staticmethod
    def _do(act: Callable[[int], None], id: int) -> None:
        try:
            act(id)
        except ClusterError as problem:
            raise BrokerError(str(problem)) from problem

    def close(self) -> None:
        """End all processes at once and remove the directory; one given as `data` stays. A fork leaves them alone."""
        if self._owner != os.getpid():
            return
        if self._guard is not None:
            self._local.kill()
            self._guard.dismiss()
            self._guard = None
        self._directory.close()
        _open.discard(self)


@atexit.register
def _close_all() -> None:
    for cluster in list(_open):
        cluster.close()


def _let_go() -> None:
    for cluster in _open:
        if cluster._guard is not None:
            cluster._guard.let_go()
    _open.clear()


os.register_at_fork(after_in_child=_let_go)
