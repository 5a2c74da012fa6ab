"""EndTxn (key 26), versions 0 to 5: commits or aborts a transaction (KIP-98).

Since version 5 the producer goes on with the id and epoch of the answer (KIP-890). The rules are in pure/transactions.
"""

from __future__ import annotations

from pykafkad.errors import INVALID_REQUEST, KafkaError
from pykafkad.handlers.add_partitions_to_txn import told
from pykafkad.pure.authorization import TRANSACTIONAL_ID, WRITE, Need
from pykafkad.pure.transactions.ending import refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker
    from pykafkad.coordinator.transaction_machine import TransactionMachine
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import EndTxnRequest, EndTxnResponse
    from pykafkad.pure.effects import Effects


EPOCHS_SINCE = 5
WITHOUT_EPOCHS, WITH_EPOCHS = 0, 2  # transaction versions of clients


needs = (Need(WRITE, TRANSACTIONAL_ID, "transactional_id"),)


def handle(broker: Broker, request: EndTxnRequest, context: Context) -> EndTxnResponse | Context:
    version = context.version  # who refuses must not know the context, which knows it

    def refuse(error: KafkaError) -> EndTxnResponse:
        return refusal(told(error.code, version))

    if not request.transactional_id:
        return refuse(KafkaError(INVALID_REQUEST))
    producer = request.producer_id, request.producer_epoch
    client = WITH_EPOCHS if version >= EPOCHS_SINCE else WITHOUT_EPOCHS

    def end(machine: TransactionMachine, asker: Asker, new_id: int) -> Effects:
        key, committed = request.transactional_id, request.committed
        return machine.end(key, producer, committed, client, asker, broker.clock.now_ms(), new_id)

    return broker.transaction_coordinator.ask_with_id(request.transactional_id, context, end, refuse)
