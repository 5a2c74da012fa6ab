"""Changes of configs: what AlterConfigs and IncrementalAlterConfigs come to (KIP-226, KIP-339, KIP-412, KIP-714).

A change goes as in Kafka: the broker looks first (what is asked twice or of an unknown kind; its own configs; levels
of loggers, which are set at once and kept nowhere), then the controller (the new configs of each resource as a whole),
then the records are made durable, and only then do they count: for the topic's partitions, the broker, the clients'
telemetry. A resource's changes are taken or refused together, each resource for itself. Invariant: requests see each
other's changes in the order in which they came, also while those are on their way to the disk (`_ahead`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykafkad import errors, logs
from pykafkad.cluster import config_rules, dynamic_checks, topic_names
from pykafkad.cluster.config_rules import APPEND, BROKER_LOGGER, CLIENT_METRICS, DELETE, GROUP, SET, SUBTRACT
from pykafkad.cluster.dynamic_config import accepted
from pykafkad.cluster.handover import config_record
from pykafkad.cluster.image import ALL_BROKERS, BROKER_RESOURCE, TOPIC_RESOURCE
from pykafkad.config import BROKER_KEYS
from pykafkad.config_def import to_text
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.messages import ClearElrRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pykafkad.cluster.controller import Controller
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.config import BrokerConfig

WORDS = {APPEND: "APPEND", SUBTRACT: "SUBTRACT"}
MAX_RECORDS = 10_000
CONFIG_RECORD = 4
NAMES = {TOPIC_RESOURCE: "topic", BROKER_RESOURCE: "node", CLIENT_METRICS: "client metrics", GROUP: "group"}

# The wordings are Kafka's.
TWICE = "Each resource must appear at most once."
KEY_TWICE = "Error due to duplicate config keys"
TOO_MANY = "Unable to perform excessively large batch operation."
MIN_ISR = "min.insync.replicas"
MIN_ISR_OF_BROKER = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
MIN_ISR_REMOVED = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."

log = logger("config")


class Alteration:
    """What is asked of one resource, and what it comes to.

    `changes` are (key, operation, value); a legacy alteration sets all of them and removes the keys it does not name.
    """

    __slots__ = ("changes", "error", "is_legacy", "is_settled", "name", "records", "type")

    def __init__(
        self, type: int, name: str, changes: list[tuple[str, int, str | None]], *, is_legacy: bool
    ) -> None:
        self.type = type
        self.name = name
        self.changes = changes
        self.is_legacy = is_legacy
        self.error: KafkaError | None = None
        self.is_settled = False  # nothing is left for the controller to do
        self.records: list[Record] = []

    @property
    def resource(self) -> tuple[int, str]:
        return self.type, self.name

    def refuse(self, error: KafkaError) -> None:
        self.error = error
        self.is_settled = True


class ConfigChanges:
    def __init__(self, config: BrokerConfig, controller: Controller) -> None:
        self.on_applied: list[Callable[[int, str, Mapping[str, str]], None]] = []
        self._config = config
        self._controller = controller
        self._image = controller.image
        # Configs as they will be when all that is asked for is on the disk; with the last change's number.
        self._ahead: dict[tuple[int, str], tuple[int, dict[str, str]]] = {}
        self._changes = 0

    def alter(self, wanted: Sequence[Alteration], validate_only: bool, done: Callable[[], None]) -> None:
        """Fills in each alteration's error. `done` is called when those without one count."""
        self._look(wanted, validate_only)
        left = [each for each in wanted if not each.is_settled]
        self._decide(left)
        good = [each for each in left if each.records]
        if validate_only or not good:
            done()
        else:
            self._commit(good, done)

    # -- the broker's look

    def _look(self, wanted: Sequence[Alteration], validate_only: bool) -> None:
        times: dict[tuple[int, str], int] = {}
        for each in wanted:
            times[each.resource] = times.get(each.resource, 0) + 1
        for each in wanted:
            try:
                if times[each.resource] > 1:
                    raise KafkaError(errors.INVALID_REQUEST, TWICE)
                self._look_at(each, validate_only)
            except KafkaError as error:
                each.refuse(error)

    def _look_at(self, wanted: Alteration, validate_only: bool) -> None:
        names = [name for name, _, _ in wanted.changes]
        if len(set(names)) < len(names):
            raise KafkaError(errors.INVALID_REQUEST, KEY_TWICE)
        nulls = [name for name, operation, value in wanted.changes if value is None and operation != DELETE]
        if nulls:
            raise KafkaError(errors.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
        if wanted.type == BROKER_RESOURCE:
            self._look_at_broker(wanted)
        elif wanted.type == BROKER_LOGGER and not wanted.is_legacy:
            self._set_levels(wanted, validate_only)
        elif wanted.type not in (TOPIC_RESOURCE, CLIENT_METRICS, GROUP):
            raise KafkaError(errors.INVALID_REQUEST, f"Unknown resource type {wanted.type}")

    def _look_at_broker(self, wanted: Alteration) -> None:
        if wanted.name != ALL_BROKERS and node_number(wanted.name) != self._controller.node_id:
            why = f"Unexpected broker id, expected {self._controller.node_id}, but received {wanted.name}"
            raise KafkaError(errors.INVALID_REQUEST, why)
        per_broker = wanted.name != ALL_BROKERS
        stored = {} if wanted.is_legacy else accepted(self._configs(wanted.resource), per_broker=per_broker)
        texts = broker_texts(stored, wanted.changes)
        try:
            dynamic_checks.check(self._controller.dynamic, texts, per_broker=per_broker)
        except dynamic_checks.Refused as error:
            raise KafkaError(errors.INVALID_REQUEST, str(error)) from None

    def _set_levels(self, wanted: Alteration, validate_only: bool) -> None:
        """Levels count at once; a restart forgets them."""
        if node_number(wanted.name) != self._controller.node_id:
            why = f"Unexpected node id. Expected {self._controller.node_id}, but received {wanted.name}"
            raise KafkaError(errors.INVALID_REQUEST, why)
        for name, operation, value in wanted.changes:
            config_rules.check_level(name, operation, value)
        if not validate_only:
            for name, operation, value in wanted.changes:
                logs.set_logger_level(name, value if operation == SET else None)
        wanted.is_settled = True

    # -- the controller's

    def _decide(self, wanted: Sequence[Alteration]) -> None:
        """Records, or an error. An operation that does not exist fails them all: it is the request that is wrong."""
        if any(operation not in range(4) for each in wanted for _, operation, _ in each.changes):
            refuse_all(wanted, KafkaError(errors.UNKNOWN_SERVER_ERROR))
            return
        for each in wanted:
            try:
                each.records = self._records(each)
            except KafkaError as error:
                each.refuse(error)
        if sum(len(each.records) for each in wanted) > MAX_RECORDS:
            refuse_all(wanted, KafkaError(errors.POLICY_VIOLATION, TOO_MANY))

    def _records(self, wanted: Alteration) -> list[Record]:
        old = self._configs(wanted.resource)
        new = self._altered(wanted, old)
        changed = [(key, value) for key, value in new.items() if must_write(wanted, old.get(key), value)]
        if wanted.is_legacy:
            changed += [(key, None) for key in old if key not in new]
        self._check_min_isr(wanted, changed)
        after = {key: value for key, value in (old | dict(changed)).items() if value is not None}
        self._validate(wanted, after)
        return self._as_records(wanted, changed)

    def _altered(self, wanted: Alteration, old: Mapping[str, str]) -> dict[str, str | None]:
        """The keys that are named, with what each will be; None: not set."""
        new: dict[str, str | None] = {}
        for key, operation, value in wanted.changes:
            if operation == SET:
                new[key] = value
            elif operation == DELETE:
                new[key] = None
            else:
                new[key] = self._of_list(wanted, key, operation, old.get(key), value or "")
        return new

    def _of_list(self, wanted: Alteration, key: str, operation: int, old: str | None, value: str) -> str:
        row = config_rules.key_of(wanted.type, key)
        if row is None or row.type != "LIST":
            why = f"Can't {WORDS[operation]} to key {key} because its type is not LIST."
            raise KafkaError(errors.INVALID_CONFIG, why)
        text = to_text(row.default) if old is None else old
        parts = [part for part in (text or "").split(",") if part]
        for part in java_split(value):
            if operation == SUBTRACT and part in parts:
                parts.remove(part)
            elif operation == APPEND and part not in parts:
                parts.append(part)
        return ",".join(parts)

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
            problem = topic_names.why_invalid(name)
            if problem is not None:
                raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, problem)
            config_rules.check_topic(self._config, after)
            if not self._controller.exists(name):
                raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
        elif wanted.type == CLIENT_METRICS:
            config_rules.check_client_metrics(name, after)
        elif wanted.type == GROUP:
            config_rules.check_group(self._config, name, after)

    def _as_records(self, wanted: Alteration, changed: list[tuple[str, str | None]]) -> list[Record]:
        records: list[Record] = [
            (config_record(wanted.type, wanted.name, key, value), 0) for key, value in changed
        ]
        if self._image.elr_enabled and any(key == MIN_ISR for key, _ in changed):
            topic = wanted.name if wanted.type == TOPIC_RESOURCE else ""
            records.append((ClearElrRecord(topic_name=topic), 0))
        return records

    # -- making it so

    def _configs(self, resource: tuple[int, str]) -> dict[str, str]:
        ahead = self._ahead.get(resource)
        return ahead[1] if ahead is not None else self._image.configs.get(resource, {})

    def _commit(self, good: list[Alteration], done: Callable[[], None]) -> None:
        noted = [(each.resource, self._note(each)) for each in good]

        def durable(error: KafkaError | None) -> None:
            for resource, number in noted:
                if self._ahead.get(resource, (0, None))[0] == number:
                    del self._ahead[resource]
            for each in good:
                if error is not None:
                    each.refuse(error)
                else:
                    self._apply(each)
            done()

        self._controller.commit([record for each in good for record in each.records], durable)

    def _note(self, wanted: Alteration) -> int:
        configs = dict(self._configs(wanted.resource))
        for record, _ in wanted.records:
            if record.api_key == CONFIG_RECORD:
                if record.value is None:
                    configs.pop(record.name, None)
                else:
                    configs[record.name] = record.value
        self._changes += 1
        self._ahead[wanted.resource] = self._changes, configs
        return self._changes

    def _apply(self, wanted: Alteration) -> None:
        """The image has it: now those who act upon it are told."""
        configs = self._image.configs.get(wanted.resource, {})
        said = ", ".join(f"{key} -> {config_rules.shown(wanted.type, key, configs[key])}" for key in configs)
        log.info(f"Updating {NAMES[wanted.type]} {wanted.name} with new configuration : {said}")
        if wanted.type == TOPIC_RESOURCE:
            self._controller.topic_config_changed(wanted.name)
        elif wanted.type == BROKER_RESOURCE:
            self._controller.dynamic.refresh()
        for told in self.on_applied:
            told(wanted.type, wanted.name, configs)


