"""Runs the machine of the transaction coordinator as the coordinator runtime does, without a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from pykafkad import errors
from pykafkad.coordinator.transaction_machine import TransactionMachine
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller, Effects, TimerKey
from pykafkad.pure.transactions.settings import TransactionSettings
from pykafkad.pure.transactions.transaction import NONE, Partition, ProducerIdNeeded, Transaction

NOW_MS = 1_700_000_000_000
MAX_TIMEOUT_MS = 900_000
EXPIRATION_MS = 604_800_000

Operation = Callable[[TransactionMachine, Caller, int], Effects]
Producer = tuple[int, int]


class Asked(Caller):
    """A request, and its answer when there is one: a message, or the code of a refusal."""

    __slots__ = ("answer",)

    def __init__(self) -> None:
        super().__init__(5, "c", "/127.0.0.1")
        self.answer: Any = None

    @property
    def code(self) -> int:
        assert self.answer is not None, "not answered"
        code: int = self.answer if isinstance(self.answer, int) else self.answer.error_code
        return code

    @property
    def producer(self) -> Producer:
        return self.answer.producer_id, self.answer.producer_epoch


class Room:
    """A partition of `__transaction_state`. What an operation wrote is committed, and answered, by end_pass()."""

    def __init__(self, transaction_version: int = 2) -> None:
        self.now_ms = NOW_MS
        self.transaction_version = transaction_version
        self.producer_ids: Iterator[int] = count(1000)
        self.log: list[tuple[bytes, bytes | None]] = []
        self.marks: list[tuple[str, Transaction, frozenset[Partition]]] = []  # asked for and not taken yet
        self._load()

    def _load(self) -> None:
        settings = TransactionSettings(
            MAX_TIMEOUT_MS, EXPIRATION_MS, lambda: self.transaction_version, self._mark
        )
        self.machine = TransactionMachine(settings)
        self.timers: dict[TimerKey, int] = {}
        self.written: list[tuple[bytes, bytes | None]] = []  # in this pass
        self.answers: list[tuple[Asked, Any]] = []
        self.followed: list[Callable[[int], Effects]] = []
        self.marks.clear()

    def _mark(self, name: str, prepared: Transaction, partitions: frozenset[Partition]) -> None:
        self.marks.append((name, prepared, partitions))

    # -- requests

    def ask(self, operation: Operation) -> Asked:
        asked = Asked()
        try:
            try:
                effects = operation(self.machine, asked, NONE)
            except ProducerIdNeeded:
                effects = operation(self.machine, asked, next(self.producer_ids))
            self.perform(effects)
        except KafkaError as error:
            self.answers.append((asked, error.code))
        return asked

    def perform(self, effects: Effects) -> None:
        for key, value in effects.records:
            self.written.append(self.machine.encode(key, value))
            self.machine.replay(key, value)
        for key, delay_ms in effects.timers:
            self.timers.pop(key, None)
            if delay_ms is not None:
                self.timers[key] = self.now_ms + delay_ms
        if effects.on_committed is not None:
            self.followed.append(effects.on_committed)
        for caller, answer in effects.replies:
            assert isinstance(caller, Asked)
            self.answers.append((caller, answer))

    def init(self, name: str = "t", timeout_ms: int = 60_000, expected: Producer | None = None) -> Asked:
        return self.ask(
            lambda machine, asked, new_id: machine.init_producer(
                name, timeout_ms, expected, asked, self.now_ms, new_id
            )
        )

    def add(self, producer: Producer, *partitions: Partition, name: str = "t", version: int = 2) -> Asked:
        def add(machine: TransactionMachine, asked: Caller, new_id: int) -> Effects:
            effects = machine.add(name, producer, frozenset(partitions), version, self.now_ms)
            effects.reply(asked, errors.NONE)
            return effects

        return self.ask(add)

    def end(self, producer: Producer, committed: bool = True, name: str = "t", version: int = 2) -> Asked:
        return self.ask(
            lambda machine, asked, new_id: machine.end(
                name, producer, committed, version, asked, self.now_ms, new_id
            )
        )

    # -- the end of a pass, and what follows

    def end_pass(self) -> None:
        """Commit what was written, answer, and do what was to follow."""
        self.log += self.written
        self.written.clear()
        answers, self.answers = self.answers, []
        for asked, answer in answers:
            assert asked.answer is None, "answered twice"
            asked.answer = answer
        followed, self.followed = self.followed, []
        for each in followed:
            self.perform(each(self.now_ms))

    def mark_all(self, code: int = errors.NONE) -> None:
        """Answer to all markers that are asked for."""
        marks, self.marks = self.marks[:], []
        for name, prepared, partitions in marks:
            self.marked(name, prepared, dict.fromkeys(partitions, code))

    def marked(self, name: str, prepared: Transaction, codes: dict[Partition, int]) -> None:
        self.perform(self.machine.marked(name, prepared, codes, self.now_ms))

    def settle(self) -> None:
        """Until nothing is left to do at this time."""
        while self.written or self.answers or self.followed or self.marks:
            self.end_pass()
            self.mark_all()

    def advance(self, delta_ms: int) -> None:
        self.now_ms += delta_ms
        for key in [key for key, due_ms in self.timers.items() if due_ms <= self.now_ms]:
            if self.timers.pop(key, None) is not None:
                self.perform(self.machine.on_timer(key, self.now_ms))

    def abort_overdue(self) -> None:
        """The periodic job."""
        for name in self.machine.overdue(list(self.machine.open_ids), self.now_ms):
            try:
                self.perform(self.machine.abort(name, self.now_ms))
            except ProducerIdNeeded:
                self.perform(self.machine.abort(name, self.now_ms, next(self.producer_ids)))

    # -- the life of the coordinator

    def unload(self) -> None:
        """Another broker takes over: whoever waits is told so."""
        for caller, answer in self.machine.on_unloaded().replies:
            assert isinstance(caller, Asked)
            caller.answer = answer

    def load(self) -> None:
        """A new coordinator reads what is committed; the rest of the pass is lost."""
        self._load()
        for offset, (key, value) in enumerate(self.log):
            self.machine.replay(*self.machine.decode(key, value), offset)
        for name in self.machine.replayed():
            for effects in self.machine.on_loaded(name, self.now_ms):
                self.perform(effects)

    # -- what is known

    def transaction(self, name: str = "t") -> Transaction:
        return self.machine.by_id[name]

    def states(self) -> list[str]:
        """The states that the committed records say."""
        values = [self.machine.decode(key, value)[1] for key, value in self.log]
        return ["tombstone" if value is None else value.state_name for value in values]
