"""The ACLs of a cluster on ZooKeeper: read into the image, and changed for everybody.

What counts is what the znodes say (acl_znodes.py). A change is written, read back into our image, published, and then
answered; other brokers read it when the notification comes. A notification only names what is to be read. What is lost
with a session, watches and perhaps notifications, is made good by reading everything in the next one.
Invariants: one thing is read or written after the other (`_line`), so that the image never goes back; the image changes
in the line of the controller's requests (`in_line`). A start without all ACLs is none, and what cannot be read later
stays as it was.
"""

from __future__ import annotations

from functools import partial
from hashlib import blake2b

from pykafkad import errors
from pykafkad.cluster.acls import Deleted, KnownAcls, record_of
from pykafkad.cluster.turns import Turns, tell, through
from pykafkad.cluster.zookeeper.asking import as_kafka_error, settled, unread
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import RemoveAccessControlEntryRecord
from pykafkad.pure.acls import (
    NO_NAME,
    ONE_CLUSTER,
    OPERATIONS,
    PATTERNS,
    PERMISSIONS,
    TYPES,
    Pattern,
    pattern_of,
    refused,
)
from pykafkad.pure.authorization import CLUSTER, THE_CLUSTER
from pykafkad.slices import GO_ON
from pykafkad.zookeeper.client import State, ZooKeeperError
from pykafkad.zookeeper.config_znodes import OPERATIONS as KNOWN_OPERATIONS
from pykafkad.zookeeper.config_znodes import read_acl_change
from pykafkad.zookeeper.znodes import MalformedZnode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pykafkad.cluster.controller import Told
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.publishing import Publishers
    from pykafkad.cluster.zookeeper.acl_znodes import AclZnodes
    from pykafkad.cluster.zookeeper.notifications import Notifications
    from pykafkad.pure.acl_rules import Rules
    from pykafkad.pure.acls import Acl, Filter
    from pykafkad.slices import Done, Run, Work
    from pykafkad.zookeeper.client import ZooKeeper

NOT_MADE = "Failed to create ACL"

log = logger("authorizer")


