"""The ACLs that the metadata has, as the authorizer decides by them, and how they are changed.

KnownAcls follows the image: it has a record of each ACL by an id, the authorizer's rules have what they say. A change is
published in slices, so what takes rights away comes first: in between nobody may do what he may neither before nor after.
LocalAcls changes them in this node's own metadata log, one request after the other, as Kafka's controller does: an ACL
that is there already is not made again, and a request comes to be as a whole or not at all.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import AccessControlEntryRecord, RemoveAccessControlEntryRecord
from pykafkad.pure.acls import ALLOW, DENY, Acl, check, check_codes, check_filter
from pykafkad.slices import GO_ON
from pykafkad.uuids import random_uuid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pykafkad.cluster.controller import Controller
    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.pure.acl_rules import Rules
    from pykafkad.pure.acls import Filter
    from pykafkad.slices import Work

MAX_RECORDS = 10_000  # of a request, as in Kafka
TOO_MANY = "Unable to perform excessively large batch operation."
TOO_MANY_GO = f"Cannot remove more than {MAX_RECORDS} acls in a single delete operation."

log = logger("authorizer")


class Deleted(NamedTuple):
    """What one filter of a DeleteAclsRequest came to: the ACLs that it means, each with what kept it from going."""

    error: KafkaError | None
    acls: Sequence[tuple[Acl, KafkaError | None]]


class Acls(Protocol):
    """What handlers ask: `done` is called once, when what changed counts here."""

    def matching(self, wanted: Filter) -> Iterator[Acl | None]:
        """Those that it means; None in between."""

    def create(self, acls: Sequence[Acl], done: Callable[[list[KafkaError | None]], None]) -> None:
        """`done` is told what kept each from being made."""

    def delete(self, filters: Sequence[Filter], done: Callable[[list[Deleted]], None]) -> None: ...


class KnownAcls:
    def __init__(self, image: Image, rules: Rules) -> None:
        self._image = image
        self._known: dict[bytes, Acl] = {}  # by id
        self._ids: dict[Acl, list[bytes]] = {}  # a log that others wrote may have one twice
        self.rules = rules
        self.matching = rules.matching

    def ids_of(self, acl: Acl) -> Sequence[bytes]:
        return self._ids.get(acl, ())

    # -- following

    def publish(self, delta: Delta) -> Work:
        new: list[tuple[bytes, Acl]] = []
        gone: list[tuple[bytes, Acl]] = []
        for acl_id in list(self._image.acls if delta.is_whole else delta.acls):
            before, now = self._known.get(acl_id), self._now(acl_id)
            if before != now:
                gone += [(acl_id, before)] if before is not None else []
                new += [(acl_id, now)] if now is not None else []
            yield GO_ON
        for permission in (DENY, ALLOW):
            for acl_id, acl in new:
                if acl.permission == permission:
                    self._add(acl_id, acl)
                yield GO_ON
            for acl_id, acl in gone:
                if acl.permission != permission:
                    self._remove(acl_id, acl)
                yield GO_ON

    def _now(self, acl_id: bytes) -> Acl | None:
        record = self._image.acls.get(acl_id)
        if record is None:
            return None
        acl = acl_of(record)
        try:
            check_codes(acl)
        except KafkaError as error:
            log.error(f"{acl} counts for nobody: {error.text}")
            return None
        return acl

    def _add(self, acl_id: bytes, acl: Acl) -> None:
        self._known[acl_id] = acl
        self._ids.setdefault(acl, []).append(acl_id)
        self.rules.add(acl)

    def _remove(self, acl_id: bytes, acl: Acl) -> None:
        if self._known.get(acl_id) == acl:
            del self._known[acl_id]
        ids = self._ids[acl]
        ids.remove(acl_id)
        if not ids:
            del self._ids[acl]
            self.rules.remove(acl)


class LocalAcls(KnownAcls):
    def __init__(self, image: Image, rules: Rules, controller: Controller) -> None:
        super().__init__(image, rules)
        self._controller = controller

    def create(self, acls: Sequence[Acl], done: Callable[[list[KafkaError | None]], None]) -> None:
        found: list[KafkaError | None] = []

        def told(error: KafkaError | None) -> None:
            done(found if error is None else [each or error for each in padded(found, len(acls))])

        self._controller.in_turn(lambda: self._creating(acls, found), told)

    def _creating(self, acls: Sequence[Acl], found: list[KafkaError | None]) -> Work[list[Record]]:
        new: dict[Acl, None] = {}
        for acl in acls:
            error = refusal_of(acl)
            found.append(error)
            if error is None and not self.rules.holds(acl):
                new[acl] = None
            yield GO_ON
        if len(new) > MAX_RECORDS:
            raise KafkaError(errors.POLICY_VIOLATION, TOO_MANY)
        records: list[Record] = []
        for acl in new:
            records.append((record_of(random_uuid(), acl), 0))
            yield GO_ON
        return records

    def delete(self, filters: Sequence[Filter], done: Callable[[list[Deleted]], None]) -> None:
        found: list[Deleted] = []

        def told(error: KafkaError | None) -> None:
            done(found if error is None else [Deleted(error, ())] * len(filters))

        self._controller.in_turn(lambda: self._deleting(filters, found), told)

    def _deleting(self, filters: Sequence[Filter], found: list[Deleted]) -> Work[list[Record]]:
        ids: dict[bytes, None] = {}
        for wanted in filters:
            yield GO_ON
            try:
                check_filter(wanted)
            except KafkaError as error:
                found.append(Deleted(error.alone(), ()))
                continue
            matching: list[tuple[Acl, None]] = []
            for acl in self.matching(wanted):
                if acl is not None:
                    matching.append((acl, None))
                    ids.update(dict.fromkeys(self.ids_of(acl)))
                yield GO_ON
            if len(ids) > MAX_RECORDS:
                raise KafkaError(errors.INVALID_REQUEST, TOO_MANY_GO)
            found.append(Deleted(None, matching))
        records: list[Record] = []
        for acl_id in ids:
            records.append((RemoveAccessControlEntryRecord(id=acl_id), 0))
            yield GO_ON
        return records


def refusal_of(acl: Acl) -> KafkaError | None:
    try:
        check(acl)
    except KafkaError as error:
        return error.alone()
    return None


def padded(found: list[KafkaError | None], count: int) -> list[KafkaError | None]:
    """Where the planning itself went wrong."""
    return found + [None] * (count - len(found))


def acl_of(record: AccessControlEntryRecord) -> Acl:
    return Acl(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )


def record_of(acl_id: bytes, acl: Acl) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        id=acl_id,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )
