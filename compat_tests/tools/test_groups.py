"""kafka-consumer-groups and kafka-groups: list, describe, delete, reset, with both group protocols."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compat_tests.tools.both import Both
from compat_tests.tools.members import Members

PROTOCOLS = ["classic", "consumer"]


def consumed(both: Both, topic: str, group: str, count: int, protocol: str = "classic") -> None:
    """The group reads `count` records, commits and leaves."""
    arguments = ["--topic", topic, "--group", group, "--from-beginning", "--max-messages", str(count)]
    both.same("console-consumer", *arguments, "--command-property", f"group.protocol={protocol}")


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def read(both: Both, protocol: str) -> tuple[str, str]:
    """A topic with nine records in one partition, and a group that has read six of them."""
    topic, group = both.topic("read", 1), both.name(f"reader-{protocol}")
    both.produce(topic, *"abcdefghi")
    consumed(both, topic, group, 6, protocol)
    return topic, group


def test_an_empty_group(both: Both, read: tuple[str, str]) -> None:
    topic, group = read
    both.same("consumer-groups", "--describe", "--group", group, has=f"{group} {topic} 0 6 9 3")
    both.same("consumer-groups", "--describe", "--group", group, "--verbose")
    both.same("consumer-groups", "--describe", "--group", group, "--state", has="Empty")
    both.same("consumer-groups", "--describe", "--group", group, "--state", "--verbose")
    both.same("consumer-groups", "--describe", "--group", group, "--members")
    both.same("consumer-groups", "--list", has=group)
    both.same("consumer-groups", "--list", "--state", has=group)
    both.same("consumer-groups", "--list", "--state", "Stable")
    both.same("consumer-groups", "--list", "--type", has=group)
    both.same("groups", "--list", has=group)


def without_epochs(line: str) -> str:
    """Kafka's coordinator learns of a new topic a moment later, and may count one epoch more."""
    return re.sub(r"\b\d+ ((watched|static)-\d+:)", r"EPOCH \1", line)


def without_group_epochs(line: str) -> str:
    """How often it changed before the member owned everything depends on when the brokers learned of the topics."""
    return re.sub(r"(Stable) \d+ \d+ (\d+)$", r"\1 EPOCH EPOCH \2", line.rstrip())


