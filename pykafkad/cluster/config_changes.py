"""Changes of configs: what AlterConfigs and IncrementalAlterConfigs come to (KIP-226, KIP-339, KIP-412, KIP-714).

A change goes as in Kafka: the broker looks first (what is asked twice or of an unknown kind; its own configs; levels
of loggers, which are set at once and kept nowhere), then the controller (the new configs of each resource as a whole),
then the records are made durable, and only then do they count: publishers see to it, each for what goes by them. A
resource's changes are taken or refused together, each resource for itself. Invariant: requests see each
other's changes in the order in which they came, also while those are on their way to the disk (`_ahead`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from pykafkad import errors, logs
from pykafkad.cluster import config_rules, dynamic_checks, topic_names
from pykafkad.cluster.config_rules import APPEND, BROKER_LOGGER, CLIENT_METRICS, DELETE, GROUP, SET, SUBTRACT
from pykafkad.cluster.dynamic_config import accepted
from pykafkad.cluster.image import ALL_BROKERS, BROKER_RESOURCE, TOPIC_RESOURCE
from pykafkad.cluster.metadata_records import config_record
from pykafkad.cluster.turns import Turns
from pykafkad.config import BROKER_KEYS
from pykafkad.config_def import to_text
from pykafkad.errors import KafkaError
from pykafkad.messages import ClearElrRecord
from pykafkad.slices import GO_ON, chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from pykafkad.cluster.controller import Controller
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.config import BrokerConfig
    from pykafkad.slices import Done, Run

    T = TypeVar("T")
    Steps = Generator[bool, None, T]

Operation = tuple[str, int, str | None]
Denial = Callable[[int, str], int]  # of altering a resource, given its type and name: the error code, or 0

OPERATIONS = range(4)
A_TIME = 128  # keys between two looks at the clock
WORDS = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
MAX_RECORDS = 10_000

# The wordings are Kafka's.
TWICE = "Each resource must appear at most once."
KEY_TWICE = "Error due to duplicate config keys"
NO_METRICS_ON_ZOOKEEPER = (
    "AlterConfigs is only supported for topics and brokers, but resource type is CLIENT_METRICS"
)
TOO_MANY = "Unable to perform excessively large batch operation."
MIN_ISR = "min.insync.replicas"
MIN_ISR_OF_BROKER = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
MIN_ISR_REMOVED = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."


class Alteration:
    """What is asked of one resource, and what it comes to.

    `changes` are (key, operation, value); a legacy alteration sets all of them and removes the keys it does not name.
    """

    __slots__ = ("changed", "changes", "error", "is_legacy", "is_settled", "name", "records", "type")

    def __init__(self, type: int, name: str, *, is_legacy: bool) -> None:
        self.type = type
        self.name = name
        self.changes: list[Operation] = []
        self.is_legacy = is_legacy
        self.error: KafkaError | None = None
        self.is_settled = False  # nothing is left for the controller to do
        self.changed: Sequence[tuple[str, str | None]] = ()  # what is to be written; None: no longer set
        self.records: Sequence[Record] = ()

    @property
    def resource(self) -> tuple[int, str]:
        return self.type, self.name

    def refuse(self, error: KafkaError) -> None:
        self.error = error.alone()
        self.is_settled = True
        self.changed = ()


class ConfigChanges:
    """`run` does work in slices: alterations are looked at and decided one request after the other."""

    def __init__(self, config: BrokerConfig, controller: Controller, run: Run) -> None:
        self._config = config
        self._controller = controller
        self._image = controller.image
        self._run = run
        self._turns = Turns(run)
        # Configs as they will be when all that is asked for is on the disk; with the last change's number.
        self._ahead: dict[tuple[int, str], tuple[int, dict[str, str]]] = {}
        self._changes = 0

    def alter(
        self, wanted: Sequence[Alteration], validate_only: bool, done: Done, denial: Denial | None = None
    ) -> None:
        """Fills in each alteration's error. `done` is called when those without one count; with an exception where
        something went wrong that nobody thought of."""

        def decided(good: list[Alteration] | Exception) -> None:
            if isinstance(good, Exception):
                done(good)
            elif good:
                self._commit(good, done)
            else:
                done(None)

        self._turns.run(self._decided(wanted, validate_only, denial), decided)

    def _decided(
        self, wanted: Sequence[Alteration], validate_only: bool, denial: Denial | None
    ) -> Steps[list[Alteration]]:
        """Those that something is to be written for."""
        yield from self.look(wanted, validate_only, denial)
        if denial is not None:
            yield from refuse_denied(wanted, denial, says=not self._config.on_zookeeper)
        left = yield from filtered(wanted, lambda each: not each.is_settled)
        yield from self._decide(left)
        good = [] if validate_only else (yield from filtered(left, lambda each: bool(each.changed)))
        for each in good:
            each.records = self._records(each)  # of all together no more than MAX_RECORDS
            yield GO_ON
        return good

    # -- the broker's look

    def look(
        self, wanted: Sequence[Alteration], validate_only: bool, denial: Denial | None = None
    ) -> Steps[None]:
        """What is wrong is refused, and levels of loggers are set, by who is allowed to; what is not settled then is the
        controller's, which asks for itself who may alter it."""
        times: dict[tuple[int, str], int] = {}
        for each in wanted:
            times[each.resource] = times.get(each.resource, 0) + 1
            yield GO_ON
        for each in wanted:
            try:
                if times[each.resource] > 1:
                    raise KafkaError(errors.INVALID_REQUEST, TWICE)
                yield from self._look_at(each, validate_only, denial)
            except KafkaError as error:
                each.refuse(error)
            yield GO_ON

    def _look_at(self, wanted: Alteration, validate_only: bool, denial: Denial | None) -> Steps[None]:
        seen: set[str] = set()
        nulls = []
        for some in in_pieces(wanted.changes):
            seen.update(name for name, _, _ in some)
            nulls += [name for name, operation, value in some if value is None and operation != DELETE]
            yield GO_ON
        if len(seen) < len(wanted.changes):
            raise KafkaError(errors.INVALID_REQUEST, KEY_TWICE)
        if nulls:
            raise KafkaError(errors.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
        if wanted.type == BROKER_RESOURCE:
            yield from self._look_at_broker(wanted)
        elif wanted.type == BROKER_LOGGER and not wanted.is_legacy:
            if denial is not None:
                check_allowed(wanted, denial)
            yield from self._set_levels(wanted, validate_only)
        elif wanted.type == CLIENT_METRICS and self._config.on_zookeeper:
            raise KafkaError(errors.INVALID_REQUEST, NO_METRICS_ON_ZOOKEEPER)
        elif wanted.type not in (TOPIC_RESOURCE, CLIENT_METRICS, GROUP) or self._knows_no(wanted.type):
            raise KafkaError(errors.INVALID_REQUEST, f"Unknown resource type {wanted.type}")

    def _knows_no(self, type: int) -> bool:
        """Groups have no configs in a cluster on ZooKeeper."""
        return type == GROUP and self._config.on_zookeeper

    def _look_at_broker(self, wanted: Alteration) -> Steps[None]:
        if wanted.name != ALL_BROKERS and config_rules.node_number(wanted.name) != self._controller.node_id:
            why = f"Unexpected broker id, expected {self._controller.node_id}, but received {wanted.name}"
            raise KafkaError(errors.INVALID_REQUEST, why)
        per_broker = wanted.name != ALL_BROKERS
        stored = (
            {}
            if wanted.is_legacy
            else accepted(self._config.keys, self._configs(wanted.resource), per_broker=per_broker)
        )
        yield GO_ON
        texts = yield from broker_texts(stored, wanted.changes)
        try:
            yield from dynamic_checks.check(self._controller.dynamic, texts, per_broker=per_broker)
        except dynamic_checks.Refused as error:
            raise KafkaError(errors.INVALID_REQUEST, str(error)) from None

    def _set_levels(self, wanted: Alteration, validate_only: bool) -> Steps[None]:
        """Levels count at once; a restart forgets them."""
        if config_rules.node_number(wanted.name) != self._controller.node_id:
            why = f"Unexpected node id. Expected {self._controller.node_id}, but received {wanted.name}"
            raise KafkaError(errors.INVALID_REQUEST, why)
        for name, operation, value in wanted.changes:
            config_rules.check_level(name, operation, value)
            yield GO_ON
        if not validate_only:
            for name, operation, value in wanted.changes:
                logs.set_logger_level(name, value if operation == SET else None)
                yield GO_ON
        wanted.is_settled = True

    # -- the controller's

    def _decide(self, wanted: Sequence[Alteration]) -> Steps[None]:
        """What is to be written, or an error. An operation that does not exist fails them all: it is the request that
        is wrong."""
        for each in wanted:
            for some in in_pieces(each.changes):
                if any(operation not in OPERATIONS for _, operation, _ in some):
                    yield from refuse_all(wanted, KafkaError(errors.UNKNOWN_SERVER_ERROR))
                    return
                yield GO_ON
        for each in wanted:
            try:
                yield from self._decide_about(each)
            except KafkaError as error:
                each.refuse(error)
            yield GO_ON
        count = 0
        for some_of_them in in_pieces(wanted):
            count += sum(len(each.changed) for each in some_of_them)
            yield GO_ON
        if count > MAX_RECORDS:
            yield from refuse_all(wanted, KafkaError(errors.POLICY_VIOLATION, TOO_MANY))

    def _decide_about(self, wanted: Alteration) -> Steps[None]:
        old = self._configs(wanted.resource)
        changed: list[tuple[str, str | None]] = []
        for some in in_pieces(wanted.changes):
            named = [(key, self._new(wanted, key, how, old.get(key), value)) for key, how, value in some]
            changed += [(key, value) for key, value in named if must_write(wanted, old.get(key), value)]
            yield GO_ON
        if wanted.is_legacy:
            names: set[str] = set()
            for some in in_pieces(wanted.changes):
                names.update(key for key, _, _ in some)
                yield GO_ON
            changed += [(key, None) for key in old if key not in names]
            yield GO_ON
        self._check_min_isr(wanted, changed)
        if wanted.type != BROKER_RESOURCE:
            after = yield from merged(old, changed)
            self._validate(wanted, after)
        wanted.changed = changed

    def _new(
        self, wanted: Alteration, key: str, operation: int, old: str | None, value: str | None
    ) -> str | None:
        """What the key will be; None: not set."""
        if operation == SET:
            return value
        return None if operation == DELETE else self._of_list(wanted, key, operation, old, value or "")

    def _of_list(self, wanted: Alteration, key: str, operation: int, old: str | None, value: str) -> str:
        row = config_rules.key_of(self._config.keys, wanted.type, key)
        if row is None or row.type != "LIST":
            why = f"Can't {WORDS[operation]} to key {key} because its type is not LIST."
            if self._config.on_zookeeper:
                word = "append" if operation == APPEND else "subtract"
                why = f"Config value {word} is not allowed for config key: {key}"
            raise KafkaError(errors.INVALID_CONFIG, why)
        text = to_text(row.default) if old is None else old
        parts = [part for part in (text or "").split(",") if part]
        given = java_split(value)
        if operation == APPEND:
            known = set(parts)
            return ",".join(parts + [part for part in dict.fromkeys(given) if part not in known])
        return ",".join(without(parts, given))

    def _check_min_isr(self, wanted: Alteration, changed: list[tuple[str, str | None]]) -> None:
        """With eligible leader replicas (KIP-966), how many must be in sync is said for all brokers, always."""
        if wanted.type != BROKER_RESOURCE or not self._image.elr_enabled:
            return
        for key, value in changed:
            if key == MIN_ISR and wanted.name != ALL_BROKERS:
                raise KafkaError(errors.INVALID_CONFIG, MIN_ISR_OF_BROKER)
            if key == MIN_ISR and value is None:
                raise KafkaError(errors.INVALID_CONFIG, MIN_ISR_REMOVED)

    def _validate(self, wanted: Alteration, after: Mapping[str, str]) -> None:
        name = wanted.name
        if wanted.type == TOPIC_RESOURCE:
            if not name:
                raise KafkaError(errors.INVALID_REQUEST, "Default topic resources are not allowed.")
            if self._config.on_zookeeper:
                self._validate_on_zookeeper(name, after)
                return
            problem = topic_names.why_invalid(name)
            if problem is not None:
                raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, problem)
            config_rules.check_topic(self._config, after)
            self._check_exists(name)
        elif wanted.type == CLIENT_METRICS:
            config_rules.check_client_metrics(name, after)
        elif wanted.type == GROUP:
            config_rules.check_group(self._config, name, after)

    def _validate_on_zookeeper(self, name: str, after: Mapping[str, str]) -> None:
        """There it is looked first whether the topic exists, and whose value is wrong is said."""
        self._check_exists(name)
        try:
            config_rules.check_topic(self._config, after)
        except KafkaError as error:
            if not (error.message or "").startswith("Invalid value "):
                raise
            whose = f"ConfigResource(type=TOPIC, name='{name}')"
            text = f"Invalid config value for resource {whose}: {error.message}"
            raise KafkaError(error.code, text) from None

    def _check_exists(self, name: str) -> None:
        if not self._controller.exists(name):
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")

    def _records(self, wanted: Alteration) -> list[Record]:
        records: list[Record] = [
            (config_record(wanted.type, wanted.name, key, value), 0) for key, value in wanted.changed
        ]
        if self._image.elr_enabled and any(key == MIN_ISR for key, _ in wanted.changed):
            topic = wanted.name if wanted.type == TOPIC_RESOURCE else ""
            records.append((ClearElrRecord(topic_name=topic), 0))
        return records

    # -- making it so

    def _configs(self, resource: tuple[int, str]) -> dict[str, str]:
        ahead = self._ahead.get(resource)
        return ahead[1] if ahead is not None else self._image.configs.get(resource, {})

    def _commit(self, good: list[Alteration], done: Done) -> None:
        """In one turn with the end of the decision, so that nobody decides about these resources in between."""
        for each in good:
            if each.type == TOPIC_RESOURCE and not self._controller.exists(each.name):  # meanwhile
                each.refuse(
                    KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{each.name}' does not exist.")
                )
        good = [each for each in good if each.changed]
        if not good:
            done(None)
            return
        noted = [(each.resource, self._note(each)) for each in good]

        def through(error: KafkaError | None) -> None:
            for resource, number in noted:
                if self._ahead.get(resource, (0, None))[0] == number:
                    del self._ahead[resource]
            if error is not None:
                self._run(refuse_all(good, error), done)
            else:
                done(None)

        self._controller.commit([record for each in good for record in each.records], through)

    def _note(self, wanted: Alteration) -> int:
        configs = dict(self._configs(wanted.resource))
        for key, value in wanted.changed:
            if value is None:
                configs.pop(key, None)
            else:
                configs[key] = value
        self._changes += 1
        self._ahead[wanted.resource] = self._changes, configs
        return self._changes


