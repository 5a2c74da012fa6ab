"""`pykafkad perf-produce`: what kafka-producer-perf-test does: sends this many records, as fast as possible or at a
rate.

Owns its command line and the numbers. The lines on standard output are Kafka's; on a terminal there is a progress line
too. Unlike Kafka's tool it fails if a record could not be sent.
"""

from __future__ import annotations

import os
import random
import time

from pykafkad import errors, uuids
from pykafkad.net.client import ClientError
from pykafkad.tools import failures, output, settings
from pykafkad.tools.options import (
    DOUBLE,
    INTEGER,
    LONG,
    Option,
    OptionError,
    Options,
    bootstrap,
    flag,
    many,
    run,
    value,
)
from pykafkad.tools.producer import Producer
from pykafkad.tools.throttle import Throttle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SAMPLES_MAX = 500_000
MEGABYTE = 1_048_576
LETTERS = bytes(65 + byte % 26 for byte in range(256))
TRANSACTION_MS = 3000
QUANTILES = (0.5, 0.95, 0.99, 0.999)
DEPRECATED = "Option --{} has been deprecated and will be removed in a future version. Use --{} instead."


ABOUT = "Measures a producer. With a transactional id or a transaction duration, in transactions."
PAYLOADS = ("record-size", "payload-file", "payload-monotonic")

OPTIONS: tuple[Option, ...] = (
    bootstrap(),
    value("topic", "topic", "Where the records go.", needed=True),
    value("num-records", "count", "How many records.", kind=LONG, needed=True),
    value("throughput", "records/s", "Records a second, about; -1: as many as go.", kind=DOUBLE, needed=True),
    value("record-size", "bytes", "Bytes of a record. This or one of the two below.", kind=INTEGER),
    value("payload-file", "file", "A file to take payloads from."),
    flag("payload-monotonic", "Payloads count up."),
    value(
        "payload-delimiter",
        "regex",
        "What is between the payloads of a file, a regular expression.",
        default="\\n",
    ),
    many("command-property", "name=value", "Configs of the producer."),
    many("producer-props", "name=value", "(DEPRECATED) Like --command-property."),
    value("command-config", "config file", "A file with configs of the producer."),
    value("producer.config", "config file", "(DEPRECATED) Like --command-config."),
    flag("print-metrics", "Print the producer's counts at the end."),
    value("transactional-id", "id", "The transactional id."),
    value(
        "transaction-duration-ms",
        "ms",
        "How long a transaction is; 3000 with a transactional id.",
        kind=LONG,
    ),
    value(
        "warmup-records",
        "count",
        "The first records, which a second line of numbers leaves out.",
        kind=LONG,
        default="0",
    ),
    value("reporting-interval", "ms", "Milliseconds between lines of numbers.", kind=LONG, default="5000"),
)


def main(arguments: Sequence[str]) -> int:
    return run(OPTIONS, arguments, ABOUT, body)


def body(options: Options) -> int:
    try:
        return _Run(_Plan(options)).run()
    except (ClientError, errors.KafkaError, OSError, ValueError) as problem:
        output.error(failures.described(problem))
        return 1


