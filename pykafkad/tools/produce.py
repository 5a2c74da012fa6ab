"""`pykafkad produce`: what kafka-console-producer does: each line of standard input becomes a record.

Unlike there the exit code is 1 if a record was not stored, and the last line says which those are.
"""

from __future__ import annotations

import sys

from pykafkad import errors
from pykafkad.net.client import ClientError
from pykafkad.net.connection import readable
from pykafkad.net.reaching import Unreachable
from pykafkad.tools import failures, output, settings, times
from pykafkad.tools.line_reader import LineReader, Lines, read_chunk
from pykafkad.tools.options import (
    INTEGER,
    LONG,
    Option,
    OptionError,
    Options,
    Usage,
    bootstrap,
    check_address,
    flag,
    optional,
    run,
    value,
)
from pykafkad.tools.producer import Producer
from pykafkad.tools.producer_settings import CODECS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.hot.records import Headers
    from pykafkad.tools.batching import Done

ABOUT = "This tool helps to read data from standard input and publish it to Kafka."
READER_CLASS = "org.apache.kafka.tools.LineMessageReader"
READER_HELP = (
    "Properties of the reading of lines: parse.key, parse.headers, ignore.error (true or false), "
    "key.separator and headers.delimiter (a tab), headers.separator (,), headers.key.separator (:), and "
    "null.marker: a text that stands for null. A line is HEADERS<delimiter>KEY<separator>VALUE, as far as "
    "they are parsed."
)
INTERRUPTED = 130
COMPLAINTS_MAX = 10  # records whose errors are told one by one
RANGES_MAX = 20
# option -> the producer config that it sets
CONFIGS = {
    "timeout": "linger.ms",
    "request-required-acks": "acks",
    "request-timeout-ms": "request.timeout.ms",
    "message-send-max-retries": "retries",
    "retry-backoff-ms": "retry.backoff.ms",
    "socket-buffer-size": "send.buffer.bytes",
    "max-memory-bytes": "buffer.memory",
    "batch-size": "batch.size",
    "max-partition-memory-bytes": "batch.size",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "max-block-ms": "max.block.ms",
}
# old name -> new one, for options that Kafka has renamed
RENAMED = {
    "producer.config": "command-config",
    "producer-property": "command-property",
    "property": "reader-property",
}

OPTIONS: tuple[Option, ...] = (
    value("topic", "topic", "REQUIRED: where the records go."),
    bootstrap(),
    flag("sync", "Wait for each record's answer before the next line is read."),
    optional(
        "compression-codec",
        "compression-codec",
        "none, gzip, snappy, lz4 or zstd; without one gzip.",
        choices=CODECS,
    ),
    value("batch-size", "size", "Bytes of a batch (batch.size).", kind=INTEGER, default="16384"),
    value(
        "message-send-max-retries",
        "",
        "How often a batch is sent again (retries).",
        kind=INTEGER,
        default="3",
    ),
    value("retry-backoff-ms", "", "The pause before it is (retry.backoff.ms).", kind=LONG, default="100"),
    value(
        "timeout",
        "timeout_ms",
        "How long a record waits for company in its batch (linger.ms).",
        kind=LONG,
        default="1000",
    ),
    value(
        "request-required-acks",
        "request required acks",
        "0, 1 or -1 (acks).",
        default="-1",
        choices=("0", "1", "-1"),
    ),
    value(
        "request-timeout-ms",
        "request timeout ms",
        "How long an answer may take (request.timeout.ms).",
        kind=INTEGER,
        default="1500",
    ),
    value(
        "metadata-expiry-ms",
        "metadata expiration interval",
        "When to ask for the leaders again (metadata.max.age.ms).",
        kind=LONG,
        default="300000",
    ),
    value(
        "max-block-ms",
        "max block on send",
        "How long to look for a topic (max.block.ms).",
        kind=LONG,
        default="60000",
    ),
    value(
        "max-memory-bytes",
        "total memory in bytes",
        "Bytes of records that wait (buffer.memory).",
        kind=LONG,
        default="33554432",
    ),
    value(
        "max-partition-memory-bytes",
        "memory in bytes per partition",
        "(Deprecated) Like --batch-size.",
        kind=INTEGER,
        default="16384",
    ),
    value("line-reader", "reader_class", "How lines are read; there is one way.", default=READER_CLASS),
    value(
        "socket-buffer-size",
        "size",
        "The socket's send buffer (send.buffer.bytes).",
        kind=INTEGER,
        default="102400",
    ),
    value("property", "prop", "(DEPRECATED) Like --reader-property."),
    value("reader-property", "prop", READER_HELP),
    value("reader-config", "config file", "A file with such properties."),
    value("producer-property", "producer_prop", "(DEPRECATED) Like --command-property."),
    value("command-property", "producer_prop", "A config of the producer, key=value; may be given again."),
    value("producer.config", "config file", "(DEPRECATED) Like --command-config."),
    value("command-config", "config file", "A file with configs of the producer."),
)


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body)


