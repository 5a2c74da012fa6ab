"""Client quotas (KIP-546, KIP-612, KIP-599): which there may be, which records a change comes to, which a filter finds.

An entity is a set of types with names (None: the default of the type): users, client ids, both, or addresses. Owns the
rules, in Kafka's order and words, and the changes on their way to the disk (`_ahead`). Quotas are kept and shown.
Invariant: an entity of a request is taken or refused as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.config_def import rows
from pykafkad.config_entities import QUOTA_IP, QUOTA_USER_CLIENT
from pykafkad.errors import KafkaError
from pykafkad.messages import ClientQuotaRecord
from pykafkad.net.hosts import is_a_name, unresolvable
from pykafkad.pure import java

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pykafkad.cluster.controller import Controller
    from pykafkad.cluster.metadata_records import Record

    Entity = tuple[tuple[str, str | None], ...]  # sorted by type, as in the image
    Submit = Callable[[Callable[[], Any], Callable[[Any], None]], None]

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
OF_CLIENTS = rows(QUOTA_USER_CLIENT)
OF_ADDRESSES = rows(QUOTA_IP)
LARGEST = {"SHORT": 2.0**15 - 1, "INT": 2.0**31 - 1, "LONG": 2.0**63}
ARTICLES = {"SHORT": "a SHORT", "INT": "an INT", "LONG": "a LONG"}
NO_FRACTION = 1e-6
MAX_RECORDS = 10_000
TOO_MANY = "Unable to perform excessively large batch operation."

EXACT, DEFAULT, SPECIFIED = range(3)
MATCHES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}


class Change:
    """What is asked of one entity, and what it comes to. `values`: None removes a key."""

    __slots__ = ("entity", "error", "records", "values")

    def __init__(self, types: Mapping[str, str | None]) -> None:
        self.entity = dict(types)
        self.values: dict[str, float | None] = {}
        self.error: KafkaError | None = None
        self.records: list[Record] = []

    @property
    def key(self) -> Entity:
        return tuple(sorted(self.entity.items(), key=str))

    def refuse(self, text: str) -> None:
        self.error = KafkaError(errors.INVALID_REQUEST, text)

    def __str__(self) -> str:
        """As Java shows the entity."""
        said = (f"{name}={'null' if self.entity[name] is None else self.entity[name]}" for name in self.types)
        return f"ClientQuotaEntity(entries={{{', '.join(said)}}})"

    @property
    def types(self) -> list[str]:
        return java.set_order(self.entity)


class ClientQuotas:
    def __init__(self, controller: Controller, submit: Submit) -> None:
        self._controller = controller
        self._submit = submit
        self._image = controller.image
        self._ahead: dict[Entity, tuple[int, dict[str, float]]] = {}
        self._changes = 0

    def alter(
        self, asked: Sequence[tuple[Mapping[str, str | None], Sequence[tuple[str, float | None]]]],
        validate_only: bool, done: Callable[[list[Change]], None],
    ) -> None:  # fmt: skip
        """`done` is called with one change an entity when those without an error are durable."""
        unknown = {str(types[IP]) for types, _ in asked if IP in types and is_a_name(types[IP])}

        def resolved(found: Any) -> None:
            self._alter(asked, found, validate_only, done)

        if unknown:
            self._submit(lambda: unresolvable(unknown), resolved)
        else:
            resolved(frozenset())

    def _alter(
        self,
        asked: Sequence[tuple[Mapping[str, str | None], Sequence[tuple[str, float | None]]]],
        bad_hosts: Any,
        validate_only: bool,
        done: Callable[[list[Change]], None],
    ) -> None:
        changes = self._decide(asked, bad_hosts if isinstance(bad_hosts, frozenset) else frozenset())
        records = [record for change in changes for record in change.records]
        if len(records) > MAX_RECORDS:
            for change in changes:
                change.records, change.error = [], KafkaError(errors.POLICY_VIOLATION, TOO_MANY)
            records = []
        if validate_only or not records:
            done(changes)
        else:
            self._commit(changes, records, done)

    def _decide(
        self,
        asked: Sequence[tuple[Mapping[str, str | None], Sequence[tuple[str, float | None]]]],
        bad_hosts: frozenset[str],
    ) -> list[Change]:
        """Of an entity that is asked twice only the first counts, though it is told that it does not."""
        changes: dict[Entity, Change] = {}
        for types, operations in asked:
            change = Change(types)
            known = changes.setdefault(change.key, change)
            change.values = dict(reversed(operations))  # of one key twice, the first
            if known is change and len(change.values) == len(operations):
                self._check(change, bad_hosts)
            else:
                known.refuse(f"Ignoring duplicate entity {change}")
        return list(changes.values())

    def _check(self, change: Change, bad_hosts: frozenset[str]) -> None:
        try:
            keys = allowed_keys(change, bad_hosts)
            current = self._current(change.key)
            for key, value in change.values.items():
                if value is not None:
                    check_value(keys.get(key), key, value)
            change.records = [
                (record_of(change.entity, key, value), 0)
                for key, value in change.values.items()
                if not same(value, current.get(key))
            ]
        except KafkaError as error:
            change.error = error

    def _current(self, entity: Entity) -> Mapping[str, float]:
        ahead = self._ahead.get(entity)
        return ahead[1] if ahead is not None else self._image.client_quotas.get(entity, {})

    def _commit(
        self, changes: list[Change], records: list[Record], done: Callable[[list[Change]], None]
    ) -> None:
        noted = [(change.key, self._note(change)) for change in changes if change.records]

        def durable(error: KafkaError | None) -> None:
            for entity, number in noted:
                if self._ahead.get(entity, (0, None))[0] == number:
                    del self._ahead[entity]
            for change in changes:
                if error is not None and change.error is None:
                    change.error = error
            done(changes)

        self._controller.commit(records, durable)

    def _note(self, change: Change) -> int:
        values = dict(self._current(change.key))
        for key, value in change.values.items():
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        self._changes += 1
        self._ahead[change.key] = self._changes, values
        return self._changes


def record_of(entity: Mapping[str, str | None], key: str, value: float | None) -> Any:
    parts = [
        ClientQuotaRecord.EntityData(entity_type=type, entity_name=name) for type, name in entity.items()
    ]
    return ClientQuotaRecord(
        entity=parts, key=key, value=0.0 if value is None else value, remove=value is None
    )


def same(one: float | None, other: float | None) -> bool:
    """Equal as Java's boxed doubles are: not a number is itself."""
    return one == other or (one != one and other != other)


