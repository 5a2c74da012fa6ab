"""AlterPartition, AllocateProducerIds and ControlledShutdown: how they come to the controller's machine, and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.pure.controller import events
from pykafkad.pure.controller.facts import Leadership
from tests.unit.cluster_kit import TOPIC_ID, ClusterDesk, known, topic_known

AlterPartition = messages.AlterPartitionRequest


class Controlling:
    """Keeps what it is asked; a test answers."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def ask(self, make: Callable[..., Any], done: Callable[[Any], object], *facts: Any) -> None:
        self.asked.append(make(events.Ticket(done), *facts))


@pytest.fixture
def desk(tmp_path: Path) -> ClusterDesk:
    desk = ClusterDesk(tmp_path)
    desk.live(0, 1, 2, topic_states=[topic_known(known(), known(1))])
    desk.parts.controlling = Controlling()  # type: ignore[attr-defined]
    return desk


def answered(desk: ClusterDesk, request: Any, version: int, outcome: Any) -> tuple[Any, Any]:
    """What the controller was asked, and what was answered when it came to that outcome."""
    given = desk.send(request, version)
    (event,) = desk.parts.controlling.asked  # type: ignore[attr-defined]
    event.ticket.answer(outcome)
    desk.advance(0)
    return event, desk.answer_of(given, type(request).__name__, version)


def altered(version: int, *topics: tuple[str, bytes, list[int]]) -> Any:
    def data(index: int) -> Any:
        isr: dict[str, Any] = {"new_isr": [2, 0]}
        if version >= 3:
            kind = AlterPartition.BrokerState
            isr = {"new_isr_with_epochs": [kind(broker_id=2), kind(broker_id=0)]}
        return AlterPartition.PartitionData(partition_index=index, leader_epoch=4, partition_epoch=7, **isr)

    return AlterPartition(
        broker_id=2,
        broker_epoch=55,
        topics=[
            AlterPartition.TopicData(
                **({"topic_name": name} if version < 2 else {"topic_id": topic_id}),
                partitions=[data(index) for index in indexes],
            )
            for name, topic_id, indexes in topics
        ],
    )


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_alter_partition_says_what_holds_or_why_not(desk: ClusterDesk, version: int) -> None:
    wanted = Leadership(2, 4, (2, 0), 0, 7)
    topic: Any = TOPIC_ID if version >= 2 else "orders"
    outcome = {(topic, 1): wanted._replace(partition_epoch=8), (topic, 0): errors.INVALID_UPDATE_VERSION}
    event, answer = answered(desk, altered(version, ("orders", TOPIC_ID, [1, 0])), version, outcome)
    assert (event.broker_id, event.broker_epoch) == (2, 55)
    assert event.changes == {(topic, 1): wanted, (topic, 0): wanted}
    refusal = errors.INELIGIBLE_REPLICA if version >= 2 else errors.OPERATION_NOT_ATTEMPTED
    assert event.ineligible == refusal
    (told,) = answer.topics
    assert (told.topic_id if version >= 2 else told.topic_name) == topic
    first, second = told.partitions
    assert (first.partition_index, first.error_code, first.leader_id) == (1, errors.NONE, 2)
    assert (first.leader_epoch, first.isr, first.partition_epoch) == (4, [2, 0], 8)
    assert (second.partition_index, second.error_code) == (0, errors.INVALID_UPDATE_VERSION)


@pytest.mark.parametrize(
    ("request_", "version", "made"),
    [
        (altered(3, ("orders", TOPIC_ID, [0])), 3, events.AlterPartition),
        (messages.AllocateProducerIdsRequest(broker_id=2, broker_epoch=55), 0, events.AllocateProducerIds),
        (messages.ControlledShutdownRequest(broker_id=2, broker_epoch=55), 3, events.ControlledShutdown),
    ],
)
def test_what_fails_as_a_whole_says_so(desk: ClusterDesk, request_: Any, version: int, made: Any) -> None:
    event, answer = answered(desk, request_, version, errors.STALE_BROKER_EPOCH)
    assert type(event) is made
    assert (event.broker_id, event.broker_epoch) == (2, 55)
    assert answer.error_code == errors.STALE_BROKER_EPOCH


def test_a_block_of_producer_ids_is_told(desk: ClusterDesk) -> None:
    request = messages.AllocateProducerIdsRequest(broker_id=2, broker_epoch=55)
    _, answer = answered(desk, request, 0, (3000, 1000))
    assert (answer.error_code, answer.producer_id_start, answer.producer_id_len) == (0, 3000, 1000)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_who_wants_to_stop_is_told_what_it_still_leads(desk: ClusterDesk, version: int) -> None:
    request = messages.ControlledShutdownRequest(broker_id=2)
    _, answer = answered(desk, request, version, [("orders", 0), ("orders", 1)])
    left = [(each.topic_name, each.partition_index) for each in answer.remaining_partitions]
    assert (answer.error_code, left) == (0, [("orders", 0), ("orders", 1)])
