"""What the transaction machines need to know of their broker: configs, the finalized level, and the way to partitions."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.pure.transactions.transaction import Partition, Transaction

    # Writes the markers that end a prepared transaction of this id into these partitions, and then tells the machine.
    WriteMarkers = Callable[[str, Transaction, frozenset[Partition]], None]


class TransactionSettings:
    __slots__ = ("expiration_ms", "max_timeout_ms", "transaction_version", "write_markers")

    def __init__(
        self,
        max_timeout_ms: int,
        expiration_ms: int,
        transaction_version: Callable[[], int],
        write_markers: WriteMarkers,
    ) -> None:
        self.max_timeout_ms = max_timeout_ms  # the longest that a transaction may be open
        self.expiration_ms = expiration_ms  # after which an id that is not used is forgotten
        self.transaction_version = transaction_version  # the finalized level
        self.write_markers = write_markers
