"""ACLs in ZooKeeper, as Kafka 3.9's AclAuthorizer keeps them: read, and changed by whoever may be quicker.

A znode has the ACLs of one pattern, and is there while there are any. It is written with the version that was read, in
one transaction with the notification, so that nobody misses a change that was made; where somebody else was quicker, it
is read again after a moment.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.zookeeper.asking import expect
from pykafkad.cluster.zookeeper.notifications import Notifications
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.pure.acls import Acl, Pattern
from pykafkad.quiet import always
from pykafkad.slices import GO_ON, Wait
from pykafkad.zookeeper import config_znodes
from pykafkad.zookeeper.client import (
    BAD_VERSION,
    NO_NODE,
    NODE_EXISTS,
    OK,
    Create,
    Delete,
    GetData,
    Multi,
    SetData,
    ZooKeeperError,
)
from pykafkad.zookeeper.config_znodes import ACL_PATHS, ACL_ROOTS, RESOURCE_TYPES
from pykafkad.zookeeper.znodes import MalformedZnode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from pykafkad.cluster.zookeeper.asking import Asking
    from pykafkad.quiet import Allows
    from pykafkad.slices import Work
    from pykafkad.zookeeper.client import Result, Write

    Change = Callable[[list[Acl]], list[Acl]]

MAX_TRIES = 11  # of a znode that others write at the same time
AGAIN_MS, SPREAD_MS = 100, 50  # until the next try

log = logger("authorizer")


class AclZnodes:
    """`later(ms, call)` calls after so long; `random(n)`: a number below n."""

    def __init__(
        self,
        asking: Asking,
        now_ms: Callable[[], int],
        later: Callable[[float, Callable[[], None]], Any],
        random: Callable[[int], int],
        allows: Allows = always,
    ) -> None:
        self._asking = asking
        self._later = later
        self._random = random
        self.changes = {
            pattern_type: Notifications(asking, path, "acl_changes_", now_ms, log, allows)
            for pattern_type, (_, path) in ACL_ROOTS.items()
        }

    def create_paths(self) -> Work:
        for path in ACL_PATHS:
            yield from self._asking.create(path)

    # -- reading

    def patterns(self) -> Work[list[Pattern]]:
        """All that have ACLs."""
        found = []
        for pattern_type, (root, _) in ACL_ROOTS.items():
            for kind in (yield from self._asking.children(root)):
                known = next((number for number, name in RESOURCE_TYPES.items() if name == kind), None)
                if known is None:
                    log.warn(f"{root}/{kind} is of no type of resources; its ACLs count for nobody")
                    continue
                names = yield from self._asking.children(f"{root}/{kind}")
                found += [Pattern(known, name, pattern_type) for name in names]
        return found

    def read(self, patterns: Sequence[Pattern]) -> Work[tuple[dict[Pattern, list[Acl]], Exception | None]]:
        """Their ACLs; of those that cannot be read, why the first cannot."""
        results = yield from self._asking.ask_all([GetData(path_of(each)) for each in patterns])
        found: dict[Pattern, list[Acl]] = {}
        failure: Exception | None = None
        for pattern, result in zip(patterns, results, strict=True):
            try:
                found[pattern] = acls_of(pattern, expect(result, NO_NODE, path=path_of(pattern)))
            except (MalformedZnode, ZooKeeperError) as error:
                failure = failure or error
            yield GO_ON
        return found, failure

    # -- writing

    def update(self, pattern: Pattern, change: Change) -> Work[None]:
        """KafkaError where others write it all the time."""
        path = path_of(pattern)
        for _ in range(MAX_TRIES):
            (found,) = yield from self._asking.ask(GetData(path))
            before = acls_of(pattern, expect(found, NO_NODE, path=path))
            after = change(before)
            if after == before:
                return
            said = self.changes[pattern.pattern_type].op(
                config_znodes.write_acl_change(config_znodes.Pattern(*pattern))
            )
            (result,) = yield from self._asking.ask(Multi([write_of(path, found, after), said]))
            error = expect(result, NO_NODE, NODE_EXISTS, BAD_VERSION, path=path).error
            if error == OK:
                return
            if error == NO_NODE:  # what is above it, perhaps
                yield from self.create_paths()
            yield from self._pause()
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR, f"others write {path} all the time")

    def _pause(self) -> Work[None]:
        wait = Wait()
        self._later(AGAIN_MS + self._random(SPREAD_MS), wait.come)
        yield from wait.result()


def path_of(pattern: Pattern) -> str:
    return config_znodes.acl(config_znodes.Pattern(*pattern))


def acls_of(pattern: Pattern, found: Result) -> list[Acl]:
    try:
        entries = config_znodes.read_acls(found.data)
    except MalformedZnode as error:
        raise MalformedZnode(f"{path_of(pattern)}: {error}") from None
    return [Acl(*pattern, each.principal, each.host, each.operation, each.permission) for each in entries]


def write_of(path: str, found: Result, acls: Iterable[Acl]) -> Write:
    """The one operation that makes these of what was found."""
    entries = [config_znodes.Acl(each.principal, each.permission, each.host, each.operation) for each in acls]
    if not entries:
        return Delete(path, found.version)
    data = config_znodes.write_acls(entries)
    return Create(path, data) if found.error == NO_NODE else SetData(path, data, found.version)
