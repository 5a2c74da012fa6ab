"""Subscriptions by regular expression: how a group resolves them, and when it does so again. Time is moved."""

from __future__ import annotations

import random

import pytest

from pykafkad import errors
from pykafkad.messages import ConsumerGroupRegularExpressionKey
from pykafkad.pure.effects import Work
from pykafkad.pure.groups import regex_resolution
from pykafkad.pure.regex.automaton import finish
from tests.consumer_kit import Consumer, ConsumerRoom, settle_all


@pytest.fixture
def room() -> ConsumerRoom:
    return ConsumerRoom("red-1", "red-2", "blue-1")


def resolutions(room: ConsumerRoom) -> int:
    return sum(isinstance(key, ConsumerGroupRegularExpressionKey) for key, _ in room.written())


def test_an_expression_stands_for_the_topics_it_matches(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    assert consumer.beat().member_epoch == 1  # not known yet
    assert consumer.owned == {}
    room.advance(0)
    settle_all(consumer)
    assert consumer.owned == {"red-1": [0, 1, 2], "red-2": [0, 1, 2]}
    assert room.group().is_subscribed_to("red-2") and not room.group().is_subscribed_to("blue-1")


def test_names_and_expressions_add_up(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-1", topics=["blue-1"])
    consumer.told["topics"] = ["blue-1"]
    consumer.beat()
    room.advance(0)
    settle_all(consumer)
    assert set(consumer.owned) == {"red-1", "blue-1"}


def test_a_member_with_a_known_expression_shares_at_once(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a", regex="red-.*"), Consumer(room, "b", regex="red-.*")
    first.beat()
    room.advance(0)
    settle_all(first, second)
    assert resolutions(room) == 1
    assert sum(len(each) for each in second.owned.values()) == 3


def test_what_is_no_expression_is_refused(room: ConsumerRoom) -> None:
    answer = Consumer(room, "a", regex="red-(").beat()
    assert answer.error_code == errors.INVALID_REGULAR_EXPRESSION
    assert answer.error_message == (
        "SubscribedTopicRegex `red-(` is not a valid regular expression: missing closing )."
    )
    assert not room.log


def test_one_resolution_keeps_others_back_while_it_runs_and_ten_seconds_from_its_start(
    room: ConsumerRoom,
) -> None:
    resolution = regex_resolution.Resolution({"red-.*": 1, "blue-.*": 1}, room.settings, room.now_ms)
    assert resolution.keeps_others_back(room.now_ms + 3_600_000)
    steps = resolution.run()
    next(steps)
    assert resolution.keeps_others_back(room.now_ms + 3_600_000)
    found = finish(steps)
    assert {pattern: each.topics for pattern, each in found.items()} == {
        "red-.*": {"red-1", "red-2"},
        "blue-.*": {"blue-1"},
    }
    assert resolution.keeps_others_back(room.now_ms + 10_000)
    assert not resolution.keeps_others_back(room.now_ms + 10_001)


def test_what_somebody_may_not_describe_is_no_topic_of_an_expression(room: ConsumerRoom) -> None:
    resolution = regex_resolution.Resolution(
        {".*": 1}, room.settings, room.now_ms, lambda name: name.endswith("1")
    )
    assert finish(resolution.run())[".*"].topics == {"red-1", "blue-1"}


def test_new_topics_are_found_but_not_more_often_than_every_ten_seconds(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    consumer.beat()
    room.advance(0)
    settle_all(consumer)
    room.topics.create("red-3")
    room.advance(9_000)
    settle_all(consumer)
    assert "red-3" not in consumer.owned
    room.advance(2_000)
    consumer.beat()
    room.advance(0)
    settle_all(consumer)
    assert "red-3" in consumer.owned
    assert resolutions(room) == 2
    room.advance(20_000)
    settle_all(consumer)
    assert resolutions(room) == 2  # nothing new


def test_a_deleted_topic_is_given_up_without_looking_again(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    consumer.beat()
    room.advance(0)
    settle_all(consumer)
    room.topics.delete("red-1")
    consumer.owned.pop("red-1")
    settle_all(consumer)
    assert set(consumer.owned) == {"red-2"}
    assert resolutions(room) == 1


def test_expressions_are_looked_at_again_now_and_then(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    consumer.beat()
    room.advance(0)
    for _ in range(61):
        room.advance(10_000)
        consumer.beat()
    room.advance(0)
    assert resolutions(room) == 2


def test_the_expression_goes_with_its_last_subscriber(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a", regex="red-.*"), Consumer(room, "b", regex="red-.*")
    first.beat()
    second.beat()
    room.advance(0)
    settle_all(first, second)
    first.leave()
    assert "red-.*" in room.group().regexes
    second.beat(regex="blue-.*")
    assert "red-.*" not in room.group().regexes
    room.advance(11_000)
    settle_all(second)
    room.advance(0)
    settle_all(second)
    assert set(second.owned) == {"blue-1"}
    second.leave()
    assert room.group().regexes == {}


def test_an_expression_given_up_takes_its_topics_along(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    consumer.beat()
    room.advance(0)
    settle_all(consumer)
    consumer.beat(regex="", topics=["blue-1"])
    settle_all(consumer)
    assert set(consumer.owned) == {"blue-1"}


def test_a_restart_knows_what_expressions_stand_for(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    consumer.beat()
    room.advance(0)
    settle_all(consumer)
    before = room.describe().encode(1)
    room.reload()
    assert room.describe().encode(1) == before
    settle_all(consumer)
    assert set(consumer.owned) == {"red-1", "red-2"}


def begin(room: ConsumerRoom) -> Work:
    """Begin the resolution that is due, without running it."""
    del room.timers["group", "regex"]
    room.do(room.group().on_timer(("group", "regex"), room.now_ms))
    return room.work.pop()


def test_many_topics_are_looked_at_in_pieces() -> None:
    room = ConsumerRoom(*(f"red-{number}" for number in range(1_000)), "blue-1", partitions=1)
    Consumer(room, "a", regex="red-.*").beat()
    room.advance(0)
    assert room.work_steps >= 1_000 // regex_resolution.NAMES_A_YIELD
    assert len(room.group().regexes["red-.*"].topics) == 1_000


def test_hard_expressions_over_long_names_are_gone_on_with_in_small_pieces() -> None:
    """750 characters over 20 names took 19 s without a pause."""
    chance = random.Random(1)
    room = ConsumerRoom(*("".join(chance.choices("abc", k=240)) for _ in range(20)), partitions=1)
    Consumer(room, "a", regex="(.?){100}" * 80 + "x").beat()
    work = begin(room)
    for _ in range(1_000):
        next(work.steps)
    assert room.group().regexes == {}
    room.now_ms += 1
    assert Consumer(room, "b", regex="a.*").beat().error_code == 0  # others go on meanwhile


def test_an_expression_that_takes_too_long_stands_for_nothing(
    room: ConsumerRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex_resolution, "STEPS_MAX", 1_000)
    first, second = Consumer(room, "a", regex="(.?){1000}"), Consumer(room, "b", regex="red-.*")
    first.beat()
    second.beat()
    room.advance(0)
    settle_all(first, second)
    assert (set(first.owned), set(second.owned)) == (set(), {"red-1", "red-2"})
    assert room.group().regexes["(.?){1000}"].topics == frozenset()
    assert any("take too long: ['(.?){1000}']" in line for line in room.lines)


def test_expressions_stand_for_no_more_names_than_memory_should_hold(
    room: ConsumerRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regex_resolution, "MATCHES_MAX", 3)
    for number, regex in enumerate(["red-.*", "blue-.*", ".*-1"]):
        Consumer(room, f"m{number}", regex=regex).beat()
    room.advance(0)
    assert [len(each.topics) for each in room.group().regexes.values()] == [2, 1, 0]


@pytest.mark.parametrize("regex", ["((((){1000}){1000}){1000}){1000}", "((.{1000}){1000})"])
def test_what_is_too_large_is_refused(room: ConsumerRoom, regex: str) -> None:
    answer = Consumer(room, "a", regex=regex).beat()
    assert answer.error_code == errors.INVALID_REGULAR_EXPRESSION
    assert answer.error_message == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: expression too large."
    )
    assert not room.log and not room.timers


def test_an_expression_that_is_given_up_meanwhile_is_not_looked_at(room: ConsumerRoom) -> None:
    first, second = Consumer(room, "a", regex="red-.*"), Consumer(room, "b", regex="blue-.*")
    first.beat()
    second.beat()
    work = begin(room)
    next(work.steps)
    second.leave()
    results = finish(work.steps)
    assert list(results) == ["red-.*"]
    room.do(work.then(results, room.now_ms))
    assert list(room.group().regexes) == ["red-.*"]


def test_what_the_log_does_not_take_is_looked_for_again_but_not_at_once(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    consumer.beat()
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    room.advance(0)
    room.refuse_with = None
    assert room.group().regexes == {}
    consumer.beat()
    assert ("group", "regex") not in room.timers
    room.advance(11_000)
    consumer.beat()
    room.advance(0)
    assert room.group().regexes["red-.*"].topics == {"red-1", "red-2"}


def test_a_resolution_that_breaks_does_not_keep_others_back_for_ever(
    room: ConsumerRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    consumer.beat()
    with monkeypatch.context() as broken:
        broken.setattr(regex_resolution, "for_topics", None)
        with pytest.raises(TypeError):
            room.advance(0)
    room.advance(11_000)
    consumer.beat()
    room.advance(0)
    assert room.group().regexes["red-.*"].topics == {"red-1", "red-2"}


def test_lines_of_the_log_show_expressions_shortened() -> None:
    room = ConsumerRoom("red-1")
    Consumer(room, "a", regex="r" * 30_000).beat()
    room.advance(0)
    assert max(map(len, room.lines)) < 1_200


def test_a_resolution_that_nobody_waits_for_any_more_says_nothing(room: ConsumerRoom) -> None:
    consumer = Consumer(room, "a", regex="red-.*")
    consumer.beat()
    consumer.leave()
    written = len(room.log)
    room.advance(0)
    assert len(room.log) == written


def test_when_an_expression_comes_to_nothing_what_it_leaves_is_given_to_others(room: ConsumerRoom) -> None:
    """In Kafka these partitions stay unassigned until something else happens."""
    first, second = Consumer(room, "a", regex="red-1"), Consumer(room, "b", topics=["red-1"])
    first.beat()
    room.advance(0)
    settle_all(first, second)
    assert first.owned["red-1"] and second.owned["red-1"]
    room.advance(11_000)
    first.beat(regex="nothing")
    room.advance(0)
    settle_all(first, second)
    assert (first.owned, second.owned) == ({}, {"red-1": [0, 1, 2]})
