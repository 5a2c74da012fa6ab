"""Metadata: by name, by id, all, invalid names, automatic creation."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import UNKNOWN_ID, topic_id
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import MetadataRequest

BAD_NAMES = ["", ".", "..", "a b", "a/b", "é", "a\0b", "a" * 249, "a" * 250, "a" * 10_000, "a,b", "a\n"]
CREATED_SECONDS = 20


def named(*names: str | None, **fields: Any) -> MetadataRequest:
    topics = [MetadataRequest.MetadataRequestTopic(name=name) for name in names]
    return MetadataRequest(**{"topics": topics, "allow_auto_topic_creation": False, **fields})


def creating(version: int) -> dict[str, bool]:
    """Before version 4 a request could not prevent the creation."""
    return {"allow_auto_topic_creation": True} if version < 4 else {}


@pytest.fixture(scope="module")
def topics(pair: Pair) -> tuple[str, str]:
    return pair.topic("metadata", 3), pair.topic("metadata", 1)


@at_every_version("Metadata")
def test_all_topics(pair: Pair, topics: tuple[str, str], version: int) -> None:
    pair.learn_topics()
    pair.same(MetadataRequest(topics=None if version else []), version)


@at_every_version("Metadata")
def test_no_topics(pair: Pair, topics: tuple[str, str], version: int) -> None:
    pair.same(MetadataRequest(topics=[]), version)


@at_every_version("Metadata")
def test_topics_by_name(pair: Pair, topics: tuple[str, str], version: int) -> None:
    pair.same(named(topics[0], **creating(version)), version)
    pair.same(named(*topics, **creating(version)), version)
    pair.same(named(*topics, *topics, **creating(version)), version)


@at_every_version("Metadata", since=4)
def test_unknown_topics_that_are_not_to_be_created(pair: Pair, topics: tuple[str, str], version: int) -> None:
    pair.same(named("never-made"), version)
    pair.same(named("never-made", topics[0], "never-made-2", "never-made"), version)
    pair.same(named("__consumer_offsets-not"), version)


@at_every_version("Metadata")
@pytest.mark.parametrize("name", BAD_NAMES, ids=lambda name: name[:10])
@pytest.mark.parametrize("create", [False, True])
def test_bad_names(pair: Pair, topics: tuple[str, str], version: int, name: str, create: bool) -> None:
    if len(name) != 249 or not (create or version < 4):  # the longest valid name would be created
        pair.same(named(name, topics[0], allow_auto_topic_creation=create or version < 4), version)


@at_every_version("Metadata", since=10)
def test_topics_by_id(pair: Pair, topics: tuple[str, str], version: int) -> None:
    def by_id(*wanted: bytes | str, name: str | None = None) -> Any:
        def build(side: Side) -> Any:
            ids = [topic_id(side, one) if isinstance(one, str) else one for one in wanted]
            kind = MetadataRequest.MetadataRequestTopic
            return MetadataRequest(topics=[kind(topic_id=one, name=name) for one in ids])

        return build

    pair.same(by_id(topics[0]), version)
    pair.same(by_id(*topics), version)
    pair.same(by_id(UNKNOWN_ID), version)
    pair.same(by_id(UNKNOWN_ID, topics[1]), version)
    pair.same(by_id(topics[1], topics[1]), version)
    pair.same(by_id(bytes(16)), version)
    pair.same(by_id(topics[0], name=topics[0]), version)
    pair.same(by_id(topics[0], name="another"), version)


@at_every_version("Metadata", since=10)
def test_ids_and_names_together(pair: Pair, topics: tuple[str, str], version: int) -> None:
    def build(side: Side) -> Any:
        kind = MetadataRequest.MetadataRequestTopic
        by_id = kind(topic_id=topic_id(side, topics[0]), name=None)
        return MetadataRequest(topics=[by_id, kind(name=topics[1])], allow_auto_topic_creation=False)

    pair.same(build, version)


@at_every_version("Metadata", since=8)
def test_authorized_operations(pair: Pair, topics: tuple[str, str], version: int) -> None:
    pair.same(named(topics[0], "never-made", include_topic_authorized_operations=True), version)
    if version <= 10:
        pair.same(named(topics[0], include_cluster_authorized_operations=True), version)
        pair.same(named(include_cluster_authorized_operations=True), version)


@at_every_version("Metadata")
def test_a_topic_is_created_on_first_use(pair: Pair, version: int) -> None:
    name = pair.new_name("auto")
    request = named(name, allow_auto_topic_creation=True)
    pair.differ("a topic that is created on first use", request, version)
    for side in pair.sides:
        deadline = time.monotonic() + CREATED_SECONDS
        while side.demand(request, version).topics[0].error_code:
            assert time.monotonic() < deadline, f"{side.name} does not create {name}"
            time.sleep(0.01)
    pair.learn_topics()
    pair.same(request, version)
