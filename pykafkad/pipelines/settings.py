"""The properties that SET knows: what each may be, what it is otherwise, and which of ksqlDB's change nothing here.

Names may have the prefix `ksql.streams.`, which ksqlDB passes on to Kafka Streams.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from pykafkad.pipelines.errors import NOWHERE, Position, StatementError, did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX = "ksql.streams."
CACHE = "cache.max.bytes.buffering"
EXACTLY_ONCE = "exactly_once_v2"
"""What processing.guarantee may be where a host can promise it."""


class Setting(NamedTuple):
    default: str
    about: str
    values: tuple[str, ...] | Callable[[str], bool]
    """What it may be, or whether a value may be it."""
    kind: str = "a number"
    """What that is in words."""


def _is_count(value: str) -> bool:
    return value.isascii() and value.isdecimal()


def _is_topic(value: str) -> bool:
    return re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", value) is not None and value not in (".", "..")


FORMATS = ("KAFKA", "JSON", "DELIMITED", "NONE", "AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR")

SETTINGS: dict[str, Setting] = {
    "auto.offset.reset": Setting(
        "latest", "where a query that has never run begins to read", ("earliest", "latest")
    ),
    "processing.guarantee": Setting(
        "at_least_once",
        "how often what follows from a record is written; exactly once where Spark runs the queries",
        ("at_least_once", EXACTLY_ONCE),
    ),
    "ksql.persistence.default.format.key": Setting("KAFKA", "KEY_FORMAT of statements without one", FORMATS),
    "ksql.persistence.default.format.value": Setting("", "VALUE_FORMAT of statements without one", FORMATS),
    "ksql.schema.registry.url": Setting(
        "",
        "where AVRO, JSON_SR and PROTOBUF have their schemas: http://host:8081",
        lambda value: "://" in value,
        "a URL",
    ),
    "ksql.output.topic.name.prefix": Setting(
        "", "what the names of topics begin with that queries write to and nobody named", lambda value: True
    ),
    "processing.log": Setting(
        "stderr",
        "where is said which records queries leave out: stderr, none, or a topic for ksqlDB's log",
        _is_topic,
        "stderr, none or a topic's name",
    ),
    "processing.log.rows.include": Setting(
        "false", "whether the log in a topic has the records, too", ("true", "false")
    ),
    "errors.dead.letter.queue.topic.name": Setting(
        "", "the topic for records that queries leave out, as they were", _is_topic, "a topic's name"
    ),
    CACHE: Setting(
        "10485760",
        "0: in Spark, too, every change of an aggregate is written, and not the last of a key in a batch alone",
        _is_count,
    ),
    "ksql.functions.collect_list.limit": Setting("1000", "how many values COLLECT_LIST keeps", _is_count),
    "ksql.functions.collect_set.limit": Setting("1000", "how many values COLLECT_SET keeps", _is_count),
}

OTHER_NAMES = {
    "ksql.logging.processing.topic.name": "processing.log",
    "ksql.logging.processing.rows.include": "processing.log.rows.include",
    "statestore.cache.max.bytes": CACHE,
}
"""What ksqlDB calls them in the configuration of its servers, or later versions of Kafka Streams."""

ABOUT_BAD_RECORDS = ("processing.log", "processing.log.rows.include", "errors.dead.letter.queue.topic.name")

NOT_KAFKA_STREAMS = "queries do not run in Kafka Streams"
WITHOUT_EFFECT: dict[str, str] = {
    "commit.interval.ms": "results are written as soon as they are there, in Spark by batches",
    "num.stream.threads": NOT_KAFKA_STREAMS,
    "num.standby.replicas": NOT_KAFKA_STREAMS,
    "topology.optimization": NOT_KAFKA_STREAMS,
    "state.dir": NOT_KAFKA_STREAMS,
    "ksql.logging.processing.topic.auto.create": "the topic of the log is made if it is not there",
    "ksql.query.pull.table.scan.enabled": "pull queries may always read whole tables",
}
"""Properties that ksqlDB's scripts set and that change nothing here: they are taken, and it is said why."""


def own_name(name: str) -> str:
    plain = name.removeprefix(PREFIX)
    return OTHER_NAMES.get(plain, plain)


def by_own_names(properties: Mapping[str, Any]) -> dict[str, str]:
    """What a file or a program sets, as SET would: a true of JSON is `true`, a null sets nothing."""
    texts = ((name, str(value)) for name, value in properties.items() if value is not None)
    return {own_name(name): text.lower() if text in ("True", "False") else text for name, text in texts}


def checked(name: str, value: str, at: Position = NOWHERE) -> tuple[str, str | None]:
    """The property's own name, and why setting it changes nothing, if so. StatementError for what is unknown or wrong."""
    known = own_name(name)
    if known in WITHOUT_EFFECT:
        return known, WITHOUT_EFFECT[known]
    setting = SETTINGS.get(known)
    if setting is None:
        raise StatementError(f"{name} is no property.{did_you_mean(known, {*SETTINGS, *WITHOUT_EFFECT})}", at)
    if not _is_allowed(setting, value):
        allowed = f"one of {', '.join(setting.values)}" if isinstance(setting.values, tuple) else setting.kind
        raise StatementError(f"'{value}' is not allowed for {known}: {allowed} is", at)
    return known, None


def _is_allowed(setting: Setting, value: str) -> bool:
    if isinstance(setting.values, tuple):
        return value.upper() in setting.values or value.lower() in setting.values
    return setting.values(value)
