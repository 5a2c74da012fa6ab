"""The transactions of an opened directory (`pykafkad open`): shown as they were, and nobody's to change.

What was open or prepared when the directory was copied stays so, since its partitions are not written to.
"""

from __future__ import annotations

from pykafkad.coordinator.transaction_machine import TransactionMachine
from pykafkad.coordinator.transactions import TransactionCoordinator
from pykafkad.storage.overlay.opened import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from pykafkad.pure.effects import Effects


class OpenedTransactionMachine(TransactionMachine):
    __slots__ = ()

    def init_producer(self, *arguments: Any, **named: Any) -> NoReturn:
        raise refusal()

    def add(self, *arguments: Any, **named: Any) -> NoReturn:
        raise refusal()

    def end(self, *arguments: Any, **named: Any) -> NoReturn:
        raise refusal()

    def on_loaded(self, transactional_id: str, now_ms: int) -> Iterable[Effects]:
        return ()


class OpenedTransactions(TransactionCoordinator):
    def _new_machine(self) -> TransactionMachine:
        return OpenedTransactionMachine(self.settings)
