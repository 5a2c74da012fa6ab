"""DeleteTopics: by name and by id."""

from __future__ import annotations

from typing import Any

import pytest

from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.requests import UNKNOWN_ID, topic_id
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import DeleteTopicsRequest

State = DeleteTopicsRequest.DeleteTopicState


def by_name(version: int, *names: str, timeout_ms: int = 10_000) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topics=[State(name=name) for name in names], timeout_ms=timeout_ms)


def by_id(*wanted: str | bytes, name: str | None = None) -> Each:
    def build(side: Side) -> Any:
        ids = [topic_id(side, one) if isinstance(one, str) else one for one in wanted]
        return DeleteTopicsRequest(topics=[State(topic_id=one, name=name) for one in ids], timeout_ms=10_000)

    return build


@at_every_version("DeleteTopics")
def test_by_name(pair: Pair, version: int) -> None:
    name, other = pair.topic("doomed"), pair.topic("doomed", 3)
    pair.same(by_name(version, name, other), version)
    pair.same(by_name(version, name), version)


@at_every_version("DeleteTopics")
@pytest.mark.parametrize("name", ["never-made", "", ".", "a b", "a" * 250, "é"], ids=lambda name: name[:10])
def test_unknown_and_bad_names(pair: Pair, version: int, name: str) -> None:
    pair.same(by_name(version, name), version)
    pair.same(by_name(version, pair.topic("doomed"), name), version)


@at_every_version("DeleteTopics")
def test_one_name_twice(pair: Pair, version: int) -> None:
    name, other = pair.topic("doomed"), pair.topic("doomed")
    pair.same(by_name(version, name, other, name), version)
    pair.same(by_name(version, name), version)


@at_every_version("DeleteTopics")
def test_many_names_twice_and_many_unknown_ones(pair: Pair, version: int) -> None:
    names = [f"never-made-{place}" for place in range(300)]
    pair.same(by_name(version, *names, *names[:200], pair.topic("doomed"), "n" * 32_760), version)


@at_every_version("DeleteTopics", since=6)
def test_one_id_many_times(pair: Pair, version: int) -> None:
    pair.same(by_id(*[UNKNOWN_ID] * 300, pair.topic("doomed")), version)
    pair.same(by_id(*[bytes(16)] * 50), version)
    name = pair.topic("doomed")

    def build(side: Side) -> Any:
        states = [State(topic_id=topic_id(side, name), name=None) for _ in range(3)]
        return DeleteTopicsRequest(topics=[*states, State(name=name)], timeout_ms=10_000)

    pair.same(build, version)
    pair.same(by_name(version, name), version)


@at_every_version("DeleteTopics")
@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1])
def test_nothing_asked(pair: Pair, version: int, timeout_ms: int) -> None:
    pair.same(by_name(version, timeout_ms=timeout_ms), version)


@at_every_version("DeleteTopics", since=6)
def test_by_id(pair: Pair, version: int) -> None:
    names = [pair.topic("doomed") for _ in range(3)]
    pair.same(by_id(UNKNOWN_ID), version)
    pair.same(by_id(bytes(16)), version)
    pair.same(by_id(names[0], UNKNOWN_ID), version)
    pair.same(by_id(names[0]), version)
    pair.same(by_id(names[1], names[1]), version)
    pair.same(by_id(names[2], name=names[2]), version)
    pair.same(by_id(names[2], name="another"), version)
    pair.same(by_id(names[2]), version)


@at_every_version("DeleteTopics", since=6)
def test_by_id_and_by_name_together(pair: Pair, version: int) -> None:
    name, other = pair.topic("doomed"), pair.topic("doomed")

    def build(side: Side) -> Any:
        states = [State(topic_id=topic_id(side, name), name=None), State(name=other), State(name=name)]
        return DeleteTopicsRequest(topics=states, timeout_ms=10_000)

    pair.same(build, version)
    pair.same(by_name(version, name, other), version)


def test_a_name_made_again_has_a_new_id(pair: Pair) -> None:
    name = pair.topic("doomed")
    old = {side.name: topic_id(side, name) for side in pair.sides}
    pair.same(by_name(6, name), 6)
    for side in pair.sides:
        pair._create(side, name, 1, {})
        assert topic_id(side, name) != old[side.name]
        side.topic_ids["as it was"] = old[side.name]
    pair.same(lambda side: by_id(old[side.name])(side), 6)
