"""Client quotas (KIP-546, KIP-612, KIP-599): which there may be, which records a change comes to, which a filter finds.

An entity is a set of types with names (None: the default of the type): users, client ids, both, or addresses. Owns the
rules, in Kafka's order and words, and the changes on their way to the disk (`_ahead`). Quotas are kept and shown.
Invariant: an entity of a request is taken or refused as a whole.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.turns import Turns
from pykafkad.config_def import rows
from pykafkad.config_entities import QUOTA_IP, QUOTA_USER_CLIENT
from pykafkad.errors import KafkaError
from pykafkad.messages import ClientQuotaRecord
from pykafkad.pure import java
from pykafkad.slices import GO_ON, chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence, Set
    from typing import Any

    from pykafkad.cluster.controller import Controller
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.slices import Run

    Entity = Any  # (type, name) sorted by type, as in the image
    LookUp = Callable[[Iterable[str], Callable[[Mapping[str, str]], None]], None]

USER, CLIENT_ID, IP = "user", "client-id", "ip"
TYPES = (USER, CLIENT_ID, IP)
OF_CLIENTS = rows(QUOTA_USER_CLIENT)
OF_ADDRESSES = rows(QUOTA_IP)
LARGEST = {"SHORT": 2.0**15 - 1, "INT": 2.0**31 - 1, "LONG": 2.0**63}
ARTICLES = {"SHORT": "a SHORT", "INT": "an INT", "LONG": "a LONG"}
NO_FRACTION = 1e-6
MAX_RECORDS = 10_000
ORDERED_MAX = 64  # types of an entity; three make sense
TOO_MANY = "Unable to perform excessively large batch operation."

EXACT, DEFAULT, SPECIFIED = range(3)
MATCHES = {EXACT: "MATCH_TYPE_EXACT", DEFAULT: "MATCH_TYPE_DEFAULT", SPECIFIED: "MATCH_TYPE_SPECIFIED"}


class Change:
    """What is asked of one entity, and what it comes to. `values`: None removes a key."""

    __slots__ = ("changed", "entity", "error", "repeats", "values")

    def __init__(self, types: dict[str, str | None], operations: Sequence[tuple[str, float | None]]) -> None:
        self.entity = types
        self.values = dict(reversed(operations))  # of one key twice, the first
        self.repeats = len(self.values) < len(operations)
        self.error: KafkaError | None = None
        self.changed: list[tuple[str, float | None]] = []

    @property
    def key(self) -> Any:
        """As in the image; of what can be no entity, anything that is the same for the same."""
        parts = self.entity.items()
        return tuple(sorted(parts, key=str)) if len(parts) <= len(TYPES) else frozenset(parts)

    def refuse(self, text: str) -> None:
        self.error = KafkaError(errors.INVALID_REQUEST, text)

    def __str__(self) -> str:
        """As Java shows the entity."""
        said = (f"{name}={'null' if self.entity[name] is None else self.entity[name]}" for name in self.types)
        return f"ClientQuotaEntity(entries={{{', '.join(said)}}})"

    @property
    def types(self) -> list[str]:
        """In Java's order, as far as anybody could care."""
        return java.set_order(self.entity) if len(self.entity) <= ORDERED_MAX else list(self.entity)


class ClientQuotas:
    def __init__(self, controller: Controller, look_up: LookUp, run: Run) -> None:
        self._controller = controller
        self._look_up = look_up
        self._run = run
        self._turns = Turns(run)
        self._image = controller.image
        self._ahead: dict[Entity, tuple[int, dict[str, float]]] = {}
        self._changes = 0

    def alter(self, asked: Sequence[Change], validate_only: bool, done: Callable[[Any], None]) -> None:
        """`done` is called with one change an entity when those without an error are durable, or with an exception."""
        self._run(hosts_of(asked), lambda hosts: self._alter(asked, hosts, validate_only, done))

    def _alter(
        self, asked: Sequence[Change], hosts: set[str], validate_only: bool, done: Callable[[Any], None]
    ) -> None:
        def resolved(found: Mapping[str, str]) -> None:
            unknown = hosts.difference(found)
            self._turns.run(self._altering(asked, unknown, validate_only, done), failed)

        def failed(result: Any) -> None:
            if isinstance(result, Exception):
                done(result)

        if hosts:
            self._look_up(hosts, resolved)
        else:
            resolved({})

    def _altering(
        self,
        asked: Sequence[Change],
        unknown_hosts: Set[str],
        validate_only: bool,
        done: Callable[[list[Change]], None],
    ) -> Generator[bool, None, None]:
        changes = yield from self._decide(asked, unknown_hosts)
        count = 0
        for some in chunks(changes):
            count += sum(len(change.changed) for change in some)
            yield GO_ON
        if count > MAX_RECORDS:
            for some in chunks(changes):
                for change in some:
                    change.error = KafkaError(errors.POLICY_VIOLATION, TOO_MANY)
                yield GO_ON
        if validate_only or not 0 < count <= MAX_RECORDS:
            done(changes)
            return
        records: list[Record] = []
        for change in changes:
            records += [(record_of(change.entity, key, value), 0) for key, value in change.changed]
            yield GO_ON
        self._commit(changes, records, done)

    def _decide(
        self, asked: Sequence[Change], unknown_hosts: Set[str]
    ) -> Generator[bool, None, list[Change]]:
        """Of an entity that is asked twice only the first counts, though it is told that it does not."""
        changes: dict[Entity, Change] = {}
        for change in asked:
            known = changes.setdefault(change.key, change)
            if known is change and not change.repeats:
                self._check(change, unknown_hosts)
            else:
                known.refuse(f"Ignoring duplicate entity {change}")
            yield GO_ON
        return list(changes.values())

    def _check(self, change: Change, unknown_hosts: Set[str]) -> None:
        try:
            keys = allowed_keys(change, unknown_hosts)
            current = self._current(change.key)
            for key, value in change.values.items():
                if value is not None:
                    check_value(keys.get(key), key, value)
            change.changed = [
                (key, value) for key, value in change.values.items() if not same(value, current.get(key))
            ]
        except KafkaError as error:
            change.error = error.alone()

    def _current(self, entity: Entity) -> Mapping[str, float]:
        ahead = self._ahead.get(entity)
        return ahead[1] if ahead is not None else self._image.client_quotas.get(entity, {})

    def _commit(
        self, changes: list[Change], records: list[Record], done: Callable[[list[Change]], None]
    ) -> None:
        noted = [(change.key, self._note(change)) for change in changes if change.changed]

        def through(error: KafkaError | None) -> None:
            for entity, number in noted:
                if self._ahead.get(entity, (0, None))[0] == number:
                    del self._ahead[entity]
            for change in changes:
                if error is not None and change.error is None:
                    change.error = error
            done(changes)

        self._controller.commit(records, through)

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


def hosts_of(asked: Sequence[Change]) -> Generator[bool, None, set[str]]:
    hosts: set[str] = set()
    for some in chunks(asked):
        hosts.update(change.entity[IP] or "" for change in some if IP in change.entity)
        yield GO_ON
    return hosts - {""}


def record_of(entity: Mapping[str, str | None], key: str, value: float | None) -> ClientQuotaRecord:
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


def allowed_keys(change: Change, unknown_hosts: Set[str]) -> Mapping[str, Any]:
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
    if entity[IP] in unknown_hosts:
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
