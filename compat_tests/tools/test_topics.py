"""kafka-topics: create, list, describe, alter, delete, and what each refuses."""

from __future__ import annotations

import pytest

from compat_tests.tools.both import Both


def test_create_list_describe(both: Both) -> None:
    name = both.topic("made", 3, retention_ms="86400000", cleanup_policy="compact,delete")
    both.same("topics", "--list", has=name)
    both.same("topics", "--describe", "--topic", name, has="PartitionCount: 3")
    both.same("topics", "--list", "--exclude-internal", "--topic", f"{name}|no-such")


def test_a_topic_is_as_its_broker_says_by_default(both: Both) -> None:
    name = both.name("by-default")
    both.same("topics", "--create", "--topic", name, has=f"Created topic {name}.")
    both.same("topics", "--describe", "--topic", name, has="ReplicationFactor: 1")


def test_replica_assignment(both: Both) -> None:
    name = both.name("assigned")
    both.same("topics", "--create", "--topic", name, "--replica-assignment", "1,1,1")
    both.same("topics", "--describe", "--topic", name, has="PartitionCount: 3")


def test_names_that_look_alike_in_metrics_are_warned_of(both: Both) -> None:
    name = both.name("under_score")
    both.same("topics", "--create", "--topic", name, has="WARNING")
    both.same("topics", "--create", "--topic", name.replace("_", "."), exits=1, has="collides")


def test_if_not_exists_and_if_exists(both: Both) -> None:
    name = both.topic("there")
    both.same("topics", "--create", "--topic", name, "--if-not-exists")
    both.same("topics", "--describe", "--topic", "not-there", "--if-exists")
    both.same("topics", "--delete", "--topic", "not-there", "--if-exists")
    both.same("topics", "--alter", "--topic", "not-there", "--partitions", "2", "--if-exists")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--topic", "bad name"],
        ["--topic", "x" * 250],
        ["--topic", "."],
        ["--topic", "no-partitions", "--partitions", "0"],
        ["--topic", "too-many-replicas", "--replication-factor", "2"],
        ["--topic", "no-replicas", "--replication-factor", "0"],
        ["--topic", "bad-config", "--config", "retention.ms=soon"],
        ["--topic", "unknown-config", "--config", "no.such.key=1"],
        ["--topic", "no-such-broker", "--replica-assignment", "7"],
        ["--topic", "twice-the-same-broker", "--replica-assignment", "1:1"],
    ],
    ids=lambda arguments: arguments[1][:24],
)
def test_topics_that_are_refused(both: Both, arguments: list[str]) -> None:
    both.same("topics", "--create", *arguments, exits=1)


def test_a_topic_that_is_there_already(both: Both) -> None:
    name = both.topic("twice")
    both.same("topics", "--create", "--topic", name, exits=1, has="already exists")


@pytest.mark.parametrize(
    "which",
    [
        "--under-replicated-partitions",
        "--unavailable-partitions",
        "--under-min-isr-partitions",
        "--at-min-isr-partitions",
        "--topics-with-overrides",
    ],
)
def test_describe_those_that_are_somehow(both: Both, which: str) -> None:
    both.topic("overridden", segment_bytes="1048576")
    both.same("topics", "--describe", which)


def test_describe_what_is_not_there(both: Both) -> None:
    both.same("topics", "--describe", "--topic", "not-there", exits=1, has="does not exist")
    both.same("topics", "--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAw", exits=1)
    both.same("topics", "--describe", "--topic-id", "nonsense", exits=1)


def test_describe_in_pages(both: Both) -> None:
    name = both.topic("pages", 7)
    both.same("topics", "--describe", "--topic", name, "--partition-size-limit-per-response", "2")


def test_more_partitions(both: Both) -> None:
    name = both.topic("grows", 2)
    both.same("topics", "--alter", "--topic", name, "--partitions", "5")
    both.same(
        "topics", "--alter", "--topic", name, "--partitions", "7", "--replica-assignment", "1,1,1,1,1,1,1"
    )
    both.same("topics", "--describe", "--topic", name, has="PartitionCount: 7")
    both.produce(name, *map(str, range(20)))


@pytest.mark.parametrize("count", ["2", "3", "0", "-1"])
def test_partition_counts_that_are_refused(both: Both, count: str) -> None:
    name = both.topic("stays", 3)
    both.same("topics", "--alter", "--topic", name, "--partitions", count, exits=1)
    both.same("topics", "--describe", "--topic", name, has="PartitionCount: 3")


def test_more_partitions_of_a_topic_that_is_not_there(both: Both) -> None:
    both.same("topics", "--alter", "--topic", "not-there", "--partitions", "3", exits=1)


def test_delete(both: Both) -> None:
    names = [both.topic("goes"), both.topic("goes")]
    both.same("topics", "--delete", "--topic", "goes-.*")
    assert not [line for line in both.same("topics", "--list").out if line in names]
    both.same("topics", "--delete", "--topic", names[0], exits=1, has="does not exist")


def test_a_wrong_command_line(both: Both) -> None:
    both.same("topics", "--list", "--nonsense", exits=1)
