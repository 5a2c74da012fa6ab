"""A broker for tests: a process of its own on a free port, with a directory of its own, removed at the end.

    with Broker(topics={"orders": 3}) as kafka:
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})

Owns the child process and its directory (data and log), and makes sure that neither outlives the test run: a broker
that is not closed is closed at exit, and one whose test run was killed sees the end of its standard input, ends and
removes the directory (net/starter.py; directory.py has the rest). It works without pytest; testing.plugin makes
fixtures of it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from types import TracebackType

from pykafkad import config_names
from pykafkad.control import SOCKET
from pykafkad.testing.client import Client
from pykafkad.testing.directory import Directory
from pykafkad.testing.errors import BrokerError
from pykafkad.testing.operations import TIMEOUT_S, Operations
from pykafkad.testing.ports import lasting_port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

READY = "pykafkad ready: bootstrap.servers="
START_SECONDS = 30.0
STOP_SECONDS = 30.0
PORTS_TRIED = 5
LOG_LINES_SHOWN = 50
CREATE_TOPICS_VERSION = 7

_running: set[Broker] = set()  # until they are closed, though nobody else may remember them


class Broker(Operations):
    """A running broker. Topics are created on start: names, or names with their partition counts.

    `config` are broker configs (server.properties keys). `data` is a directory to keep; without it the data is in a
    temporary one, which survives kill() and restart() but not close(). KAFKA_ variables of the environment do not reach
    the broker, so that a test means the same everywhere. Without a port it takes a free one and keeps it over restarts.
    `single_node`: replication factors above 1 count as 1, as with `pykafkad start --single-node`; else they are refused.
    """

    def __init__(
        self,
        topics: Mapping[str, int] | Iterable[str] = (),
        config: Mapping[str, object] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        data: str | os.PathLike[str] | None = None,
        log_level: str = "info",
        single_node: bool = True,
        start: bool = True,
    ) -> None:
        self.host = host
        self.port = port
        self.config = {key: _text(value) for key, value in (config or {}).items()}
        config_names.check(self.config)
        self.topics = counted(topics)
        self.log_level = log_level
        self.single_node = single_node
        self._directory = Directory()
        self.data = os.fspath(data) if data is not None else os.path.join(self._directory.path, "data")
        self.log_path = os.path.join(self._directory.path, "broker.log")
        self._process: subprocess.Popen[bytes] | None = None
        self._waker: subprocess.Popen[bytes] | None = None  # while the broker is paused
        self._owner = os.getpid()
        self._changing = threading.RLock()  # what starts and ends the process is done by one thread at a time
        self._closed = False
        _running.add(self)
        if start:
            try:
                self.start()
            except BaseException:
                self.close()
                raise

    def __repr__(self) -> str:
        state = f"pid {self.pid}" if self.running else "not running"
        return f"<Broker {self.bootstrap_servers}, {state}>"

    def __enter__(self) -> Broker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and (log := self.log_tail()):
            error.add_note(f"the broker's log ends:\n{log}")
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """HOST:PORT, for a client's bootstrap.servers."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def get_bootstrap_server(self) -> str:
        """The same, under the name that testcontainers has for it."""
        return self.bootstrap_servers

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise BrokerError("the broker was never started")
        return self._process.pid

    def start(self) -> None:
        """Start the process, wait for its ready line, and create the topics that do not exist yet."""
        with self._changing:
            if self._closed or self.running:
                raise BrokerError(f"the broker is {'closed' if self._closed else 'running'}")
            if self.port:
                self._start()
            else:
                self._start_somewhere()
            if self.topics:
                self._create_topics(self.topics, existing=True)

    def _start_somewhere(self) -> None:
        """Start on a port that we choose; another process may take it just before the broker does."""
        for left in reversed(range(PORTS_TRIED)):
            self.port = lasting_port(self.host)
            try:
                return self._start()
            except BrokerError as error:
                self.port = 0
                if not left or "Address already in use" not in str(error):
                    raise

    def _start(self) -> None:
        with open(self.log_path, "ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                stdin=subprocess.PIPE,  # its end tells the broker that we are gone
                stdout=subprocess.PIPE,
                stderr=log,
                env={name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")},
                start_new_session=True,  # Ctrl-C on the terminal is for the test run, not for the broker
            )
        self.host, self.port = self._wait_until_ready()

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "pykafkad", "start", "--host", self.host, "--port", str(self.port)]
        if "log.dirs" not in self.config:
            command += ["--data", self.data]
        command += ["--log-level", self.log_level, "--until-eof", "--remove-at-eof", self._directory.path]
        if self.single_node:
            command.append("--single-node")
        for key, value in self.config.items():
            command += ["--override", f"{key}={value}"]
        return command

    def _wait_until_ready(self) -> tuple[str, int]:
        assert self._process is not None and self._process.stdout is not None
        late = threading.Timer(START_SECONDS, self._process.kill)
        late.start()
        line = self._process.stdout.readline().decode(errors="replace").rstrip("\n")
        late.cancel()
        if not line.startswith(READY):
            if line:
                self.kill()
                raise BrokerError(self._with_log(f"the broker said {line!r} where its ready line should be"))
            code = self._process.wait()
            self._close_pipes()
            said = "was not ready in time" if code == -signal.SIGKILL else "ended at start"
            raise BrokerError(self._with_log(f"the broker {said}, exit code {code}"))
        host, _, port = line.removeprefix(READY).split(",")[0].rpartition(":")
        return host.removeprefix("[").removesuffix("]"), int(port)

    def client(self) -> Client:
        """A raw connection to the broker, to be closed by the caller."""
        return Client(self.host, self.port)

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Create one topic; BrokerError with the broker's message if it refuses."""
        self._create_topics({name: partitions}, config)

    def create_topics(self, topics: Mapping[str, int] | Iterable[str]) -> None:
        """Create several, as the argument of Broker has them."""
        self._create_topics(counted(topics))

    def _create_topics(
        self,
        topics: Mapping[str, int],
        config: Mapping[str, object] | None = None,
        *,
        existing: bool = False,
    ) -> None:
        from pykafkad import errors
        from pykafkad.messages import CreateTopicsRequest

        entry: Any = CreateTopicsRequest.CreatableTopic
        setting: Any = CreateTopicsRequest.CreatableTopicConfig
        wanted = [
            entry(
                name=name,
                num_partitions=partitions,
                replication_factor=-1,
                configs=[setting(name=key, value=_text(value)) for key, value in (config or {}).items()],
            )
            for name, partitions in topics.items()
        ]
        with self.client() as client:
            request = CreateTopicsRequest(topics=wanted, timeout_ms=int(START_SECONDS * 1000))
            answer = client.call(request, CREATE_TOPICS_VERSION)
        for topic in answer.topics:
            if topic.error_code == errors.TOPIC_ALREADY_EXISTS and existing:
                continue
            if topic.error_code != errors.NONE:
                said = errors.NAMES.get(topic.error_code, str(topic.error_code))
                raise BrokerError(f"topic {topic.name} was not created: {said}: {topic.error_message}")

    def reset(self, *, timeout: float = TIMEOUT_S) -> None:
        """Remove all topics, groups, offsets, changed configs and quotas, also while clients are connected: members of
        groups are told that theirs is gone, and join again if they live on."""
        from pykafkad.testing import resetting

        with self.connected(timeout) as cluster:
            always_there = self.config.get("min.insync.replicas", "1")
            resetting.reset(cluster, always_there, time.monotonic() + timeout)

    def stop(self) -> int:
        """Ask the broker to finish (SIGTERM) and wait for it; its exit code."""
        if self._process is None:
            raise BrokerError("the broker was never started")
        if self.running:
            self._process.terminate()
            self.resume()
        try:
            code = self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise BrokerError(self._with_log(f"the broker did not stop in {STOP_SECONDS} s")) from None
        self._close_pipes()
        return code

    def kill(self) -> None:
        """End the process at once (SIGKILL), as in a crash: nothing is flushed or finished."""
        with self._changing:
            self._forget_waker()
            if self._process is not None:
                if self.running:
                    self._process.send_signal(signal.SIGKILL)
                self._process.wait()
                self._close_pipes()
                with contextlib.suppress(OSError):  # shutil.copytree would not get past it
                    os.unlink(os.path.join(self.data, SOCKET))

    def pause(self) -> None:
        """Stop the process where it is (SIGSTOP): connections stay open and nothing is answered, until resume()."""
        if not self.running:
            raise BrokerError("the broker is not running")
        if self._waker is None:
            assert self._process is not None
            self._waker = wake_when_alone(self._process.pid)
            self._process.send_signal(signal.SIGSTOP)

    @property
    def paused(self) -> bool:
        return self._waker is not None

    def resume(self) -> None:
        """Let it go on after pause()."""
        self._forget_waker()
        if self.running:
            assert self._process is not None
            self._process.send_signal(signal.SIGCONT)

    def _forget_waker(self) -> None:
        if self._waker is not None:
            self._waker.kill()
            self._waker.communicate()
            self._waker = None

    def restart(self) -> None:
        """Start again on the same port and data, after stop() or kill(), or stopping it now."""
        with self._changing:
            if self.running:
                self.stop()
            self.start()

    def log_text(self) -> str:
        """Everything the broker logged, over all its starts."""
        try:
            with open(self.log_path, encoding="utf-8", errors="replace") as log:
                return log.read()
        except FileNotFoundError:
            return ""

    def log_tail(self) -> str:
        """The last lines of the log."""
        return "\n".join(self.log_text().splitlines()[-LOG_LINES_SHOWN:])

    def close(self) -> None:
        """End the process at once and remove its directory; a directory given as `data` stays. A fork of the process
        that started the broker leaves it alone."""
        if self._owner != os.getpid():
            return
        with self._changing:
            self._closed = True
            self.kill()
            self._directory.close()
        _running.discard(self)

    def _with_log(self, line: str) -> str:
        return f"{line}; its log:\n{self.log_tail()}"

    def _close_pipes(self) -> None:
        assert self._process is not None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def wake_when_alone(pid: int) -> subprocess.Popen[bytes]:
    """A shell that lets a stopped process go on when we are gone: it could not see that itself."""
    wait = ["/bin/sh", "-c", 'read -r line; kill -CONT "$0"', str(pid)]
    return subprocess.Popen(wait, stdin=subprocess.PIPE, start_new_session=True)


def counted(topics: Mapping[str, int] | Iterable[str]) -> dict[str, int]:
    """Topics with their numbers of partitions: one where only names are given."""
    if isinstance(topics, str | bytes):
        raise TypeError(
            f"topics={topics!r}: names, or names with their partition counts, are wanted: [{topics!r}]"
        )
    return dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)


def _text(value: object) -> str:
    """A config value as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value)


@atexit.register
def _close_all() -> None:
    for broker in list(_running):
        broker.close()


def _let_go() -> None:
    """In a fork: it would keep the brokers' standard inputs open when the process that started them is gone."""
    for broker in list(_running):
        if broker._process is not None:
            broker._close_pipes()
    _running.clear()


os.register_at_fork(after_in_child=_let_go)
