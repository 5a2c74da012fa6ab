"""ConsumerGroupHeartbeat: joining, epochs, subscriptions, static members, leaving, and what is refused."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.play import Play
from compat_tests.differential.requests import creatable, create
from compat_tests.differential.versions import at_every_version
from pykafkad import errors
from pykafkad.messages import CreatePartitionsRequest, DeleteTopicsRequest


@at_every_version("ConsumerGroupHeartbeat")
def test_a_first_member(pair: Pair, version: int) -> None:
    topic = pair.topic("c", 3)
    play = Play(pair)
    answer = play.join("a", topic, version=version)
    assert (answer.error_code, answer.member_epoch) == (0, 2)
    assert [list(each.partitions) for each in answer.assignment.topic_partitions] == [[0, 1, 2]]
    assert play.beat("a", version=version).assignment is None
    play.join("a", topic, version=version)
    play.compare_records()


def test_a_member_without_an_id(pair: Pair) -> None:
    topic = pair.topic("c", 1)
    play = Play(pair)
    assert len(play.join("", topic, version=0).member_id) == 22
    assert play.join("", topic, version=1).error_code == errors.INVALID_REQUEST


@at_every_version("ConsumerGroupHeartbeat")
@pytest.mark.parametrize(
    "fields",
    [
        {"group_id": ""},
        {"group_id": "  "},
        {"member_id": ""},
        {"member_id": " "},
        {"instance_id": ""},
        {"instance_id": " \t"},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"rebalance_timeout_ms": -2},
        {"rebalance_timeout_ms": 0},
        {"owned": None},
        {"owned": {"nothing": [0]}},
        {"subscribed_topic_names": None},
        {"subscribed_topic_names": []},
        {"subscribed_topic_names": ["", "a b", "t" * 300, "é"]},
        {"subscribed_topic_names": ["twice", "twice"]},
        {"server_assignor": "none"},
        {"server_assignor": ""},
        {"server_assignor": "range"},
        {"server_assignor": "Uniform"},
        {"epoch": -3},
        {"epoch": -1},
        {"epoch": -2},
        {"epoch": -2, "instance_id": "i"},
        {"epoch": -1, "member_id": ""},
        {"epoch": 1},
        {"epoch": 1, "member_id": ""},
        {"epoch": 2147483647},
        {"epoch": -2147483648},
    ],
    ids=str,
)
def test_first_requests_that_may_be_wrong(pair: Pair, version: int, fields: dict[str, Any]) -> None:
    play = Play(pair, interval_ms=None)
    given = {
        "rebalance_timeout_ms": 60_000,
        "owned": {},
        "subscribed_topic_names": ["no-such-topic"],
        **fields,
    }
    epoch = given.pop("epoch", 0)
    name = given.get("member_id", "a")
    answer = pair.same(play.request(name, epoch, **given), version)
    if not answer.error_code:
        play.describe()
        if name:
            play.compare_records()


@at_every_version("ConsumerGroupHeartbeat")
@pytest.mark.parametrize(
    ("member", "epoch", "fields"),
    [
        ("a", 3, {}),
        ("a", 1, {}),
        ("a", 1, {"owned": {}}),
        ("a", 1, {"owned": {"nothing": [0]}}),
        ("b", 2, {}),
        ("b", -1, {}),
        ("b", -2, {"instance_id": "i"}),
        ("a", -2, {"instance_id": "i"}),
        ("a", 2, {"instance_id": "i"}),
        ("a", 2, {"owned": {"nothing": [0, -1]}}),
        ("a", 2, {"server_assignor": "none"}),
        ("a", 2, {"subscribed_topic_names": []}),
        ("a", 2, {"rack_id": "r"}),
        ("a", 2, {"rebalance_timeout_ms": 5}),
        ("a", 2, {"server_assignor": "range"}),
        ("a", -1, {"subscribed_topic_names": ["x"]}),
    ],
    ids=str,
)
def test_later_requests(pair: Pair, version: int, member: str, epoch: int, fields: dict[str, Any]) -> None:
    topic = pair.topic("c", 2)
    play = Play(pair)
    assert play.join("a", topic, version=version).member_epoch == 2
    play.beat(member, epoch, version, **fields)
    play.describe()
    play.beat("a", 2, version)
    play.compare_records()


def test_the_epoch_before(pair: Pair) -> None:
    one, two = pair.topic("c", 2), pair.topic("c", 2)
    play = Play(pair)
    play.join("a", one)
    assert play.beat("a", subscribed_topic_names=[one, two], owned={one: [0, 1]}).member_epoch == 3
    assert play.beat("a", 2).error_code == errors.FENCED_MEMBER_EPOCH
    assert play.beat("a", 2, owned={one: [0, 1]}).member_epoch == 3
    assert play.beat("a", 2, owned={one: [0], two: [1]}).member_epoch == 3
    assert play.beat("a", 2, owned={one: [2]}).error_code == errors.FENCED_MEMBER_EPOCH
    play.compare_records()


def test_members_come_and_go(pair: Pair) -> None:
    """With `range`, whose assignments do not depend on the order of a hash map."""
    topic = pair.topic("c", 6)
    play = Play(pair)
    play.join("a", topic, server_assignor="range")
    play.join("b", topic, server_assignor="range")
    play.describe()
    play.beat("a", owned={topic: range(6)})
    play.beat("b", owned={})
    play.describe()
    play.beat("a", owned={topic: range(3)})
    play.beat("b", owned={})
    play.describe()
    play.join("c", topic, server_assignor="range")
    for _ in range(2):
        play.beat("a", owned={topic: range(3)})
        play.beat("a", owned={topic: range(2)})
        play.beat("b", owned={topic: range(3, 6)})
        play.beat("b", owned={topic: [3]})
        play.beat("c", owned={})
        play.describe()
    play.leave("b")
    play.describe()
    for member in "acac":
        play.beat(member)
        play.describe()
    play.leave("a")
    play.leave("c")
    play.describe()
    play.compare_records(in_order=False)


def test_a_member_that_does_not_give_up(pair: Pair) -> None:
    topic = pair.topic("c", 2)
    play = Play(pair)
    play.join("a", topic, server_assignor="range")
    play.join("b", topic, server_assignor="range")
    for _ in range(2):
        play.beat("a", owned={topic: [0, 1]})
        play.beat("b", owned={})
    play.beat("a", subscribed_topic_names=[], owned={topic: [0, 1]})
    play.beat("b", owned={})
    play.beat("a", owned={})
    play.beat("b", owned={})
    play.describe()
    play.compare_records(in_order=False)


def test_subscriptions_change(pair: Pair) -> None:
    one, two = pair.topic("c", 2), pair.topic("c", 3)
    play = Play(pair)
    play.join("a", one)
    play.beat("a", subscribed_topic_names=[one, two], owned={one: [0, 1]})
    play.describe()
    play.beat("a", subscribed_topic_names=[two], owned={one: [0, 1], two: [0, 1, 2]})
    play.describe()
    play.beat("a", owned={two: [0, 1, 2]})
    play.beat("a", subscribed_topic_names=[], owned={two: [0, 1, 2]})
    play.beat("a", owned={})
    play.describe()
    play.compare_records()


def test_targets_wait_for_their_interval(pair: Pair) -> None:
    one, two = pair.topic("c", 2), pair.topic("c", 3)
    play = Play(pair, interval_ms=15_000)
    play.join("a", one, two)
    play.join("b", one)
    play.describe()
    play.beat("a", subscribed_topic_names=[two], owned={one: [0, 1], two: [0, 1, 2]})
    play.beat("a", owned={two: [0, 1, 2]})
    play.beat("b", owned={})
    play.describe()
    play.leave("b")
    play.compare_records()


def test_new_partitions_and_topics(pair: Pair) -> None:
    topic = pair.topic("c", 1)
    play = Play(pair)
    later = f"{topic}-later"
    play.join("a", topic, later)
    play.beat("a")
    pair.same(create(creatable(later, num_partitions=2)), 7)
    pair.learn_topics()
    settle(play, "a", {topic: [0], later: [0, 1]})
    play.beat("a", owned={topic: [0], later: [0, 1]})
    kind = CreatePartitionsRequest
    grown = kind.CreatePartitionsTopic(name=topic, count=3, assignments=None)
    assert pair.same(kind(topics=[grown], timeout_ms=10_000), 3).results[0].error_code == 0
    settle(play, "a", {topic: [0, 1, 2], later: [0, 1]})
    gone = DeleteTopicsRequest.DeleteTopicState(name=later)
    pair.same(lambda side: DeleteTopicsRequest(topics=[gone], timeout_ms=10_000), 6)
    settle(play, "a", {topic: [0, 1, 2]})
    play.describe()


def settle(play: Play, member: str, wanted: dict[str, list[int]]) -> None:
    """Send heartbeats until both have noticed the change of topics, each in its own time; then the answers with the
    assignment must be the same."""
    deadline = time.monotonic() + 10
    left = {side.name: side for side in play.pair.sides}
    epochs: dict[str, int] = {}
    while left:
        assert time.monotonic() < deadline, f"{list(left)} did not notice"
        for side in list(left.values()):
            epoch = epochs.get(side.name, play.epochs[member])
            answer = side.demand(play.request(member, epoch)(side), 1)
            assert not answer.error_code, answer
            epochs[side.name] = answer.member_epoch
            if answer.assignment is not None:
                found = {
                    side.topic_name(each.topic_id): sorted(each.partitions)
                    for each in answer.assignment.topic_partitions
                }
                if found == wanted:
                    del left[side.name]
        time.sleep(0.02)
    assert len(set(epochs.values())) == 1, epochs
    play.epochs[member] = next(iter(epochs.values()))


# -- static members


def test_a_static_member_comes_back(pair: Pair) -> None:
    topic = pair.topic("c", 3)
    play = Play(pair)
    play.join("a", topic, instance_id="i")
    assert play.join("b", topic, instance_id="i").error_code == errors.UNRELEASED_INSTANCE_ID
    play.leave("a", -2, instance_id="i")
    play.describe()
    assert play.beat("a", 2, instance_id="i").error_code == errors.FENCED_MEMBER_EPOCH
    assert play.join("b", topic, instance_id="i").assignment.topic_partitions
    play.describe()
    assert play.beat("a", 2, instance_id="i").error_code == errors.FENCED_INSTANCE_ID
    assert play.leave("a", -1, instance_id="i").error_code == errors.FENCED_INSTANCE_ID
    assert play.leave("a", -2, instance_id="i").error_code == errors.FENCED_INSTANCE_ID
    play.beat("b", instance_id="i")
    play.beat("b")
    play.join("c", topic)
    play.leave("b", -1, instance_id="i")
    play.describe()
    play.compare_records(in_order=False)


def test_a_static_member_comes_back_with_another_subscription(pair: Pair) -> None:
    one, two = pair.topic("c", 2), pair.topic("c", 2)
    play = Play(pair)
    play.join("a", one, instance_id="i", server_assignor="range")
    play.join("b", one, server_assignor="range")
    play.beat("a", owned={one: [0]}, instance_id="i")
    play.beat("b", owned={})
    play.leave("a", -2, instance_id="i")
    play.join("a2", two, instance_id="i")
    play.beat("b", owned={one: [1]})
    play.describe()
    play.beat("a2", owned={two: [0, 1]}, instance_id="i")
    play.beat("b", owned={one: [0, 1]})
    play.leave("b", -2)
    play.describe()
    play.compare_records(in_order=False)


# -- regular expressions


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        "a**",
        "[b",
        "\\",
        "a{1001}",
        "(?<n",
        "(?x)",
        "[[:no:]]",
        "\\p{Nope}",
        "x{2}{3}",
        ")",
        "*",
        "(?P<n>a)(?P<n>b)",
    ],
)
def test_expressions_that_are_none(pair: Pair, pattern: str) -> None:
    play = Play(pair, interval_ms=None)
    answer = play.join("a", subscribed_topic_regex=pattern)
    assert answer.error_code == errors.INVALID_REGULAR_EXPRESSION
    play.compare_records()


@pytest.mark.parametrize(
    "pattern", ["{stem}-[0-9]+", "^{stem}-1$", "(?i){STEM}-(1|3)", "{stem}.*", ".*{stem}-2.*", "{stem}\\b.+"]
)
def test_expressions(pair: Pair, pattern: str) -> None:
    stem = pair.new_name("rx")
    topics = [pair.topic(stem, 1) for _ in range(3)]
    play = Play(pair)
    text = pattern.replace("{stem}", stem).replace("{STEM}", stem.upper())
    answer = play.join("a", subscribed_topic_regex=text)
    assert answer.error_code == 0
    wait_resolved(play, "a")
    play.describe()
    assert play.describe().members[0].subscribed_topic_regex == text
    play.join("b", topics[0])
    play.beat("b")
    play.beat("a", subscribed_topic_regex="", subscribed_topic_names=[topics[1]])
    play.beat("a")
    play.describe()
    play.compare_records(in_order=False)


def wait_resolved(play: Play, member: str) -> None:
    """Kafka resolves expressions in a thread of its own: wait until both are done."""
    deadline = time.monotonic() + 10
    for side in play.pair.sides:
        while not any(
            type(key).__name__ == "ConsumerGroupRegularExpressionKey" for key, _ in play.written(side)
        ):
            assert time.monotonic() < deadline, side.name
            time.sleep(0.02)
    play.beat(member)


def test_an_empty_expression_is_none(pair: Pair) -> None:
    topic = pair.topic("c", 1)
    play = Play(pair)
    play.join("a", subscribed_topic_regex="")
    play.join("b", topic, subscribed_topic_regex="", subscribed_topic_names=[topic])
    play.beat("a")
    play.describe()
    play.compare_records(in_order=False)
