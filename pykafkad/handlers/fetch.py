"""Fetch (key 1), versions 4 to 18: sessions (KIP-227), leader epochs and divergence (KIP-320, 595), topic ids (KIP-516).

Records are not read here: an answer names file ranges, which the loop sends from the page cache. A fetch that
finds less than min_bytes waits for its partitions to advance, without polling, and is then read anew.
Missing: fetches of followers (they come with the cluster) and of remote replicas; the rack id is accepted, and
the leader is always the nearest replica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import NO_TOPIC_ID, find
from pykafkad.messages import FetchResponse
from pykafkad.pure import fetch_session
from pykafkad.pure.fetch_session import Decision, Followed

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker
    from pykafkad.storage.partition import Partition


FIRST_VERSION_WITH_ERROR = 7
FIRST_VERSION_WITH_TOPIC_IDS = 13
FIRST_VERSION_WITH_LEADER = 16
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)
# Errors of what does not exist: told last, and no reason not to wait for what does.
ABSENT = (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.UNKNOWN_TOPIC_ID)

SESSION_ERRORS = {
    fetch_session.NOT_FOUND: errors.FETCH_SESSION_ID_NOT_FOUND,
    fetch_session.WRONG_EPOCH: errors.INVALID_FETCH_SESSION_EPOCH,
    fetch_session.TOPIC_ID_MISMATCH: errors.FETCH_SESSION_TOPIC_ID_ERROR,
}

TopicResponse = FetchResponse.FetchableTopicResponse
PartitionData = FetchResponse.PartitionData
EpochEndOffset = FetchResponse.EpochEndOffset
LeaderIdAndEpoch = FetchResponse.LeaderIdAndEpoch
AbortedTransaction = FetchResponse.AbortedTransaction


def handle(broker: Broker, request: Any, context: Context) -> Any:
    uses_topic_ids = context.version >= FIRST_VERSION_WITH_TOPIC_IDS
    if request.isolation_level not in ISOLATION_LEVELS or (uses_topic_ids and names_no_topic(request)):
        return failed_as_a_whole(request, context.version)
    decision = broker.fetch_sessions.decide(
        request.session_id,
        request.session_epoch,
        followed_of(request, uses_topic_ids),
        forgotten_of(request, uses_topic_ids),
        uses_topic_ids=uses_topic_ids,
        now_ms=broker.clock.monotonic_ms(),
    )
    if decision.kind in SESSION_ERRORS:
        return FetchResponse(error_code=SESSION_ERRORS[decision.kind])
    fetch = Fetch(broker, request, context, decision)
    fetch.read()
    if request.max_wait_ms <= 0 or fetch.is_enough():
        return fetch.response()
    context.defer()
    broker.wait(context.connection, fetch.partitions, request.max_wait_ms, fetch.attempt)
    return context


def names_no_topic(request: Any) -> bool:
    return any(topic.topic_id == NO_TOPIC_ID for topic in request.topics)


def failed_as_a_whole(request: Any, version: int) -> Any:
    """What Kafka makes of a request that it cannot make sense of."""
    code = errors.UNKNOWN_SERVER_ERROR
    if version >= FIRST_VERSION_WITH_TOPIC_IDS:
        return FetchResponse(error_code=code)
    response = FetchResponse(error_code=code if version >= FIRST_VERSION_WITH_ERROR else errors.NONE)
    response.responses = [
        TopicResponse(
            topic=topic.topic, partitions=[failure(item.partition, code) for item in topic.partitions]
        )
        for topic in request.topics
    ]
    return response


def followed_of(request: Any, uses_topic_ids: bool) -> list[Followed]:
    """What is asked for; of a partition that is named twice the last counts."""
    followed = {}
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for item in topic.partitions:
            followed[name, item.partition] = Followed(
                name,
                item.partition,
                item.fetch_offset,
                item.partition_max_bytes,
                max(item.current_leader_epoch, -1),
                item.last_fetched_epoch,
            )
    return list(followed.values())


def forgotten_of(request: Any, uses_topic_ids: bool) -> list[fetch_session.Key]:
    return [
        (topic.topic_id if uses_topic_ids else topic.topic, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]


class Fetch:
    """One fetch request: what it asks for, and what the last reading gave."""

    __slots__ = (
        "answers",
        "broker",
        "context",
        "decision",
        "followed",
        "is_follower",
        "partitions",
        "request",
        "size",
        "urgent",
    )

    def __init__(self, broker: Broker, request: Any, context: Context, decision: Decision) -> None:
        self.broker = broker
        self.request = request
        self.context = context
        self.decision = decision
        self.followed = decision.followed
        replica_id = request.replica_state.replica_id if context.version >= 15 else request.replica_id
        self.is_follower = replica_id >= 0

    def read(self) -> None:
        """Read every partition in turn until the byte limit of the whole answer is used up."""
        left = min(self.request.max_bytes, self.broker.config.fetch_max_bytes)
        self.answers: list[tuple[Followed, Any, int]] = []
        self.partitions: list[Partition] = []
        self.size = 0
        self.urgent = False  # something must be told now: an error, or a divergence
        absent = []
        for followed in self.followed:
            try:
                partition = self.find(followed)
                self.partitions.append(partition)
                answer, size = self.read_partition(partition, followed, left)
            except KafkaError as error:
                answer, size = self.failure(followed.index, error.code), 0
                if error.code in ABSENT:
                    absent.append((followed, answer, size))
                    continue
                self.urgent = True
            self.size += size
            left = max(0, left - size)
            self.answers.append((followed, answer, size))
        if not self.answers:
            self.urgent = True
        self.answers += absent

    def failure(self, index: int, code: int) -> Any:
        answer = failure(index, code)
        if code not in ABSENT:
            answer.aborted_transactions = None
        if code == errors.NOT_LEADER_OR_FOLLOWER and self.context.version >= FIRST_VERSION_WITH_LEADER:
            answer.current_leader = LeaderIdAndEpoch(leader_id=self.broker.node_id, leader_epoch=0)
        return answer

    def find(self, followed: Followed) -> Partition:
        topic = followed.topic
        if isinstance(topic, bytes):
            known = self.broker.image.topics_by_id.get(topic)
            if known is None:
                raise KafkaError(errors.UNKNOWN_TOPIC_ID)
            topic = known.name
        if self.is_follower:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        assert isinstance(topic, str)
        return find(self.broker, topic, followed.index, followed.current_leader_epoch)

    def read_partition(self, partition: Partition, followed: Followed, left: int) -> tuple[Any, int]:
        committed_only = self.request.isolation_level == READ_COMMITTED
        offset = followed.fetch_offset
        if followed.max_bytes < 0:
            raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
        answer = PartitionData(
            partition_index=followed.index,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log_start_offset,
            aborted_transactions=[] if committed_only else None,
            records=b"",
        )
        if followed.last_fetched_epoch >= 0:
            diverging = self.diverging_epoch(partition, followed)
            if diverging is not None:
                answer.diverging_epoch = diverging
                self.urgent = True
                return answer, 0
        limit_offset = partition.last_stable_offset if committed_only else partition.high_watermark
        data = partition.read(
            offset,
            min(followed.max_bytes, left),
            limit_offset=limit_offset,
            at_least_one=self.size == 0,
        )
        if data is None or not data.size:
            return answer, 0
        answer.records = data
        if committed_only:
            answer.aborted_transactions = [
                AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                for producer_id, first_offset in partition.aborted_transactions(offset, data)
            ]
        return answer, data.size

    def diverging_epoch(self, partition: Partition, followed: Followed) -> Any:
        """Where the client's history parts from ours, if it does (KIP-595)."""
        epoch, end_offset = partition.end_offset_for_epoch(followed.last_fetched_epoch)
        if epoch < 0 or end_offset < 0 or followed.fetch_offset < partition.log_start_offset:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        if epoch < followed.last_fetched_epoch or end_offset < followed.fetch_offset:
            return EpochEndOffset(epoch=epoch, end_offset=end_offset)
        return None

    def is_enough(self) -> bool:
        return self.urgent or self.size >= self.request.min_bytes

    def attempt(self, expired: bool) -> bool:
        """A partition advanced, or is gone, or the time is up."""
        found = len(self.partitions)
        self.read()
        if not expired and not self.is_enough() and len(self.partitions) == found:
            return False
        self.context.answer(self.response())
        return True

    def response(self) -> Any:
        decision = self.decision
        session = decision.session
        answers = self.answers
        if decision.kind == fetch_session.FULL:
            session = self.broker.fetch_sessions.create(
                self.followed,
                privileged=self.is_follower,
                uses_topic_ids=self.context.version >= FIRST_VERSION_WITH_TOPIC_IDS,
                now_ms=self.broker.clock.monotonic_ms(),
            )
        elif session is not None:
            answers = [each for each in answers if is_news(*each)]
        if session is not None:
            for followed, answer, size in answers:
                followed.told(answer.error_code, answer.high_watermark, answer.log_start_offset)
                if size and decision.kind == fetch_session.INCREMENTAL:
                    session.served(followed)
        response = FetchResponse(session_id=session.id if session is not None else 0)
        response.responses = by_topic(answers, self.context.version >= FIRST_VERSION_WITH_TOPIC_IDS)
        return response


def is_news(followed: Followed, answer: Any, size: int) -> bool:
    return answer.diverging_epoch.epoch >= 0 or followed.is_news(
        answer.error_code, size, answer.high_watermark, answer.log_start_offset
    )


def failure(index: int, error_code: int) -> Any:
    return PartitionData(
        partition_index=index,
        error_code=error_code,
        high_watermark=-1,
        aborted_transactions=[],
        records=b"",
    )


def by_topic(answers: list[tuple[Followed, Any, int]], uses_topic_ids: bool) -> list[Any]:
    """Neighbours of one topic share its entry; the order of partitions stays as it is."""
    topics: list[Any] = []
    last: object = None
    for followed, answer, _size in answers:
        if not topics or followed.topic != last:
            last = followed.topic
            topics.append(TopicResponse())
            setattr(topics[-1], "topic_id" if uses_topic_ids else "topic", last)
        topics[-1].partitions.append(answer)
    return topics
