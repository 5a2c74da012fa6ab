"""A broker without sockets whose transaction coordinator is played by the test."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from pykafkad import errors
from pykafkad.cluster.markers import Marker
from tests.unit.coordinator_kit import GroupDesk


class Coordinator:
    """In the place of the transaction coordinator: notes what it is asked, and answers at once, or by hand."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.codes: list[int] = []  # of the next questions; then 0
        self.waits = False
        self.waiting: list[Any] = []

    def take_part(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Any, add: bool, done: Any
    ) -> None:
        self.asked.append((transactional_id, producer_id, epoch, sorted(partitions), add))
        code = self.codes.pop(0) if self.codes else errors.NONE
        answer = dict.fromkeys(partitions, code)
        if self.waits:
            self.waiting.append(lambda: done(answer))
        else:
            done(answer)

    def answer(self) -> None:
        waiting, self.waiting = self.waiting, []
        for each in waiting:
            each()


class TransactionDesk(GroupDesk):
    """With the topic `t`, of 3 partitions."""

    def __init__(self, directory: Path, **overrides: str) -> None:
        super().__init__(directory, 1, **overrides)
        self.coordinator = Coordinator()
        self.transaction_coordinator = cast("Any", self.coordinator)
        self.create("t", 3)

    def begin(self, request: Any, version: int) -> Any:
        """Send a request; its answer may come later."""
        given = self.send(request, version)
        self.end_pass()
        return given

    def told(self, request: Any, version: int) -> Any:
        """The answer to a request that may take some passes."""
        given = self.begin(request, version)
        self.settle()
        answer = self.answer_of(given, type(request).__name__, version)
        assert answer is not None
        return answer

    def end(self, topic: str, index: int, epoch: int = 0, committed: bool = False) -> None:
        """Write the marker of producer 7."""
        self.markers.write(Marker(7, epoch, 0, committed, 0), [(topic, index)], lambda codes: None)
        self.end_pass()
        self.settle()

    def switch_verification_off(self) -> None:
        self.config.adopt(self.config.with_dynamic({"transaction.partition.verification.enable": "false"}))
        self.storage.reconfigure()
