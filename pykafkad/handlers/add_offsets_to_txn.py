"""AddOffsetsToTxn (key 25), versions 0 to 4: the offsets of a group take part in a transaction, that is their partition
of `__consumer_offsets` (KIP-98)."""

from __future__ import annotations

from pykafkad.cluster.topic_names import CONSUMER_OFFSETS
from pykafkad.coordinator.runtime.runtime import partition_for
from pykafkad.errors import INVALID_REQUEST, KafkaError
from pykafkad.handlers.add_partitions_to_txn import CLIENTS, told
from pykafkad.messages import AddOffsetsToTxnResponse
from pykafkad.pure.authorization import GROUP, READ, TRANSACTIONAL_ID, WRITE, Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.coordinator.runtime.callers import Asker
    from pykafkad.coordinator.transaction_machine import TransactionMachine
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AddOffsetsToTxnRequest
    from pykafkad.pure.effects import Effects


needs = (
    Need(WRITE, TRANSACTIONAL_ID, "transactional_id"),
    Need(READ, GROUP, "group_id"),
)


def handle(
    broker: Broker, request: AddOffsetsToTxnRequest, context: Context
) -> AddOffsetsToTxnResponse | Context:
    if not request.transactional_id:
        return AddOffsetsToTxnResponse(error_code=INVALID_REQUEST)
    partitions = frozenset(((CONSUMER_OFFSETS, partition_of_group(broker, request.group_id)),))

    def add(machine: TransactionMachine, asker: Asker) -> Effects:
        producer = request.producer_id, request.producer_epoch
        now_ms = broker.clock.now_ms()
        effects = machine.add(request.transactional_id, producer, partitions, CLIENTS, now_ms)
        effects.reply(asker, AddOffsetsToTxnResponse())
        return effects

    version = context.version  # who refuses must not know the context, which knows it

    def refuse(error: KafkaError) -> AddOffsetsToTxnResponse:
        return AddOffsetsToTxnResponse(error_code=told(error.code, version))

    return broker.transaction_coordinator.ask(request.transactional_id, context, add, refuse)


def partition_of_group(broker: Broker, group_id: str) -> int:
    """Also before the first group of all: the client asks for its coordinator, which creates the topic, only later."""
    if CONSUMER_OFFSETS in broker.image.topics:
        return broker.group_coordinator.partition_of(group_id)
    return partition_for(group_id, broker.config["offsets.topic.num.partitions"])