class _Plan:
    """The command line, checked, and what follows from it."""

    def __init__(self, options: Options) -> None:
        self.topic = options.text("topic")
        self.count = options.integer("num-records")
        self.warmup = max(options.integer("warmup-records"), 0)
        self.throughput = float(options.text("throughput"))
        self.interval_ms = options.integer("reporting-interval")
        self.prints_metrics = options.has("print-metrics")
        self.transaction_ms = options.number("transaction-duration-ms")
        self._check(options)
        self.payload = self._payload(options)
        self.configs = self._configs(options)
        self.bootstrap = settings.bootstrap(options.value("bootstrap-server"), self.configs)

    def _check(self, options: Options) -> None:
        options.one_of(*PAYLOADS)
        for name in ("num-records", "record-size", "transaction-duration-ms", "reporting-interval"):
            number = options.number(name)
            if number is not None and number <= 0:
                raise OptionError(f"--{name} should be greater than zero.")
        if self.warmup >= self.count:
            raise OptionError(
                "The value for --warmup-records must be strictly fewer than the number of records in the test, "
                "--num-records."
            )
        for new, old in (("command-property", "producer-props"), ("command-config", "producer.config")):
            if options.has(new) and options.has(old):
                raise OptionError(f"--{new} and --{old} cannot be specified together.")

    @staticmethod
    def _payload(options: Options) -> Callable[[int], bytes]:
        """The value of the n-th record."""
        if options.has("payload-file"):
            payloads = read_payloads(options.text("payload-file"), options.text("payload-delimiter"))
            choose = random.Random(0)
            return lambda number: payloads[choose.randrange(len(payloads))]
        size = options.number("record-size")
        if size is not None:
            source = random.Random(0)
            return lambda number: source.randbytes(size).translate(LETTERS)
        return lambda number: b"%d" % number

    def _configs(self, options: Options) -> dict[str, str]:
        for old, new in (("producer-props", "command-property"), ("producer.config", "command-config")):
            if options.has(old):
                output.line(DEPRECATED.format(old, new))
        file = options.value("command-config") or options.value("producer.config")
        configs = settings.load(file) if file is not None else {}
        for pair in (*options.values("command-property"), *options.values("producer-props")):
            key, separator, text = pair.partition("=")
            if not separator or not text or "=" in text:
                raise ValueError(f"Invalid property: {pair}")
            configs[key] = text
        configs.setdefault("client.id", "perf-producer-client")
        is_transactional = self.transaction_ms is not None or options.has("transactional-id")
        if is_transactional or "transactional.id" in configs:
            drawn = f"performance-producer-{uuids.to_text(uuids.random_uuid())}"
            given = options.value("transactional-id")
            configs["transactional.id"] = given or configs.get("transactional.id", drawn)
            self.transaction_ms = self.transaction_ms or TRANSACTION_MS
        return configs


def read_payloads(path: str, delimiter: str) -> list[bytes]:
    """The parts of a text file between matches of the delimiter."""
    output.line(f"Reading payloads from: {os.path.abspath(path)}")
    if not os.path.exists(path) or os.path.getsize(path) == 0:
        raise ValueError("File does not exist or empty file provided.")
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        between = settings.expression("payload-delimiter", "\n" if delimiter == "\\n" else delimiter)
        parts = between.split(file.read())
    if parts and not parts[-1]:
        parts.pop()
    output.line(f"Number of records read: {len(parts)}")
    return [part.encode() for part in parts]


class _Stats:
    """Latencies and sizes of records, over all and since the last line."""

    def __init__(self, count: int, interval_ms: int, is_steady: bool) -> None:
        self._sampling = count // min(count, SAMPLES_MAX)
        self._interval_ms = interval_ms
        self._is_steady = is_steady
        self._samples: list[int] = []
        self._start = self._window_start = _now_ms()
        self.count = self.bytes = 0
        self._latency_sum = self._latency_max = 0
        self._window_count = self._window_bytes = self._window_sum = self._window_max = 0
        self.is_quiet = False

    def record(self, latency_ms: int, size: int, now_ms: int) -> None:
        if self.count % self._sampling == 0:
            self._samples.append(latency_ms)
        self.count += 1
        self.bytes += size
        self._latency_sum += latency_ms
        self._latency_max = max(self._latency_max, latency_ms)
        self._window_count += 1
        self._window_bytes += size
        self._window_sum += latency_ms
        self._window_max = max(self._window_max, latency_ms)
        if now_ms - self._window_start >= self._interval_ms:
            if self._is_steady and self.count == self._window_count:
                output.line("In steady state.")
            if not self.is_quiet:
                self._print_window()
            self._window_start = _now_ms()
            self._window_count = self._window_bytes = self._window_sum = self._window_max = 0

    def _print_window(self) -> None:
        elapsed = max(1, _now_ms() - self._window_start)
        output.line(
            f"{self._window_count} records sent, {1000 * self._window_count / elapsed:.1f} records/sec "
            f"({1000 * self._window_bytes / elapsed / MEGABYTE:.2f} MB/sec), "
            f"{self._window_sum / self._window_count:.1f} ms avg latency, "
            f"{float(self._window_max):.1f} ms max latency."
        )
        output.flush()

    def print_total(self) -> None:
        elapsed = max(1, _now_ms() - self._start)
        steady = " steady state" if self._is_steady else ""
        mean = f"{self._latency_sum / self.count:.2f}" if self.count else "NaN"
        ordered = sorted(self._samples) or [0]
        shown = [ordered[min(int(quantile * len(ordered)), len(ordered) - 1)] for quantile in QUANTILES]
        output.line(
            f"{self.count}{steady} records sent, {1000 * self.count / elapsed:.6f} records/sec "
            f"({1000 * self.bytes / elapsed / MEGABYTE:.2f} MB/sec), {mean} ms avg latency, "
            f"{float(self._latency_max):.2f} ms max latency, {shown[0]} ms 50th, {shown[1]} ms 95th, "
            f"{shown[2]} ms 99th, {shown[3]} ms 99.9th."
        )