def body(options: Options) -> int:
    _check(options)
    try:
        properties = settings.Watched(reader_properties(options))
        reader = LineReader(properties)
        properties.warn_unused(settings.pairs(_typed(options, "reader-property")))
        configs = settings.Watched(producer_configs(options))
        producer = Producer(settings.bootstrap(options.value("bootstrap-server"), configs), configs)
        configs.warn_unused(settings.pairs(_typed(options, "command-property")))
        if sys.stdin is None:
            raise ClientError("standard input is closed")
        return _Run(options, reader, producer).run()
    except (OptionError, ClientError, errors.KafkaError, OSError) as problem:
        output.error(failures.described(problem))
        return 1


def _check(options: Options) -> None:
    options.require("topic")
    for old, new in RENAMED.items():
        if options.has(new) and options.has(old):
            raise Usage(f"Options --{new} and --{old} cannot be specified together.")
    for old in ("producer-property", "producer.config", "property"):
        if options.has(old):
            output.line(
                f"Warning: --{old} is deprecated and will be removed in a future version. "
                f"Use --{RENAMED[old]} instead."
            )
    if options.has("max-partition-memory-bytes"):
        output.line(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in Apache Kafka 5.0. "
            "Use --batch-size instead."
        )
    if options.has("bootstrap-server"):
        check_address(options.value("bootstrap-server"))


def _current(options: Options, name: str) -> str:
    """The name of the option that was given: the new one, or its old name."""
    old = next(old for old, new in RENAMED.items() if new == name)
    return old if options.has(old) else name


def _typed(options: Options, name: str) -> list[str]:
    return options.values(_current(options, name))


def reader_properties(options: Options) -> dict[str, str]:
    reader = options.text("line-reader")
    if reader != READER_CLASS:
        raise ClientError(f"{reader}: there is no line reader but {READER_CLASS}")
    file = options.value("reader-config")
    found = settings.load(file) if file is not None else {}
    return found | settings.pairs(_typed(options, "reader-property"))


def producer_configs(options: Options) -> dict[str, str]:
    """The configs of the file, overridden by the properties, overridden by the options."""
    file = options.value(_current(options, "command-config"))
    found = settings.load(file) if file is not None else {}
    found |= settings.pairs(_typed(options, "command-property"))
    found["compression.type"] = "none"
    if options.has("compression-codec"):
        found["compression.type"] = options.value("compression-codec") or "gzip"
    found.setdefault("client.id", "console-producer")
    for option, config in CONFIGS.items():
        if options.has(option) or config not in found:
            found[config] = options.text(option)
    return found