def test_a_group_with_a_member(both: Both, protocol: str) -> None:
    topic, group = both.topic("watched", 3), both.name(f"watcher-{protocol}")
    with Members(both, group, [topic], protocol, client_id="someone"):
        both.same("consumer-groups", "--describe", "--group", group, has=f"{group} {topic} 2")
        both.same("consumer-groups", "--describe", "--group", group, "--verbose", has="someone")
        both.same("consumer-groups", "--describe", "--group", group, "--members", has="someone")
        both.same(
            "consumer-groups",
            "--describe",
            "--group",
            group,
            "--members",
            "--verbose",
            has=topic,
            rewrite=without_epochs,
        )
        both.same("consumer-groups", "--describe", "--group", group, "--state", has="Stable")
        verbose = ("--describe", "--group", group, "--state", "--verbose")
        both.same("consumer-groups", *verbose, rewrite=without_group_epochs)
        both.same("consumer-groups", "--list", "--state", "stable", has=group)
        both.same("consumer-groups", "--list", "--type", protocol, has=group)
        both.same("groups", "--list", "--group-type", protocol, has=group)
        both.same("groups", "--list", "--consumer", has=group)
        both.same("consumer-groups", "--delete", "--group", group, exits=0, has="is not empty")
        reset = ("--reset-offsets", "--to-earliest", "--execute", "--topic", topic)
        both.same("consumer-groups", *reset, "--group", group, exits=0, has="inactive")
        both.same("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic, exits=0)


def test_a_static_member(both: Both, protocol: str) -> None:
    topic, group = both.topic("static", 2), both.name(f"static-{protocol}")
    with Members(both, group, [topic], protocol, client_id="fixed", group_instance_id="one"):
        both.same(
            "consumer-groups",
            "--describe",
            "--group",
            group,
            "--members",
            "--verbose",
            has="one",
            rewrite=without_epochs,
        )
    both.same("consumer-groups", "--describe", "--group", group, "--state")


def test_groups_that_are_not_there(both: Both) -> None:
    for what in ([], ["--members"], ["--state"]):
        both.same("consumer-groups", "--describe", "--group", "not-there", *what, exits=0, has="not found")
    both.same("consumer-groups", "--delete", "--group", "not-there", exits=0, has="GroupIdNotFound")
    both.same("consumer-groups", "--delete-offsets", "--group", "not-there", "--topic", "x", exits=0)
    both.same("consumer-groups", "--list", "--state", "nonsense", exits=1)


def test_all_groups(both: Both, read: tuple[str, str]) -> None:
    both.same("consumer-groups", "--describe", "--all-groups", has=read[1])
    both.same("consumer-groups", "--describe", "--all-groups", "--state", has=read[1])
    both.same("consumer-groups", "--describe", "--all-groups", "--members")


def test_delete(both: Both, read: tuple[str, str]) -> None:
    _, group = read
    both.same("consumer-groups", "--delete", "--group", group, has="successful")
    assert group not in both.same("consumer-groups", "--list").out
    both.same("consumer-groups", "--describe", "--group", group, has="not found")


def test_delete_offsets(both: Both, read: tuple[str, str]) -> None:
    topic, group = read
    both.same("consumer-groups", "--delete-offsets", "--group", group, "--topic", "not-there", exits=0)
    both.same(
        "consumer-groups", "--delete-offsets", "--group", group, "--topic", f"{topic}:0", has="Successful"
    )
    both.same("consumer-groups", "--describe", "--group", group)


RESETS = {
    "earliest": ["--to-earliest"],
    "latest": ["--to-latest"],
    "offset": ["--to-offset", "4"],
    "offset-too-high": ["--to-offset", "1000"],
    "back": ["--shift-by", "-2"],
    "far-back": ["--shift-by", "-200"],
    "forward": ["--shift-by", "1"],
    "current": ["--to-current"],
    "duration": ["--by-duration", "P1D"],
    "datetime": ["--to-datetime", "2030-01-01T00:00:00.000"],
}


@pytest.mark.parametrize("to", RESETS.values(), ids=RESETS)
def test_reset(both: Both, to: list[str]) -> None:
    topic, group = both.topic("reset", 1), both.name("resetter")
    both.produce(topic, *"abcdefghi")
    consumed(both, topic, group, 6)
    arguments = ["--reset-offsets", "--group", group, "--topic", topic, *to]
    both.same("consumer-groups", *arguments, "--dry-run", has=topic)
    both.same("consumer-groups", "--describe", "--group", group, has=f"{group} {topic} 0 6 9 3")
    both.same("consumer-groups", *arguments, "--execute", has=topic)
    both.same("consumer-groups", "--describe", "--group", group)


def test_reset_of_a_consumer_group(both: Both) -> None:
    topic, group = both.topic("reset", 2), both.name("resetter")
    both.produce(topic, *"abcdef")
    consumed(both, topic, group, 6, "consumer")
    both.same(
        "consumer-groups",
        "--reset-offsets",
        "--group",
        group,
        "--all-topics",
        "--to-earliest",
        "--execute",
        has=topic,
    )
    consumed(both, topic, group, 6, "consumer")


def test_reset_of_a_group_that_is_new(both: Both) -> None:
    topic, group = both.topic("reset", 3), both.name("new-group")
    arguments = ["--reset-offsets", "--group", group, "--topic", f"{topic}:0,2", "--to-latest"]
    both.same("consumer-groups", *arguments, "--execute", has=topic)
    both.same("consumer-groups", "--describe", "--group", group, has=f"{group} {topic} 2")
    both.same("consumer-groups", "--describe", "--group", group, "--state", has="Empty")


def test_reset_from_a_file(both: Both, tmp_path: Path) -> None:
    topic, group = both.topic("reset", 2), both.name("from-file")
    both.produce(topic, *"abcdef")
    plan = tmp_path / "plan.csv"
    arguments = [
        "--reset-offsets",
        "--group",
        group,
        "--topic",
        topic,
        "--to-earliest",
        "--dry-run",
        "--export",
    ]
    both.same("consumer-groups", *arguments, has=topic)
    plan.write_text(f"{topic},0,0\n{topic},1,0\n")
    both.same("consumer-groups", "--reset-offsets", "--group", group, "--from-file", str(plan), "--execute")
    both.same("consumer-groups", "--describe", "--group", group, has=f"{group} {topic} 1 0")


def test_reset_of_topics_that_are_not_there(both: Both) -> None:
    arguments = ["--reset-offsets", "--group", both.name("lost"), "--topic", "not-there:0", "--to-earliest"]
    both.same("consumer-groups", *arguments, "--execute", exits=0)


def test_a_group_whose_topic_is_deleted(both: Both, read: tuple[str, str]) -> None:
    topic, group = read
    both.same("topics", "--delete", "--topic", topic)
    both.same("consumer-groups", "--describe", "--group", group)
    both.same("groups", "--list", has=group)


def test_streams_reset(both: Both) -> None:
    topic, group = both.topic("streams-in", 1), both.name("streams-app")
    both.produce(topic, *"abcdef")
    consumed(both, topic, group, 6)
    arguments = ["--application-id", group, "--input-topics", topic]
    both.same("streams-reset", *arguments, "--dry-run", has=topic)
    both.same("streams-reset", *arguments, "--force", has=topic)
    both.same("consumer-groups", "--describe", "--group", group, has=f"{group} {topic} 0 0")
