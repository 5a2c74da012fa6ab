"""Asking ZooKeeper from work that is done in slices (pykafkad/slices.py): the work waits for the answers.

    exists, children = yield from asking.ask(Exists(path), GetChildren(other))

What is not expected is a ZooKeeperError; `as_kafka_error` makes of it what a client is answered.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster import turns
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.slices import Wait, chunks
from pykafkad.zookeeper.client import (
    CLOSED,
    NO_NODE,
    NODE_EXISTS,
    OK,
    SESSION_EXPIRED,
    Create,
    GetChildren,
    ZooKeeperError,
)
from pykafkad.zookeeper.znodes import PERSISTENT, parents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.slices import Work
    from pykafkad.zookeeper.client import Operation, Result, ZooKeeper

AT_ONCE = 256  # operations handed over in one piece; the client pipelines them

log = logger("zookeeper")


class Asking:
    def __init__(self, zookeeper: ZooKeeper) -> None:
        self.zookeeper = zookeeper

    def ask(self, *ops: Operation) -> Work:
        """A list with the result of each."""
        wait = Wait()
        self.zookeeper.submit(ops, wait.come)
        return (yield from wait.result())

    def ask_all(self, ops: Sequence[Operation]) -> Work:
        """The same, however many they are."""
        results: list[Result] = []
        for some in chunks(ops, AT_ONCE):
            results += yield from self.ask(*some)
        return results

    def children(self, path: str, *, watch: bool = False) -> Work:
        """Their names, in order; none where there is no such node."""
        (result,) = yield from self.ask(GetChildren(path, watch))
        expect(result, NO_NODE, path=path)
        return sorted(result.children)

    def create(self, path: str, data: bytes | None = None, *, sequential: bool = False) -> Work:
        """The result of creating it, with what is missing above it; NODE_EXISTS is for the caller to judge."""
        op = Create(path, data, sequential=sequential)
        (result,) = yield from self.ask(op)
        if result.error == NO_NODE:
            above = [Create(parent) for parent in parents(path)[:-1]]
            for result, parent in zip((yield from self.ask(*above)), above, strict=True):
                expect(result, NODE_EXISTS, path=parent.path)
            (result,) = yield from self.ask(op)
        return expect(result, NODE_EXISTS, path=path)

    def create_persistent(self) -> Work:
        """The nodes that every broker sees to at its start."""
        for path in PERSISTENT:
            yield from self.create(path)


def expect(result: Result, *errors: int, path: str = "") -> Result:
    """The result, whose error may be one of these."""
    if result.error != OK and result.error not in errors:
        raise ZooKeeperError(result._replace(path=result.path or path))
    return result


def as_kafka_error(error: Exception) -> KafkaError:
    """What to answer with where work ended with this."""
    if isinstance(error, ZooKeeperError):
        log.warn(f"a change could not be made in ZooKeeper: {error}")
        return KafkaError(errors.UNKNOWN_SERVER_ERROR, f"ZooKeeper: {error}")
    return turns.as_kafka_error(error)


def settled(result: object) -> KafkaError | None:
    """Of work that has nothing to give."""
    return as_kafka_error(result) if isinstance(result, Exception) else None


def unread(result: object) -> KafkaError | None:
    """Why something could not be read, unless the session has ended: the next one reads it all."""
    ended = isinstance(result, ZooKeeperError) and result.error in (SESSION_EXPIRED, CLOSED)
    return None if ended else settled(result)