def filtered(wanted: Sequence[Alteration], test: Callable[[Alteration], bool]) -> Steps[list[Alteration]]:
    found: list[Alteration] = []
    for some in in_pieces(wanted):
        found += filter(test, some)
        yield GO_ON
    return found


def check_allowed(wanted: Alteration, denial: Denial) -> None:
    code = denial(*wanted.resource)
    if code:
        raise KafkaError(code)


def refuse_denied(wanted: Sequence[Alteration], denial: Denial, *, says: bool) -> Steps[None]:
    """`says`: with a text, which brokers on ZooKeeper have not."""
    for each in wanted:
        if not each.is_settled:
            try:
                check_allowed(each, denial)
            except KafkaError as error:
                each.refuse(KafkaError(error.code, error.text if says else None))
        yield GO_ON


def refuse_all(wanted: Sequence[Alteration], error: KafkaError) -> Steps[None]:
    for some in in_pieces(wanted):
        for each in some:
            each.refuse(error)
        yield GO_ON


def in_pieces(items: Sequence[T]) -> Iterator[Sequence[T]]:
    """A resource may have a request full of keys, and a request be full of resources: a few at a time."""
    return chunks(items, A_TIME)


def merged(old: Mapping[str, str], changed: Sequence[tuple[str, str | None]]) -> Steps[dict[str, str]]:
    after = dict(old)
    for number, (key, value) in enumerate(changed):
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
        if number % A_TIME == 0:
            yield GO_ON
    return after