class _Run:
    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._producer = Producer(plan.bootstrap, plan.configs)
        self._stats = _Stats(plan.count, plan.interval_ms, is_steady=False)
        self._steady: _Stats | None = None
        self._faults = 0
        self._progress = output.Progress()

    def run(self) -> int:
        plan = self._plan
        if plan.transaction_ms is not None:
            self._producer.init_transactions()
        if plan.warmup > 0:
            output.line(
                f"Warmup first {plan.warmup} records. Steady state results will print after the complete test "
                "summary."
            )
        self._stats = _Stats(plan.count, plan.interval_ms, is_steady=False)
        self._send_all()
        self._producer.flush()
        self._progress.clear()
        self._stats.print_total()
        if self._steady is not None:
            self._steady.print_total()
        if plan.prints_metrics:
            self._print_metrics()
        self._producer.close()
        return 1 if self._faults else 0

    def _send_all(self) -> None:
        plan = self._plan
        throttle = Throttle(plan.throughput, _now_ms())
        begun_ms: int | None = None
        for number in range(plan.count):
            value = plan.payload(number)
            now_ms = _now_ms()
            if begun_ms is None:
                begun_ms = now_ms
            if number == plan.warmup and plan.warmup > 0:
                self._steady = _Stats(plan.count - plan.warmup, plan.interval_ms, is_steady=True)
                self._stats.is_quiet = True
            self._producer.send(
                plan.topic, None, value, timestamp_ms=now_ms, done=self._watch(now_ms, len(value))
            )
            if plan.transaction_ms is not None and now_ms - begun_ms >= plan.transaction_ms:
                self._producer.commit()
                begun_ms = None
            if throttle.is_due(number, now_ms):
                self._producer.poll()
                throttle.rest()
            if self._progress.due:
                self._tell(number + 1)
        if plan.transaction_ms is not None and begun_ms is not None:
            self._producer.commit()

    def _watch(self, sent_ms: int, size: int) -> Callable[[Exception | None], None]:
        stats, steady = self._stats, self._steady

        def done(problem: Exception | None) -> None:
            if problem is not None:
                self._faults += 1
                output.error(failures.described(problem))
                return
            now_ms = _now_ms()
            stats.record(now_ms - sent_ms, size, now_ms)
            if steady is not None:
                steady.record(now_ms - sent_ms, size, now_ms)

        return done

    def _tell(self, sent: int) -> None:
        share = 100 * sent // self._plan.count
        self._progress.show(f"{sent:,} of {self._plan.count:,} records sent ({share} %)")

    def _print_metrics(self) -> None:
        client = self._plan.configs["client.id"]
        rows = {
            "record-error-total": float(self._faults),
            "record-send-total": float(self._stats.count),
            "record-value-bytes-total": float(self._stats.bytes),
        }
        print_metrics({f"producer-metrics:{name}:{{client-id={client}}}": rows[name] for name in rows})


def print_metrics(rows: dict[str, float]) -> None:
    """Numbers by name, as Kafka's tools print their clients' metrics; there are few of them here."""
    width = max(map(len, rows))
    output.line(f"\n{'Metric Name':<{width}}   Value")
    for name in sorted(rows):
        output.line(f"{name:<{width}} : {rows[name]:.3f}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
