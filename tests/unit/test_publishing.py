"""Publishers: the order in which they get a delta, and that answers wait until they are done."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.cluster.delta import Delta
from pykafkad.cluster.publishing import GROUPS, ORDER, TELEMETRY, Publishers
from pykafkad.messages import NoOpRecord
from pykafkad.slices import GO_ON, Slices, finish
from tests.unit.config_kit import BROKER, SET, TOPIC, altered, handler, open_configurable
from tests.unit.metadata_fakes import FakeContext, Hasty, Later, creatable, create, open_broker


def breaks(delta: Delta) -> None:
    raise RuntimeError("a bug of ours")


def told_in(order: tuple[str, ...]) -> list[str]:
    told: list[str] = []
    publishers = Publishers()
    for name in order:
        publishers.add(name, lambda delta, name=name: told.append(name))  # type: ignore[misc]
    finish(publishers.publish(Delta()))
    return told


def test_the_order_does_not_depend_on_who_came_first() -> None:
    assert ORDER == (
        "configs",
        "acls",
        "listeners",
        "logs",
        "groups",
        "transactions",
        "telemetry",
        "controller",
    )
    assert told_in(ORDER) == told_in(ORDER[::-1]) == list(ORDER)
    assert told_in(("telemetry", "logs")) == ["logs", "telemetry"]
    with pytest.raises(ValueError, match="quotas"):
        told_in(("quotas",))


def test_each_begins_when_the_one_before_is_through() -> None:
    steps: list[str] = []

    def slowly(name: str, delta: Delta) -> Any:
        for _ in range(3):
            steps.append(name)
            yield GO_ON

    publishers = Publishers()
    for name in (GROUPS, TELEMETRY):
        publishers.add(name, partial(slowly, name))
    finish(publishers.publish(Delta()))
    assert steps == ["groups"] * 3 + ["telemetry"] * 3


def test_one_that_fails_does_not_keep_the_others_but_at_a_start_it_does() -> None:
    told: list[Delta] = []
    publishers = Publishers()
    publishers.add(GROUPS, breaks)
    publishers.add(TELEMETRY, told.append)
    finish(publishers.publish(Delta()))
    assert len(told) == 1
    with pytest.raises(RuntimeError):
        finish(publishers.publish(Delta(is_whole=True)))
    assert len(told) == 1


# -- a controller's answers


def slow_broker(directory: Path) -> tuple[Any, Later]:
    """Its telemetry, the last of all publishers, takes ten turns of the loop for each delta."""
    later = Later()
    slices = Slices(later.soon, Hasty())

    def publish(delta: Delta) -> Any:
        for _ in range(20):
            yield GO_ON
        broker.storage.events.append("published")

    broker = open_broker(directory, later, slices)
    broker.controller.publishers.add(TELEMETRY, publish)
    return broker, later


def answered(broker: Any, later: Later, ask: Any) -> list[str]:
    """The calls of the storage, with the moment of the answer between them."""
    broker.storage.events.clear()
    ask(lambda *result: broker.storage.events.append("answered"))
    later.all()
    return list(broker.storage.events)


def test_answers_wait_for_the_publishers(tmp_path: Path) -> None:
    broker, later = slow_broker(tmp_path)
    controller = broker.controller

    def growing(done: Any) -> None:
        topic = messages.CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=3, assignments=None)
        controller.create_partitions([topic], False, done)

    asked = [
        lambda done: controller.create_topics([creatable("t", 2)], False, done),
        growing,
        lambda done: controller.delete_topics([broker.image.topics["t"].id], done),
        lambda done: controller.commit([(NoOpRecord(), 0)], done),
        lambda done: controller.in_turn(lambda: [(NoOpRecord(), 0)], done),
    ]
    assert [answered(broker, later, ask) for ask in asked] == [
        ["create t-0", "create t-1", "published", "answered"],
        ["create t-2", "published", "answered"],
        ["delete t-0", "delete t-1", "delete t-2", "published", "answered"],
        ["published", "answered"],
        ["published", "answered"],
    ]


def test_a_log_follows_whoever_the_metadata_says_leads_it(tmp_path: Path) -> None:
    broker, later = slow_broker(tmp_path)
    create(broker, creatable("t", 2))
    later.all()

    def led_by(leader: int) -> Any:
        record = messages.PartitionChangeRecord(
            partition_id=1, topic_id=broker.image.topics["t"].id, leader=leader
        )
        return lambda done: broker.controller.commit([(record, 0)], done)

    assert [answered(broker, later, led_by(leader)) for leader in (2, -1, 1)] == [
        ["follow 2 in t-1", "published", "answered"],
        ["follow -1 in t-1", "published", "answered"],
        ["create t-1", "published", "answered"],
    ]
    assert broker.storage.get("t", 1).leader_epoch == broker.image.topics["t"].partitions[1].leader_epoch


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "orders"), (BROKER, ""), (BROKER, "1")])
def test_altered_configs_are_answered_when_they_count_everywhere(
    tmp_path: Path, kind: int, name: str
) -> None:
    later = Later()
    broker = open_configurable(tmp_path, later)
    create(broker, creatable("orders"))
    later.all()
    counted: list[Any] = []
    context = FakeContext(1)
    key = "retention.ms" if kind == TOPIC else "log.retention.ms"
    request = messages.IncrementalAlterConfigsRequest(resources=[altered(kind, name, (key, SET, "7"))])

    def look(delta: Delta) -> None:
        counted.append((broker.storage.configs["orders"]["retention.ms"], list(context.answers)))

    broker.controller.publishers.add(TELEMETRY, look)
    finish(handler("incremental_alter_configs").handle(broker, request, context))
    later.all()
    assert counted == [(7, [])] and context.answers[0].responses[0].error_code == 0


def test_a_large_creation_holds_up_nobody_elses_change(tmp_path: Path) -> None:
    later, clock = Later(), Hasty()
    broker = open_broker(tmp_path, later, Slices(later.soon, clock))
    done: list[str] = []
    controller = broker.controller
    clock.step_us = 0  # all are planned at once
    controller.create_topics([creatable("small")], False, lambda planned: done.append("small"))
    controller.create_topics([creatable("wide", 200)], False, lambda planned: done.append("wide"))
    controller.create_topics([creatable("late")], False, lambda planned: done.append("late"))
    controller.take_producer_id(lambda producer_id: done.append("id"))
    clock.step_us = Hasty.step_us
    later.all()
    assert sorted(done[:-1]) == ["id", "late", "small"] and done[-1] == "wide"


def test_a_deletion_is_through_before_the_image_has_others_of_the_name(tmp_path: Path) -> None:
    later, clock = Later(), Hasty()
    broker = open_broker(tmp_path, later, Slices(later.soon, clock))
    create(broker, creatable("t", 30))
    later.all()
    old = broker.image.topics["t"].id
    clock.step_us = 0  # both are planned at once
    broker.controller.delete_topics([old], lambda errors: None)
    planned = create(broker, creatable("t", 30))
    clock.step_us = Hasty.step_us
    while later.waiting:
        later.step()
        if "t" in broker.image.topics and broker.image.topics["t"].id != old:
            assert old not in {found.topic_id for found in broker.storage.partitions.values()}
    assert planned[0].error is None and len(broker.storage.partitions) == 30
