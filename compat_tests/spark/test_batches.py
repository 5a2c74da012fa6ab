"""Batches of format("kafka"): where they begin and end, which topics they take, how they are split, what they write."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from .kit import columns, create, places, produce, read, rows, values, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NewTopicName = Callable[[str], str]
MANY = 1_000_000
BEGIN_MS = 1_700_000_000_000  # what a record's timestamp begins with
DAYS_KEPT = {"retention_ms": "-1"}  # these timestamps are old


@pytest.fixture
def dated(bootstrap: str, new_topic: NewTopicName) -> str:
    """Two partitions of ten records, a second apart; the second partition's begin five seconds later."""
    topic = create(bootstrap, new_topic("dated"), 2, **DAYS_KEPT)
    for index, first_ms in ((0, BEGIN_MS), (1, BEGIN_MS + 5_000)):
        produce(
            bootstrap,
            topic,
            [f"{index}.{number}" for number in range(10)],
            index,
            lambda number, first_ms=first_ms: first_ms + 1_000 * number,  # type: ignore[misc]
        )
    return topic


def every(index: int, first: int, end: int = 10) -> list[str]:
    return [f"{index}.{number}" for number in range(first, end)]


# -- from where, to where


def test_from_timestamps_on(spark: SparkSession, bootstrap: str, dated: str) -> None:
    at_partitions = {0: BEGIN_MS + 7_500, 1: BEGIN_MS + 13_000}
    some = read(spark, bootstrap, dated, startingOffsetsByTimestamp=places(dated, at_partitions))
    assert values(some) == every(0, 8) + every(1, 8)
    all_at_once = read(spark, bootstrap, dated, startingTimestamp=str(BEGIN_MS + 8_000))
    assert values(all_at_once) == every(0, 8) + every(1, 3)


def test_up_to_timestamps(spark: SparkSession, bootstrap: str, dated: str) -> None:
    at_partitions = {0: BEGIN_MS + 3_000, 1: BEGIN_MS + 99_000}  # nothing is so late: to the end
    some = read(spark, bootstrap, dated, endingOffsetsByTimestamp=places(dated, at_partitions))
    assert values(some) == every(0, 0, 3) + every(1, 0)
    between = read(
        spark,
        bootstrap,
        dated,
        startingTimestamp=str(BEGIN_MS + 2_000),
        endingTimestamp=str(BEGIN_MS + 7_000),
    )
    assert values(between) == every(0, 2, 7) + every(1, 0, 2)


@pytest.mark.parametrize("strategy", ["error", "latest"])
def test_from_a_time_that_no_record_has(
    spark: SparkSession, bootstrap: str, dated: str, strategy: str
) -> None:
    too_late = places(dated, {0: BEGIN_MS + 9_500, 1: BEGIN_MS})
    some = read(
        spark,
        bootstrap,
        dated,
        startingOffsetsByTimestamp=too_late,
        startingOffsetsByTimestampStrategy=strategy,
    )
    if strategy == "latest":
        assert values(some) == every(1, 0)
        return
    with pytest.raises(Exception, match=r"(?i)offset"):
        values(some)


def test_nothing_is_between_an_offset_and_itself(spark: SparkSession, bootstrap: str, dated: str) -> None:
    here = places(dated, {0: 4, 1: 10})
    assert values(read(spark, bootstrap, dated, startingOffsets=here, endingOffsets=here)) == []


# -- which topics


def test_topics_by_pattern_and_by_partition(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName
) -> None:
    stem = new_topic("many")
    for suffix in ("-a", "-b", "-other"):
        topic = create(bootstrap, stem + suffix, 2)
        for index in range(2):
            produce(bootstrap, topic, [f"{suffix}{index}"], index)
    by_pattern = read(spark, bootstrap, None, subscribePattern=f"{stem}-[ab]")
    assert sorted(values(by_pattern)) == ["-a0", "-a1", "-b0", "-b1"]
    several = read(spark, bootstrap, f"{stem}-a,{stem}-other")
    assert sorted(values(several)) == ["-a0", "-a1", "-other0", "-other1"]
    assigned = read(spark, bootstrap, None, assign=f'{{"{stem}-a":[1],"{stem}-b":[0]}}')
    assert sorted(values(assigned)) == ["-a1", "-b0"]


def test_a_topic_that_is_not_there(spark: SparkSession, bootstrap: str, new_topic: NewTopicName) -> None:
    missing = read(spark, bootstrap, new_topic("missing"), **{"kafka.allow.auto.create.topics": "false"})
    with pytest.raises(Exception, match=r"(?i)partition"):
        values(missing)


