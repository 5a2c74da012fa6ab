"""The rows of the table: which number of which measure, how its rounds are combined, and its target.

Throughput and CPU take the best round of each broker (other load can only make them worse), latencies the median round.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bench import cleaning, groups, measures, partitions, starts, suites, transactions
from bench.measures import Measure

Reduce = Callable[[Sequence[float]], float]
LOW: Reduce = min
HIGH: Reduce = max
MIDDLE: Reduce = statistics.median
LAST: Reduce = lambda values: values[-1]  # noqa: E731
MIB = 1 << 20
DEDUPE_MIB = 128 + 16  # log.cleaner.dedupe.buffer.size, and the size of the cleaner's reads and writes


class Target(NamedTuple):
    kind: str  # "ratio<=", "ratio>=" (ours divided by Kafka's) or "ours<=" (in the row's unit)
    bound: float

    def met(self, ours: float, ratio: float | None) -> bool | None:
        if self.kind == "ours<=":
            return ours <= self.bound
        if ratio is None:
            return None
        return ratio <= self.bound if self.kind == "ratio<=" else ratio >= self.bound

    def __str__(self) -> str:
        return f"{self.kind.replace('ratio', '').replace('ours', 'ours ')} {self.bound:g}".strip()


class Row(NamedTuple):
    title: str
    unit: str
    measure: str
    key: str
    reduce: Reduce
    scale: float = 1.0
    target: Target | None = None


class Work(NamedTuple):
    """A measure with its rounds: warm-ups are run and discarded (a JVM becomes fast only by working)."""

    name: str
    measure: Measure
    rounds: int
    warmups: int = 0


START_ROUNDS = 3  # in addition to the first start of the brokers that do the work

WORKS = [
    Work("idle", measures.idle_memory, 1),
    Work("few", measures.few_connections, 1),
    Work("many", measures.many_connections, 1),
    Work("topics", measures.topics, 3, 1),
    Work("raw", measures.raw_sequential, 5, 2),
    Work("client", measures.client_sequential, 3, 1),
    Work("pipelined", measures.pipelined, 3, 2),
    Work("fetch", measures.raw_fetch, 3, 1),
    Work("beside", measures.producer_beside_fetches, 5, 1),
    Work("small", measures.stream_small, 3, 1),
    Work("large", measures.stream_large, 3, 1),
    Work("subscribe", groups.subscribe_client, 3, 1),
    Work("join", groups.subscribe_raw, 3, 1),
    Work("settle", groups.settling, 5, 2),
    Work("commits", groups.offset_commits, 3, 2),
    Work("groups", groups.group_memory, 1),
    Work("transact", transactions.client_transactions, 3, 1),
    Work("python", transactions.python_transactions, 3, 1),
    Work("copy", transactions.client_copy, 3, 1),
    Work("transactions", transactions.raw_transactions, 3, 2),
    Work("open", transactions.open_transactions, 1),
    Work("partitions", partitions.many_partitions, 1),
    Work("flushed", measures.flushed, 3, 1),
    Work("segments", starts.many_segments, 1),
    Work("crash", starts.after_a_crash, 1),
    Work("random", starts.far_fetches, 1),
    Work("cleaning", cleaning.cleaning, 2),
    Work("suite", suites.suite, 1),
    Work("undelayed", suites.suite_without_delay, 1),
    Work("loaded", measures.loaded_memory, 1),
]


def at_most(bound: float) -> Target:
    return Target("ratio<=", bound)


def at_least(bound: float) -> Target:
    return Target("ratio>=", bound)


def ours_at_most(bound: float) -> Target:
    return Target("ours<=", bound)


ROWS = [
    Row("start to first Metadata answered", "ms", "start", "seconds", MIDDLE, 1e3, at_most(1 / 25)),
    Row("  the same, aim", "ms", "start", "seconds", MIDDLE, 1e3, ours_at_most(80)),
    Row("resident memory, idle", "MiB", "idle", "bytes", LOW, 1 / MIB, at_most(1 / 12)),
    Row("  the same, aim", "MiB", "idle", "bytes", LOW, 1 / MIB, ours_at_most(25)),
    Row("resident memory, after all loads", "MiB", "loaded", "bytes", LAST, 1 / MIB),
    Row("produce small: broker CPU", "s", "small", "produce_cpu", LOW, 1, at_most(0.5)),
    Row("produce small: wall", "s", "small", "produce_seconds", LOW),
    Row("consume small: broker CPU", "s", "small", "consume_cpu", LOW, 1, at_most(0.8)),
    Row("consume small: wall", "s", "small", "consume_seconds", LOW),
    Row("produce large: broker CPU", "s", "large", "produce_cpu", LOW),
    Row("produce large: wall", "s", "large", "produce_seconds", LOW),
    Row("consume large: broker CPU", "s", "large", "consume_cpu", LOW),
    Row("consume large: wall", "s", "large", "consume_seconds", LOW),
    Row("one by one, raw socket: p50", "us", "raw", "p50_us", MIDDLE, 1, at_most(0.4)),
    Row("one by one, raw socket: p99", "us", "raw", "p99_us", MIDDLE, 1, at_most(0.4)),
    Row("the same, client awake: p50", "us", "raw", "awake_p50_us", MIDDLE, 1, at_most(0.4)),
    Row("the same, client awake: p99", "us", "raw", "awake_p99_us", MIDDLE, 1, at_most(0.4)),
    Row("one by one, confluent-kafka: p50", "us", "client", "p50_us", MIDDLE),
    Row("one by one, confluent-kafka: p99", "us", "client", "p99_us", MIDDLE),
    Row("50 connections x 16 in flight", "requests/s", "pipelined", "rate", HIGH, 1, at_least(3)),
    Row("  broker CPU a request", "us", "pipelined", "cpu_us", LOW),
    Row("  p99", "us", "pipelined", "p99_us", MIDDLE),
    Row("producer beside 20 x 1 MiB fetches: p99", "us", "beside", "p99_us", MIDDLE, 1, at_most(0.3)),
    Row("  p50", "us", "beside", "p50_us", MIDDLE),
    Row("  what the fetches get", "MB/s", "beside", "fetch_megabytes", MIDDLE),
    Row("raw fetch, one socket", "MB/s", "fetch", "megabytes", HIGH, 1, at_least(1.2)),
    Row("  broker CPU a GB", "s", "fetch", "cpu_per_gb", LOW),
    Row("create a topic", "ms", "topics", "create_ms", MIDDLE, 1, at_most(0.1)),
    Row("delete a topic", "ms", "topics", "delete_ms", MIDDLE),
    Row("10,000 partitions, created", "s", "partitions", "create_seconds", LOW, 1, at_most(0.5)),
    Row("  described", "ms", "partitions", "describe_seconds", LOW, 1e3, at_most(0.5)),
    Row("  restarted until all are served", "s", "partitions", "restart_seconds", LOW, 1, at_most(0.5)),
    Row("  memory", "MiB", "partitions", "bytes", LOW, 1 / MIB, at_most(0.25)),
    Row("  memory, restarted", "MiB", "partitions", "restarted_bytes", LOW, 1 / MIB, at_most(0.25)),
    Row("  memory a partition", "KiB", "partitions", "bytes_each", LOW, 1 / 1024),
    Row("flush.messages=1, one by one: p50", "us", "flushed", "p50_us", MIDDLE),
    Row("  p99", "us", "flushed", "p99_us", MIDDLE),
    Row("  50 connections x 16 in flight", "requests/s", "flushed", "rate", HIGH),
    Row("start with 1,000 partitions x 3 segments", "s", "segments", "seconds", LOW, 1, at_most(0.3)),
    Row("start after kill -9 with a log of 2 GiB", "s", "crash", "seconds", LOW, 1, at_most(1)),
    Row("fetch at random of 4 GiB: p50", "us", "random", "far_us", MIDDLE),
    Row("  to that of 40 MiB", "x", "random", "ratio", MIDDLE, 1, ours_at_most(1.2)),
    Row("log cleaner, 1 GiB of 1 KiB records", "MB/s", "cleaning", "rate", HIGH, 1, at_least(1)),
    Row("  broker CPU a GB", "s", "cleaning", "cpu_per_gb", LOW),
    Row("  produce beside it: p50", "us", "cleaning", "beside_p50_us", MIDDLE),
    Row("  p90", "us", "cleaning", "beside_p90_us", MIDDLE),
    Row("  memory meanwhile", "MiB", "cleaning", "bytes", LOW, 1 / MIB, ours_at_most(DEDUPE_MIB)),
    Row("few connections, opened and answered in turn", "s", "few", "open_seconds", LOW),
    Row("few connections, all asking at once", "s", "few", "ask_seconds", LOW),
    Row("many connections, opened and answered in turn", "s", "many", "open_seconds", LOW),
    Row("many connections, all asking at once", "s", "many", "ask_seconds", LOW),
    Row("  answers with an error", "", "many", "errors", HIGH, 1, ours_at_most(0)),
    Row("  broker CPU a connection", "us", "many", "cpu", LOW, 1e6),
    Row("  memory a connection, idle", "KiB", "many", "bytes", LOW, 1 / 1024, ours_at_most(4)),
    Row(
        "subscribe to first record, confluent-kafka", "ms", "subscribe", "classic_ms", MIDDLE, 1, at_most(0.7)
    ),
    Row("  group.protocol=consumer", "ms", "subscribe", "consumer_ms", MIDDLE, 1, at_most(0.7)),
    Row("subscribe to first record, raw socket", "ms", "join", "classic_ms", MIDDLE, 1, at_most(0.7)),
    Row("  group.protocol=consumer", "ms", "join", "consumer_ms", MIDDLE, 1, at_most(0.7)),
    Row("tests with a topic and a group each", "s", "suite", "seconds", LOW, 1, at_most(0.3)),
    Row("  a broker started for each", "s", "suite", "each_seconds", LOW),
    Row("  on one pykafkad, to a Kafka for each", "s", "suite", "least_seconds", LOW, 1, at_most(0.02)),
    Row("  no initial rebalance delay on either side", "s", "undelayed", "seconds", LOW),
    Row("members of one group joining and settling", "s", "settle", "classic_seconds", MIDDLE, 1, at_most(1)),
    Row("  broker CPU", "s", "settle", "classic_cpu", LOW),
    Row("  group.protocol=consumer", "s", "settle", "consumer_seconds", MIDDLE, 1, at_most(1)),
    Row("  broker CPU", "s", "settle", "consumer_cpu", LOW),
    Row("  the same, assigning at once", "s", "settle", "at_once_seconds", MIDDLE),
    Row("  broker CPU", "s", "settle", "at_once_cpu", LOW),
    Row("offset commits down one connection", "commits/s", "commits", "rate", HIGH, 1, at_least(1)),
    Row("  broker CPU a commit", "us", "commits", "cpu_us", LOW, 1, at_most(0.5)),
    Row("  from the last one sent to its answer", "ms", "commits", "lag_ms", MIDDLE),
    Row("init_transactions(), confluent-kafka", "ms", "transact", "init_ms", MIDDLE, 1, at_most(0.1)),
    Row("  transaction of one record: p50", "ms", "transact", "one_ms", MIDDLE, 1, at_most(0.1)),
    Row("  the same, aiokafka", "ms", "python", "aiokafka", MIDDLE, 1, at_most(0.1)),
    Row("  the same, kafka-python", "ms", "python", "kafka_python", MIDDLE, 1, at_most(0.1)),
    Row("  transactions of 1,000 records", "records/s", "transact", "rate", HIGH, 1, at_least(1)),
    Row("  copied from topic to topic in such ones", "records/s", "copy", "rate", HIGH, 1, at_least(1)),
    Row("InitProducerId, raw socket: p50", "us", "transactions", "init_us", MIDDLE),
    Row("  EndTxn: p50", "us", "transactions", "end_us", MIDDLE),
    Row("  transaction of one record: p50", "us", "transactions", "whole_us", MIDDLE, 1, at_most(0.1)),
    Row("memory of open transactional ids, all", "MiB", "open", "bytes", LAST, 1 / MIB, ours_at_most(20)),
    Row(
        "memory of groups with a member, all",
        "MiB",
        "groups",
        "classic_bytes",
        LAST,
        1 / MIB,
        ours_at_most(10),
    ),
    Row("  group.protocol=consumer", "MiB", "groups", "consumer_bytes", LAST, 1 / MIB, ours_at_most(10)),
]
