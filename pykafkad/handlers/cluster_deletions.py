"""DeleteRecords in a cluster: answered when the logs of all replicas that live start no lower than was asked for.

A follower hears of the leader's log start with its next fetch, whose wait ends for that, and says with the one after it
where its own log starts. What has not come in time is REQUEST_TIMED_OUT, and deleted all the same.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.delete_records import answer
from pykafkad.handlers.partitions import find
from pykafkad.slices import GO_ON, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.replica import Replica
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.handlers.delete_records import PartitionResult
    from pykafkad.messages import DeleteRecordsRequest, DeleteRecordsResponse
    from pykafkad.slices import Work
    from pykafkad.waiting import Moved


def answer_in_cluster(
    broker: Broker, request: DeleteRecordsRequest, context: Context
) -> Work[DeleteRecordsResponse | Context]:
    response = yield from answer(broker, request)
    deletion = Deletion(broker, context, response)
    parts = ((topic.name, part) for topic in response.topics for part in topic.partitions)
    for pause, (topic, part) in each(parts):
        if pause:
            yield GO_ON
        if part.error_code == errors.NONE:
            deletion.add(topic, part)
    return deletion.answer_or_wait(request.timeout_ms)


class Deletion:
    """One request: what it waits for, and the answer, which says REQUEST_TIMED_OUT of that until it has come."""

    __slots__ = ("_broker", "_context", "_pending", "_response")

    def __init__(self, broker: Broker, context: Context, response: DeleteRecordsResponse) -> None:
        self._broker = broker
        self._context = context
        self._response = response
        self._pending: dict[Replica, tuple[PartitionResult, int]] = {}  # the part of the answer, the offset

    def add(self, topic: str, part: PartitionResult) -> None:
        """The log of this leader starts at the part's low watermark now."""
        wanted = part.low_watermark
        try:
            replica = find(self._broker, topic, part.partition_index)
        except KafkaError as error:
            failed(part, error)
            return
        self._pending[replica] = part, wanted
        part.error_code = errors.REQUEST_TIMED_OUT
        part.low_watermark = replica.low_watermark(self._broker.image.brokers)
        self._look_at(replica)

    def answer_or_wait(self, timeout_ms: int) -> DeleteRecordsResponse | Context:
        for replica in list(self._pending):  # nobody was told of what came since it was added
            self._look_at(replica)
        if not self._pending or timeout_ms <= 0:
            return self._response
        self._broker.wait(self._context.connection, self._pending, timeout_ms, self.attempt)
        return self._context

    def attempt(self, expired: bool, moved: Moved) -> bool:
        for replica in moved:
            self._look_at(replica)
        if self._pending and not expired:
            return False
        self._broker.dispatcher.give(self._context, self._response)
        return True

    def _look_at(self, replica: Replica) -> None:
        if replica not in self._pending:
            return
        part, wanted = self._pending[replica]
        try:
            if find(self._broker, replica.topic, replica.index) is not replica:
                raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
            reached = replica.low_watermark(self._broker.image.brokers)
        except KafkaError as error:
            del self._pending[replica]
            failed(part, error)
            return
        if reached >= wanted:
            del self._pending[replica]
            part.error_code, part.low_watermark = errors.NONE, reached


def failed(part: PartitionResult, error: KafkaError) -> None:
    part.error_code, part.low_watermark = error.code, -1
