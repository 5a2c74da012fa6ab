"""Fetch sessions: epochs, updates, and which session is evicted for which."""

from collections.abc import Iterable
from itertools import count
from typing import Any

from pykafkad.pure import fetch_session as fs
from pykafkad.pure.fetch_session import EVICTION_MS, FetchSessions, Followed


def sessions(slots: int = 10) -> FetchSessions:
    numbers = count(0)  # 0 is no session id: it must be passed over
    return FetchSessions(slots, lambda: next(numbers))


def follow(*keys: tuple[str, int]) -> list[Followed]:
    return [Followed(topic, index, 0, 1000) for topic, index in keys]


def by_key(followed: Iterable[Followed]) -> dict[fs.Key, Followed]:
    return {each.key: each for each in followed}


def create(cache: FetchSessions, size: int = 1, *, privileged: bool = False, now_ms: int = 0) -> Any:
    return cache.create(
        by_key(follow(*(("t", i) for i in range(size)))),
        privileged=privileged,
        uses_topic_ids=False,
        now_ms=now_ms,
    )


class Asked:
    def __init__(self, kind: int, followed: list[Followed]) -> None:
        self.kind, self.followed = kind, followed


def ask(
    cache: FetchSessions,
    session_id: int,
    epoch: int,
    followed: Any = (),
    forgotten: Any = (),
    ids: Any = False,
) -> Asked:
    """What kind of request this is, as the handler asks for it."""
    decision = cache.decide(session_id, epoch, uses_topic_ids=ids)
    if decision.kind in (fs.NOT_FOUND, fs.WRONG_EPOCH, fs.TOPIC_ID_MISMATCH):
        return Asked(decision.kind, [])
    if decision.session is not None:
        for each in followed:
            decision.session.follow(each)
        for key in forgotten:
            decision.session.forget(key)
    found = cache.settle(decision, by_key(followed), 5)
    return Asked(decision.kind, found)


def test_a_full_request_with_the_final_epoch_closes_its_session() -> None:
    cache = sessions()
    session = create(cache)
    assert session is not None and session.id != 0
    assert ask(cache, session.id, -1).kind == fs.SESSIONLESS
    assert ask(cache, session.id, 1).kind == fs.NOT_FOUND


def test_a_full_request_with_the_initial_epoch_replaces_its_session() -> None:
    cache = sessions()
    session = create(cache)
    assert ask(cache, session.id, 0, follow(("t", 1))).kind == fs.FULL
    assert len(cache) == 0


def test_epochs_go_up_by_one_and_wrap_to_one() -> None:
    cache = sessions()
    session = create(cache)
    assert ask(cache, session.id, 1).kind == fs.INCREMENTAL
    assert ask(cache, session.id, 1).kind == fs.WRONG_EPOCH
    assert ask(cache, session.id, 2).kind == fs.INCREMENTAL
    session.epoch = fs.MAX_EPOCH
    assert ask(cache, session.id, fs.MAX_EPOCH).kind == fs.INCREMENTAL
    assert session.epoch == 1


def test_ids_and_names_do_not_mix_in_a_session() -> None:
    cache = sessions()
    session = create(cache)
    assert ask(cache, session.id, 1, ids=True).kind == fs.TOPIC_ID_MISMATCH
    assert session.epoch == 1


def test_an_incremental_request_adds_updates_and_forgets() -> None:
    cache = sessions()
    session = create(cache, 2)
    moved = Followed("t", 0, 42, 7)
    decision = ask(cache, session.id, 1, [moved, *follow(("u", 0))], [("t", 1)])
    assert [each.key for each in decision.followed] == [("t", 0), ("u", 0)]
    assert decision.followed[0].fetch_offset == 42 and decision.followed[0].max_bytes == 7


def test_a_session_without_partitions_ends() -> None:
    cache = sessions()
    session = create(cache)
    assert ask(cache, session.id, 1, (), [("t", 0)]).kind == fs.SESSIONLESS
    assert len(cache) == 0


def test_what_was_served_goes_to_the_back() -> None:
    cache = sessions()
    session = create(cache, 3)
    session.served(session.partitions[("t", 0)])
    assert [key[1] for key in session.partitions] == [1, 2, 0]


def test_only_news_is_told_and_errors_each_time() -> None:
    each = Followed("t", 0, 0, 1000)
    assert each.is_news(0, 0, 10, 0)
    each.told(0, 10, 0)
    assert not each.is_news(0, 0, 10, 0)
    assert each.is_news(0, 100, 10, 0) and each.is_news(0, 0, 11, 0) and each.is_news(0, 0, 10, 1)
    each.told(3, -1, -1)
    assert each.is_news(3, 0, -1, -1)
    each.told(3, 10, 0)
    assert each.is_news(0, 0, 10, 0), "the end of an error is news"


