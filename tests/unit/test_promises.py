"""Answers that depend on appends: which are refused, which are held, and when they leave."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.promises import Promises


class Asker:
    """In the place of a request's context: notes what happens to its answer."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def hold(self) -> None:
        self.seen.append("held")

    def release(self) -> None:
        self.seen.append("released")


def replica(high_watermark: int = 0, end_offset: int = 1) -> Any:
    class Replica(SimpleNamespace):
        __hash__ = object.__hash__  # type: ignore[assignment]

    return Replica(high_watermark=high_watermark, log_end_offset=end_offset, is_online=True, log=object())


def refuse(part: str, asker: Any) -> None:
    asker.seen.append(f"{part} refused")


@pytest.fixture
def promises() -> Promises:
    return Promises()


def make(promises: Promises, partition: Any, part: str = "x") -> Any:
    asker: Any = Asker()
    promises.made.append((partition, asker, refuse, part))
    return asker


def hold(promises: Promises, asker: Any, *partitions: Any) -> None:
    for partition in partitions:
        promises.hold(partition, asker, partial(refuse, "x", asker))


def test_what_was_to_be_written_to_a_log_that_failed_is_refused_once(promises: Promises) -> None:
    broken, whole = replica(), replica()
    first, second = make(promises, broken, "a"), make(promises, whole, "b")
    promises.refuse({id(broken.log)})
    promises.refuse({id(broken.log)})
    assert (first.seen, second.seen) == (["a refused"], [])
    assert [promise[0] for promise in promises.made] == [whole]


def test_only_what_is_not_yet_on_the_disk_is_held(promises: Promises) -> None:
    behind, there = make(promises, replica(0, 1)), make(promises, replica(1, 1))
    promises.hold_made()
    promises.settle()
    assert (behind.seen, there.seen, promises.held_count) == (["held"], [], 1)
    assert promises.made == []


def test_answers_leave_in_their_order_as_the_high_watermark_comes_by(promises: Promises) -> None:
    partition = replica(0, 1)
    first, second = make(promises, partition), Asker()
    promises.hold_made()
    partition.log_end_offset = 2
    hold(promises, second, partition)
    partition.high_watermark = 1
    promises.settle()
    assert (first.seen, second.seen) == (["held", "released"], ["held"])
    partition.high_watermark = 2
    promises.settle()
    promises.settle()
    assert second.seen == ["held", "released"] and promises.held_count == 0


def test_an_answer_of_three_logs_is_held_once_and_released_with_the_last(promises: Promises) -> None:
    partitions = [replica() for _ in range(3)]
    asker = Asker()
    hold(promises, asker, *partitions)
    for partition in partitions:
        assert asker.seen == ["held"]
        partition.high_watermark = 1
        promises.settle()
    assert asker.seen == ["held", "released"] and promises.held_count == 0


def test_a_log_that_goes_offline_refuses_and_releases_what_it_holds(promises: Promises) -> None:
    partition, other = replica(), replica()
    asker, waiting = Asker(), Asker()
    hold(promises, asker, partition)
    hold(promises, waiting, other)
    partition.is_online = False
    promises.settle()
    assert asker.seen == ["held", "x refused", "released"] and waiting.seen == ["held"]


def test_the_answers_of_one_log_are_given_up(promises: Promises) -> None:
    partition = replica()
    askers = [Asker(), Asker()]
    for asker in askers:
        hold(promises, asker, partition)
    promises.fail(replica())
    assert [asker.seen for asker in askers] == [["held"]] * 2
    promises.fail(partition)
    promises.fail(partition)
    partition.high_watermark = 1
    promises.settle()
    assert [asker.seen for asker in askers] == [["held", "x refused", "released"]] * 2
