"""`pykafkad offsets`: what kafka-get-offsets does."""

from __future__ import annotations

import re

from pykafkad import errors
from pykafkad.net.client import ClientError
from pykafkad.tools import admin, failures, output
from pykafkad.tools.options import (
    Option,
    OptionError,
    Options,
    bootstrap,
    check_address,
    flag,
    json_flag,
    run,
    value,
)
from pykafkad.tools.topic_filter import INTERNAL_TOPICS, TopicFilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pykafkad.net.client import Cluster
    from pykafkad.tools.admin import Partition

ABOUT = "An interactive shell for getting topic-partition offsets."
INTEGER_MAX = 2**31 - 1
RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
TIMES = {
    "latest": admin.LATEST,
    "earliest": admin.EARLIEST,
    "max-timestamp": admin.MAX_TIMESTAMP,
    "earliest-local": admin.EARLIEST_LOCAL,
    "latest-tiered": admin.LATEST_TIERED,
    "earliest-pending-upload": admin.EARLIEST_PENDING_UPLOAD,
}
TIMES_SHOWN = " / ".join(f"{time} or {name}" for name, time in TIMES.items())

OPTIONS: tuple[Option, ...] = (
    bootstrap(),
    value("command-config", "config file", "Configs of the client."),
    value("topic", "topic", "Regular expression of the topics; by default all."),
    value("partitions", "partition ids", "Only these partitions, with commas; by default all."),
    value(
        "topic-partitions",
        "topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3",
        "Instead of the two: a list of TOPIC, TOPIC:3, TOPIC:0-3 (without 3), TOPIC:5- or TOPIC:-3, where "
        "TOPIC is a regular expression or left out.",
    ),
    value(
        "time",
        f"<timestamp> / {TIMES_SHOWN}",
        "Which offset of the log.",
        default="latest",
        choices=tuple(TIMES),
    ),
    flag("exclude-internal-topics", "Without the internal topics."),
    json_flag(),
)
JSON_EXAMPLE = """\
{"offsets": [{"topic": "orders", "partition": 0, "offset": 7, "error": null}]}
"""
JSON_NOTE = (
    "An offset that does not exist, as of a time after the last record, is null; error is the name of the error of "
    "the one partition."
)


class Terse(Exception):
    """An error whose message is printed without the exception's name."""


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body, as_json=as_json, alone=True)


def body(options: Options) -> int:
    _check(options)
    try:
        return show(options)
    except (Terse, OptionError, ClientError, errors.KafkaError, OSError, ValueError) as problem:
        output.error(f"Error occurred: {failures.message_of(problem)}")
        return 1


def as_json(options: Options) -> object:
    _check(options)
    return {"offsets": [_fields(key, offset) for key, offset in _found(options)]}


def _fields(key: Partition, offset: int | errors.KafkaError) -> dict[str, object]:
    failed = isinstance(offset, errors.KafkaError)
    return {
        "topic": key[0],
        "partition": key[1],
        "offset": None if failed or offset == -1 else offset,
        "error": errors.NAMES[offset.code] if isinstance(offset, errors.KafkaError) else None,
    }


def _check(options: Options) -> None:
    if options.has("bootstrap-server"):
        check_address(options.value("bootstrap-server"))


def _found(options: Options) -> list[tuple[Partition, int | errors.KafkaError]]:
    """The offset of each partition, or its error."""
    if options.has("topic-partitions") and options.has_any(("topic", "partitions")):
        raise Terse("--topic-partitions cannot be used with --topic or --partitions")
    time = parse_time(options.text("time"))
    allows = parse_filter(options)
    cluster = admin.connect(options, client_id="GetOffsetShell")
    try:
        partitions = _partitions(cluster, allows, options.has("exclude-internal-topics"))
        found = admin.list_offsets(cluster, dict.fromkeys(partitions, time)) if partitions else {}
    finally:
        cluster.close()
    return [(key, found[key]) for key in sorted(partitions, key=lambda key: f"{key[0]}-{key[1]}")]


def show(options: Options) -> int:
    found = _found(options)
    if not found:
        raise Terse("Could not match any topic-partitions with the specified filters")
    for (topic, index), offset in found:
        if isinstance(offset, errors.KafkaError):
            output.error(
                f"Skip getting offsets for topic-partition {topic}-{index} due to error: "
                f"{failures.described(offset)}"
            )
        elif offset != -1:
            output.line(f"{topic}:{index}:{offset}")
    return 0


def parse_time(text: str) -> int:
    if text in TIMES:
        return TIMES[text]
    try:
        return int(text)
    except ValueError:
        raise Terse(
            f"Malformed time argument {text}. Please use {TIMES_SHOWN}, or a specified long format timestamp"
        ) from None


def parse_filter(options: Options) -> Callable[[str, int | None], bool]:
    """allows(topic, partition). With None as the partition: whether any partition of the topic may be allowed."""
    rules = options.value("topic-partitions")
    if rules is not None:
        parsed = [parse_rule(rule) for rule in rules.split(",")]
        return lambda topic, index: any(rule(topic, index) for rule in parsed)
    topics = TopicFilter(options.value("topic") or ".*")
    text = options.value("partitions") or ""
    try:
        wanted = {int(part) for part in text.split(",")} if text else set()
    except ValueError:
        raise Terse(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {text}"
        ) from None
    return lambda topic, index: topics.allows(topic) and (index is None or not wanted or index in wanted)


def parse_rule(rule: str) -> Callable[[str, int | None], bool]:
    """One rule of --topic-partitions."""
    found = RULE.fullmatch(rule)
    if found is None:
        raise Terse(f"Invalid rule specification: {rule}")
    topics = TopicFilter(found[1] or ".*")
    low = int(found[2] or found[3] or 0)
    high = low + 1 if found[2] else int(found[4] or INTEGER_MAX)
    return lambda topic, index: topics.allows(topic) and (index is None or low <= index < high)


def _partitions(
    cluster: Cluster, allows: Callable[[str, int | None], bool], exclude_internal: bool
) -> list[Partition]:
    return [
        (topic.name, row.index)
        for topic in admin.list_topics(cluster)
        if allows(topic.name, None) and not (exclude_internal and topic.name in INTERNAL_TOPICS)
        for row in topic.partitions
        if allows(topic.name, row.index)
    ]
