"""`pykafkad consume`: what kafka-console-consumer does: records to standard output.

The number of records is printed to standard error at the end, as there. While records go to a file or a program and
standard error is a terminal, a line there shows how many there are so far.
"""

from __future__ import annotations

import sys
import time
from random import randrange

from pykafkad import errors
from pykafkad.net.client import ClientError
from pykafkad.net.reaching import Unreachable
from pykafkad.tools import admin, failures, formatters, output, settings
from pykafkad.tools.consumer import Consumer
from pykafkad.tools.options import (
    INTEGER,
    LONG,
    Exit,
    Option,
    Options,
    Usage,
    bootstrap,
    flag,
    run,
    value,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.tools.fetching import Chunk

ABOUT = "This tool helps to read data from Kafka topics and outputs it to standard output."
POLL_S = 1.0
FORMATTER_HELP = (
    "Properties of the formatter; the default one's are print.timestamp, print.key, print.offset, print.epoch, "
    "print.partition, print.headers, print.value (true or false), key.separator, line.separator, "
    "headers.separator, null.literal, key.deserializer, value.deserializer and headers.deserializer."
)

OPTIONS: tuple[Option, ...] = (
    value("topic", "topic", "The topic to read."),
    value("include", "Java regex (String)", "A regular expression: all topics that match."),
    value(
        "partition",
        "partition",
        "Only this partition, from its end unless --offset says otherwise, and without a group.",
        kind=INTEGER,
    ),
    value(
        "offset",
        "consume offset",
        "Where to start there: a number, earliest or latest.",
        default="latest",
        choices=("earliest", "latest"),
    ),
    value("consumer-property", "consumer_prop", "(DEPRECATED) Like --command-property."),
    value("command-property", "consumer_prop", "A config of the consumer, key=value; may be given again."),
    value("consumer.config", "config file", "(DEPRECATED) Like --command-config."),
    value("command-config", "config file", "A file with configs of the consumer."),
    value(
        "formatter",
        "class",
        "How records are shown: one of " + ", ".join(formatters.FORMATTERS) + ".",
        default=formatters.DEFAULT,
        choices=tuple(formatters.FORMATTERS),
    ),
    value("property", "prop", "(DEPRECATED) Like --formatter-property."),
    value("formatter-property", "prop", FORMATTER_HELP),
    value("formatter-config", "config file", "A file with such properties."),
    flag("from-beginning", "Start at the first record where nothing is committed."),
    value("max-messages", "num_messages", "End after so many records.", kind=INTEGER),
    value("timeout-ms", "timeout_ms", "End when no record came for so long.", kind=LONG),
    flag("skip-message-on-error", "Go on behind records that cannot be shown."),
    bootstrap(),
    value("key-deserializer", "deserializer for keys", "How keys are read."),
    value("value-deserializer", "deserializer for values", "How values are read."),
    flag("enable-systest-events", "Say shutdown_complete at the end, for Kafka's system tests."),
    value(
        "isolation-level",
        "",
        "read_committed: without what transactions have not committed; read_uncommitted: everything.",
        default="read_uncommitted",
        choices=("read_uncommitted", "read_committed"),
    ),
    value("group", "consumer group id", "The group to be a member of."),
    flag("json", "Each record as a JSON object on a line of its own, instead of a formatter."),
)
JSON_EXAMPLE = """\
{"topic": "orders", "partition": 0, "offset": 7, "timestamp": 1700000000000, "timestamp_type": "CreateTime",
  "headers": [["trace", "a1"]], "key": "customer-1", "value": "tea"}
"""
JSON_NOTE = 'One such object a line. Keys, values and headers that are not UTF-8 are {"base64": "..."}.'
FORMATTING = (
    "formatter",
    "formatter-property",
    "property",
    "formatter-config",
    "key-deserializer",
    "value-deserializer",
)


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body)


