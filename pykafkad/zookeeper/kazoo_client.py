"""ZooKeeper by kazoo: its connection has a thread, which posts every answer, watch and state to the loop.

kazoo keeps the session, sends pings, finds another server when one is lost, and begins a new session after an expired
one. What was submitted, and its order, is the pipeline's. kazoo's own workers are not used: what they would call only
posts, and is called by the connection's thread itself, so that everything arrives in the order in which it was read.
Watches die with a connection, since kazoo does not set them again: those that are out are kept here, and told after it.
An answer that cannot be read ends the connection: what is behind it cannot be believed either, and all is asked again.
"""

from __future__ import annotations

import logging
import select
import time
from _thread import allocate_lock, start_new_thread
from contextlib import suppress
from errno import ENETUNREACH
from socket import SHUT_RDWR

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, ConnectionClosedError, KazooException, SessionExpiredError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol import serialization
from kazoo.protocol.connection import ConnectionDropped
from kazoo.protocol.states import EventType, KazooState, KeeperState
from kazoo.retry import KazooRetry
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from pykafkad.logs import logger
from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper.client import (
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Result,
    SetData,
    State,
    Write,
)
from pykafkad.zookeeper.pipeline import Pipeline
from pykafkad.zookeeper.znodes import parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from pykafkad.zookeeper.client import Done, OnState, OnWatch
    from pykafkad.zookeeper.pipeline import Answer
    from pykafkad.zookeeper.settings import Settings

OPERATION_BYTES = 1024 * 1024 - 1  # what ZooKeeper's servers read (jute.maxbuffer)
ANSWER_BYTES = 64 * 1024 * 1024  # the children of a node with a million of them
OVERHEAD_BYTES = 128  # of an operation: header, flags, version, ACL
CLOSE_WAIT_S = 5  # for the end of the session; without it ZooKeeper ends it when it has timed out
RETRY_DELAY_S = 0.1  # between two rounds through the servers, doubled up to
RETRY_MAX_DELAY_S = 1.0
RESTART_DELAY_S = 1.0  # where kazoo's own thread has ended
STATE = "Transition to CONNECTING"  # which kazoo says behind every reason
MOST_LINES = 20
SENSITIVE = (
    "/config/users",
    "/config/brokers",
    "/delegation_token/tokens",
)  # for nobody but their creator to read

log = logger("zookeeper")


