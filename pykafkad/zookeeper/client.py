"""What may be asked of ZooKeeper, and what is told: by kazoo_client.py, and in memory by tests/zookeeper_kit.py.

All of it is on the loop: nothing blocks, and callbacks come one after the other.
What is submitted is sent in that order, pipelined, and answered in that order. Where the connection is lost, what has no
answer yet is sent again over the next one of the same session. So an operation may be carried out twice: NODE_EXISTS,
NO_NODE and BAD_VERSION can come of one's own first try, and whoever must know reads what is there.
Where the session expires, what has no answer yet is answered with SESSION_EXPIRED, and `on_state` is told EXPIRED after
that: the ephemeral nodes and the watches of the session are gone. What is submitted from then on waits for the next
session (NEW_SESSION).
Watches fire once. A path is told when its node may have changed in what was watched, before any answer shows the
change; whoever listens reads again, with a new watch. After a lost connection every watched path of the session is told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

ANY_VERSION = -1

# Errors that come up, by ZooKeeper's numbers (KeeperException.Code).
OK = 0
ROLLED_BACK = -2  # RUNTIMEINCONSISTENCY: of a Multi, an operation behind the one that failed
CONNECTION_LOST = -4  # never told by submit
MARSHALLING_ERROR = -5  # what was sent or answered is too large (jute.maxbuffer)
BAD_ARGUMENTS = -8
NO_NODE = -101
NO_AUTH = -102
BAD_VERSION = -103
NO_CHILDREN_FOR_EPHEMERALS = -108
NODE_EXISTS = -110
NOT_EMPTY = -111
SESSION_EXPIRED = -112
CLOSED = -116  # the client was closed before the answer

NAMES = {
    OK: "OK",
    ROLLED_BACK: "RUNTIME_INCONSISTENCY",
    CONNECTION_LOST: "CONNECTION_LOSS",
    MARSHALLING_ERROR: "MARSHALLING_ERROR",
    BAD_ARGUMENTS: "BAD_ARGUMENTS",
    NO_NODE: "NO_NODE",
    NO_AUTH: "NO_AUTH",
    BAD_VERSION: "BAD_VERSION",
    NO_CHILDREN_FOR_EPHEMERALS: "NO_CHILDREN_FOR_EPHEMERALS",
    NODE_EXISTS: "NODE_EXISTS",
    NOT_EMPTY: "NOT_EMPTY",
    SESSION_EXPIRED: "SESSION_EXPIRED",
    CLOSED: "CLOSED",
}


class Create(NamedTuple):
    """`data` None: no data, which is not the same as empty data. Sequential: ten digits are added to the path."""

    path: str
    data: bytes | None = None
    ephemeral: bool = False
    sequential: bool = False


class SetData(NamedTuple):
    path: str
    data: bytes | None
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """That the node has this version; in a Multi only."""

    path: str
    version: int


class GetData(NamedTuple):
    """A watch is told when the data changes or the node goes; none is left where there is no node."""

    path: str
    watch: bool = False


class GetChildren(NamedTuple):
    """A watch is told when children come or go, or the node goes; none is left where there is no node."""

    path: str
    watch: bool = False


class Exists(NamedTuple):
    """A watch is told when the node comes, goes or has other data; it is left where there is no node, too."""

    path: str
    watch: bool = False


class Multi(NamedTuple):
    """All of them or none: Create, SetData, Delete and Check."""

    ops: Sequence[Write]


Write = Create | SetData | Delete | Check
Operation = Write | GetData | GetChildren | Exists | Multi


class Result(NamedTuple):
    """What came of one operation; what it does not tell of has its default.

    Create tells path (with the digits), version and czxid; GetData data, version, czxid, owner and ctime_ms; SetData
    and Exists the same without the data; GetChildren children and the same of the node. A Multi has the results of its
    operations in `results`, where Create tells no czxid, and as `error` the one that it failed by.
    """

    error: int = OK
    path: str = ""
    data: bytes | None = None
    version: int = -1
    czxid: int = -1
    owner: int = 0  # session id of an ephemeral node's owner
    ctime_ms: int = -1
    children: Sequence[str] = ()
    results: Sequence[Result] = ()


class State(Enum):
    NEW_SESSION = "new session"  # the first, or the one after an expired one
    DISCONNECTED = "disconnected"
    CONNECTED = "connected"  # again, in the same session
    EXPIRED = "expired"
    FAILED = "failed"  # ZooKeeper refuses the login; it is tried again


Done = Callable[[list[Result]], None]
OnWatch = Callable[[str], None]
OnState = Callable[[State], None]


class ZooKeeper(Protocol):
    @property
    def session_id(self) -> int:
        """0: there is none."""

    def submit(self, ops: Sequence[Operation], done: Done) -> None:
        """`done` is called once with a result for each of `ops`: later, or, where `ops` is empty, perhaps at once."""

    def on_watch(self, listener: OnWatch) -> None:
        """Every listener is told of every path, in the order in which they were added."""

    def on_state(self, listener: OnState) -> None: ...
    def start(self) -> None:
        """Connect; NEW_SESSION is told when that is done."""

    def close(self) -> None:
        """End the session, and with it its ephemeral nodes. What has no answer yet is answered with CLOSED."""


class ZooKeeperError(Exception):
    """An operation failed in a way that whoever asked did not expect."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.error = result.error
        super().__init__(f"{NAMES.get(result.error, result.error)} for {result.path or 'ZooKeeper'}")


def error_of(results: Sequence[Result]) -> int:
    """Of a Multi, the error that it failed by: the others say only that they did not come to be."""
    for result in results:
        if result.error not in (OK, ROLLED_BACK):
            return result.error
    return next((result.error for result in results if result.error), OK)
