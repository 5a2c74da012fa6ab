"""What a broker asks its controller for: producer ids, and to be let go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from pykafkad import errors, messages
from pykafkad.cluster.zookeeper.departure import Departure
from pykafkad.cluster.zookeeper.producer_ids import ATTEMPTS, ProducerIds
from pykafkad.errors import KafkaError
from tests.unit.peers_kit import FakePeers

Answer = messages.AllocateProducerIdsResponse
CONFIG = {
    "controlled.shutdown.max.retries": 2,
    "controlled.shutdown.retry.backoff.ms": 5000,
    "controller.socket.timeout.ms": 30000,
}


class Cluster:
    broker_epoch = 77
    controller_id = 3


class Quiet:
    def allows(self, *what: Any) -> bool:
        return False


class Later:
    """Timers that a test lets fire."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, Callable[[], None]]] = []

    def __call__(self, delay_ms: int, callback: Callable[[], None]) -> None:
        self.calls.append((delay_ms, callback))

    def fire(self) -> int:
        delay_ms, callback = self.calls.pop()
        callback()
        return delay_ms


class Ids:
    def __init__(self) -> None:
        self.cluster, self.peers, self.later = Cluster(), FakePeers(), Later()
        self.taken: list[int | KafkaError] = []
        self.ids = ProducerIds(5, self.cluster, self.peers, self.later, cast(Any, Quiet()))

    def take(self, count: int = 1) -> list[int | KafkaError]:
        for _ in range(count):
            self.ids.take(self.taken.append)
        taken = self.taken.copy()
        self.taken.clear()
        return taken


def block(start: int, count: int = 1000) -> Any:
    return Answer(producer_id_start=start, producer_id_len=count)


def test_ids_come_in_blocks_and_the_next_block_is_asked_for_before_the_last_id_is_gone() -> None:
    ids = Ids()
    assert ids.take(2) == []
    sent = ids.peers.take()
    assert (sent.broker_id, sent.version) == (3, 0)
    assert (sent.request.broker_id, sent.request.broker_epoch) == (5, 77)
    sent.done(block(4000))
    assert ids.taken == [4000, 4001]
    ids.taken.clear()
    assert ids.take(899) == list(range(4002, 4901))
    assert ids.take(99)[-1] == 4999
    ids.peers.take().done(block(9000))
    assert ids.take() == [9000]
    assert ids.peers.sent == []


def test_a_controller_that_does_not_answer_is_asked_again() -> None:
    ids = Ids()
    ids.take()
    ids.peers.take().done(ConnectionError("gone"))
    ids.later.fire()
    ids.peers.take().done(Answer(error_code=errors.NOT_CONTROLLER))
    ids.cluster.controller_id = -1
    ids.later.fire()
    assert ids.peers.sent == []
    ids.cluster.controller_id = 4
    ids.later.fire()
    sent = ids.peers.take()
    assert sent.broker_id == 4
    sent.done(block(0))
    assert ids.taken == [0]


def test_who_waits_too_long_is_told_to_come_again() -> None:
    ids = Ids()
    ids.cluster.controller_id = -1
    ids.take(2)
    for _ in range(ATTEMPTS - 1):
        ids.later.fire()
    assert [cast(KafkaError, each).code for each in ids.taken] == [errors.COORDINATOR_LOAD_IN_PROGRESS] * 2
    ids.later.fire()
    assert ids.later.calls == []  # nobody waits
    ids.cluster.controller_id = 3
    ids.taken.clear()
    ids.take()
    ids.peers.take().done(block(0))
    assert ids.taken == [0]


def test_at_the_end_those_who_wait_are_refused() -> None:
    ids = Ids()
    ids.take()
    ids.ids.close()
    assert [cast(KafkaError, each).code for each in ids.taken] == [errors.COORDINATOR_LOAD_IN_PROGRESS]


class Leaving:
    def __init__(self, controller_id: int = 3) -> None:
        self.cluster, self.peers, self.later = Cluster(), FakePeers(), Later()
        self.cluster.controller_id = controller_id
        self.gone: list[bool] = []
        self.untold = 0
        self.departure = Departure(
            CONFIG,
            5,
            self.cluster,
            self.peers,
            self.later,
            lambda: self.untold,
            lambda: self.gone.append(True),
        )
        self.departure.ask()


def left(*partitions: int, code: int = 0) -> Any:
    kind = messages.ControlledShutdownResponse
    return kind(
        error_code=code,
        remaining_partitions=[
            kind.RemainingPartition(topic_name="orders", partition_index=each) for each in partitions
        ],
    )


def test_a_broker_goes_when_the_controller_has_moved_what_it_led() -> None:
    leaving = Leaving()
    sent = leaving.peers.take()
    assert (sent.broker_id, sent.version, sent.request.broker_id, sent.request.broker_epoch) == (3, 3, 5, 77)
    assert not leaving.gone
    sent.done(left())
    assert leaving.gone == [True]


@pytest.mark.parametrize(("untold_for", "goes_after"), [(3, 3), (1_000, 100)])
def test_a_controller_goes_when_the_others_know_or_have_had_a_second_for_it(
    untold_for: int, goes_after: int
) -> None:
    leaving = Leaving()
    leaving.untold = 1
    leaving.peers.take().done(left())
    waited = 0
    while not leaving.gone:
        waited += 1
        leaving.untold = int(waited < untold_for)
        leaving.later.fire()
    assert waited == goes_after


def test_a_controller_that_cannot_is_asked_as_often_as_the_config_says() -> None:
    leaving = Leaving()
    for answer in (left(1, 2), left(code=errors.STALE_BROKER_EPOCH)):
        leaving.peers.take().done(answer)
        assert leaving.later.fire() == 5000
    leaving.peers.take().done(ConnectionError("gone"))
    assert leaving.gone == [True]
    assert leaving.later.calls == []


def test_a_broker_that_knows_no_controller_goes_all_the_same() -> None:
    leaving = Leaving(controller_id=-1)
    leaving.later.fire()
    leaving.later.fire()
    assert (leaving.gone, leaving.peers.sent) == ([True], [])