class KazooZooKeeper:
    """A ZooKeeper (client.py). `post` takes calls to the loop, from any thread."""

    def __init__(self, settings: Settings, post: Callable[..., None]) -> None:
        self.session_id = 0
        self._settings = settings
        self._post = post
        self._pipeline = Pipeline(self._send, settings.max_in_flight)
        self._hosts, slash, chroot = settings.connect.partition("/")
        self._chroot = (slash + chroot).rstrip("/")
        self._lines = Lines(post)
        self._logger = logging.Logger("kazoo", logging.WARNING)
        self._logger.addHandler(self._lines)
        self._watch_listeners: list[OnWatch] = []
        self._state_listeners: list[OnState] = []
        self._watched: tuple[set[str], set[str]] = set(), set()  # paths, of whose data and of whose children
        self._line = Line()
        self._is_closed = False
        self._is_started = False
        self._is_connected = False
        self._is_proven = False  # it has answered something
        self._client: Any = None

    def submit(self, ops: Sequence[Operation], done: Done) -> None:
        if self._is_closed:
            self._post(done, [Result(zk.CLOSED)] * len(ops))
        else:
            self._pipeline.submit(ops, done)

    def on_watch(self, listener: OnWatch) -> None:
        self._watch_listeners.append(listener)

    def on_state(self, listener: OnState) -> None:
        self._state_listeners.append(listener)

    def start(self) -> None:
        if not self._is_started:
            self._is_started = True
            self._begin()

    def close(self) -> None:
        """Waits for the end of the session, as its ephemeral nodes are to be gone when this process is; not for long."""
        if self._is_closed:
            return
        self._is_closed = True
        self.session_id = 0
        self._pipeline.cut()
        self._end_session()
        self._pipeline.end(zk.CLOSED)

    # -- drills

    def cut(self) -> None:
        """The connection is lost, and there is no other until mend(): the session goes on at the server, until it
        expires."""
        self._line.is_cut = True
        self._line.drop()

    def mend(self) -> None:
        self._line.is_cut = False

    def _end_session(self) -> None:
        ended = allocate_lock()
        ended.acquire()

        def work() -> None:
            if self._client is not None:
                end(self._client)
            ended.release()

        start_new_thread(work, ())
        if not ended.acquire(timeout=CLOSE_WAIT_S):
            log.warn("the session could not be ended: ZooKeeper ends it when it has timed out")

    # -- the session

    def _begin(self) -> None:
        if self._is_closed:
            return
        client = self._client = self._new_client()
        client.handler.on_end = lambda: self._post(self._ended, client)
        client.add_listener(
            lambda state: self._post(self._changed, client, state, client.client_state, client.client_id)
        )
        client.start_async()

    def _new_client(self) -> Any:
        settings, tls, login = self._settings, self._settings.tls, self._settings.login
        more: dict[str, Any] = {}
        if login is not None and login.mechanism == "digest":
            more["auth_data"] = [("digest", f"{login.user}:{login.password}")]
        elif login is not None:
            more["sasl_options"] = {
                "mechanism": "DIGEST-MD5",
                "username": login.user,
                "password": login.password,
            }
        if tls is not None:
            more |= {
                "use_ssl": True,
                "certfile": tls.certificate,
                "keyfile": tls.key,
                "keyfile_password": tls.key_password,
                "ca": tls.authorities,
                "check_hostname": tls.check_host,
            }
        client = KazooClient(
            self._hosts,
            timeout=settings.session_timeout_ms / 1000,
            handler=Inline(self._line, settings.session_timeout_ms / 1000 / (1 + self._hosts.count(","))),
            connection_retry=KazooRetry(max_tries=-1, delay=RETRY_DELAY_S, max_delay=RETRY_MAX_DELAY_S),
            logger=self._logger,
            **more,
        )
        connection = client._connection  # kazoo believes any length
        connection._read = bounded(connection._read)
        return client

    def _changed(
        self, client: Any, state: str, keeper_state: str, client_id: tuple[int, bytes] | None
    ) -> None:
        if client is not self._client or self._is_closed:
            return
        if state == KazooState.CONNECTED and client_id is not None:
            self._prove(client_id[0])
        elif state == KazooState.SUSPENDED:
            self._pipeline.cut()
            self._is_proven = False
            if self._is_connected:
                self._is_connected = False
                self._tell_state(State.DISCONNECTED)
        elif state == KazooState.LOST:
            self._lost(keeper_state)

    def _prove(self, session_id: int) -> None:
        """kazoo is connected before it has logged in; what it is asked then is sent behind the login."""
        client = self._client

        def answered(error: Exception | None) -> None:
            is_taken = error is None or error_code(error) == zk.NO_AUTH
            if is_taken and client is self._client and not self._is_closed:
                self._connected(session_id)

        if self._settings.login is None:
            self._connected(session_id)
        else:
            client.exists_async("/").rawlink(lambda done: self._post(answered, done.exception))

    def _connected(self, session_id: int) -> None:
        self._is_connected = True
        if session_id != self.session_id:
            log.info(f"connected to {self._settings.connect}, session 0x{session_id:x}")
            self.session_id = session_id
            self._forget_watches()
            self._make_chroot()
            self._tell_state(State.NEW_SESSION)
        else:
            log.info(f"connected again to {self._settings.connect}, session 0x{session_id:x}")
            self._tell_state(State.CONNECTED)
            for path in self._forget_watches():
                self._tell_watch(path)
        self._pipeline.opened()

    def _lost(self, keeper_state: str) -> None:
        had_session, self.session_id = self.session_id, 0
        self._is_connected = False
        self._forget_watches()
        if had_session:
            self._pipeline.end(zk.SESSION_EXPIRED)
            self._tell_state(State.EXPIRED)
        if keeper_state == KeeperState.AUTH_FAILED:
            self._logger.error("ZooKeeper refuses the login")
            self._tell_state(State.FAILED)

    def _ended(self, client: Any) -> None:
        """kazoo's own thread: a login was refused, or it met what it does not understand."""
        if client is self._client and not self._is_closed:
            start_new_thread(self._restart, (client,))

    def _restart(self, client: Any) -> None:
        end(client)
        time.sleep(RESTART_DELAY_S)
        self._post(self._begin)

    def _make_chroot(self) -> None:
        for path in parents(self._chroot) if self._chroot else ():
            self._client.create_async(path, None, acl=self._acl(path))  # most often, it is there

    # -- operations

    def _send(self, op: Operation, answer: Answer) -> None:
        """What cannot be sent is answered in its place, since all others wait behind it: a path that kazoo refuses, and
        what is so large that ZooKeeper would close the connection, again and again."""
        if size_of(op) > OPERATION_BYTES:
            self._post(answer, Result(zk.MARSHALLING_ERROR))
            return
        try:
            asked = getattr(self, "_ask_" + type(op).__name__)(op)
        except ValueError:
            self._post(answer, Result(zk.BAD_ARGUMENTS))
            return
        asked.rawlink(lambda done: self._post(self._answered, op, answer, done.value, done.exception))

    def _answered(self, op: Operation, answer: Answer, value: Any, error: Exception | None) -> None:
        if error is None and value is not None:
            result = self._result(op, value)
        elif error is None:
            result = Result(zk.NO_NODE)  # of Exists
        elif (code := error_code(error)) is not None:
            result = Result(code)
        else:
            self._logger.error(f"an answer of ZooKeeper cannot be read: {type(error).__name__}")
            self._line.drop()
            return
        if not self._is_proven and result.error != zk.CONNECTION_LOST:
            self._is_proven = True
            self._lines.connected()
        if isinstance(op, GetData | GetChildren | Exists) and op.watch:
            self._note_watch(op, result)
        answer(result)

    def _ask_Create(self, op: Create) -> Any:
        return self._client.create_async(
            self._in(op.path),
            op.data,
            acl=self._acl(op.path),
            ephemeral=op.ephemeral,
            sequence=op.sequential,
            include_data=True,
        )

    def _ask_SetData(self, op: SetData) -> Any:
        return self._client.set_async(self._in(op.path), op.data, op.version)

    def _ask_Delete(self, op: Delete) -> Any:
        return self._client.delete_async(self._in(op.path), op.version)

    def _ask_GetData(self, op: GetData) -> Any:
        return self._client.get_async(self._in(op.path), self._watcher if op.watch else None)

    def _ask_GetChildren(self, op: GetChildren) -> Any:
        watcher = self._watcher if op.watch else None
        return self._client.get_children_async(self._in(op.path), watcher, include_data=True)

    def _ask_Exists(self, op: Exists) -> Any:
        return self._client.exists_async(self._in(op.path), self._watcher if op.watch else None)

    def _ask_Multi(self, op: Multi) -> Any:
        transaction = self._client.transaction()
        transaction.operations = [self._part(each) for each in op.ops]
        return transaction.commit_async()

    def _part(self, op: Write) -> Any:
        path = self._in(op.path)
        if isinstance(op, Create):
            flags = op.ephemeral | op.sequential << 1
            return serialization.Create(path, op.data, self._acl(op.path), flags)
        if isinstance(op, SetData):
            return serialization.SetData(path, op.data, op.version)
        kind = serialization.Delete if isinstance(op, Delete) else serialization.CheckVersion
        return kind(path, op.version)

    def _acl(self, path: str) -> Any:
        """Of what is created, as Kafka's brokers have it."""
        if not self._settings.secure or path == "/consumers":
            return OPEN_ACL_UNSAFE
        return CREATOR_ALL_ACL if path.startswith(SENSITIVE) else CREATOR_ALL_ACL + READ_ACL_UNSAFE

    def _result(self, op: Operation, value: Any) -> Result:
        if isinstance(op, Create):
            return stat_result(value[1])._replace(path=self._out(value[0]))
        if isinstance(op, GetData):
            return stat_result(value[1])._replace(data=value[0])
        if isinstance(op, GetChildren):
            return stat_result(value[1])._replace(children=value[0])
        if isinstance(op, Multi):
            results = [self._part_result(each) for each in value]
            return Result(zk.error_of(results), results=results)
        return Result() if isinstance(op, Delete) else stat_result(value)

    def _part_result(self, value: Any) -> Result:
        if isinstance(value, Exception):
            return Result(error_code(value) or zk.ROLLED_BACK)  # 0: of those before the one that failed
        if isinstance(value, str):
            return Result(path=self._out(value), version=0)
        return Result() if value is True else stat_result(value)

    # -- watches

    def _watcher(self, event: Any) -> None:
        if event.type != EventType.NONE:
            self._post(self._fired, event.type, event.path)

    def _note_watch(self, op: GetData | GetChildren | Exists, result: Result) -> None:
        if not result.error or (result.error == zk.NO_NODE and isinstance(op, Exists)):
            data, children = self._watched
            (children if isinstance(op, GetChildren) else data).add(op.path)

    def _fired(self, kind: str, full_path: str) -> None:
        path, (data, children) = self._out(full_path), self._watched
        if kind != EventType.CHILD:
            data.discard(path)
        if kind in (EventType.CHILD, EventType.DELETED):
            children.discard(path)
        self._tell_watch(path)

    def _forget_watches(self) -> list[str]:
        """The paths that were watched."""
        data, children = self._watched
        self._watched = set(), set()
        return sorted(data | children)

    def _tell_watch(self, path: str) -> None:
        for listener in self._watch_listeners:
            listener(path)

    def _tell_state(self, state: State) -> None:
        for listener in self._state_listeners:
            listener(state)

    # -- paths below the chroot

    def _in(self, path: str) -> str:
        return self._chroot + path if path != "/" else self._chroot or "/"

    def _out(self, path: str) -> str:
        return path[len(self._chroot) :] or "/"