class ClusterAcls(KnownAcls):
    """`in_line(work, done)` does work that changes the image."""

    def __init__(
        self,
        zookeeper: ZooKeeper,
        znodes: AclZnodes,
        image: Image,
        rules: Rules,
        publishers: Publishers,
        in_line: Callable[[Work, Done], None],
        run: Run,
    ) -> None:
        super().__init__(image, rules)
        self._znodes = znodes
        self._publishers = publishers
        self._in_line = in_line
        self._line = Turns(run)
        self._is_loaded = False
        self._to_read: set[int] = set()  # pattern types whose notifications are going to be read
        zookeeper.on_watch(self._on_watch)
        zookeeper.on_state(self._on_state)

    # -- reading

    def load(self, done: Told) -> None:
        """Everything there is; from then on, what others write."""
        self._is_loaded = True
        self._line.run(self._load(), lambda result: tell(done, settled(result)))

    def _load(self) -> Work[None]:
        """A path that is not there could not be watched."""
        yield from self._znodes.create_paths()
        for changes in self._znodes.changes.values():
            yield from changes.skip()
        found: list[Pattern] = yield from self._znodes.patterns()
        yield from self._refresh({*found, *self.rules.patterns})

    def _refresh(self, patterns: Iterable[Pattern]) -> Work[None]:
        """The image says of these what the znodes say now. Those that cannot be read stay as they are, and hide no
        other."""
        found, failure = yield from self._znodes.read(list(patterns))
        yield from through(self._in_line, self._apply(found))
        if failure is not None:
            raise failure

    def _apply(self, found: dict[Pattern, list[Acl]]) -> Work[None]:
        has_changed = False
        for pattern, acls in found.items():
            now, before = set(acls), set(self.rules.of(pattern))
            for acl in now ^ before:
                is_new = acl in now
                self._image.apply(
                    record_of(id_of(acl), acl) if is_new else RemoveAccessControlEntryRecord(id=id_of(acl))
                )
                has_changed = True
            yield GO_ON
        if has_changed:
            yield from self._publishers.publish(self._image.take_delta())

    def _on_watch(self, path: str) -> None:
        for pattern_type, changes in self._znodes.changes.items():
            if path == changes.path and self._is_loaded and pattern_type not in self._to_read:
                self._to_read.add(pattern_type)
                self._line.run(self._read_changes(pattern_type, changes), self._was_read)

    def _read_changes(self, pattern_type: int, changes: Notifications) -> Work[None]:
        self._to_read.discard(pattern_type)
        said = yield from changes.take()
        if said is None:
            yield from self._load()
            return
        named = yield from changes.named(said, lambda data: Pattern(*read_acl_change(data, pattern_type)))
        if named:
            yield from self._refresh(named)

    def _on_state(self, state: State) -> None:
        if state is State.NEW_SESSION and self._is_loaded:
            self._line.run(self._load(), self._was_read)

    def _was_read(self, result: object) -> None:
        error = unread(result)
        if error is not None:
            log.error(f"ACLs could not be read: {error}")

    # -- writing

    def create(self, acls: Sequence[Acl], done: Callable[[list[KafkaError | None]], None]) -> None:
        found: dict[Acl, KafkaError | None] = {}

        def ended(result: object) -> None:
            error = settled(result)
            done([found.get(acl, error) for acl in acls])

        self._line.run(self._creating(acls, found), partial(tell, ended))

    def _creating(self, acls: Sequence[Acl], found: dict[Acl, KafkaError | None]) -> Work[None]:
        """Those of one pattern come to be together, or not at all."""
        wanted: dict[Pattern, list[Acl]] = {}
        for acl in acls:
            found[acl] = refusal_of(acl)
            if found[acl] is None:
                wanted.setdefault(pattern_of(acl), []).append(acl)
            yield GO_ON
        for pattern, new in wanted.items():
            error = yield from self._update(pattern, partial(with_more, new))
            found.update(dict.fromkeys(new, error))
        yield from self._refresh(wanted)

    def _update(self, pattern: Pattern, change: Callable[[list[Acl]], list[Acl]]) -> Work[KafkaError | None]:
        try:
            yield from self._znodes.update(pattern, change)
        except (KafkaError, ZooKeeperError, MalformedZnode) as error:
            return as_kafka_error(error).alone()
        return None

    def delete(self, filters: Sequence[Filter], done: Callable[[list[Deleted]], None]) -> None:
        found: list[dict[Acl, KafkaError | None]] = [{} for _ in filters]

        def ended(result: object) -> None:
            error = settled(result)
            done([Deleted(error, list(each.items())) for each in found])

        self._line.run(self._deleting(filters, found), partial(tell, ended))

    def _deleting(self, filters: Sequence[Filter], found: list[dict[Acl, KafkaError | None]]) -> Work[None]:
        """Patterns that filters name are looked up; those that they may mean are the ones known here. An ACL goes with
        the first filter that means it."""
        wanted: dict[Pattern, list[int]] = {}
        for number, each in enumerate(filters):
            yield GO_ON
            listed = each.patterns
            for pattern in self.rules.patterns if listed is None else listed:
                if each.names_its_patterns or (each.takes(pattern) and self.rules.has(pattern)):
                    wanted.setdefault(pattern, []).append(number)
                yield GO_ON
        for pattern, numbers in wanted.items():
            gone: dict[Acl, int] = {}
            error = yield from self._update(pattern, partial(without, filters, numbers, gone))
            for acl, number in gone.items():
                found[number][acl] = error
        yield from self._refresh(wanted)


def with_more(new: Sequence[Acl], acls: list[Acl]) -> list[Acl]:
    return list(dict.fromkeys([*acls, *new]))


def without(
    filters: Sequence[Filter], numbers: Sequence[int], gone: dict[Acl, int], acls: list[Acl]
) -> list[Acl]:
    """Those that none of these filters means; the others are noted, also where it takes several tries."""
    kept = []
    for acl in acls:
        number = next((each for each in numbers if filters[each].takes_entry(*acl[3:])), None)
        if number is None:
            kept.append(acl)
        else:
            gone.setdefault(acl, number)
    return kept


def refusal_of(acl: Acl) -> KafkaError | None:
    """As Kafka 3.9 words it."""
    if acl.resource_type == CLUSTER and acl.name != THE_CLUSTER:
        return refused(ONE_CLUSTER)
    if not acl.name:
        return refused(NO_NAME)
    known = (
        acl.resource_type in TYPES
        and acl.pattern_type in PATTERNS
        and acl.operation in OPERATIONS
        and acl.operation in KNOWN_OPERATIONS
        and acl.permission in PERMISSIONS
    )
    if not known or "/" in acl.name:
        return refused(NOT_MADE)
    return None if ":" in acl.principal else KafkaError(errors.UNKNOWN_SERVER_ERROR)


def id_of(acl: Acl) -> bytes:
    """In the image ACLs have ids; in ZooKeeper they have none."""
    return blake2b(repr(tuple(acl)).encode(), digest_size=16).digest()
