"""Fetch sessions (KIP-227): the answers to incremental fetches, and the errors of ids and epochs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import UNKNOWN_ID, batch, fetch, fetch_partition, produce, topic_id
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import FetchRequest

FINAL_EPOCH = -1


class Session:
    """A session on each of both brokers, with the same requests."""

    def __init__(self, pair: Pair, version: int) -> None:
        self.pair = pair
        self.version = version
        self.ids: dict[str, int] = {}
        self.epoch = 0

    def fetch(self, topics: dict[str, list[Any]], *, epoch: int | None = None, forget: dict[str, list[int]] | None = None,
              **fields: Any) -> Any:  # fmt: skip
        """One fetch of the session, by default at the next epoch; the answers must be the same."""

        def build(side: Side) -> Any:
            request = fetch(topics, **fields)(side)
            request.session_id = self.ids.get(side.name, 0)
            request.session_epoch = self.epoch if epoch is None else epoch
            request.forgotten_topics_data = [
                FetchRequest.ForgottenTopic(topic=name, topic_id=topic_id(side, name), partitions=partitions)
                for name, partitions in (forget or {}).items()
            ]
            return request

        ours, theirs = self.pair.same_of_each(build, self.version)
        if self.epoch == 0 and epoch is None:
            self.ids = {self.pair.ours.name: ours.session_id, self.pair.theirs.name: theirs.session_id}
        if epoch is None:
            self.epoch += 1
        return theirs


@pytest.fixture
def topic(pair: Pair) -> str:
    name = pair.topic("session", 3)
    pair.same(produce(name, {0: batch(b"a", b"b"), 1: batch(b"c")}), 9)
    return name


@pytest.fixture
def session(pair: Pair) -> Callable[[int], Session]:
    return lambda version: Session(pair, version)


MakeSession = Callable[[int], Session]
sessions = at_every_version("Fetch", since=7)


def every(*offsets: int) -> list[Any]:
    return [fetch_partition(index, offset) for index, offset in enumerate(offsets)]


@sessions
def test_only_what_changed_is_given(pair: Pair, session: MakeSession, topic: str, version: int) -> None:
    one = session(version)
    one.fetch({topic: every(0, 0, 0)})
    one.fetch({})
    one.fetch({topic: [fetch_partition(0, 2)]})
    one.fetch({topic: [fetch_partition(1, 1)]})
    one.fetch({})
    pair.same(produce(topic, {2: batch(b"new"), 0: batch(b"more")}), 9)
    one.fetch({})
    one.fetch({topic: [fetch_partition(2, 1), fetch_partition(0, 3)]})
    one.fetch({})


@sessions
def test_forgetting(pair: Pair, session: MakeSession, topic: str, version: int) -> None:
    one = session(version)
    one.fetch({topic: every(2, 1, 0)})
    one.fetch({}, forget={topic: [0, 2]})
    pair.same(produce(topic, {0: batch(b"x"), 1: batch(b"y"), 2: batch(b"z")}), 9)
    one.fetch({})
    one.fetch({topic: [fetch_partition(0, 2)]}, forget={topic: [1, 7], "never-made": [0]})
    one.fetch({topic: [fetch_partition(1, 0)]}, forget={topic: [1]})
    one.fetch({})


@sessions
def test_wrong_epochs_and_ids(pair: Pair, session: MakeSession, topic: str, version: int) -> None:
    one = session(version)
    one.fetch({topic: every(0, 0, 0)})
    for epoch in (2, 5, 2**31 - 1):
        one.fetch({}, epoch=epoch)
    one.fetch({})
    one.fetch({}, epoch=1)
    unknown = session(version)
    for epoch in (1, 2, 100):
        unknown.fetch({topic: every(0)}, epoch=epoch)
    unknown.ids = {side.name: 12345 for side in pair.sides}
    for epoch in (1, 2):
        unknown.fetch({topic: every(0)}, epoch=epoch)


@sessions
def test_ending_and_starting_anew(pair: Pair, session: MakeSession, topic: str, version: int) -> None:
    one = session(version)
    one.fetch({topic: every(0, 0, 0)})
    one.fetch({topic: every(0, 0)}, epoch=FINAL_EPOCH)
    one.fetch({}, epoch=1)
    two = session(version)
    two.fetch({topic: every(0, 0, 0)})
    before = dict(two.ids)
    two.epoch = 0
    two.fetch({topic: every(1)})
    two.fetch({})
    two.ids = before
    two.fetch({}, epoch=1)


@sessions
def test_a_session_of_nothing(pair: Pair, session: MakeSession, topic: str, version: int) -> None:
    one = session(version)
    one.fetch({})
    two = session(version)
    two.fetch({topic: []})


@sessions
def test_errors_are_given_each_time(pair: Pair, session: MakeSession, topic: str, version: int) -> None:
    one = session(version)
    one.fetch({topic: [*every(0, 99, 0), fetch_partition(7, 0)]})
    one.fetch({})
    one.fetch({topic: [fetch_partition(1, 1)]})
    one.fetch({})
    one.fetch({}, forget={topic: [7]})
    one.fetch({})


@sessions
def test_topics_that_are_not_there(pair: Pair, session: MakeSession, topic: str, version: int) -> None:
    one = session(version)
    one.fetch({topic: every(0), "never-made": [fetch_partition(0, 0)]})
    one.fetch({})
    one.fetch({}, forget={"never-made": [0]})
    one.fetch({})


@sessions
def test_limits_turn_the_partitions_around(
    pair: Pair, session: MakeSession, topic: str, version: int
) -> None:
    """Partitions whose records were returned move to the end, so that a limit starves none."""
    pair.same(produce(topic, {2: batch(b"d")}), 9)
    one = session(version)
    one.fetch({topic: every(0, 0, 0)}, max_bytes=10)
    for _ in range(5):
        one.fetch({}, max_bytes=10)


@sessions
def test_a_changed_limit_is_kept(pair: Pair, session: MakeSession, topic: str, version: int) -> None:
    one = session(version)
    one.fetch({topic: every(0, 0, 0)})
    one.fetch({topic: [fetch_partition(0, 0, partition_max_bytes=1), fetch_partition(1, 0)]})
    one.fetch({})
    one.fetch({topic: [fetch_partition(0, 1, partition_max_bytes=1)]})


@at_every_version("Fetch", since=13)
def test_known_and_unknown_ids_together(pair: Pair, session: MakeSession, version: int) -> None:
    def build(side: Side) -> Any:
        part = [fetch_partition(0, 0)]
        entries = [
            FetchRequest.FetchTopic(topic_id=topic_id(side, name), partitions=part)
            for name in (kept, "never-made")
        ]
        entries.append(FetchRequest.FetchTopic(topic_id=UNKNOWN_ID, partitions=part))
        return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, session_epoch=0, topics=entries)

    kept = pair.topic("session")
    pair.same(build, version)
