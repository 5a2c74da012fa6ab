"""ZooKeeper's wire before the one in memory (tests/zookeeper_kit.py), for clients that speak it: kazoo.

One thread a connection. What a test does to it: `cut` connections, `expire` sessions, `silence` answers.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any

from kazoo.protocol.serialization import (
    read_buffer,
    read_string,
    stat_struct,
    write_buffer,
    write_string,
)

from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper.client import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Result,
    SetData,
)
from tests.zookeeper_kit import MemoryZooKeeper

CREATE, DELETE, EXISTS, GET_DATA, SET_DATA, OLD_GET_CHILDREN, PING, GET_CHILDREN, CHECK, MULTI, CREATE2, CLOSE, AUTH = (
    1, 2, 3, 4, 5, 8, 11, 12, 13, 14, 15, -11, 100,
)  # fmt: skip
SASL = 102  # no such login is taken
AUTH_FAILED = -115
WATCH_XID, PING_XID = -1, -2
CONNECTED = 3


class ZooKeeperServer:
    def __init__(self) -> None:
        self.memory = MemoryZooKeeper()
        self.lock = threading.RLock()
        self.logins: list[tuple[str, bytes]] = []
        self.acls: list[list[tuple[int, str, str]]] = []  # of each create
        self.spoil: Callable[[bytes], bytes] | None = None  # what comes of the bytes of an answer
        self._sessions: dict[int, Session] = {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """All connections."""
        with self.lock:
            for session in self._sessions.values():
                session.cut()

    def expire(self) -> None:
        """All sessions."""
        with self.lock:
            for session_id in list(self._sessions):
                self.memory.end_session(session_id)
            self.cut()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError, EOFError):
            if connection.recv(4, socket.MSG_PEEK) == b"srvr":
                connection.sendall(b"Mode: standalone\n")
                return
            session = self._shake_hands(connection)
            while session is not None and self._answer(session, receive(connection)):
                pass

    def _shake_hands(self, connection: socket.socket) -> Session | None:
        _, _, timeout_ms, session_id = struct.unpack_from("!iqiq", receive(connection))
        with self.lock:
            is_over = session_id != 0 and session_id not in self.memory.sessions
            if session_id == 0:
                session = Session()
                session_id = self.memory.new_session(session)
                self._sessions[session_id] = session
            if not is_over:
                self._sessions[session_id].begin(session_id, connection)
                self.memory.forget_watches(session_id)
            answer = (
                struct.pack("!iiq", 0, 0 if is_over else timeout_ms, session_id)
                + write_buffer(bytes(16))
                + b"\0"
            )
            connection.sendall(self.spoilt(struct.pack("!i", len(answer)) + answer))
        return None if is_over else self._sessions[session_id]

    def _answer(self, session: Session, request: bytes) -> bool:
        """False: the session is closed."""
        xid, kind = struct.unpack_from("!ii", request)
        with self.lock:
            if kind == CLOSE:
                self.memory.end_session(session.id)
            result, body = Result(), b""
            if kind == AUTH:
                scheme, offset = read_string(request, 12)
                self.logins.append((scheme, read_buffer(request, offset)[0]))
            elif kind not in (PING, CLOSE, SASL):
                op, _ = self._read(request, 8, kind)
                result = self.memory.carry_out(session.id, op)
                body = multi_body(op, result) if isinstance(op, Multi) else body_of(op, kind, result)
            error = AUTH_FAILED if kind == SASL else zk.OK if kind == MULTI else result.error
            header = struct.pack("!iqi", xid, self.memory.zxid, error)
            answer = header + (b"" if error else body)
            session.send_bytes(self.spoilt(struct.pack("!i", len(answer)) + answer))
        return kind != CLOSE

    def spoilt(self, answer: bytes) -> bytes:
        """The first one after it was asked for."""
        spoil, self.spoil = self.spoil, None
        return answer if spoil is None else spoil(answer)

    def _read(self, data: bytes, offset: int, kind: int) -> tuple[Operation, int]:
        if kind == MULTI:
            return self._read_multi(data, offset)
        path, offset = read_string(data, offset)
        if kind in (CREATE, CREATE2):
            value, offset = read_buffer(data, offset)
            acl, offset = read_acl(data, offset)
            self.acls.append(acl)
            (flags,) = struct.unpack_from("!i", data, offset)
            return Create(path, value, bool(flags & 1), bool(flags & 2)), offset + 4
        if kind == SET_DATA:
            value, offset = read_buffer(data, offset)
            return SetData(path, value, *struct.unpack_from("!i", data, offset)), offset + 4
        if kind in (DELETE, CHECK):
            made = Delete if kind == DELETE else Check
            return made(path, *struct.unpack_from("!i", data, offset)), offset + 4
        reads: dict[int, Any] = {
            EXISTS: Exists,
            GET_DATA: GetData,
            OLD_GET_CHILDREN: GetChildren,
            GET_CHILDREN: GetChildren,
        }
        return reads[kind](path, data[offset] == 1), offset + 1

    def _read_multi(self, data: bytes, offset: int) -> tuple[Multi, int]:
        ops: list[Any] = []
        while True:
            kind, is_done, _ = struct.unpack_from("!i?i", data, offset)
            offset += 9
            if is_done:
                return Multi(ops), offset
            op, offset = self._read(data, offset, kind)
            ops.append(op)


class Session:
    def __init__(self) -> None:
        self.id = 0
        self._connection: socket.socket | None = None

    def begin(self, session_id: int, connection: socket.socket) -> None:
        self.id = session_id
        self._connection = connection

    def send(self, frame: bytes) -> None:
        if self._connection is not None:
            send(self._connection, frame)

    def send_bytes(self, data: bytes) -> None:
        if self._connection is not None:
            self._connection.sendall(data)

    def cut(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def receive_watch(self, path: str, kind: int) -> None:
        with contextlib.suppress(OSError):
            event = struct.pack("!ii", kind, CONNECTED) + write_string(path)
            self.send(struct.pack("!iqi", WATCH_XID, -1, 0) + event)


def body_of(op: Operation, kind: int, result: Result) -> bytes:
    if isinstance(op, Create):
        return bytes(write_string(result.path)) + (stat(result) if kind == CREATE2 else b"")
    if isinstance(op, GetData):
        return bytes(write_buffer(result.data)) + stat(result)
    if isinstance(op, GetChildren):
        names = b"".join(map(write_string, result.children))
        more = b"" if kind == OLD_GET_CHILDREN else stat(result)
        return struct.pack("!i", len(result.children)) + names + more
    return b"" if isinstance(op, Delete | Check) else stat(result)


def multi_body(op: Multi, result: Result) -> bytes:
    """Of those before the one that failed, the error is 0, as ZooKeeper has it."""
    kinds = {Create: CREATE, SetData: SET_DATA, Delete: DELETE, Check: CHECK}
    failed = next(
        (at for at, each in enumerate(result.results) if each.error not in (0, zk.ROLLED_BACK)), None
    )
    parts = []
    for at, (each, one) in enumerate(zip(result.results, op.ops, strict=True)):
        if failed is None:
            kind = kinds[type(one)]
            parts.append(struct.pack("!i?i", kind, False, 0) + body_of(one, kind, each))
        else:
            error = 0 if at < failed else each.error
            parts.append(struct.pack("!i?ii", -1, False, error, error))
    return b"".join(parts) + struct.pack("!i?i", -1, True, -1)


def read_acl(data: bytes, offset: int) -> tuple[list[tuple[int, str, str]], int]:
    (count,) = struct.unpack_from("!i", data, offset)
    offset += 4
    found = []
    for _ in range(count):
        (permissions,) = struct.unpack_from("!i", data, offset)
        scheme, offset = read_string(data, offset + 4)
        identity, offset = read_string(data, offset)
        found.append((permissions, scheme, identity or ""))
    return found, offset


def stat(result: Result) -> bytes:
    return bytes(
        stat_struct.pack(
            result.czxid,
            result.czxid,
            max(result.ctime_ms, 0),
            0,
            result.version,
            0,
            0,
            result.owner,
            0,
            0,
            0,
        )
    )


def receive(connection: socket.socket) -> bytes:
    (length,) = struct.unpack("!i", exactly(connection, 4))
    return exactly(connection, length)


def exactly(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def send(connection: socket.socket, frame: bytes) -> None:
    connection.sendall(struct.pack("!i", len(frame)) + frame)
