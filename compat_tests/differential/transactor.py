"""Requests of a transactional producer to the coordinators of both brokers: `producer = Transactor(pair)`. Each broker
gets them with the producer id and epoch that it gave out.

Owns: these ids, what is wrong with requests of others, and the waiting for a broker that loads its coordinator or still
writes markers. What producers do with partitions is in transactional.py.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from compat_tests.differential.pair import Each, Pair, Side
from compat_tests.differential.tree import differences
from pykafkad import errors
from pykafkad.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
)

READY_SECONDS = 30
TRANSACTION = 1
LOADING = {errors.COORDINATOR_NOT_AVAILABLE, errors.COORDINATOR_LOAD_IN_PROGRESS, errors.NOT_COORDINATOR}
NEWEST = {"init": 5, "add": 3, "offsets": 4, "end": 4}  # of clients from before KIP-890
UNDER_WAY = ("PrepareCommit", "PrepareAbort")

Topics = dict[str, list[int]]


class Transactor:
    """Of `wrong`, `producer_id` and `producer_epoch` are added to the producer's own, and `exact_id` and `exact_epoch`
    are sent in their place."""

    def __init__(self, pair: Pair, stem: str = "transactor", *, begin: bool = True) -> None:
        self.pair = pair
        self.id = pair.new_name(stem)
        self.producers = {side.name: (-1, -1) for side in pair.sides}
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.id])
        for side in pair.sides:
            self._until(side, find, 4, lambda answer: answer.coordinators[0].error_code not in LOADING)
            self._until(side, self._described(), 0, lambda answer: self._code(answer) not in LOADING)
        if begin:
            assert self.init().error_code == 0

    def _described(self) -> Any:
        return DescribeTransactionsRequest(transactional_ids=[self.id])

    @staticmethod
    def _code(answer: Any) -> int:
        code: int = answer.transaction_states[0].error_code
        return code

    @staticmethod
    def _until(side: Side, request: Any, version: int, done: Callable[[Any], bool]) -> Any:
        deadline = time.monotonic() + READY_SECONDS
        while not done(answer := side.demand(request, version)):
            assert time.monotonic() < deadline, f"{side.name}: {answer}"
            time.sleep(0.01)
        return answer

    def settle(self) -> None:
        """Until both have written the markers of what has ended, and have answered for all that was written."""
        for side in self.pair.sides:
            self._until(
                side,
                self._described(),
                0,
                lambda answer: answer.transaction_states[0].transaction_state not in UNDER_WAY,
            )

    def wait_for(self, state: str) -> None:
        for side in self.pair.sides:
            self._until(
                side,
                self._described(),
                0,
                lambda answer: answer.transaction_states[0].transaction_state == state,
            )

    # -- requests

    def of(self, side: Side, wrong: dict[str, Any]) -> dict[str, Any]:
        producer_id, epoch = self.producers[side.name]
        return {
            "transactional_id": wrong.get("transactional_id", self.id),
            "producer_id": wrong.get("exact_id", producer_id + wrong.get("producer_id", 0)),
            "producer_epoch": wrong.get("exact_epoch", epoch + wrong.get("producer_epoch", 0)),
        }

    def init(self, version: int = NEWEST["init"], *, known: bool = False, **wrong: Any) -> Any:
        """The producer has what the brokers answered from then on. `known`: it says what it was."""

        def build(side: Side) -> Any:
            fields = self.of(side, wrong)
            if not known:
                fields |= {"producer_id": -1, "producer_epoch": -1}
            return InitProducerIdRequest(transaction_timeout_ms=wrong.get("timeout_ms", 60_000), **fields)

        answers = []
        for side in self.pair.sides:
            answers.append(
                self._until(side, build(side), version, lambda answer: answer.error_code not in LOADING)
            )
        self.pair.report(build(self.pair.ours), version, differences(self.pair, *answers))
        self._learn(answers)
        return answers[1]

    def _learn(self, answers: list[Any]) -> None:
        for side, answer in zip(self.pair.sides, answers, strict=True):
            if answer is not None and not answer.error_code and answer.producer_id >= 0:
                self.producers[side.name] = answer.producer_id, answer.producer_epoch

    def adding(self, topics: Topics, **wrong: Any) -> Each:
        """AddPartitionsToTxn as clients send it."""

        def build(side: Side) -> Any:
            own = {f"v3_and_below_{name}": value for name, value in self.of(side, wrong).items()}
            return AddPartitionsToTxnRequest(v3_and_below_topics=added(topics), **own)

        return build

    def add(self, topics: Topics, version: int = NEWEST["add"], **wrong: Any) -> Any:
        return self.pair.same(self.adding(topics, **wrong), version)

    def batched(self, topics: Topics, *, verify_only: bool = False, **wrong: Any) -> Each:
        """An element of AddPartitionsToTxn as brokers send it."""
        kind = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
        return lambda side: kind(topics=added(topics), verify_only=verify_only, **self.of(side, wrong))

    def add_offsets(self, group_id: str, version: int = NEWEST["offsets"], **wrong: Any) -> Any:
        return self.pair.same(
            lambda side: AddOffsetsToTxnRequest(group_id=group_id, **self.of(side, wrong)), version
        )

    def end(self, committed: bool, version: int = NEWEST["end"], **wrong: Any) -> Any:
        ours, theirs = self.pair.same_of_each(
            lambda side: EndTxnRequest(committed=committed, **self.of(side, wrong)), version
        )
        if version >= 5:
            self._learn([ours, theirs])
        self.settle()
        return theirs

    # -- what there is

    def describe(self) -> Any:
        return self.pair.same(self._described(), 0).transaction_states[0]


def added(topics: Topics) -> list[Any]:
    kind = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return [kind(name=name, partitions=indexes) for name, indexes in topics.items()]