def body(options: Options) -> int:
    _check(options)
    configs = consumer_configs(options)
    offset = start_offset(options)
    write = _formatter(options)
    watched = settings.Watched(configs)
    try:
        with_consumer = _Run(options, watched, offset, write)
    except (ClientError, errors.KafkaError, OSError, ValueError) as problem:
        output.error(failures.message_of(problem))
        return 1
    watched.warn_unused(settings.pairs(_typed(options, "command-property", "consumer-property")))
    return with_consumer.run()


# -- the command line


def _check(options: Options) -> None:
    options.one_of("topic", "include")
    if options.has("partition"):
        if not options.has("topic"):
            raise Usage("The topic is required when partition is specified.")
        if options.has("from-beginning") and options.has("offset"):
            raise Usage("Options from-beginning and offset cannot be specified together.")
    elif options.has("offset"):
        raise Usage("The partition is required when offset is specified.")
    options.exclude("json", FORMATTING)
    for old, new in (("consumer-property", "command-property"), ("consumer.config", "command-config")):
        if options.has(old) and options.has(new):
            raise Usage(f"Options --{old} and --{new} cannot be specified together.")
    for old, new in (("consumer-property", "command-property"), ("consumer.config", "command-config")):
        if options.has(old):
            output.line(
                f"Option --{old} is deprecated and will be removed in a future version. Use --{new} instead."
            )


def consumer_configs(options: Options) -> dict[str, str]:
    """The configs of the file, overridden by the properties, overridden by the options."""
    file = options.value("consumer.config" if options.has("consumer.config") else "command-config")
    from_file = settings.load(file) if file is not None else {}
    extra = settings.pairs(_typed(options, "command-property", "consumer-property"))
    groups = {found["group.id"] for found in (from_file, extra) if "group.id" in found}
    if options.has("group"):
        groups.add(options.text("group"))
    if len(groups) > 1:
        shown = ", ".join(f"'{group}'" for group in sorted(groups))
        raise Usage(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', "
            f"or via '--consumer.config') do not match. Detected group ids: {shown}"
        )
    if groups and options.has("partition"):
        raise Usage("Options group and partition cannot be specified together.")
    configs = from_file | extra
    _set_reset(options, configs)
    configs.setdefault("client.id", "console-consumer")
    if options.has("isolation-level") or "isolation.level" not in configs:
        configs["isolation.level"] = options.text("isolation-level")
    if groups:
        configs["group.id"] = groups.pop()
    else:
        configs["group.id"] = f"console-consumer-{randrange(100_000)}"
        configs.setdefault("enable.auto.commit", "false")
    return configs


def _typed(options: Options, name: str, old_name: str) -> list[str]:
    return options.values(old_name if options.has(old_name) else name)


def _set_reset(options: Options, configs: dict[str, str]) -> None:
    from_beginning = options.has("from-beginning")
    given = configs.get("auto.offset.reset")
    if given is None:
        configs["auto.offset.reset"] = "earliest" if from_beginning else "latest"
    elif from_beginning and given != "earliest":
        output.error(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={given}', please remove one "
            "option"
        )
        raise Exit(1)


