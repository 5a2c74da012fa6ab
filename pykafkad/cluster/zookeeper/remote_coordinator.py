"""Whether partitions take part in a transaction, where another broker may be its coordinator (KIP-890).

Asked by AddPartitionsToTxn, versions 4 and 5, of the broker that leads the transactional id's partition of
`__transaction_state`; of our own coordinator without a request. Invariant: `done` is called once with a code for each
partition, and a code of 0 is only told where the coordinator has said so, or is too old to be asked.
"""

from __future__ import annotations

from typing import NamedTuple

from pykafkad import errors
from pykafkad.cluster.image import NO_LEADER
from pykafkad.cluster.topic_names import TRANSACTION_STATE
from pykafkad.cluster.zookeeper.queues import Queues
from pykafkad.logs import logger
from pykafkad.messages import AddPartitionsToTxnRequest
from pykafkad.net.peers import Purpose, UnsupportedByPeer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from pykafkad.cluster.image import Image
    from pykafkad.coordinator.transactions import TransactionCoordinator
    from pykafkad.messages import AddPartitionsToTxnResponse
    from pykafkad.net.peers import Connections

    Partition = tuple[str, int]
    Codes = dict[Partition, int]
    Done = Callable[[Codes], None]

API_KEY = AddPartitionsToTxnRequest.api_key
OLDEST, NEWEST = 4, 5
PARTITIONS_IN_A_REQUEST = 2000

log = logger("transactions")
AskedTransaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
AskedTopic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic


class Question(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: list[Partition]
    add: bool
    done: Done

    def all(self, code: int) -> Codes:
        return dict.fromkeys(self.partitions, code)


class RemoteCoordinator:
    """Asks the coordinator, whichever broker it is."""

    def __init__(self, node_id: int, image: Image, own: TransactionCoordinator, peers: Connections) -> None:
        self._node_id, self._image, self._own, self._peers = node_id, image, own, peers
        self._purpose = Purpose(f"AddPartitionsManager-client-{node_id}", asks_versions=True)
        self._queues: Queues[Question] = Queues(
            self._send,
            lambda question: question.transactional_id,
            lambda question: len(question.partitions),
            PARTITIONS_IN_A_REQUEST,
        )

    def take_part(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: list[Partition],
        add: bool,
        done: Done,
    ) -> None:
        """As TransactionCoordinator.take_part."""
        question = Question(transactional_id, producer_id, producer_epoch, partitions, add, done)
        leader = self._leader_for(transactional_id)
        if leader == self._node_id:
            self._own.take_part(*question)
        elif leader == NO_LEADER:
            done(question.all(errors.COORDINATOR_NOT_AVAILABLE))
        else:
            self._queues.put(leader, question)

    def _leader_for(self, transactional_id: str) -> int:
        topic = self._image.topics.get(TRANSACTION_STATE)
        if topic is None or not topic.partitions:
            return NO_LEADER
        return topic.partitions[self._own.partition_of(transactional_id)].leader

    def _send(self, broker_id: int, questions: list[Question], answered: Callable[[], None]) -> None:
        def take(answer: AddPartitionsToTxnResponse | OSError) -> None:
            answered()
            for question in questions:
                question.done(told(question, answer))
            if isinstance(answer, OSError):
                log.debug(f"what broker {broker_id} is asked about transactions: {answer}")

        link = self._peers.to(broker_id, self._purpose)
        link.ask_built(API_KEY, NEWEST, lambda version: request_for(questions), take, oldest=OLDEST)


def request_for(questions: list[Question]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(transactions=[asked(question) for question in questions])


def asked(question: Question) -> AskedTransaction:
    indexes: dict[str, list[int]] = {}
    for topic, index in question.partitions:
        indexes.setdefault(topic, []).append(index)
    return AskedTransaction(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.producer_epoch,
        verify_only=not question.add,
        topics=[AskedTopic(name=name, partitions=some) for name, some in indexes.items()],
    )


def told(question: Question, answer: AddPartitionsToTxnResponse | OSError) -> Codes:
    """The codes of one question."""
    if isinstance(answer, UnsupportedByPeer) and not question.add:
        return question.all(errors.NONE)  # an older broker, beside which nothing is verified
    if isinstance(answer, OSError):
        return question.all(errors.NETWORK_EXCEPTION)
    if answer.error_code:
        refused = answer.error_code == errors.CLUSTER_AUTHORIZATION_FAILED
        return question.all(errors.INVALID_TXN_STATE if refused else answer.error_code)
    codes = {
        (topic.name, row.partition_index): row.partition_error_code
        for result in answer.results_by_transaction
        if result.transactional_id == question.transactional_id
        for topic in result.topic_results
        for row in topic.results_by_partition
    }
    return {each: codes.get(each, errors.NETWORK_EXCEPTION) for each in question.partitions}