def must_write(wanted: Alteration, old: str | None, new: str | None) -> bool:
    """A broker's key is written though nothing changes: it has files read again (KAFKA-14136)."""
    return old != new or wanted.type == BROKER_RESOURCE


def java_split(text: str) -> list[str]:
    """String.split(","): empty parts at the end are dropped, but one empty text stays."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if any(parts) or text == "" else []


def without(parts: list[str], given: Iterable[str]) -> list[str]:
    """Each of the given ones takes its first like away."""
    gone = Counter(given)
    left = []
    for part in parts:
        if gone[part]:
            gone[part] -= 1
        else:
            left.append(part)
    return left


def broker_texts(stored: Mapping[str, str], changes: Sequence[Operation]) -> Steps[dict[str, str]]:
    """The layer as the broker looks at it before the controller does; for lists its rules are its own."""
    texts = dict(stored)
    for number, (name, operation, value) in enumerate(changes):
        if operation not in OPERATIONS:
            raise KafkaError(errors.INVALID_REQUEST, f"Unknown operations type {operation}")
        if operation == DELETE:
            texts.pop(name, None)
        elif operation == SET:
            texts[name] = value or ""
        else:
            texts[name] = altered_list(name, operation, texts.get(name), value or "")
        if number % A_TIME == 0:
            yield GO_ON
    return texts


def altered_list(name: str, operation: int, old: str | None, value: str) -> str:
    row = BROKER_KEYS.get(name)
    if row is None:
        raise KafkaError(errors.INVALID_CONFIG, f"Unknown config name: {name}")
    if row.type != "LIST":
        what = WORDS[operation].lower()
        raise KafkaError(errors.INVALID_CONFIG, f"Config value {what} is not allowed for config key: {name}")
    text = old if old is not None else to_text(row.default) or ""
    parts = java_split(text) if text or operation == SUBTRACT else []
    given = java_split(value)
    if operation == APPEND:
        known = set(parts)
        return ",".join(parts + [part for part in given if part not in known])
    return ",".join(without(parts, given))
