"""InitProducerId with a transactional id: which producer id and epoch the producer goes on with (KIP-98, KIP-360).

Whoever comes with the id alone gets the next epoch, which fences whoever had it before. A producer that names what it
was gets the next one only if nobody came in between, and the same answer again if it asks again.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import InitProducerIdResponse
from pykafkad.pure.effects import Effects, answered
from pykafkad.pure.transactions import ending
from pykafkad.pure.transactions.transaction import NONE, ONGOING, Transaction, is_exhausted, needed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.pure.effects import Caller
    from pykafkad.pure.transactions.registry import Producer, Transactions


def init(
    transactions: Transactions,
    transactional_id: str,
    timeout_ms: int,
    expected: Producer | None,
    caller: Caller,
    now_ms: int,
    new_producer_id: int,
) -> Effects:
    if not 0 < timeout_ms <= transactions.settings.max_timeout_ms:
        raise KafkaError(errors.INVALID_TRANSACTION_TIMEOUT)
    known = transactions.by_id.get(transactional_id)
    if known is None:
        known = Transaction(needed(new_producer_id), timeout_ms, now_ms)
    elif known.is_prepared:
        raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
    if expected is not None and not may_be(known, expected):
        raise KafkaError(errors.PRODUCER_FENCED)
    if known.state == ONGOING:
        effects = ending.fence(transactions, transactional_id, known, now_ms, new_producer_id)
        effects.reply(caller, refusal(errors.CONCURRENT_TRANSACTIONS))
        return effects
    new = next_producer(known, timeout_ms, expected, now_ms, new_producer_id)
    effects = answered(caller, InitProducerIdResponse(producer_id=new.producer_id, producer_epoch=new.epoch))
    effects.write(transactional_id, new)
    return effects


def may_be(known: Transaction, expected: Producer) -> bool:
    """Whether the producer may be the one that is known, or the one whose epochs were used up just before."""
    producer_id, epoch = expected
    return (
        known.epoch == NONE
        or producer_id == known.producer_id
        or (producer_id == known.previous_producer_id and is_exhausted(epoch))
    )


def next_producer(
    known: Transaction, timeout_ms: int, expected: Producer | None, now_ms: int, new_producer_id: int
) -> Transaction:
    if known.is_exhausted and (expected is None or expected[1] == known.epoch):
        rotated = needed(new_producer_id)
        return known.begun_anew(rotated, timeout_ms, now_ms, is_continued=expected is not None)
    if expected is None:
        return known.begun(known.epoch + 1, NONE, timeout_ms, now_ms)
    if known.epoch in (NONE, expected[1]):
        return known.begun(known.epoch + 1, known.epoch, timeout_ms, now_ms)
    if known.last_epoch == expected[1]:
        return known.begun(known.epoch, known.last_epoch, timeout_ms, now_ms)
    raise KafkaError(errors.PRODUCER_FENCED)


def refusal(code: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=NONE, producer_epoch=NONE)
