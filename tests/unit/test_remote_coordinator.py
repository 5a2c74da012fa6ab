"""Asking another broker whether partitions take part in a transaction that it coordinates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster.topic_names import TRANSACTION_STATE
from pykafkad.messages import AddPartitionsToTxnResponse
from pykafkad.net.peers import UnsupportedByPeer
from tests.unit.cluster_kit import ClusterDesk, known, topic_known
from tests.unit.peers_kit import FakePeers, Sent

FIRST, SECOND = ("orders", 0), ("orders", 1)
Partition = tuple[str, int]
Codes = dict[Partition, int]


class Desk(ClusterDesk):
    """Broker 0; broker 1 leads the partition of `__transaction_state` that all transactional ids are in."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.peers = FakePeers()
        self.parts.peers = self.peers  # type: ignore[attr-defined]
        self.coordinator_is(1)

    def coordinator_is(self, broker_id: int) -> None:
        states = topic_known(known(0, broker_id), topic=TRANSACTION_STATE, topic_id=b"t" * 16)
        self.live(0, 1, 2, topic_states=[states])

    def verify(self, *partitions: Partition, id: str = "tx", add: bool = False) -> list[Codes]:
        told: list[Codes] = []
        self.takes_part.take_part(id, 7, 1, list(partitions), add, told.append)
        return told


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk = Desk(tmp_path)
    yield desk
    desk.storage.close()


def answered(codes: dict[str, Codes], error_code: int = 0) -> AddPartitionsToTxnResponse:
    kind = AddPartitionsToTxnResponse
    return kind(
        error_code=error_code,
        results_by_transaction=[
            kind.AddPartitionsToTxnResult(
                transactional_id=id,
                topic_results=[
                    kind.AddPartitionsToTxnTopicResult(
                        name=topic,
                        results_by_partition=[
                            kind.AddPartitionsToTxnPartitionResult(
                                partition_index=index, partition_error_code=code
                            )
                        ],
                    )
                    for (topic, index), code in some.items()
                ],
            )
            for id, some in codes.items()
        ],
    )


def asked(sent: Sent) -> list[tuple[str, list[Partition], bool]]:
    return [
        (
            each.transactional_id,
            [(topic.name, index) for topic in each.topics for index in topic.partitions],
            each.verify_only,
        )
        for each in sent.request.transactions
    ]


def test_the_broker_that_leads_the_id_is_asked(desk: Desk) -> None:
    told = desk.verify(FIRST, SECOND)
    sent = desk.peers.take()
    assert (sent.broker_id, sent.version, asked(sent)) == (1, 5, [("tx", [FIRST, SECOND], True)])
    assert sent.purpose.client_id == "AddPartitionsManager-client-0" and sent.purpose.asks_versions
    (transaction,) = sent.request.transactions
    assert (transaction.producer_id, transaction.producer_epoch) == (7, 1)
    assert told == []
    sent.done(answered({"tx": {FIRST: errors.NONE, SECOND: errors.TRANSACTION_ABORTABLE}}))
    assert told == [{FIRST: errors.NONE, SECOND: errors.TRANSACTION_ABORTABLE}]


def test_partitions_are_added_where_that_is_wanted(desk: Desk) -> None:
    desk.verify(FIRST, add=True)
    assert asked(desk.peers.take()) == [("tx", [FIRST], False)]


def test_our_own_coordinator_is_asked_without_a_request(desk: Desk) -> None:
    desk.coordinator_is(0)
    assert desk.verify(FIRST) == [{FIRST: errors.NOT_COORDINATOR}], "LeaderAndIsr has not said so yet"
    assert not desk.peers.sent


def test_without_a_coordinator_the_client_tries_again(desk: Desk) -> None:
    desk.coordinator_is(-1)
    assert desk.verify(FIRST) == [{FIRST: errors.COORDINATOR_NOT_AVAILABLE}]
    desk.live(0, 1, 2, topic_states=[topic_known(known(0, -2), topic=TRANSACTION_STATE, topic_id=b"t" * 16)])
    assert desk.verify(FIRST) == [{FIRST: errors.COORDINATOR_NOT_AVAILABLE}], (
        "nor where there is no such topic"
    )


def test_transactions_that_come_meanwhile_are_asked_about_together(desk: Desk) -> None:
    tolds = {id: desk.verify(FIRST, id=id) for id in ("a", "b", "c")}
    first = desk.peers.take()
    assert not desk.peers.sent
    first.done(answered({"a": {FIRST: errors.NONE}}))
    second = desk.peers.take()
    assert [id for id, _, _ in asked(second)] == ["b", "c"]
    second.done(answered({"b": {FIRST: errors.INVALID_PRODUCER_EPOCH}, "c": {FIRST: errors.NONE}}))
    assert tolds == {
        "a": [{FIRST: errors.NONE}],
        "b": [{FIRST: errors.INVALID_PRODUCER_EPOCH}],
        "c": [{FIRST: errors.NONE}],
    }


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (ConnectionError("gone"), errors.NETWORK_EXCEPTION),
        (UnsupportedByPeer("old"), errors.NONE),
        (answered({}), errors.NETWORK_EXCEPTION),
        (answered({}, errors.CLUSTER_AUTHORIZATION_FAILED), errors.INVALID_TXN_STATE),
        (answered({}, errors.NOT_COORDINATOR), errors.NOT_COORDINATOR),
    ],
)
def test_what_comes_instead_of_an_answer(desk: Desk, answer: Any, code: int) -> None:
    told = desk.verify(FIRST)
    desk.peers.take().done(answer)
    assert told == [{FIRST: code}]


def test_nothing_is_taken_to_be_added_by_a_broker_that_cannot_add(desk: Desk) -> None:
    told = desk.verify(FIRST, add=True)
    desk.peers.take().done(UnsupportedByPeer("old"))
    assert told == [{FIRST: errors.NETWORK_EXCEPTION}]
