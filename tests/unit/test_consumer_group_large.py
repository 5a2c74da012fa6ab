"""Consumer groups of very many members, partitions or topic names: in pieces, and with the same results."""

from __future__ import annotations

import random
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.handlers.pieces import in_order
from pykafkad.pure.effects import Effects
from pykafkad.pure.groups import assignors, consumer_target
from pykafkad.pure.groups.assignors import Subscriber
from pykafkad.pure.groups.classic_member import Protocol
from pykafkad.pure.groups.consumer_heartbeat import NAMES_MAX
from pykafkad.pure.groups.consumer_target import RETRY_MS
from pykafkad.slices import CHUNK, finish
from tests.consumer_kit import ConsumerRoom
from tests.group_kit import Asked, Room

MEMBERS = 200
TARGET = ("group", "target")


def stepped(work: Any) -> tuple[Any, int]:
    """What it comes to, and in how many steps."""
    steps = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, steps
        steps += 1


# -- targets


def filled(*topics: str, **told: Any) -> ConsumerRoom:
    """With a target that is behind: the topics have grown."""
    room = ConsumerRoom(*topics, partitions=MEMBERS)
    for number in range(MEMBERS):
        room.enter_consumer(f"m{number}", topics if number % 3 else topics[:1], **told)
    for topic in topics:
        room.topics.grow(topic, 3 * MEMBERS)
    return room


def epoch_of(room: ConsumerRoom, member_id: str) -> int:
    return room.group().members[member_id].epoch


def beat(room: ConsumerRoom, member_id: str, **told: Any) -> Any:
    return room.beat(member_id, epoch_of(room, member_id), **told).answer


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> ConsumerRoom:
    """A large group whose members have beaten: its target is about to be worked out."""
    room = filled("t")
    monkeypatch.setattr(consumer_target, "MEMBERS_MAX", 1)
    room.works_at_once = False
    assert beat(room, "m0").error_code == 0
    assert TARGET in room.timers and room.group().target_epoch < room.group().epoch
    room.advance(0)
    return room


@pytest.mark.parametrize("topics", [("t",), ("t", "u")])
@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_a_large_group_gets_the_target_of_a_small_one(
    topics: tuple[str, ...], assignor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (filled(*topics, server_assignor=assignor) for _ in range(2))
    before = large.group().target_epoch
    beat(small, "m0")
    monkeypatch.setattr(consumer_target, "MEMBERS_MAX", 1)
    beat(large, "m0")
    assert (small.group().target_epoch, large.group().target_epoch) == (before + 1, before)
    large.advance(0)
    assert large.group().target_epoch == before + 1
    assert large.group().shares == small.group().shares
    assert large.lines[-1] == small.lines[-1] and f"with '{assignor}' assignor" in large.lines[-1]
    assert large.work_steps >= 2 * MEMBERS // consumer_target.A_TIME
    # What is in the log says the same.
    large.reload(), small.reload()
    assert large.group().shares == small.group().shares
    assert large.group().target_ms == small.group().target_ms


def test_a_group_with_very_many_partitions_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_target, "PARTITIONS_MAX", 5)
    room = ConsumerRoom("t", "u")
    assert room.named(room.enter_consumer("a", ["t"]).answer) == {"t": [0, 1, 2]}
    assert room.named(room.enter_consumer("b", ["u"]).answer) == {}
    room.advance(0)
    assert room.named(beat(room, "b")) == {"u": [0, 1, 2]}


def test_until_the_target_is_there_the_group_goes_on_with_the_one_before(room: ConsumerRoom) -> None:
    before = room.group().target_epoch
    for _ in range(3):
        room.work_on()
        assert beat(room, "m1").error_code == 0
        room.advance(0)
    assert len(room.work) == 1, "no other is begun"
    assert room.group().target_epoch == before
    room.finish_work()
    assert room.group().target_epoch == before + 1
    (share,) = room.group().shares["m1"].values()
    assert share.issuperset(room.named(beat(room, "m1"))["t"])  # type: ignore[index]
    room.advance(0)
    assert not room.work


def test_who_is_gone_gets_no_share_and_who_took_its_place_gets_its(monkeypatch: pytest.MonkeyPatch) -> None:
    room = ConsumerRoom("t", partitions=9)
    for name in "abc":
        room.enter_consumer(name, instance_id=f"desk-{name}" if name != "c" else None)
    room.topics.grow("t", 12)
    monkeypatch.setattr(consumer_target, "MEMBERS_MAX", 1)
    room.works_at_once = False
    beat(room, "c")
    room.advance(0)
    room.work_on()
    room.beat("a", -2, instance_id="desk-a")
    assert room.enter_consumer("a2", instance_id="desk-a").answer.error_code == 0
    beat(room, "c")
    room.beat("c", -1)
    room.finish_work()
    shares = room.group().shares
    assert shares.keys() == {"a2", "b"}
    assert [len(partitions) for share in shares.values() for partitions in share.values()] == [4, 4]
    room.beat("b", -2, instance_id="desk-b")
    beat(room, "a2", instance_id="desk-a")
    room.advance(0)
    room.work_on()
    assert room.enter_consumer("b2", instance_id="desk-b").answer.error_code == 0
    room.finish_work()
    assert sorted(len(share[room.topics.topics["t"].id]) for share in room.group().shares.values()) == [6, 6]
    assert room.group().shares.keys() == {"a2", "b2"}