def refuse_all(wanted: Sequence[Alteration], error: KafkaError) -> None:
    for each in wanted:
        each.records = []
        each.refuse(error)


def must_write(wanted: Alteration, old: str | None, new: str | None) -> bool:
    """A broker's key is written though nothing changes: it has files read again (KAFKA-14136)."""
    return old != new or wanted.type == BROKER_RESOURCE


def node_number(name: str) -> int:
    """Integer.parseInt: an optional sign, digits, 32 bits."""
    digits = name[1:] if name[:1] in ("+", "-") else name
    if digits.isdecimal() and -(2**31) <= int(name) < 2**31:
        return int(name)
    raise KafkaError(errors.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")


def java_split(text: str) -> list[str]:
    """String.split(","): empty parts at the end are dropped, but one empty text stays."""
    parts = text.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if any(parts) or text == "" else []


def broker_texts(stored: Mapping[str, str], changes: Sequence[tuple[str, int, str | None]]) -> dict[str, str]:
    """The layer as the broker looks at it before the controller does; for lists its rules are its own."""
    texts = dict(stored)
    for name, operation, value in changes:
        if operation not in range(4):
            raise KafkaError(errors.INVALID_REQUEST, f"Unknown operations type {operation}")
        if operation == DELETE:
            texts.pop(name, None)
        elif operation == SET:
            texts[name] = value or ""
        else:
            texts[name] = altered_list(name, operation, texts.get(name), value or "")
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
        return ",".join(parts + [part for part in given if part not in parts])
    for part in given:
        if part in parts:
            parts.remove(part)
    return ",".join(parts)
