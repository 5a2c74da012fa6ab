"""`pykafkad perf-consume`: what kafka-consumer-perf-test does: reads this many records, and measures how fast."""

from __future__ import annotations

from random import randrange

from pykafkad import errors
from pykafkad.net.client import ClientError
from pykafkad.tools import failures, output, settings, times
from pykafkad.tools.consumer import Consumer
from pykafkad.tools.options import (
    INTEGER,
    LONG,
    Option,
    Options,
    bootstrap,
    flag,
    optional,
    run,
    value,
)
from pykafkad.tools.perf_produce import print_metrics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.tools.admin import Partition
    from pykafkad.tools.fetching import Chunk

ABOUT = "This tool is used to verify the consumer performance."
MEGABYTE = 1_048_576
POLL_S = 0.1
DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"
COLUMNS = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, "
    "fetch.MB.sec, fetch.nMsg.sec"
)

OPTIONS: tuple[Option, ...] = (
    bootstrap(),
    value("topic", "topic", "The topic to read."),
    value("include", "Java regex (String)", "A regular expression: all topics that match."),
    value("group", "gid", "The group to be a member of; by default perf-consumer- and a number."),
    value(
        "fetch-size",
        "size",
        "How much of a partition to fetch at a time.",
        kind=INTEGER,
        default="1048576",
    ),
    value("command-property", "prop1=val1", "A config of the consumer, key=value; may be given again."),
    flag("from-latest", "Start at the end where nothing is committed, rather than at the start."),
    value("socket-buffer-size", "size", "The socket's receive buffer.", kind=INTEGER, default="2097152"),
    value("consumer.config", "config file", "(DEPRECATED) Like --command-config."),
    value("command-config", "config file", "A file with configs of the consumer."),
    flag("print-metrics", "Print the consumer's counts at the end."),
    flag("show-detailed-stats", "Print a line for each reporting interval."),
    optional("timeout", "milliseconds", "How long to wait for more records.", kind=LONG, default="10000"),
    value("messages", "count", "(DEPRECATED) Like --num-records.", kind=LONG),
    value("num-records", "count", "REQUIRED: how many records to read.", kind=LONG),
    value("reporting-interval", "interval_ms", "Milliseconds between lines.", kind=LONG, default="5000"),
    value("date-format", "date format", "How times are shown (SimpleDateFormat).", default=DATE_FORMAT),
    flag("hide-header", "Without the line of titles."),
)


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body)


def body(options: Options) -> int:
    options.one_of("topic", "include")
    options.one_of("messages", "num-records")
    options.exclude("consumer.config", ("command-config",))
    if options.has("messages"):
        output.line("Warning: --messages is deprecated. Use --num-records instead.")
    if options.has("consumer.config"):
        output.line("Warning: --consumer.config is deprecated. Use --command-config instead.")
    is_detailed = options.has("show-detailed-stats")
    if not options.has("hide-header"):
        output.line(f"{'time, threadId' if is_detailed else 'start.time, end.time'}, {COLUMNS}")
        output.flush()
    try:
        _Run(options).run()
    except (ClientError, errors.KafkaError, OSError, ValueError) as problem:
        output.error(failures.message_of(problem))
        return 1
    return 0


def configs_of(options: Options) -> dict[str, str]:
    file = options.value("consumer.config") or options.value("command-config")
    configs = settings.load(file) if file is not None else {}
    configs |= settings.pairs(options.values("command-property"))
    configs["group.id"] = options.value("group") or f"perf-consumer-{randrange(100_000)}"
    configs["receive.buffer.bytes"] = options.text("socket-buffer-size")
    configs["max.partition.fetch.bytes"] = options.text("fetch-size")
    configs["auto.offset.reset"] = "latest" if options.has("from-latest") else "earliest"
    configs["check.crcs"] = "false"
    configs.setdefault("client.id", "perf-consumer-client")
    return configs


