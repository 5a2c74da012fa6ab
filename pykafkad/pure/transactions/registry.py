"""The transactional ids of one partition of `__transaction_state`: finds the transaction, replays records, expires ids.

Every operation returns Effects, or raises KafkaError, which leaves everything as it was; ProducerIdNeeded asks for the
same again with a producer id that nobody has. Invariants: `by_id` is what the log says; `open_ids` are those that are
ONGOING, and `ending` has those that are prepared and whose commit was asked for here.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller, Effects, TimerKey
from pykafkad.pure.transactions import ending, producers
from pykafkad.pure.transactions.transaction import AT_REST, NONE, ONGOING, Partition, Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.pure.transactions.ending import Ending
    from pykafkad.pure.transactions.settings import TransactionSettings

Producer = tuple[int, int]  # its id and epoch


class Transactions:
    __slots__ = ("by_id", "ending", "open_ids", "settings")

    def __init__(self, settings: TransactionSettings) -> None:
        self.settings = settings
        self.by_id: dict[str, Transaction] = {}
        self.open_ids: dict[str, None] = {}
        self.ending: dict[str, Ending] = {}

    def of_producer(self, transactional_id: str, producer: Producer) -> Transaction:
        """The transaction, if this is its producer now."""
        transaction = self.by_id.get(transactional_id)
        if transaction is None or transaction.producer_id != producer[0]:
            raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
        if transaction.epoch != producer[1]:
            raise KafkaError(errors.PRODUCER_FENCED)
        return transaction

    # -- producers

    def init_producer(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: Producer | None,
        caller: Caller,
        now_ms: int,
        new_producer_id: int = NONE,
    ) -> Effects:
        """InitProducerId; `expected` is what the producer says it was."""
        return producers.init(self, transactional_id, timeout_ms, expected, caller, now_ms, new_producer_id)

    # -- partitions

    def add(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: frozenset[Partition],
        client_version: int,
        now_ms: int,
    ) -> Effects:
        """Let partitions take part."""
        transaction = self.by_id.get(transactional_id)
        if transaction is not None and transaction.is_prepared:
            raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
        transaction = self.of_producer(transactional_id, producer)
        effects = Effects()
        if transaction.state != ONGOING or not partitions <= transaction.partitions:
            effects.write(transactional_id, transaction.joined_by(partitions, client_version, now_ms))
        return effects

    def taking_part(self, transactional_id: str, producer: Producer) -> frozenset[Partition]:
        """The partitions that take part."""
        transaction = self.of_producer(transactional_id, producer)
        if transaction.is_prepared:
            raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
        return transaction.partitions

    def unmarked(self, transactional_id: str) -> frozenset[Partition]:
        """The partitions that take part, or, of a prepared transaction, those that have no end marker yet."""
        ending = self.ending.get(transactional_id)
        return ending.left if ending is not None else self.by_id[transactional_id].partitions

    # -- ends

    def end(
        self,
        transactional_id: str,
        producer: Producer,
        committed: bool,
        client_version: int,
        caller: Caller,
        now_ms: int,
        new_producer_id: int = NONE,
    ) -> Effects:
        """EndTxn. It is answered when the markers are written, or after a while."""
        return ending.end(
            self, transactional_id, producer, committed, client_version, caller, now_ms, new_producer_id
        )

    def abort(self, transactional_id: str, now_ms: int, new_producer_id: int = NONE) -> Effects:
        """Abort an open transaction that its producer did not end in time, and fence the producer."""
        transaction = self.by_id.get(transactional_id)
        if transaction is None or not is_overdue(transaction, now_ms):
            return Effects()
        return ending.fence(self, transactional_id, transaction, now_ms, new_producer_id)

    def marked(
        self, transactional_id: str, prepared: Transaction, codes: dict[Partition, int], now_ms: int
    ) -> Effects:
        """What became of the markers of a prepared transaction, for each partition."""
        return ending.marked(self, transactional_id, prepared, codes, now_ms)

    # -- time

    def overdue(self, some: Iterable[str], now_ms: int) -> list[str]:
        """Those of some ids whose transactions are open for too long."""
        known = self.by_id.get
        return [name for name in some if (each := known(name)) is not None and is_overdue(each, now_ms)]

    def expired(self, some: Iterable[str], now_ms: int) -> list[str]:
        """Those of some ids that were not used for long."""
        known, last_ms = self.by_id.get, now_ms - self.settings.expiration_ms
        return [name for name in some if (each := known(name)) is not None and is_unused(each, last_ms)]

    def forget(self, transactional_id: str) -> Effects:
        effects = Effects()
        effects.write(transactional_id, None)
        return effects

    def on_timer(self, key: TimerKey, now_ms: int) -> Effects:
        return ending.on_timer(self, key, now_ms)

    # -- replay

    def replay(
        self,
        key: str,
        value: Transaction | None,
        offset: int = -1,
        producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        transactional_id, transaction = key, value
        if transaction is None:
            self.by_id.pop(transactional_id, None)
        else:
            self.by_id[transactional_id] = transaction
        if transaction is not None and transaction.state == ONGOING:
            self.open_ids[transactional_id] = None
        elif transactional_id in self.open_ids:
            del self.open_ids[transactional_id]

    def load(
        self, key: str, value: Transaction | None, offset: int, producer_id: int, producer_epoch: int
    ) -> None:
        self.replay(key, value, offset, producer_id, producer_epoch)

    def on_loaded(self, transactional_id: str, now_ms: int) -> Iterable[Effects]:
        return (ending.on_loaded(self, transactional_id),)

    def on_unloaded(self) -> Effects:
        return ending.on_unloaded(self)


def is_unused(transaction: Transaction, last_ms: int) -> bool:
    return transaction.state in AT_REST and transaction.updated_ms <= last_ms


def is_overdue(transaction: Transaction, now_ms: int) -> bool:
    return transaction.state == ONGOING and transaction.start_ms + transaction.timeout_ms < now_ms