def test_no_room_is_made_for_an_equal_or_smaller_young_session() -> None:
    cache = sessions(2)
    create(cache, 2), create(cache, 2)
    assert create(cache, 5, now_ms=EVICTION_MS) is None


def test_a_stale_session_makes_room() -> None:
    cache = sessions(1)
    old = create(cache, 9)
    new = create(cache, 1, now_ms=EVICTION_MS + 1)
    assert new is not None and len(cache) == 1 and ask(cache, old.id, 1).kind == fs.NOT_FOUND


def test_an_older_session_in_use_gives_way_to_a_larger_one_only() -> None:
    cache = sessions(1)
    session = create(cache, 3)
    session.last_used_ms = EVICTION_MS + 1
    for size in (2, 3):
        assert create(cache, size, now_ms=EVICTION_MS + 1) is None, "neither to a smaller nor to an equal one"
    assert create(cache, 4, now_ms=EVICTION_MS + 1) is not None


def test_a_session_counts_as_old_by_when_it_was_used_last() -> None:
    cache = sessions(1)
    session = create(cache, 3)
    session.last_used_ms = EVICTION_MS
    assert create(cache, 4, now_ms=EVICTION_MS + 1) is None


def test_of_older_sessions_in_use_the_smallest_goes() -> None:
    cache = sessions(3)
    found = [create(cache, size) for size in (4, 2, 3)]
    for session in found:
        session.last_used_ms = EVICTION_MS + 1
    assert create(cache, 3, now_ms=EVICTION_MS + 1) is not None
    assert [ask(cache, session.id, 1).kind for session in found] == [
        fs.INCREMENTAL,
        fs.NOT_FOUND,
        fs.INCREMENTAL,
    ]


def test_a_followers_session_does_not_give_way_to_an_equal_one() -> None:
    cache = sessions(1)
    session = create(cache, 2, privileged=True)
    session.last_used_ms = EVICTION_MS + 1
    assert create(cache, 2, privileged=True, now_ms=EVICTION_MS + 1) is None
    assert create(cache, 3, privileged=True, now_ms=EVICTION_MS + 1) is not None


def test_what_rests_counts_for_the_worth_of_a_session() -> None:
    cache = sessions(1)
    session = create(cache, 2, privileged=True)
    assert session.rest(next(iter(session.partitions.values())))
    session.last_used_ms = EVICTION_MS + 1
    assert create(cache, 2, privileged=True, now_ms=EVICTION_MS + 1) is None


def test_a_follower_takes_the_place_of_a_young_consumer() -> None:
    cache = sessions(1)
    create(cache, 9)
    assert create(cache, 1, privileged=True) is not None
    assert create(cache, 99) is None


def test_a_consumer_may_go_on_with_a_followers_session() -> None:
    """Whoever knows its id may; a consumer does not say where a log of its own starts."""
    session = create(sessions(), privileged=True)
    (known,) = session.partitions.values()
    known.start_offset = 5
    (again,) = follow(("t", 0))
    session.follow(again)
    assert known.start_offset == -1


def test_a_partition_that_rests_goes_on_with_what_is_asked_of_it_next() -> None:
    """A follower's partitions rest until something stirs them, and each is in one place only."""
    session = create(sessions(), 3)
    one, two, three = session.partitions.values()
    for each in (one, two):
        assert session.rest(each) and session.rests(each)
    assert list(session.partitions.values()) == [three]
    asked = Followed("t", 0, 77, 2000)
    session.follow(asked)
    assert list(session.partitions.values()) == [three, one] and not session.rests(one)
    assert (one.fetch_offset, one.max_bytes) == (77, 2000) and session.rests(two)
    session.stir(two)
    session.stir(two)
    assert list(session.partitions.values()) == [three, one, two] and not session.resting
    session.follow(Followed("t", 9, 0, 1000))
    assert [each.index for each in session.partitions.values()] == [2, 0, 1, 9]


def test_what_was_forgotten_does_not_rest() -> None:
    session = create(sessions(), 2)
    one, two = session.partitions.values()
    session.forget(one.key)
    assert not session.rest(one) and not session.rests(one)
    session.rest(two)
    session.forget(two.key)
    session.stir(two)
    assert not session.partitions and not session.resting