class Ledger:
    """Which lines became records that are stored, and which did not: told at the end."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._sent = 0
        self._pending: dict[int, None] = {}
        self._failed: list[int] = []

    def watch(self, number: int, key: bytes | None, content: bytes | None) -> Done:
        """To be called when it is known what became of the record of this line."""
        self._sent += 1
        self._pending[number] = None

        def done(problem: Exception | None) -> None:
            del self._pending[number]
            if problem is not None:
                self._failed.append(number)
                if len(self._failed) <= COMPLAINTS_MAX:
                    _complain(self._topic, number, key, content, problem)

        return done

    @property
    def has_failed(self) -> bool:
        return bool(self._failed)

    def tell(self) -> int:
        """The exit code; what was given up with the whole run is not stored either."""
        missing = sorted({*self._failed, *self._pending})
        if not missing:
            return 0
        output.error(
            f"ERROR {len(missing)} of {self._sent} records were not stored in topic {self._topic}: "
            f"line{'s' if len(missing) > 1 else ''} {ranges(missing)}"
        )
        return 1


def ranges(numbers: Sequence[int]) -> str:
    """1, 3-5, 9; with many gaps only the first and how many there are."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in found[:RANGES_MAX]]
    return ", ".join(texts) + (", ..." if len(found) > RANGES_MAX else "")


class _Run:
    """Reads lines and sends records, until the input ends."""

    def __init__(self, options: Options, reader: LineReader, producer: Producer) -> None:
        self._topic = options.text("topic")
        self._is_sync = options.has("sync")
        self._reader = reader
        self._producer = producer
        self._prompts = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
        self._ledger = Ledger(self._topic)
        self._number = 0  # of the line
        self._ended = False  # the input is read to its end, or was interrupted

    def run(self) -> int:
        if self._producer.transaction is not None:
            raise ClientError("Cannot perform a 'send' before completing a call to initTransactions")
        code = 0
        try:
            code = self._copied()
        except (errors.KafkaError, OSError, Unreachable) as problem:
            output.error(failures.described(problem))
            code = 1
        code = self._ledger.tell() or code
        if not self._ended:
            output.error(f"ERROR nothing after line {self._number} was read")
        return code

    def _copied(self) -> int:
        """What was read before a line that is none, or before an interrupt, is sent all the same."""
        code = 0
        try:
            self._copy()
        except ClientError as problem:
            output.error(failures.described(problem))
            code = 1
        except KeyboardInterrupt:
            code = INTERRUPTED
            self._ended = True
        self._producer.close()
        return code

    def _copy(self) -> None:
        lines = Lines()
        descriptor = sys.stdin.fileno()
        self._prompt()
        while True:
            self._wait_for_input(descriptor)
            data = read_chunk(descriptor)
            for line in lines.feed(data):
                self._number += 1
                self._send(*self._reader.read(line))
                if self._is_sync and not self._stored():
                    return
                self._prompt()
            if not data:
                self._ended = True
                return

    def _stored(self) -> bool:
        self._producer.flush()
        return not self._ledger.has_failed

    def _prompt(self) -> None:
        if self._prompts:
            output.text(">")
            output.flush()

    def _wait_for_input(self, descriptor: int) -> None:
        """Wait for input. In the meantime batches whose linger time is over are sent, and answers received."""
        while True:
            waiting = [descriptor, *self._producer.answers_from]
            ready = readable(waiting, self._producer.linger_left_s())
            if descriptor in ready:
                return
            self._producer.poll()

    def _send(self, key: bytes | None, content: bytes | None, headers: Headers) -> None:
        done = self._ledger.watch(self._number, key, content)
        self._producer.send(self._topic, key, content, headers, timestamp_ms=times.now_ms(), done=done)


def _complain(topic: str, number: int, key: bytes | None, content: bytes | None, problem: Exception) -> None:
    """Report a record that could not be sent; the others continue."""

    def shown(data: bytes | None) -> str:
        return "null" if data is None else f"{len(data)} bytes"

    output.error(
        f"ERROR Error when sending message to topic {topic} with key: {shown(key)}, value: {shown(content)} "
        f"with error: {failures.described(problem)} (line {number})"
    )
