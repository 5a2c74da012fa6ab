"""What statements cost in Spark beside hand-written PySpark programs that do the same: one session, one broker, in turns.

    python -m bench.pipelines [--rows N] [--rounds N]

Prints a line a measure: rows a second of each, and ours by theirs; then latencies from record to result.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer

from compat_tests.spark import session as kafka_session
from pykafkad.pipelines.hosts import spark as host
from pykafkad.pipelines.hosts.spark_streaming import StreamingQueryOptions, start
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.testing import prepared
from pykafkad.testing import Broker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RIDES = "CREATE STREAM rides (id STRING KEY, who STRING, km DOUBLE) WITH (kafka_topic='rides', value_format='JSON');"
FAR = "CREATE STREAM far WITH (kafka_topic='{}') AS SELECT id, who, km * 1000 AS m FROM rides WHERE km > 2;"
COUNT = (
    "CREATE TABLE n WITH (kafka_topic='{}') AS SELECT who, COUNT(*) AS n FROM rides "
    "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY who;"
)
SCHEMA = "who STRING, km DOUBLE"
OF_RUN = {"spark.sql.shuffle.partitions": "2", "spark.driver.extraJavaOptions": ""}
"""Of the session, as `sql run` has it: what runs for long is worth the JVM's best compiler."""
PARTITIONS, KEYS, BATCH_ROWS = 2, 200_000, 500_000
LATE_S, PROBES, PROBE_S = 60, 60, 5
TIMEOUT_S = 600


class Bench:
    def __init__(self, spark: SparkSession, broker: Broker, rows: int) -> None:
        self.spark, self.broker, self.rows = spark, broker, rows
        self.bootstrap = broker.bootstrap_servers
        self.home = Path(tempfile.mkdtemp(prefix="bench-pipelines-"))

    def fill(self) -> None:
        self.broker.create_topics({"rides": PARTITIONS})
        rng, limits = random.Random(1), {"queue.buffering.max.messages": 2_000_000}
        producer = Producer({"bootstrap.servers": self.bootstrap, **limits})
        for number in range(self.rows):
            value = json.dumps({"who": f"rider-{rng.randrange(KEYS)}", "km": rng.randrange(80) / 8})
            producer.produce("rides", value, str(number))
            if number % 10_000 == 0:
                producer.poll(0)
        assert producer.flush(TIMEOUT_S) == 0

    def topic(self, name: str) -> str:
        found = f"{name}-{uuid.uuid4().hex[:8]}"
        self.broker.create_topics({found: PARTITIONS})
        return found

    def plan(self, statement: str) -> Plan:
        return prepared([RIDES, statement], []).plans[-1]

    def ours(self, statement: str, **options: Any) -> Callable[[], Any]:
        def run() -> Any:
            topic = self.topic("ours")
            chosen = StreamingQueryOptions(self.bootstrap, self.home, until_idle=True, **options)
            return start(self.spark, topic, self.plan(statement.format(topic)), chosen)

        return run

    def theirs(self, make: Callable[[DataFrame], DataFrame], mode: str = "append") -> Callable[[], Any]:
        def run() -> Any:
            topic = self.topic("theirs")
            reader = self.spark.readStream.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)
            reader = reader.option("subscribe", "rides").option("startingOffsets", "earliest")
            rows = make(reader.option("maxOffsetsPerTrigger", str(BATCH_ROWS)).load())
            writer = rows.writeStream.format("kafka").option("kafka.bootstrap.servers", self.bootstrap)
            writer = writer.option("topic", topic).outputMode(mode)
            return (
                writer.option("checkpointLocation", str(self.home / topic)).trigger(availableNow=True).start()
            )

        return run

    def rate(self, run: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        assert run().awaitTermination(TIMEOUT_S)
        return self.rows / (time.perf_counter() - begun)

    def compare(self, name: str, rounds: int, **sides: Callable[[], Any]) -> None:
        rates: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side, run in sides.items():
                rates[side].append(self.rate(run))
        best = {side: max(found) for side, found in rates.items()}
        shown = ", ".join(f"{side} {rate:,.0f} rows/s" for side, rate in best.items())
        first, *_, last = best.values()
        print(f"{name}: {shown}; {first / last:.2f}", flush=True)

    def latency(self, name: str, statement: str, **options: Any) -> None:
        """From record in to result out, one record at a time."""
        topic = self.topic("late")
        plan = prepared([RIDES, statement.format(topic)], [], DEAD).plans[-1]
        chosen = StreamingQueryOptions(self.bootstrap, self.home, starting_offsets="latest", **options)
        query = start(self.spark, topic, plan, chosen)
        configs = {"bootstrap.servers": self.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
        consumer = Consumer({**configs, "fetch.wait.max.ms": 5})
        consumer.subscribe([topic])
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        times: list[float] = []
        deadline = time.monotonic() + LATE_S
        try:
            while len(times) < PROBES and time.monotonic() < deadline:
                probe = uuid.uuid4().hex.encode()
                begun = time.perf_counter()
                producer.produce("rides", json.dumps({"who": probe.decode(), "km": 9}), probe)
                producer.flush()
                until = begun + PROBE_S
                while (message := consumer.poll(1)) is None or probe not in (message.key() or b""):
                    if time.perf_counter() > until:
                        break  # before the query reads, nothing comes
                else:
                    times.append((time.perf_counter() - begun) * 1000)
        finally:
            query.stop()
            consumer.close()
        steady = sorted(times[5:])
        p95 = steady[int(len(steady) * 0.95)]
        print(
            f"{name}: p50 {statistics.median(steady):.1f} ms, p95 {p95:.1f} ms ({len(steady)} records)",
            flush=True,
        )


DEAD = {"errors.dead.letter.queue.topic.name": "dead"}


def far(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    parsed = rows.select("key", f.from_json(f.col("value").cast("string"), SCHEMA).alias("v"))
    kept = parsed.where("v.km > 2")
    return kept.select("key", f.to_json(f.struct("v.who", (f.col("v.km") * 1000).alias("m"))).alias("value"))


def counted(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    parsed = rows.select("timestamp", f.from_json(f.col("value").cast("string"), SCHEMA).alias("v"))
    windows = (
        parsed.withWatermark("timestamp", "24 hours")
        .groupBy(f.window("timestamp", "1 hour"), "v.who")
        .count()
    )
    return windows.select(
        f.col("who").alias("key"), f.to_json(f.struct("window.start", "count")).alias("value")
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.pipelines", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="bench-spark-"))
    with Broker() as broker:
        kafka_session.make(home)
        spark = host.session(configs=OF_RUN)
        bench = Bench(spark, broker, given.rows)
        bench.fill()
        operators = bench.ours(FAR, compiles=False)
        bench.compare(
            "filter and project",
            given.rounds,
            compiled=bench.ours(FAR),
            operators=operators,
            written=bench.theirs(far),
        )
        broker.create_topics({"dead": 1})
        bench.latency("a filter in real-time mode", FAR, realtime=True)
        bench.latency("a filter in micro-batches", FAR)
        bench.latency("a tumbling count in micro-batches", COUNT)
        bench.compare(
            f"tumbling count, {KEYS:,} keys",
            given.rounds,
            compiled=bench.ours(COUNT),
            operators=bench.ours(COUNT, compiles=False),
            written=bench.theirs(counted, "update"),
        )
        spark.stop()


if __name__ == "__main__":
    main()