def size_of(op: Operation) -> int:
    """At least as many bytes as it is on the wire."""
    if isinstance(op, Multi):
        return sum(map(size_of, op.ops)) + OVERHEAD_BYTES
    data = getattr(op, "data", None) or b""
    return len(op.path.encode(errors="replace")) + len(data) + OVERHEAD_BYTES


class Line:
    """What connects to ZooKeeper. It may be cut, from another thread than the one that connects."""

    def __init__(self) -> None:
        self.is_cut = False
        self._socket: Any = None

    def check(self) -> None:
        if self.is_cut:
            raise ConnectionError(ENETUNREACH, "this broker is cut off from ZooKeeper")

    def hold(self, connected: Any) -> Any:
        self._socket = connected
        if self.is_cut:
            self.drop()
        return connected

    def drop(self) -> None:
        if self._socket is not None:
            with suppress(OSError):  # it has ended
                self._socket.shutdown(SHUT_RDWR)


class Inline(SequentialThreadingHandler):  # type: ignore[misc]
    """What kazoo would have its workers call is called by its connection's thread. `reach_s`: for one server, so that
    all of them can be tried while the session lives."""

    def __init__(self, line: Line, reach_s: float) -> None:
        super().__init__()
        self._line, self._reach_s = line, reach_s
        self.on_end: Callable[[], None] = lambda: None  # of kazoo's own thread, told by it
        self.completion_queue = self.callback_queue = self

    def put(self, call: Callable[[], object]) -> None:
        call()

    def start(self) -> None:
        self._running = True

    def stop(self) -> None:
        self._running = False

    def spawn(self, work: Callable[..., object], *arguments: Any, **named: Any) -> Any:
        """What ends kazoo's own thread it has logged, and we begin anew: it is for nobody's standard error."""

        def run() -> None:
            with suppress(Exception):
                work(*arguments, **named)
            self.on_end()

        return super().spawn(run)

    def create_connection(self, *address: Any, **options: Any) -> Any:
        self._line.check()
        options["timeout"] = min(options.get("timeout") or self._reach_s, self._reach_s)
        return self._line.hold(super().create_connection(*address, **options))

    def select(self, reads: Any, writes: Any, errors: Any, timeout: float | None = None) -> Any:
        """kazoo's makes a selector for each call, of which there are four an operation."""
        poll, by_number = select.poll(), {}
        for waiting, event in ((reads, select.POLLIN), (writes, select.POLLOUT)):
            for each in waiting:
                by_number[each.fileno()] = each
                poll.register(each, event)
        found: tuple[list[Any], list[Any], list[Any]] = [], [], []
        for number, _ in poll.poll(None if timeout is None else max(0, timeout) * 1000):
            each = by_number[number]
            found[0 if each in reads else 1].append(each)
        return found