def start_offset(options: Options) -> int:
    """Where to start in a partition: an offset, or -1 and -2 for the end and the start."""
    if not options.has("offset"):
        return admin.EARLIEST if options.has("from-beginning") else admin.LATEST
    text = options.text("offset")
    named = {"earliest": admin.EARLIEST, "latest": admin.LATEST}.get(text.lower())
    if named is not None:
        return named
    if not (text.isascii() and text.removeprefix("+").isdigit()):
        raise Usage(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return int(text)


def _formatter(options: Options) -> formatters.Write:
    if options.has("json"):
        return formatters.as_json
    if options.has("formatter-property") and options.has("property"):
        raise Usage("Options --property and --formatter-property cannot be specified together.")
    if options.has("property"):
        output.line(
            "Option --property is deprecated and will be removed in a future version. Use "
            "--formatter-property instead."
        )
    properties = {}
    try:
        if options.has("formatter-config"):
            properties = settings.load(options.text("formatter-config"))
        for which in ("key", "value"):
            given = options.value(f"{which}-deserializer")
            if given:
                properties[f"{which}.deserializer"] = given
        typed = settings.pairs(_typed(options, "formatter-property", "property"))
        watched = settings.Watched(properties | typed)
        formatter = formatters.choose(options.text("formatter"), watched)
        watched.warn_unused(typed)
        return formatter
    except ClientError as problem:
        raise Usage(str(problem)) from problem


# -- reading


class _Run:
    """Writes records until there are enough, none came in time, or nobody reads them."""

    def __init__(
        self, options: Options, configs: dict[str, str], offset: int, write: formatters.Write
    ) -> None:
        self._write = write
        self._max = options.number("max-messages")
        timeout_ms = options.number("timeout-ms")
        self._timeout_s = timeout_ms / 1000 if timeout_ms is not None and timeout_ms >= 0 else None
        self._skips_faults = options.has("skip-message-on-error")
        self._tells_events = options.has("enable-systest-events")
        self._count = 0
        self._bytes = 0
        self._started = time.monotonic()
        self._progress = output.Progress(enabled=sys.stdout is None or not sys.stdout.isatty())
        self._consumer = Consumer(settings.bootstrap(options.value("bootstrap-server"), configs), configs)
        self._subscribe(options, offset)

    def _subscribe(self, options: Options, offset: int) -> None:
        topic = options.value("topic")
        if topic is None:
            self._consumer.subscribe(pattern=settings.expression("include", options.text("include")))
        elif options.has("partition"):
            self._consumer.assign({(topic, options.integer("partition")): offset})
        else:
            self._consumer.subscribe([topic])

    def run(self) -> int:
        code = 0
        try:
            self._copy()
        except KeyboardInterrupt:
            code = 130
        except output.Unwritable:
            self._close()
            raise
        except Unreachable as problem:
            output.error(str(problem))
            self._close()
            return 1
        except (ClientError, errors.KafkaError, OSError, ValueError) as problem:
            output.error(f"ERROR {failures.message_of(problem)}")
            code = 1
        self._close()
        output.error(f"Processed a total of {self._count} messages")
        if self._tells_events:
            output.line("shutdown_complete")
        return code

    def _close(self) -> None:
        self._progress.clear()
        self._consumer.close()

    def _copy(self) -> None:
        quiet_since = time.monotonic()
        while self._max is None or self._max < 0 or self._count < self._max:
            wait_s = POLL_S if self._timeout_s is None else min(POLL_S, self._timeout_s)
            chunks = self._consumer.poll(wait_s)
            for chunk in chunks:
                if not self._show(chunk):
                    return
            output.flush()
            output.check_read()
            now = time.monotonic()
            if chunks:
                quiet_since = now
            elif self._timeout_s is not None and now - quiet_since > self._timeout_s:
                return
            if self._progress.due:
                self._tell()

    def _show(self, chunk: Chunk) -> bool:
        """Write a chunk; whether more is wanted. Records that were not written are not consumed."""
        topic, index = chunk.partition
        consumed = self._consumer.consumed
        left = sys.maxsize if self._max is None or self._max < 0 else self._max - self._count
        for batch, record in chunk:
            if left <= 0:
                return False
            left -= 1
            self._count += 1
            self._bytes += len(record.value or b"")
            try:
                output.write(self._write(topic, index, batch, record))
            except ClientError as problem:
                if not self._skips_faults:
                    raise
                output.error(f"ERROR Error processing message, skipping this message: {problem}")
            consumed[chunk.partition] = record.offset + 1
        consumed[chunk.partition] = chunk.next_offset
        return left > 0

    def _tell(self) -> None:
        elapsed = max(0.001, time.monotonic() - self._started)
        megabytes = self._bytes / 1_048_576
        self._progress.show(
            f"{self._count:,} records, {megabytes:,.1f} MB, {self._count / elapsed:,.0f} records/s"
        )
