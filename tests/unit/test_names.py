"""Which topics will exist: a creation or deletion that is being written counts until it is on the disk, or has failed."""

from __future__ import annotations

import time
from typing import Any

from pykafkad import messages as m
from pykafkad.cluster.names import Names
from tests.unit.test_image import image_with

OLD, NEW = b"\1" * 16, b"\2" * 16


def names_of(*topics: tuple[str, bytes]) -> tuple[Any, Names]:
    image = image_with(*(m.TopicRecord(name=name, topic_id=topic_id) for name, topic_id in topics))
    return image, Names(image)


def test_names_that_differ_in_dots_collide() -> None:
    _, names = names_of(("a.b", OLD))
    assert names.collides_with("a_b") == "a.b"
    assert names.collides_with("a-b") is None and names.collides_with("plain") is None


def test_what_is_being_created_counts_at_once() -> None:
    image, names = names_of()
    change = names.note("a.b", NEW)
    assert names.exists("a.b") and names.name_of(NEW) == "a.b" and names.collides_with("a_b") == "a.b"
    image.apply(m.TopicRecord(name="a.b", topic_id=NEW))
    names.forget("a.b", change, NEW)
    assert names.exists("a.b") and names.name_of(NEW) == "a.b" and names.collides_with("a_b") == "a.b"
    assert not names.is_changing("a.b") and not names._by_id


def test_what_could_not_be_created_is_free() -> None:
    _, names = names_of()
    assert names.collides_with("a_b") is None
    names.forget("a.b", names.note("a.b", NEW), NEW)
    assert not names.exists("a.b") and names.name_of(NEW) is None and names.collides_with("a_b") is None


def test_what_is_being_deleted_is_free_and_comes_back_where_that_fails() -> None:
    _, names = names_of(("a.b", OLD))
    change = names.note("a.b", None)
    assert not names.exists("a.b") and names.name_of(OLD) is None and names.collides_with("a_b") is None
    names.forget("a.b", change, None)
    assert names.id_of("a.b") == OLD and names.name_of(OLD) == "a.b" and names.collides_with("a_b") == "a.b"


def test_the_last_change_of_a_name_counts() -> None:
    image, names = names_of(("a.b", OLD))
    gone, made = names.note("a.b", None), names.note("a.b", NEW)
    names.forget("a.b", gone, None)
    assert names.id_of("a.b") == NEW and names.name_of(OLD) is None
    image.apply(m.RemoveTopicRecord(topic_id=OLD))
    image.apply(m.TopicRecord(name="a.b", topic_id=NEW))
    names.forget("a.b", made, NEW)
    assert names.id_of("a.b") == NEW and names.collides_with("a_b") == "a.b"


def test_one_of_several_that_collide_is_deleted() -> None:
    """The topics of one request do not see each other, so there may be several."""
    _, names = names_of(("a.b", OLD), ("a_b", NEW))
    names.note("a.b", None)
    assert names.collides_with("a.b") == "a_b"


def test_what_many_changes_cost_goes_with_their_number() -> None:
    def cost(count: int) -> float:
        _, names = names_of()
        begin = time.thread_time()
        for number in range(count):
            topic_id = number.to_bytes(16)
            names.collides_with(f"t_{number}.x")
            names.note(f"t_{number}.x", topic_id)
            names.name_of(topic_id)
        return time.thread_time() - begin

    assert min(cost(8_000) for _ in range(2)) < 24 * min(cost(1_000) for _ in range(2))