class Lines(logging.Handler):
    """What kazoo logs, as lines of ours: the same thing once until `connected`, as it is tried all the time."""

    def __init__(self, post: Callable[..., None]) -> None:
        super().__init__(logging.WARNING)
        self._post = post
        self._said: set[str] = {STATE}

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._said and len(self._said) < MOST_LINES:
            self._said.add(text)
            self._post(log.error if record.levelno >= logging.ERROR else log.warn, text)

    def connected(self) -> None:
        self._said = {STATE}


def bounded(read: Callable[[int, float], bytes]) -> Callable[[int, float], bytes]:
    def read_some(length: int, timeout_s: float) -> bytes:
        if not 0 <= length <= ANSWER_BYTES:
            raise ConnectionDropped(f"an answer of {length} bytes")
        return read(length, timeout_s)

    return read_some


def end(client: Any) -> None:
    try:
        client.stop()
        client.close()
    except Exception:  # it was not connected, or its thread does not end: nothing more can be done with it
        pass


def stat_result(stat: Any) -> Result:
    return Result(version=stat.version, czxid=stat.czxid, owner=stat.ephemeralOwner, ctime_ms=stat.ctime)


def error_code(error: Exception) -> int | None:
    """CONNECTION_LOST also where the session is over: the pipeline is told of that by the state. None: it is no error of
    ZooKeeper's, but kazoo's with the answer."""
    if isinstance(error, SessionExpiredError | ConnectionClosedError | AuthFailedError):
        return zk.CONNECTION_LOST
    if isinstance(error, KazooException) and isinstance(code := getattr(error, "code", None), int):
        return code
    return zk.BAD_ARGUMENTS if type(error) is ValueError else None  # of a path that is none
