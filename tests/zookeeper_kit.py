"""ZooKeeper in memory: what pykafkad/zookeeper/client.py promises, without threads, sockets and time.

MemoryZooKeeper is the ensemble; each of its clients is one session at a time. What is under way (a request to the
ensemble, an answer or a watch back) is moved by `soon`, each client's in order: by default into a queue that `step` and
`settle` empty, so that nothing happens by itself. A test may cut a client off (`disconnect`, which loses answers that
are under way), let it come back (`reconnect`), or end its session (`expire`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper.client import (
    Check,
    Create,
    Delete,
    Done,
    Exists,
    GetChildren,
    GetData,
    Multi,
    OnState,
    OnWatch,
    Operation,
    Result,
    SetData,
    State,
    Write,
)
from pykafkad.zookeeper.pipeline import Pipeline

if TYPE_CHECKING:
    from pykafkad.zookeeper.pipeline import Answer

Soon = Callable[[Callable[[], None]], None]
MOST_STEPS = 1_000_000  # of `settle`: more is a loop that never ends
WRITES = (Create, SetData, Delete, Check)


CREATED, DELETED, CHANGED, CHILD = 1, 2, 3, 4  # what a watch fires for


class Session(Protocol):
    """Whom the ensemble tells of watches that fire."""

    def receive_watch(self, path: str, kind: int) -> None: ...


class Znode:
    __slots__ = ("children", "created", "ctime_ms", "czxid", "data", "owner", "version")

    def __init__(self, data: bytes | None, czxid: int, ctime_ms: int, owner: int) -> None:
        self.data = data
        self.version = 0
        self.czxid = czxid
        self.ctime_ms = ctime_ms
        self.owner = owner
        self.children: set[str] = set()
        self.created = 0  # how many children were ever made: the next one's number where that is sequential

    def stat(self, data: bytes | None = None) -> Result:
        return Result(
            data=data, version=self.version, czxid=self.czxid, owner=self.owner, ctime_ms=self.ctime_ms
        )


class Transaction(NamedTuple):
    """One that came to be: its number, the session it was done for, and its writes, with the paths that were made."""

    zxid: int
    session_id: int
    ops: Sequence[Write]


class Refused(Exception):
    def __init__(self, error: int) -> None:
        self.error = error


class MemoryZooKeeper:
    def __init__(self, soon: Soon | None = None, clock: Callable[[], int] = lambda: 0) -> None:
        self.nodes: dict[str, Znode] = {"/": Znode(b"", 0, 0, 0)}
        self.zxid = 0
        self.transactions: list[Transaction] = []
        self.sessions: dict[int, Session] = {}
        self._queue: deque[Callable[[], None]] = deque()
        self._soon = soon or self._queue.append
        self._clock = clock
        self._next_session = 0x100
        self._data_watches: dict[str, set[int]] = {}  # path -> sessions; of GetData and of Exists
        self._child_watches: dict[str, set[int]] = {}

    # -- for tests

    def client(self, soon: Soon | None = None, max_in_flight: int = 10) -> MemoryClient:
        return MemoryClient(self, soon or self._soon, max_in_flight)

    def step(self) -> bool:
        """Move one thing that is under way; False: nothing is."""
        if not self._queue:
            return False
        self._queue.popleft()()
        return True

    def settle(self) -> None:
        for _ in range(MOST_STEPS):
            if not self.step():
                return
        raise AssertionError("there is always something under way")

    def do(self, *ops: Operation) -> list[Result]:
        """At once, as by somebody else, of session 0."""
        return [self.carry_out(0, op) for op in ops]

    def data(self, path: str) -> bytes | None:
        return self.nodes[path].data

    def tree(self, under: str = "/") -> dict[str, bytes | None]:
        """path -> data, sorted."""
        inside = under.rstrip("/") + "/"
        return {
            path: node.data
            for path, node in sorted(self.nodes.items())
            if path == under or path.startswith(inside)
        }

    # -- sessions

    def new_session(self, session: Session) -> int:
        self._next_session += 1
        self.sessions[self._next_session] = session
        return self._next_session

    def end_session(self, session_id: int) -> None:
        """Its ephemeral nodes go, all in one transaction, and so do its watches."""
        if self.sessions.pop(session_id, None) is None:
            return
        self.forget_watches(session_id)
        mine = [path for path, node in self.nodes.items() if node.owner == session_id]
        if mine:
            self._write(session_id, [Delete(path) for path in sorted(mine)])

    def forget_watches(self, session_id: int) -> None:
        for watches in (self._data_watches, self._child_watches):
            for sessions in watches.values():
                sessions.discard(session_id)

    def watched(self, session_id: int) -> list[str]:
        return sorted(
            {
                path
                for watches in (self._data_watches, self._child_watches)
                for path, sessions in watches.items()
                if session_id in sessions
            }
        )

    # -- operations

    def carry_out(self, session_id: int, op: Operation) -> Result:
        try:
            if isinstance(op, Multi):
                return self._multi(session_id, op)
            if isinstance(op, WRITES):
                return self._write(session_id, [op])[0]
            return self._read(session_id, op)
        except Refused as refused:
            return Result(refused.error)

    def _read(self, session_id: int, op: GetData | GetChildren | Exists) -> Result:
        node = self.nodes.get(op.path)
        if op.watch and (node is not None or isinstance(op, Exists)):
            watches = self._child_watches if isinstance(op, GetChildren) else self._data_watches
            watches.setdefault(op.path, set()).add(session_id)
        if node is None:
            return Result(zk.NO_NODE)
        if isinstance(op, GetChildren):
            return node.stat()._replace(children=sorted(node.children))
        return node.stat(node.data if isinstance(op, GetData) else None)

    def _multi(self, session_id: int, op: Multi) -> Result:
        try:
            results = self._write(session_id, op.ops)
            made = [isinstance(each, Create) for each in op.ops]
            return Result(
                results=[
                    Result(path=each.path, version=0) if new else each
                    for each, new in zip(results, made, strict=True)
                ]
            )
        except FailedAt as failed:
            errors = [zk.ROLLED_BACK] * len(op.ops)
            errors[failed.index] = failed.error
            return Result(failed.error, results=[Result(error) for error in errors])

    def _write(self, session_id: int, ops: Sequence[Write]) -> list[Result]:
        """All or none of them."""
        undo: list[Callable[[], None]] = []
        results, done = [], []
        zxid = self.zxid + 1
        for index, op in enumerate(ops):
            try:
                if isinstance(op, Create):
                    op = self._numbered(op)
                results.append(self._apply(op, session_id, zxid, undo))
                done.append(op)
            except Refused as refused:
                for back in reversed(undo):
                    back()
                raise FailedAt(index, refused.error) from None
        if any(not isinstance(op, Check) for op in done):
            self.zxid = zxid
            self.transactions.append(Transaction(zxid, session_id, done))
            for op in done:
                self._tell_watches(op)
        return results

    def _numbered(self, op: Create) -> Create:
        if not op.sequential:
            return op
        return op._replace(path=f"{op.path}{self._node(parent_of(op.path)).created:010d}")

    def _apply(self, op: Write, session_id: int, zxid: int, undo: list[Callable[[], None]]) -> Result:
        if isinstance(op, Create):
            return self._create(op, session_id, zxid, undo)
        node = self._node(op.path)
        if op.version not in (zk.ANY_VERSION, node.version):
            raise Refused(zk.BAD_VERSION)
        if isinstance(op, SetData):
            was = node.data, node.version

            def unset() -> None:
                node.data, node.version = was

            undo.append(unset)
            node.data, node.version = op.data, node.version + 1
            return node.stat()
        if isinstance(op, Delete):
            self._delete(op.path, node, undo)
        return Result()

    def _create(self, op: Create, session_id: int, zxid: int, undo: list[Callable[[], None]]) -> Result:
        parent = self._node(parent_of(op.path))
        if parent.owner:
            raise Refused(zk.NO_CHILDREN_FOR_EPHEMERALS)
        if op.path in self.nodes:
            raise Refused(zk.NODE_EXISTS)
        node = Znode(op.data, zxid, self._clock(), session_id if op.ephemeral else 0)
        name = op.path.rpartition("/")[2]

        def remove() -> None:
            del self.nodes[op.path]
            parent.children.discard(name)
            parent.created -= 1

        undo.append(remove)
        self.nodes[op.path] = node
        parent.children.add(name)
        parent.created += 1
        return node.stat()._replace(path=op.path)

    def _delete(self, path: str, node: Znode, undo: list[Callable[[], None]]) -> None:
        if node.children:
            raise Refused(zk.NOT_EMPTY)
        parent, name = self._node(parent_of(path)), path.rpartition("/")[2]

        def put_back() -> None:
            self.nodes[path] = node
            parent.children.add(name)

        undo.append(put_back)
        del self.nodes[path]
        parent.children.discard(name)

    def _node(self, path: str) -> Znode:
        if path not in self.nodes:
            raise Refused(zk.NO_NODE)
        return self.nodes[path]

    # -- watches

    def _tell_watches(self, op: Write) -> None:
        if isinstance(op, Check):
            return
        kind = {Create: CREATED, SetData: CHANGED, Delete: DELETED}[type(op)]
        told = self._data_watches.pop(op.path, set())
        if kind == DELETED:
            told |= self._child_watches.pop(op.path, set())
        self._tell(told, op.path, kind)
        if kind != CHANGED:
            parent = parent_of(op.path)
            self._tell(self._child_watches.pop(parent, set()), parent, CHILD)

    def _tell(self, sessions: set[int], path: str, kind: int) -> None:
        for session_id in sorted(sessions & self.sessions.keys()):
            self.sessions[session_id].receive_watch(path, kind)


class FailedAt(Refused):
    def __init__(self, index: int, error: int) -> None:
        super().__init__(error)
        self.index = index


class MemoryClient:
    """A ZooKeeper (pykafkad/zookeeper/client.py) of one MemoryZooKeeper."""

    def __init__(self, server: MemoryZooKeeper, soon: Soon, max_in_flight: int) -> None:
        self.session_id = 0
        self.is_connected = False
        self.states: list[State] = []  # that were told
        self._server = server
        self._soon = soon
        self._pipeline = Pipeline(self._send, max_in_flight)
        self._requests: deque[tuple[Operation, Answer]] = deque()  # on their way to the ensemble
        self._inbox: deque[str | Callable[[], None]] = (
            deque()
        )  # on their way back: watched paths, and answers
        self._missed: list[str] = []  # watched paths that changed, of which nothing came back
        self._watch_listeners: list[OnWatch] = []
        self._state_listeners: list[OnState] = []
        self._is_closed = False

    def submit(self, ops: Sequence[Operation], done: Done) -> None:
        if self._is_closed:
            self._soon(lambda: done([Result(zk.CLOSED)] * len(ops)))
        else:
            self._pipeline.submit(ops, done)

    def on_watch(self, listener: OnWatch) -> None:
        self._watch_listeners.append(listener)

    def on_state(self, listener: OnState) -> None:
        self._state_listeners.append(listener)

    def start(self) -> None:
        self._soon(self._begin_session)

    def close(self) -> None:
        self._is_closed = True
        self._lose_connection()
        self._server.end_session(self.session_id)
        self.session_id = 0
        self._pipeline.end(zk.CLOSED)

    # -- what a test does to it

    def disconnect(self) -> None:
        """Requests that have reached the ensemble are carried out; nothing comes back."""
        self._lose_connection()
        self._tell_state(State.DISCONNECTED)

    def reconnect(self) -> None:
        if self.session_id not in self._server.sessions:
            self._expired()
            return
        watched = self._server.watched(self.session_id) + self._missed
        self._missed.clear()
        self._server.forget_watches(self.session_id)
        self.is_connected = True
        self._tell_state(State.CONNECTED)
        for path in sorted(set(watched)):
            self._receive(path)
        self._pipeline.opened()

    def expire(self) -> None:
        """The ensemble ends the session. Who is connected learns it at once, and begins a new one."""
        self._server.end_session(self.session_id)
        if self.is_connected:
            self.disconnect()
            self._soon(self.reconnect)

    # -- inside

    def _begin_session(self) -> None:
        if self._is_closed or self.session_id:
            return
        self.session_id = self._server.new_session(self)
        self._missed.clear()
        self.is_connected = True
        self._tell_state(State.NEW_SESSION)
        self._pipeline.opened()

    def _expired(self) -> None:
        if not self.session_id:
            return
        self.session_id = 0
        self._pipeline.end(zk.SESSION_EXPIRED)
        self._tell_state(State.EXPIRED)
        self._soon(self._begin_session)

    def _lose_connection(self) -> None:
        self.is_connected = False
        self._pipeline.cut()
        self._requests.clear()
        self._missed += [what for what in self._inbox if isinstance(what, str)]
        self._inbox.clear()

    def _send(self, op: Operation, answer: Answer) -> None:
        self._requests.append((op, answer))
        self._soon(self._carry_out)

    def _carry_out(self) -> None:
        if self._requests and self.session_id in self._server.sessions:
            op, answer = self._requests.popleft()
            result = self._server.carry_out(self.session_id, op)
            self._receive(lambda: answer(result))

    def receive_watch(self, path: str, kind: int) -> None:
        if self.is_connected:
            self._receive(path)
        else:
            self._missed.append(path)

    def _receive(self, what: str | Callable[[], None]) -> None:
        self._inbox.append(what)
        self._soon(self._deliver)

    def _deliver(self) -> None:
        if not self._inbox:
            return
        what = self._inbox.popleft()
        if isinstance(what, str):
            self._tell_watch(what)
        else:
            what()

    def _tell_watch(self, path: str) -> None:
        for listener in self._watch_listeners:
            listener(path)

    def _tell_state(self, state: State) -> None:
        self.states.append(state)
        for listener in self._state_listeners:
            listener(state)


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def paths_to(path: str) -> Iterator[str]:
    """Its parents from the top, and itself."""
    parts = path.strip("/").split("/")
    for count in range(1, len(parts) + 1):
        yield "/" + "/".join(parts[:count])