# -- how a batch is split


@pytest.mark.parametrize(
    ("options", "tasks"),
    [({}, 2), ({"minPartitions": "6"}, 6), ({"minPartitions": "1"}, 2)],
    ids=["as-it-is", "more", "no-fewer"],
)
def test_a_batch_is_split_into_tasks(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName, options: dict[str, str], tasks: int
) -> None:
    topic = create(bootstrap, new_topic("split"), 2)
    for index in range(2):
        produce(bootstrap, topic, [f"{index}.{number}" for number in range(500)], index)
    frame = read(spark, bootstrap, topic, **options)
    assert frame.rdd.getNumPartitions() == tasks
    assert values(frame) == every(0, 0, 500) + every(1, 0, 500)


# -- what a record carries


def test_headers_come_as_they_were_written(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = create(bootstrap, new_topic("headers"), 1)
    given: list[tuple[str, bytes | None]] = [("a", b"1"), ("a", b""), ("b", None), ("ü", b"\xff\x00")]
    produce(bootstrap, topic, ["with"], headers=given)
    produce(bootstrap, topic, ["without"])
    with_headers, without = read(spark, bootstrap, topic).sort("offset").collect()
    assert [(each["key"], each["value"]) for each in with_headers["headers"]] == given
    assert without["headers"] is None


def test_rows_name_their_topics_partitions_and_headers(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName
) -> None:
    first, second = (create(bootstrap, new_topic("named"), 4) for _ in range(2))
    frame = spark.range(0, 40).selectExpr(
        f"case when id % 2 = 0 then '{first}' else '{second}' end as topic",
        "cast(id % 4 as int) as partition",
        "cast(null as binary) as key",
        "cast(cast(id as string) as binary) as value",
        "array(named_struct('key', 'h', 'value', cast('x' as binary))) as headers",
    )
    write(frame, bootstrap, None)
    for topic, odd in ((first, 0), (second, 1)):
        found = read(spark, bootstrap, topic).selectExpr(
            "cast(cast(value as string) as int) as row", "partition", "key", "headers[0].key as header"
        )
        assert {(row["row"], row["partition"]) for row in found.collect()} == {
            (row, row % 4) for row in range(odd, 40, 2)
        }
        assert found.where("key is not null or header <> 'h'").count() == 0


def test_the_option_counts_more_than_the_column(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName
) -> None:
    topic = create(bootstrap, new_topic("option"), 1)
    frame = spark.range(0, 3).selectExpr(
        "'elsewhere' as topic", "cast(cast(id as string) as binary) as value"
    )
    write(frame, bootstrap, topic)
    assert sorted(values(read(spark, bootstrap, topic))) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("columns_written", "said"),
    [
        ("cast(null as string) as topic, cast('x' as binary) as value", "(?i)topic"),
        (
            "'t' as topic, cast(99 as int) as partition, cast('x' as binary) as value",
            "(?i)partition|99|metadata",
        ),
    ],
    ids=["no-topic", "no-such-partition"],
)
def test_rows_that_cannot_be_written(
    spark: SparkSession, bootstrap: str, new_topic: NewTopicName, columns_written: str, said: str
) -> None:
    topic = create(bootstrap, new_topic("refused"), 1)
    frame = spark.range(0, 1).selectExpr(*columns_written.replace("'t'", f"'{topic}'").split(", "))
    options: dict[str, Any] = {"kafka.max.block.ms": "2000", "kafka.delivery.timeout.ms": "3000"}
    options |= {"kafka.request.timeout.ms": "2000", "kafka.linger.ms": "0"}
    with pytest.raises(Exception, match=said):
        write(frame, bootstrap, None, **options)


def test_a_million_rows_there_and_back(spark: SparkSession, bootstrap: str, new_topic: NewTopicName) -> None:
    topic = create(bootstrap, new_topic("million"), 4)
    write(rows(spark, 0, MANY), bootstrap, topic, **{"kafka.compression.type": "zstd"})
    got = columns(read(spark, bootstrap, topic))
    (found,) = got.selectExpr(
        "count(*) as rows",
        "count(distinct row) as different",
        "sum(row) as total",
        "count_if(not (value <=> case when row % 100 = 0 then null else 'value-' || row end)) as wrong",
    ).collect()
    assert tuple(found) == (MANY, MANY, MANY * (MANY - 1) // 2, 0)
