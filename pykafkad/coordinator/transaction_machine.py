"""The transactional ids of one partition of `__transaction_state` as a machine of the coordinator runtime."""

from __future__ import annotations

from pykafkad.pure.transactions import records
from pykafkad.pure.transactions.registry import Transactions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class TransactionMachine(Transactions):
    __slots__ = ()

    decode = staticmethod(records.decode)

    def encode(self, key: Any, value: Any) -> tuple[bytes, bytes | None]:
        if value is None:
            return records.encode_key(key), None
        return records.encode_key(key), records.encode_value(value, self.settings.transaction_version())

    def end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """The records of `__transaction_state` are not part of transactions themselves."""

    def replayed(self) -> Iterable[str]:
        return self.by_id