class _Run:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._configs = configs_of(options)
        self._wanted = options.integer("messages" if options.has("messages") else "num-records")
        self._timeout_ms = options.integer("timeout")
        self._interval_ms = options.integer("reporting-interval")
        if self._interval_ms <= 0:
            raise ValueError("Reporting interval must be greater than 0.")
        self._is_detailed = options.has("show-detailed-stats")
        self._date_format = options.text("date-format")
        self._progress = output.Progress()
        self._records = self._bytes = 0
        self._joining_ms = self._round_joining_ms = 0
        self._assigned: set[Partition] = set()
        self._last = (times.now_ms(), 0, 0)  # at the last line: time, records, bytes
        self._start_ms = self._join_start_ms = times.now_ms()
        self._consumer = self._subscribed()

    def _subscribed(self) -> Consumer:
        bootstrap = settings.bootstrap(self._options.value("bootstrap-server"), self._configs)
        consumer = Consumer(bootstrap, self._configs)
        consumer.on_assigned = self._on_assigned
        consumer.on_revoked = self._on_revoked
        topic = self._options.value("topic")
        if topic is not None:
            consumer.subscribe([topic])
        else:
            consumer.subscribe(pattern=settings.expression("include", self._options.text("include")))
        return consumer

    def _on_revoked(self, partitions: Sequence[Partition]) -> None:
        self._assigned.difference_update(partitions)
        if not self._assigned:
            self._join_start_ms = times.now_ms()

    def _on_assigned(self, partitions: Sequence[Partition]) -> None:
        if not self._assigned:
            elapsed_ms = times.now_ms() - self._join_start_ms
            self._joining_ms += elapsed_ms
            self._round_joining_ms += elapsed_ms
        self._assigned.update(partitions)

    def run(self) -> None:
        try:
            self._consume()
            self._progress.clear()
            if not self._is_detailed:
                self._print_total()
            if self._options.has("print-metrics"):
                client = self._configs["client.id"]
                print_metrics(
                    {
                        f"consumer-metrics:{name}:{{client-id={client}}}": number
                        for name, number in (
                            ("records-consumed-total", float(self._records)),
                            ("record-bytes-total", float(self._bytes)),
                        )
                    }
                )
        finally:
            self._progress.clear()
            self._consumer.close()

    def _consume(self) -> None:
        consumed_ms = now_ms = times.now_ms()
        while self._records < self._wanted and now_ms - consumed_ms <= self._timeout_ms:
            chunks = self._consumer.poll(POLL_S)
            now_ms = times.now_ms()
            if chunks:
                consumed_ms = now_ms
            for chunk in chunks:
                self._count(chunk)
                if now_ms - self._last[0] >= self._interval_ms:
                    self._report(now_ms)
            if self._progress.due:
                self._tell(now_ms)
        if self._records < self._wanted:
            self._progress.clear()
            output.line(
                f"WARNING: Exiting before consuming the expected number of records: timeout ({self._timeout_ms} "
                "ms) exceeded. You can use the --timeout option to increase the timeout."
            )

    def _count(self, chunk: Chunk) -> None:
        records = size = 0
        for _, record in chunk:
            records += 1
            if record.key is not None:
                size += len(record.key)
            if record.value is not None:
                size += len(record.value)
        self._records += records
        self._bytes += size
        self._consumer.consumed[chunk.partition] = chunk.next_offset

    # -- lines

    def _report(self, now_ms: int) -> None:
        """Print the line of an interval; returns the values with which the next one starts."""
        if self._is_detailed:
            start_ms, records, size = self._last
            elapsed_ms = now_ms - start_ms
            megabytes, count = (self._bytes - size) / MEGABYTE, self._records - records
            fetch_ms = elapsed_ms - self._round_joining_ms
            self._progress.clear()
            output.line(
                f"{times.format_date(self._date_format, now_ms)}, 0, {self._bytes / MEGABYTE:.4f}, "
                f"{1000 * megabytes / elapsed_ms:.4f}, {self._records}, {1000 * count / elapsed_ms:.4f}, "
                f"{self._round_joining_ms}, {fetch_ms}, "
                f"{1000 * megabytes / fetch_ms if fetch_ms > 0 else 0.0:.4f}, "
                f"{1000 * count / fetch_ms if fetch_ms > 0 else 0.0:.4f}"
            )
            output.flush()
        self._round_joining_ms = 0
        self._last = (now_ms, self._records, self._bytes)

    def _print_total(self) -> None:
        end_ms = times.now_ms()
        elapsed_s = (end_ms - self._start_ms) / 1000
        fetch_ms = end_ms - self._start_ms - self._joining_ms
        megabytes = self._bytes / MEGABYTE
        output.line(
            f"{times.format_date(self._date_format, self._start_ms)}, "
            f"{times.format_date(self._date_format, end_ms)}, {megabytes:.4f}, "
            f"{ratio(megabytes, elapsed_s)}, {self._records}, {ratio(self._records, elapsed_s)}, "
            f"{self._joining_ms}, {fetch_ms}, {ratio(megabytes, fetch_ms / 1000)}, "
            f"{ratio(self._records, fetch_ms / 1000)}"
        )

    def _tell(self, now_ms: int) -> None:
        elapsed_s = max(0.001, (now_ms - self._start_ms) / 1000)
        self._progress.show(
            f"{self._records:,} of {self._wanted:,} records read, {self._bytes / MEGABYTE / elapsed_s:,.1f} MB/s"
        )


def ratio(amount: float, seconds: float) -> str:
    """A quotient as Java's %.4f prints it, also if there were 0 seconds."""
    if seconds:
        return f"{amount / seconds:.4f}"
    return "Infinity" if amount else "NaN"