# -- what may be


def allowed_keys(change: Change, bad_hosts: frozenset[str]) -> Mapping[str, Any]:
    """The keys of quotas that the entity may have."""
    entity = change.entity
    if not entity:
        raise refused("Invalid empty client quota entity")
    for entity_type in change.types:
        if entity_type not in TYPES:
            raise refused(f"Unhandled client quota entity type: {entity_type}")
        if entity[entity_type] == "":
            raise refused(f"Empty {entity_type} not supported")
    if IP not in entity:
        return OF_CLIENTS
    if len(entity) > 1:
        raise refused(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
        )
    if entity[IP] in bad_hosts:
        raise refused(f"{entity[IP]} is not a valid IP or resolvable host.")
    return OF_ADDRESSES


def check_value(row: Any, key: str, value: float) -> None:
    if row is None:
        raise refused(f"Invalid configuration key {key}")
    if value <= 0:
        raise refused(f"Quota {key} must be greater than 0")
    if row.type == "DOUBLE":
        return
    if value > LARGEST[row.type]:
        raise refused(f"Proposed value for {key} is too large for {ARTICLES[row.type]}.")
    if value % 1 > NO_FRACTION:
        raise refused(f"{key} cannot be a fractional value.")


def refused(text: str) -> KafkaError:
    return KafkaError(errors.INVALID_REQUEST, text)


# -- what a filter finds


class Filter:
    """Entities that have these types with these names (`exact`), and these types with any (`typed`)."""

    def __init__(self, components: Sequence[tuple[str, int, str | None]], *, strict: bool) -> None:
        self.strict = strict
        self.exact: dict[str, str | None] = {}
        self.typed: set[str] = set()
        for entity_type, match_type, match in components:
            self._add(entity_type, match_type, match)
        types = self.exact.keys() | self.typed
        if IP in types and len(types) > 1:
            raise refused(
                "Invalid entity filter component combination. IP filter component should not be used with"
                " user or clientId filter component."
            )

    def _add(self, entity_type: str, match_type: int, match: str | None) -> None:
        if not entity_type:
            raise refused("Invalid empty entity type.")
        if entity_type in self.exact or entity_type in self.typed:
            raise refused(f"Entity type {entity_type} cannot appear more than once in the filter.")
        if entity_type not in TYPES:
            raise KafkaError(errors.UNSUPPORTED_VERSION, f"Unsupported entity type {entity_type}")
        if match_type not in MATCHES:
            raise refused(f"Unknown match type {match_type}")
        if match_type == EXACT and match is None:
            raise refused(f"Request specified {MATCHES[EXACT]}, but set match string to null.")
        if match_type != EXACT and match is not None:
            raise refused(f"Request specified {MATCHES[match_type]}, but also specified a match string.")
        if match_type == SPECIFIED:
            self.typed.add(entity_type)
        else:
            self.exact[entity_type] = match

    def takes(self, entity: Entity) -> bool:
        types = dict(entity)
        if self.strict and len(types) != len(self.exact) + len(self.typed):
            return False
        return self.typed <= types.keys() and all(
            name in types and types[name] == match for name, match in self.exact.items()
        )