def test_a_target_that_is_not_written_is_tried_again_later(room: ConsumerRoom) -> None:
    before = room.group().target_epoch
    room.refuse_with = errors.MESSAGE_TOO_LARGE
    room.finish_work()
    room.refuse_with = None
    assert room.group().target_epoch == before
    assert room.lines[-1].endswith(
        f"for epoch {before + 1} is not written: error {errors.MESSAGE_TOO_LARGE}."
    )
    room.now_ms += RETRY_MS
    beat(room, "m0")
    room.advance(0)
    assert not room.work
    room.now_ms += 1
    beat(room, "m0")
    room.advance(0)
    room.finish_work()
    assert room.group().target_epoch == before + 1 and room.group().upcoming is None


def test_a_target_that_fails_holds_no_other_back_for_long(
    room: ConsumerRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*given: Any) -> Any:
        yield
        raise ArithmeticError

    with monkeypatch.context() as still:
        still.setattr(consumer_target, "work_out", broken)
        with pytest.raises(ArithmeticError):
            finish(room.work.pop().steps)
    room.now_ms += RETRY_MS + 1
    beat(room, "m0")
    room.advance(0)
    room.finish_work()
    assert room.group().target_epoch == room.group().epoch


def test_the_target_of_a_group_that_is_no_more_is_thrown_away(room: ConsumerRoom) -> None:
    for number in range(MEMBERS):
        room.beat(f"m{number}", -1)
    room.groups.delete_groups(["group"], effects := Effects())
    room.do(effects)
    written = len(room.log)
    room.finish_work()
    assert len(room.log) == written and not room.groups.by_id


@pytest.mark.parametrize("assignor", ["uniform", "range"])
@pytest.mark.parametrize("same", [True, False])
def test_an_assignor_yields_again_and_again(assignor: str, same: bool) -> None:
    count = 20 * assignors.A_TIME
    members = {
        f"m{number}": Subscriber([b"t"] if same or number % 2 else [b"t", b"u"], {})
        for number in range(count)
    }
    for _ in range(2):
        shares, steps = stepped(assignors.assign(assignor, members, {b"t": count, b"u": 9}, same))
        assert steps >= 3 * 19
        for member_id, member in members.items():
            member.share = shares[member_id]


# -- names


def test_names_are_brought_into_order_in_pieces() -> None:
    chance = random.Random(10)
    names = [f"{chance.randrange(30_000):x}" for _ in range(50_000)]
    ordered, steps = stepped(in_order(names))
    assert ordered == sorted(set(names))
    assert steps >= 2 * len(set(names)) // CHUNK + 200
    assert finish(in_order([])) == [] and finish(in_order(["b", "a", "b"])) == ["a", "b"]


def lines_of(what: Any) -> int:
    """How many lines of ours are run."""
    count = 0

    def traced(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line" and "pykafkad" in frame.f_code.co_filename
        return traced

    sys.settrace(traced)
    try:
        what()
    finally:
        sys.settrace(None)
    return count


def test_nothing_is_done_with_every_name_of_a_subscription() -> None:
    names = [f"topic-{number:06}" for number in range(20_000)]
    room = ConsumerRoom("t", names[5], names[7])
    enter = lambda: room.enter_consumer("a", names)  # noqa: E731
    assert lines_of(enter) < 2_000
    assert room.group().subscriptions == {frozenset(names): 1}
    assert sorted(room.named(beat(room, "a", topics=names, owned={}, rebalance_timeout_ms=1)) or ()) == [
        names[5],
        names[7],
    ]
    others = [*names[:-1], "t"]
    assert lines_of(lambda: beat(room, "a", topics=others, owned={})) < 2_000
    assert lines_of(lambda: room.enter_consumer("b", others)) < 2_000
    assert room.group().subscriptions == {frozenset(others): 2}
    assert room.group().is_subscribed_to("t") and not room.group().is_subscribed_to(names[-1])
    assert lines_of(lambda: room.beat("b", -1)) < 2_000


def test_names_that_are_told_in_any_order_are_written_sorted() -> None:
    room = ConsumerRoom("t")
    for member_id, names in [
        ("a", ["c", "a", "b"]),
        ("b", ["a", "b", "c"]),
        ("c", ["b", "b", "c", "a", "a"]),
    ]:
        room.enter_consumer(member_id, names)
    from pykafkad.pure.groups.records import decode

    written = [value for key, value in (decode(*each) for each in room.log) if key.api_key == 5]
    assert [list(each.subscribed_topic_names) for each in written] == [["a", "b", "c"]] * 3


def test_more_names_than_a_record_holds_are_refused() -> None:
    room = ConsumerRoom("t")
    names = [str(number) for number in range(NAMES_MAX + 1)]
    assert room.enter_consumer("a", names).answer.error_code == errors.MESSAGE_TOO_LARGE
    assert not room.groups.by_id
    assert room.enter_consumer("a", names[:-1]).answer.error_code == 0


# -- protocols of classic groups


def test_little_is_done_with_every_protocol_of_a_classic_member() -> None:
    count = 20_000
    room = Room(initial_rebalance_delay_ms=0)

    member_id = ""

    def told(change: str = "") -> Any:
        names = [f"p{number}{change}" for number in range(count)] + ["range"]
        return SimpleNamespace(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=tuple(Protocol(name, b"") for name in names),
            reason=None,
        )

    def join(request: Any) -> None:
        room.do(room.groups.join(request, asked := Asked(9), room.now_ms))
        room.advance(0)
        nonlocal member_id
        member_id = asked.answer.member_id

    join(told())
    for request in (told(), told(), told("x"), told("x")):
        assert lines_of(lambda request=request: join(request)) < 5 * count
    (member,) = room.group("g").roster.members.values()
    assert member.protocols[0] == ("p0x", b"")
    first = member.protocols
    join(told("x"))
    assert member.protocols is first, "what is told again is not kept twice"
