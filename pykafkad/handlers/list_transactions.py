"""ListTransactions (key 66), versions 0 to 2: the transactional ids in some states or of some producers, whose
transactions run for long (1, KIP-994), or that match a regular expression of RE2 (2, KIP-1152).

While a partition of `__transaction_state` is being loaded its ids are not known, so the request is refused.
"""

from __future__ import annotations

from operator import attrgetter

from pykafkad.errors import INVALID_REGULAR_EXPRESSION, KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.messages import ListTransactionsResponse
from pykafkad.pure.authorization import DESCRIBE, TRANSACTIONAL_ID, Need
from pykafkad.slices import ELEMENTS_AT_ONCE, chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.coordinator.transaction_machine import TransactionMachine
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import ListTransactionsRequest
    from pykafkad.pure.regex.automaton import Automaton
    from pykafkad.pure.transactions.transaction import Transaction
    from pykafkad.slices import Work

STEPS_MAX = 20_000_000  # of comparing ids with a pattern: a few seconds of work

TransactionState = ListTransactionsResponse.TransactionState


needs = (Need(DESCRIBE, TRANSACTIONAL_ID, by_handler=True),)


class Filter:
    """What a request selects. Invariant: `states` and `producer_ids` are None where all are selected."""

    __slots__ = ("duration_ms", "pattern", "producer_ids", "states", "unknown_states")

    def __init__(self, duration_ms: int) -> None:
        self.duration_ms = duration_ms
        self.states: set[str] | None = None
        self.unknown_states: list[str] = []
        self.producer_ids: set[int] | None = None
        self.pattern: Automaton | None = None

    def selects(self, transaction: Transaction, now_ms: int) -> bool:
        """By all but the pattern. What has not begun has run since the epoch, as in Kafka."""
        return (
            (self.producer_ids is None or transaction.producer_id in self.producer_ids)
            and (self.states is None or transaction.state_name in self.states)
            and (self.duration_ms < 0 or now_ms - transaction.start_ms > self.duration_ms)
        )


def handle(
    broker: Broker, request: ListTransactionsRequest, context: Context
) -> Work[ListTransactionsResponse]:
    from pykafkad.pure.regex.automaton import TooMuchWork
    from pykafkad.pure.regex.parsing import InvalidPattern

    asker = broker.transaction_coordinator.asker_in_slices(context, refused)
    try:
        chosen = yield from filter_of(request)
        rows: list[TransactionState] = []
        for machine in broker.transaction_coordinator.look_everywhere(asker):
            rows += yield from listed(broker, machine, chosen)
        if broker.authorizer is not None:
            permits = Permits(broker.authorizer, context)
            rows = yield from permits.only(DESCRIBE, TRANSACTIONAL_ID, rows, attrgetter("transactional_id"))
    except KafkaError as error:
        return refused(error)
    except (InvalidPattern, TooMuchWork):
        return refused(KafkaError(INVALID_REGULAR_EXPRESSION))
    return asker.answer(
        ListTransactionsResponse(unknown_state_filters=chosen.unknown_states, transaction_states=rows)
    )


def filter_of(request: ListTransactionsRequest) -> Work[Filter]:
    from pykafkad.pure.transactions.transaction import STATE_NAMES

    chosen = Filter(request.duration_filter)
    if request.transactional_id_pattern:
        from pykafkad.pure.regex.automaton import for_any_text

        chosen.pattern = yield from for_any_text(request.transactional_id_pattern)
        chosen.pattern.most_steps = STEPS_MAX
    if request.state_filters:
        names: dict[str, None] = {}
        for some in chunks(request.state_filters):
            names.update(dict.fromkeys(some))
            yield
        chosen.states = set(STATE_NAMES).intersection(names)
        chosen.unknown_states = [name for name in names if name not in chosen.states]
    if request.producer_id_filters:
        chosen.producer_ids = set()
        for ids in chunks(request.producer_id_filters):
            chosen.producer_ids.update(ids)
            yield
    return chosen


def listed(broker: Broker, machine: TransactionMachine, chosen: Filter) -> Work[list[TransactionState]]:
    rows: list[TransactionState] = []
    now_ms = broker.clock.now_ms()
    for some in chunks(list(machine.by_id), ELEMENTS_AT_ONCE):
        for transactional_id in some:
            transaction = machine.by_id.get(transactional_id)
            if transaction is None or not chosen.selects(transaction, now_ms):
                continue
            if chosen.pattern is None or (yield from chosen.pattern.matches(transactional_id)):
                rows.append(row_of(transactional_id, transaction))
        yield
    return rows


def row_of(transactional_id: str, transaction: Transaction) -> TransactionState:
    return TransactionState(
        transactional_id=transactional_id,
        producer_id=transaction.producer_id,
        transaction_state=transaction.state_name,
    )


def refused(error: KafkaError) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=error.code)
