"""How transactions end: decided, marked in each partition, complete.

What was decided is committed before anybody is told and before the first marker is written; the end is complete when
the last marker is committed. A kill in between loses nothing: whoever loads the partition writes the markers that are
prepared. EndTxn is answered with the completion, which a single node reaches two passes later, so that the producer's
next transaction does not meet the end of this one; if that takes longer than ANSWER_MS, or a partition is not there,
the answer does not wait for it, as it never does in Kafka.

Invariants: a marker is repeated only where it is not known whether it was written; nobody is answered twice.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import EndTxnResponse
from pykafkad.pure.effects import Effects, answered
from pykafkad.pure.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EPOCH_BUMPS_SINCE,
    LARGEST_EPOCH,
    NONE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Partition,
    Transaction,
    needed,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.effects import Caller, TimerKey
    from pykafkad.pure.transactions.registry import Producer, Transactions

ANSWER_MS = 500
RETRY_MS = 100
MARKERS, ANSWER = "markers", "answer"  # timers
# What a partition may answer to a marker that needs no marker any more: it was deleted, or has one that is newer.
SETTLED = (errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION, errors.INVALID_PRODUCER_EPOCH)


class Ending:
    """What is left to do for a prepared transaction, and who waits for that."""

    __slots__ = ("caller", "left", "response")

    def __init__(self, prepared: Transaction, caller: Caller | None) -> None:
        self.left = prepared.partitions
        self.caller = caller
        producer_id, epoch = prepared.producer_afterwards
        self.response = EndTxnResponse(producer_id=producer_id, producer_epoch=epoch)


# -- decisions


def end(
    transactions: Transactions,
    transactional_id: str,
    producer: Producer,
    committed: bool,
    client_version: int,
    caller: Caller,
    now_ms: int,
    new_producer_id: int,
) -> Effects:
    known = transactions.by_id.get(transactional_id)
    if known is None:
        raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
    decide = decide_with_epochs if client_version >= EPOCH_BUMPS_SINCE else decide_without
    if decide(known, producer, committed):
        return answered(caller, EndTxnResponse(producer_id=known.producer_id, producer_epoch=known.epoch))
    state = PREPARE_COMMIT if committed else PREPARE_ABORT
    prepared = prepare(known, state, client_version, now_ms, new_producer_id)
    effects = begin(transactions, transactional_id, prepared, caller)
    effects.after(ANSWER_MS, transactional_id, ANSWER)
    return effects


def decide_without(known: Transaction, producer: Producer, committed: bool) -> bool:
    """Whether the transaction has ended like this already; KafkaError: it cannot. Transaction version 1."""
    if known.producer_id != producer[0]:
        raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
    if known.epoch != producer[1]:
        raise KafkaError(errors.PRODUCER_FENCED)
    if known.is_prepared:
        raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
    if known.state == ONGOING:
        return False
    if known.state != (COMPLETE_COMMIT if committed else COMPLETE_ABORT):
        raise KafkaError(errors.INVALID_TXN_STATE)
    return True


def decide_with_epochs(known: Transaction, producer: Producer, committed: bool) -> bool:
    """The same with transaction version 2: who repeats the request has the epoch before, whoever has the current one
    asks for the next end, which without partitions can only be an abort."""
    producer_id, epoch = producer
    is_after_rotation = (
        known.previous_producer_id == producer_id and epoch == LARGEST_EPOCH - 1 and known.epoch == 0
    )
    is_complete = known.state in (COMPLETE_COMMIT, COMPLETE_ABORT)
    is_repeated = is_complete and (is_after_rotation or known.epoch == epoch + 1)
    if known.is_prepared:
        raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
    if known.producer_id != producer_id and not is_after_rotation:
        raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
    if known.epoch != epoch and not is_repeated:
        raise KafkaError(errors.PRODUCER_FENCED)
    if is_repeated and known.state == (COMPLETE_COMMIT if committed else COMPLETE_ABORT):
        return True
    if is_repeated or (committed and known.state != ONGOING):
        raise KafkaError(errors.INVALID_TXN_STATE)
    return False


def prepare(
    known: Transaction, state: int, client_version: int, now_ms: int, new_producer_id: int
) -> Transaction:
    rotates = client_version >= EPOCH_BUMPS_SINCE and known.is_exhausted
    return known.prepared(state, client_version, needed(new_producer_id) if rotates else NONE, now_ms)


def fence(
    transactions: Transactions, transactional_id: str, known: Transaction, now_ms: int, new_producer_id: int
) -> Effects:
    """Abort an open transaction with an epoch that its producer does not have."""
    version = transactions.settings.transaction_version()
    if version < EPOCH_BUMPS_SINCE:
        known, version = known.fenced(), 0
    prepared = prepare(known, PREPARE_ABORT, version, now_ms, new_producer_id)
    return begin(transactions, transactional_id, prepared, None)


# -- markers


def begin(
    transactions: Transactions, transactional_id: str, prepared: Transaction, caller: Caller | None
) -> Effects:
    effects = Effects()
    effects.write(transactional_id, prepared)
    transactions.ending[transactional_id] = Ending(prepared, caller)
    effects.on_refused = lambda code: refused(transactions, transactional_id, code)
    effects.on_committed = lambda now_ms: write_markers(transactions, transactional_id, now_ms)
    return effects


def refused(transactions: Transactions, transactional_id: str, code: int) -> Effects:
    """The decision could not be written, and so was not made."""
    del transactions.ending[transactional_id]
    raise KafkaError(code)


def write_markers(transactions: Transactions, transactional_id: str, now_ms: int) -> Effects:
    """Of the partitions that have none yet, or complete the end if there are no such."""
    ending = transactions.ending[transactional_id]
    prepared = transactions.by_id[transactional_id]
    if not ending.left:
        return complete(transactions, transactional_id, prepared, now_ms)
    transactions.settings.write_markers(transactional_id, prepared, ending.left)
    return Effects()


def marked(
    transactions: Transactions,
    transactional_id: str,
    prepared: Transaction,
    codes: dict[Partition, int],
    now_ms: int,
) -> Effects:
    if transactions.by_id.get(transactional_id) is not prepared:
        return Effects()  # of a load before the last one
    ending = transactions.ending[transactional_id]
    ending.left = frozenset(
        each for each in ending.left if codes.get(each, errors.REQUEST_TIMED_OUT) not in SETTLED
    )
    if not ending.left:
        return complete(transactions, transactional_id, prepared, now_ms)
    effects = answer(ending)
    effects.after(RETRY_MS, transactional_id, MARKERS)
    return effects


def complete(
    transactions: Transactions, transactional_id: str, prepared: Transaction, now_ms: int
) -> Effects:
    ending = transactions.ending[transactional_id]
    effects = Effects()
    effects.write(transactional_id, prepared.completed(now_ms))
    if ending.caller is not None:
        effects.add(answer(ending))
        effects.cancel(transactional_id, ANSWER)
    del transactions.ending[transactional_id]
    return effects


def answer(ending: Ending) -> Effects:
    effects = Effects()
    if ending.caller is not None:
        effects.reply(ending.caller, ending.response)
        ending.caller = None
    return effects


# -- time, and the life of the coordinator


def on_timer(transactions: Transactions, key: TimerKey, now_ms: int) -> Effects:
    transactional_id, purpose = key
    ending = transactions.ending.get(transactional_id)
    if ending is None:
        return Effects()
    return answer(ending) if purpose == ANSWER else write_markers(transactions, transactional_id, now_ms)


def on_loaded(transactions: Transactions, transactional_id: str) -> Effects:
    """What was decided before is done as soon as the partition is served."""
    effects = Effects()
    transaction = transactions.by_id[transactional_id]
    if transaction.is_prepared:
        transactions.ending[transactional_id] = Ending(transaction, None)
        effects.after(0, transactional_id, MARKERS)
    return effects


def on_unloaded(transactions: Transactions) -> Effects:
    """Whoever waits is sent to the next coordinator, which knows what was decided."""
    effects = Effects()
    for ending in transactions.ending.values():
        if ending.caller is not None:
            effects.reply(ending.caller, refusal(errors.NOT_COORDINATOR))
            ending.caller = None
    return effects


def refusal(code: int) -> EndTxnResponse:
    return EndTxnResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
