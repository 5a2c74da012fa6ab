"""The server-side assignors: complete, even, sticky."""

from __future__ import annotations

import random

import pytest

from pykafkad.pure.groups import assignors
from pykafkad.pure.groups.assignors import PartitionCounts, Share, Shares, Subscriber, Subscribers
from pykafkad.slices import finish

T, U, V = b"t" * 16, b"u" * 16, b"v" * 16


def share(**partitions: list[int]) -> Share:
    return {{"t": T, "u": U, "v": V}[name]: frozenset(each) for name, each in partitions.items()}


def assign(name: str, members: Subscribers, counts: PartitionCounts, same_topics: bool) -> Shares:
    shares: Shares = finish(assignors.assign(name, members, counts, same_topics))
    return shares


def check(members: dict[str, Subscriber], counts: dict[bytes, int], shares: Shares) -> None:
    """Every partition of a subscribed topic has one owner, who subscribes to it."""
    owned: dict[tuple[bytes, int], str] = {}
    for member_id, given in shares.items():
        for topic_id, partitions in given.items():
            assert topic_id in members[member_id].topic_ids
            for partition in partitions:
                assert (topic_id, partition) not in owned
                owned[topic_id, partition] = member_id
    wanted = {topic_id for member in members.values() for topic_id in member.topic_ids}
    assert len(owned) == sum(counts[topic_id] for topic_id in wanted)


def sizes(shares: Shares) -> list[int]:
    return sorted(sum(map(len, given.values())) for given in shares.values())


def test_nobody_gets_nothing() -> None:
    assert assign("uniform", {}, {}, True) == {} == assign("range", {}, {}, True)


@pytest.mark.parametrize("name", ["uniform", "range"])
def test_no_topics(name: str) -> None:
    members = {"a": Subscriber([], {}), "b": Subscriber([], {})}
    for same in (True, False):
        assert all(not given for given in assign(name, members, {}, same).values())


def test_ranges_are_those_of_the_members_in_order() -> None:
    members = {
        "z": Subscriber([T, U], {}),
        "a": Subscriber([T, U], {}),
        "m": Subscriber([T, U], {}, "static"),
    }
    shares = assign("range", members, {T: 7, U: 3}, True)
    assert shares == {
        "m": share(t=[0, 1, 2], u=[0]),
        "a": share(t=[3, 4], u=[1]),
        "z": share(t=[5, 6], u=[2]),
    }


def test_ranges_of_different_topics() -> None:
    members = {"a": Subscriber([T], {}), "b": Subscriber([T, U], {}), "c": Subscriber([U], {})}
    shares = assign("range", members, {T: 3, U: 1}, False)
    assert shares == {"a": share(t=[0, 1]), "b": share(t=[2], u=[0]), "c": {}}


def test_uniform_deals_out_evenly_and_moves_little() -> None:
    counts = {T: 5, U: 5}
    members = {name: Subscriber([T, U], {}) for name in "ab"}
    shares = assign("uniform", members, counts, True)
    check(members, counts, shares)
    assert sizes(shares) == [5, 5]
    members = {**{name: Subscriber([T, U], shares[name]) for name in "ab"}, "c": Subscriber([T, U], {})}
    after = assign("uniform", members, counts, True)
    check(members, counts, after)
    assert sizes(after) == [3, 3, 4]
    assert moved(shares, after) == sum(map(len, after["c"].values()))


def moved(before: Shares, after: Shares) -> int:
    """How many partitions have changed their owner."""
    return sum(
        len(partitions - before.get(member_id, {}).get(topic_id, frozenset()))
        for member_id, given in after.items()
        for topic_id, partitions in given.items()
    )


def test_a_share_that_does_not_change_is_the_same_object() -> None:
    given = share(t=[0, 1])
    for name in ("uniform", "range"):
        for same in (True, False):
            assert assign(name, {"a": Subscriber([T], given)}, {T: 2}, same)["a"] is given


def test_an_extra_partition_stays_where_it_is() -> None:
    """The first member could have one partition more, but another one has it already."""
    members = {"a": Subscriber([T], share(t=[0])), "b": Subscriber([T], share(t=[1, 2]))}
    assert assign("uniform", members, {T: 3}, True) == {"a": share(t=[0]), "b": share(t=[1, 2])}


def test_what_cannot_be_is_dropped() -> None:
    """Two members claim one partition, and one claims a partition that does not exist, as classic members may have
    reported."""
    members = {"a": Subscriber([T], share(t=[0, 1, 9])), "b": Subscriber([T], share(t=[1, 2]))}
    for name in ("uniform", "range"):
        for same in (True, False):
            fresh = {key: Subscriber(each.topic_ids, each.share) for key, each in members.items()}
            check(fresh, {T: 4}, assign(name, fresh, {T: 4}, same))


def test_members_that_want_different_topics() -> None:
    counts = {T: 6, U: 2, V: 1}
    members = {"a": Subscriber([T], {}), "b": Subscriber([T, U], {}), "c": Subscriber([U, V], {})}
    shares = assign("uniform", members, counts, False)
    check(members, counts, shares)
    assert sizes(shares) == [3, 3, 3]


@pytest.mark.parametrize("seed", range(60))
def test_any_group(seed: int) -> None:
    """Members come, leave and change their subscriptions again and again."""
    rolled = random.Random(seed)
    counts = {bytes([index]) * 16: rolled.randint(0, 12) for index in range(rolled.randint(1, 5))}
    wanted: dict[str, frozenset[bytes]] = {}
    shares: Shares = {}
    name = rolled.choice(["uniform", "uniform", "range"])
    same_for_all = rolled.random() < 0.5
    topics = frozenset(counts)
    for step in range(12):
        for _ in range(rolled.randint(1, 3)):
            if wanted and rolled.random() < 0.4:
                wanted.pop(rolled.choice(list(wanted)))
            else:
                some = frozenset(each for each in topics if rolled.random() < 0.6)
                wanted[f"m{step}-{rolled.random()}"] = topics if same_for_all else some
        members = {
            member_id: Subscriber(each, shares.get(member_id, {})) for member_id, each in wanted.items()
        }
        is_same = len(set(wanted.values())) <= 1
        shares = assign(name, members, counts, is_same)
        check(members, counts, shares)
        if is_same and name == "uniform" and shares:
            assert sizes(shares)[-1] - sizes(shares)[0] <= 1
        again = assign(
            name, {key: Subscriber(wanted[key], shares.get(key, {})) for key in wanted}, counts, is_same
        )
        assert again == shares, "nothing changed, and something moved"


def test_many_members_and_partitions_take_a_moment_only() -> None:
    members = {f"m{number}": Subscriber([T, U], {}) for number in range(200)}
    shares = assign("uniform", members, {T: 1_000, U: 37}, True)
    check(members, {T: 1_000, U: 37}, shares)
    assert sizes(shares)[0] == 5 and sizes(shares)[-1] == 6
