"""The tools that write, read and measure records, look up offsets, delete records and show log files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compat_tests.tools.both import Both, Side

FROM_START = ("--from-beginning", "--timeout-ms", "10000")


def test_keys_headers_and_nulls(both: Both) -> None:
    topic = both.topic("typed")
    reading = "parse.key=true,parse.headers=true,null.marker=NULL"
    properties = [word for pair in reading.split(",") for word in ("--reader-property", pair)]
    stdin = "h1:v1,h2:v2\tkey\tvalue\nNULL\tNULL\tNULL\nh:\tk\t\n"
    both.same("console-producer", "--topic", topic, *properties, stdin=stdin)
    shown = "print.key=true,print.headers=true,print.value=true,print.partition=true,print.offset=true"
    formatting = [word for pair in shown.split(",") for word in ("--formatter-property", pair)]
    both.same(
        "console-consumer", "--topic", topic, *FROM_START, "--max-messages", "3", *formatting, has="h1:v1"
    )


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_console_consumers_of_a_group_go_on_where_the_last_stopped(both: Both, protocol: str) -> None:
    topic, group = both.topic("console"), both.name("console-group")
    both.produce(topic, *"abcdef")
    arguments = ["--topic", topic, "--group", group, "--command-property", f"group.protocol={protocol}"]
    for first in ("a", "c", "e"):
        seen = both.same("console-consumer", *arguments, *FROM_START, "--max-messages", "2", ordered=True)
        assert seen.out[0] == first
    both.same("consumer-groups", "--describe", "--group", group, has=f"{group} {topic} 0 6 6 0")


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed(both: Both, codec: str) -> None:
    topic = both.topic(f"packed-{codec}")
    both.same("console-producer", "--topic", topic, "--compression-codec", codec, stdin="a\n" * 50)
    both.same("console-consumer", "--topic", topic, *FROM_START, "--max-messages", "50", has="a")


def test_a_partition_from_an_offset(both: Both) -> None:
    topic = both.topic("from-offset")
    both.produce(topic, *"abcdef")
    both.same(
        "console-consumer",
        "--topic",
        topic,
        "--partition",
        "0",
        "--offset",
        "3",
        "--max-messages",
        "3",
        has="d",
        ordered=True,
    )
    both.same(
        "console-consumer", "--topic", topic, "--partition", "0", "--offset", "100", "--timeout-ms", "500"
    )


def test_a_topic_that_a_producer_makes(both: Both) -> None:
    name = both.name("made-by-use")
    both.same("console-producer", "--topic", name, stdin="a\n", exits=0)
    both.same("topics", "--describe", "--topic", name, has="PartitionCount: 1")


def test_consuming_several_topics_by_pattern(both: Both) -> None:
    topics = [both.topic("pattern"), both.topic("pattern")]
    for topic in topics:
        both.produce(topic, topic)
    for protocol in ("classic", "consumer"):
        both.same(
            "console-consumer",
            "--include",
            "pattern-.*",
            *FROM_START,
            "--max-messages",
            "2",
            "--command-property",
            f"group.protocol={protocol}",
            has=topics[1],
        )


@pytest.mark.parametrize("time", ["latest", "earliest", "-1", "-2", "-4", "0"])
def test_get_offsets(both: Both, time: str) -> None:
    topic = both.topic("offsets", 3)
    both.produce(topic, *"abcdef")
    both.same("get-offsets", "--topic", topic, "--time", time, has=f"{topic}:2:")


@pytest.mark.parametrize("time", ["max-timestamp", "-3"])
def test_get_offsets_by_a_rarer_kind_of_time(both: Both, time: str) -> None:
    topic = both.topic("offsets")
    both.produce(topic, "one")
    both.same("get-offsets", "--topic", topic, "--time", time, has=f"{topic}:0:")


@pytest.mark.parametrize("time", ["-5", "-6", "32503680000000"])
def test_times_without_an_offset(both: Both, time: str) -> None:
    topic = both.topic("offsets")
    both.produce(topic, "one")
    assert not both.same("get-offsets", "--topic", topic, "--time", time).out


def test_times_that_are_refused(both: Both) -> None:
    topic = both.topic("offsets")
    both.same("get-offsets", "--topic", topic, "--time", "-7", has="UnsupportedVersion")
    both.same("get-offsets", "--topic", topic, "--time", "soon", exits=1)


def test_get_offsets_of_some(both: Both) -> None:
    topic = both.topic("some-offsets", 3)
    both.produce(topic, *"abcdef")
    both.same("get-offsets", "--topic-partitions", f"{topic}:0-2", has=f"{topic}:1:")
    both.same("get-offsets", "--topic", topic, "--partitions", "0,2", has=f"{topic}:2:")
    both.same("get-offsets", "--topic", "not-there", exits=1)
    both.same("get-offsets", "--topic", topic, "--partitions", "9", exits=1)


def delete_records(both: Both, tmp_path: Path, topic: str, partition: int, offset: int) -> None:
    plan, impatient = tmp_path / "delete.json", tmp_path / "impatient.properties"
    one = {"topic": topic, "partition": partition, "offset": offset}
    plan.write_text(json.dumps({"partitions": [one], "version": 1}))
    impatient.write_text("default.api.timeout.ms=1500\nrequest.timeout.ms=1500\n")
    both.same(
        "delete-records",
        "--offset-json-file",
        str(plan),
        "--command-config",
        str(impatient),
        has=f"partition: {topic}-{partition}",
        rewrite=without_reason_of_timeout,
    )


def without_reason_of_timeout(line: str) -> str:
    """Whether a call was in flight or still waited for its node when the client's time was up is chance, and so is
    which call it was."""
    line = re.sub(r"(tries=|after )\d+", r"\1NUMBER", line)
    line = re.sub(r"Timed out waiting for a node assignment\. Call: (.*)", r"TIMED OUT: \1", line)
    return re.sub(r"Call\(callName=(.*), deadlineMs=.*\) timed out at .*", r"TIMED OUT: \1", line)


def test_delete_records(both: Both, tmp_path: Path) -> None:
    topic = both.topic("cut")
    both.produce(topic, *"abcdef")
    delete_records(both, tmp_path, topic, 0, 2)
    both.same("get-offsets", "--topic", topic, "--time", "earliest", has=f"{topic}:0:2")
    both.same("console-consumer", "--topic", topic, *FROM_START, "--max-messages", "4", ordered=True, has="c")
    delete_records(both, tmp_path, topic, 0, 1)
    delete_records(both, tmp_path, topic, 0, 100)
    delete_records(both, tmp_path, topic, 7, 1)
    delete_records(both, tmp_path, "not-there", 0, 1)
    delete_records(both, tmp_path, topic, 0, -1)
    both.same("get-offsets", "--topic", topic, "--time", "earliest", has=f"{topic}:0:6")


def test_delete_records_of_a_compacted_topic(both: Both, tmp_path: Path) -> None:
    topic = both.topic("compacted", 1, cleanup_policy="compact")
    both.produce(topic, *"abc")
    delete_records(both, tmp_path, topic, 0, 2)
    both.same("get-offsets", "--topic", topic, "--time", "earliest", has=f"{topic}:0:0")


def without_speed(line: str) -> str | None:
    """An event of the verifiable tools without what depends on speed: which records came in which poll.

    An empty first assignment is removed too, since the group may learn of its topic a moment later.
    """
    if re.search(
        r'"name": "(records_consumed|offsets_committed)"|"name": "partitions_assigned", "partitions": \[\]',
        line,
    ):
        return None
    return re.sub(r'"avg_throughput": [\d.]+', '"avg_throughput": NUMBER', line)


def test_verifiable_producer(both: Both) -> None:
    topic = both.topic("verified")
    both.same(
        "verifiable-producer",
        "--topic",
        topic,
        "--max-messages",
        "20",
        "--acks",
        "-1",
        "--throughput",
        "1000",
        has='"acked": 20',
        rewrite=without_speed,
    )
    both.same("get-offsets", "--topic", topic, has=f"{topic}:0:20")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_consumer(both: Both, protocol: str) -> None:
    topic, group = both.topic("verified", 2), both.name("verifier")
    both.produce(topic, *map(str, range(40)))
    both.same(
        "verifiable-consumer",
        "--topic",
        topic,
        "--group-id",
        group,
        "--group-protocol",
        protocol,
        "--max-messages",
        "40",
        has="partitions_assigned",
        rewrite=without_speed,
    )
    both.same("consumer-groups", "--describe", "--group", group, has=group)


def without_numbers(line: str) -> str:
    return re.sub(r"-?\d+(\.\d+)?", "NUMBER", line)


def test_producer_perf(both: Both) -> None:
    topic = both.topic("measured")
    both.same(
        "producer-perf",
        "--topic",
        topic,
        "--num-records",
        "1000",
        "--record-size",
        "100",
        "--throughput",
        "-1",
        has="records/sec",
        rewrite=without_numbers,
    )
    both.same("get-offsets", "--topic", topic, has=f"{topic}:0:1000")
    both.same(
        "consumer-perf", "--topic", topic, "--num-records", "1000", has="NUMBER", rewrite=without_numbers
    )


def test_latency_from_end_to_end(both: Both) -> None:
    topic = both.topic("measured")
    both.same(
        "e2e-latency",
        "--topic",
        topic,
        "--num-records",
        "20",
        "--producer-acks",
        "all",
        "--record-size",
        "20",
        has="Percentiles",
        rewrite=without_numbers,
    )


def segment(topic: str) -> str:
    return f"{topic}-0/00000000000000000000"


def test_dump_log(both: Both) -> None:
    topic = both.topic("dumped")
    both.produce(topic, *"abcdef")

    def files(side: Side) -> str:
        return f"{side.data}/{segment(topic)}.log"

    both.same(
        "dump-log",
        "--print-data-log",
        "--no-bootstrap",
        "--files",
        files,
        has="payload: f",
        rewrite=lambda line: re.sub(r"crc: \d+", "crc: CRC", line),
    )


def test_dump_log_of_offsets(both: Both) -> None:
    """The records of a group are the same in both brokers' files."""
    topic, group = both.topic("dumped"), both.name("dumped-group")
    both.produce(topic, *"abcdef")
    both.same("console-consumer", "--topic", topic, "--group", group, *FROM_START, "--max-messages", "6")
    both.same("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    number = partition_of(group, 4)

    def files(side: Side) -> str:
        return f"{side.data}/__consumer_offsets-{number}/00000000000000000000.log"

    def of_the_group(line: str) -> str | None:
        found = re.search(r"key: .*", line)
        if found is None or f'"{group}"' not in line:
            return None
        return re.sub(r'"topicId":"[\w-]{22}"', '"topicId":"TOPIC_ID"', found.group())

    dumped = both.same(
        "dump-log", "--offsets-decoder", "--no-bootstrap", "--files", files, has=group, rewrite=of_the_group
    )
    assert any(topic in line for line in dumped.out)


def partition_of(group: str, partitions: int) -> int:
    """The partition of __consumer_offsets that has this group: by Java's String.hashCode, without its sign."""
    number = 0
    for character in group:
        number = (31 * number + ord(character)) & 0xFFFFFFFF
    return (number if number < 1 << 31 else (1 << 32) - number) % partitions
