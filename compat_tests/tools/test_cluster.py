"""The tools that show and change a cluster: its APIs, features, quorum, log directories, leaders, reassignments."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from compat_tests.tools.both import Both
from compat_tests.tools.meant import is_later
from pykafkad.cluster.features import NOT_SERVED


def without_later(line: str) -> str | None:
    if re.match(r"(Add|Remove)RaftVoter", line):
        return None  # a quorum of one that nobody can join: not advertised
    return None if is_later(line) and "UNSUPPORTED" in line else line.rstrip(",")


def test_broker_api_versions(both: Both) -> None:
    """APIs that are not served yet may be missing; the others have Kafka's versions."""
    both.same("broker-api-versions", has="Produce(0): 0 to 13 [usable: 13]", rewrite=without_later)


def test_cluster_id(both: Both) -> None:
    both.same("cluster", "cluster-id", has="Cluster ID:")


def test_endpoints(both: Both) -> None:
    both.same("cluster", "list-endpoints", has="ENDPOINT")


def test_unregister(both: Both) -> None:
    both.same("cluster", "unregister", "--id", "7", exits=1, has="BrokerIdNotRegistered")


def without_epoch(line: str) -> str | None:
    """Features that are not served here are left out as well: their levels are stored, and not shown."""
    if line.startswith("Feature: ") and line.split()[1] in NOT_SERVED:
        return None
    return re.sub(r"Epoch: \d+", "Epoch: EPOCH", line)


def test_features(both: Both) -> None:
    both.same("features", "describe", has="Feature: metadata.version", rewrite=without_epoch)
    both.same("features", "version-mapping", "--release-version", "4.2", "--no-bootstrap")


@pytest.mark.parametrize(
    "arguments",
    [
        ["upgrade", "--feature", "group.version=1", "--dry-run"],
        ["upgrade", "--feature", "no.such.feature=1"],
        ["upgrade", "--feature", "group.version=99"],
        ["downgrade", "--feature", "group.version=0", "--dry-run"],
        ["disable", "--feature", "no.such.feature"],
        ["upgrade", "--metadata", "4.3-IV0", "--dry-run"],
        ["downgrade", "--feature", "eligible.leader.replicas.version=0", "--dry-run"],
        ["downgrade", "--metadata", "3.3", "--dry-run"],
    ],
    ids=" ".join,
)
def test_features_changed(both: Both, arguments: list[str]) -> None:
    exits = both.raw("features", *arguments)[1].code
    both.same("features", *arguments, exits=exits)


def test_log_dirs(both: Both) -> None:
    topic = both.topic("on-disk", 2)
    both.produce(topic, *"abc")
    both.same("log-dirs", "--describe", "--topic-list", topic, has=f"{topic}-0")
    both.same("log-dirs", "--describe", "--topic-list", "not-there", exits=0)
    both.same("log-dirs", "--describe", "--broker-list", "1", "--topic-list", topic, has=f"{topic}-1")
    both.same("log-dirs", "--describe", "--broker-list", "7", exits=1)


def test_leader_election(both: Both, tmp_path: Path) -> None:
    topic = both.topic("elected", 2)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 1}]}))
    one = ("--topic", topic, "--partition", "0")
    for kind in ("preferred", "unclean"):
        both.same("leader-election", "--election-type", kind, *one, exits=0)
        both.same("leader-election", "--election-type", kind, "--path-to-json-file", str(plan), exits=0)
    both.same(
        "leader-election", "--election-type", "preferred", "--topic", "not-there", "--partition", "0", exits=1
    )
    both.same(
        "leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "9", exits=1
    )


def test_all_leaders_elected(both: Both) -> None:
    both.same("leader-election", "--election-type", "preferred", "--all-topic-partitions", exits=0)


def test_reassignments(both: Both, tmp_path: Path) -> None:
    topic = both.topic("moved", 2)
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    generate = ("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1")
    both.same("reassign", *generate, has="Proposed partition reassignment configuration")
    partitions = [{"topic": topic, "partition": number, "replicas": [1]} for number in range(2)]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    file = ("--reassignment-json-file", str(plan))
    both.same("reassign", "--execute", *file, has="Successfully started")
    both.same("reassign", "--verify", *file, has="is completed")
    both.same("reassign", "--list")
    both.same("reassign", "--cancel", *file)


@pytest.mark.parametrize("replicas", [[7], [], [1, 1]], ids=str)
def test_reassignments_that_are_refused(both: Both, tmp_path: Path, replicas: list[int]) -> None:
    topic = both.topic("stays-put")
    plan = tmp_path / "plan.json"
    partitions = [{"topic": topic, "partition": 0, "replicas": replicas}]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    both.same("reassign", "--execute", "--reassignment-json-file", str(plan), exits=1)
    both.same("topics", "--describe", "--topic", topic, has="Replicas: 1")


def in_the_log_directory_it_is_in(both: Both, topic: str, tmp_path: Path) -> list[str]:
    paths = []
    for number, side in enumerate(both.sides):
        path = tmp_path / f"{number}.json"
        one = {"topic": topic, "partition": 0, "replicas": [1], "log_dirs": [side.data]}
        path.write_text(json.dumps({"version": 1, "partitions": [one]}))
        paths.append(str(path))
    return paths


def test_a_replica_in_the_directory_it_is_in(both: Both, tmp_path: Path) -> None:
    topic = both.topic("at-home")
    ours, theirs = in_the_log_directory_it_is_in(both, topic, tmp_path)
    both.same(
        "reassign", "--execute", "--reassignment-json-file",
        lambda side: theirs if side is both.theirs else ours, has="Successfully started",
    )  # fmt: skip


def without_offsets(line: str) -> str | None:
    """The offsets and times of the quorum change by themselves; their names stay."""
    if line.startswith(("LeaderEpoch", "HighWatermark", "MaxFollowerLag")):
        return re.sub(r"-?\d+", "NUMBER", line)
    if line.startswith("CurrentVoters"):  # our quorum of one node needs no listener, and shows none
        return re.sub(r', "endpoints": \[.*?\]', "", line)
    if re.match(r"\d+ ", line):
        node, directory, *_, status = line.split()
        return f"{node} {'DIRECTORY' if directory else ''} {status}"
    return re.sub(r'"directoryId": "[\w-]{22}"', '"directoryId": "DIRECTORY"', line)


def test_metadata_quorum(both: Both) -> None:
    both.same("metadata-quorum", "describe", "--status", has="LeaderId: 1", rewrite=without_offsets)
    both.same("metadata-quorum", "describe", "--replication", has="Leader", rewrite=without_offsets)


def test_replica_verification(both: Both) -> None:
    """With one broker there is nothing to compare."""
    topic = both.topic("replicated")
    both.same(
        "replica-verification",
        "--broker-list",
        lambda side: side.bootstrap,
        "--no-bootstrap",
        "--topics-include",
        topic,
        has="verification process is started",
    )
