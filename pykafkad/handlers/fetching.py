"""One fetch request in progress: reading its partitions, waiting for more, answering (see fetch.py).

Invariant: while the request waits, `answers` are in the order of `partitions`; partitions that do not exist come last.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import find
from pykafkad.messages import FetchResponse
from pykafkad.pure import fetch_session
from pykafkad.pure.fetch_session import Decision, Followed, Key, Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.cluster.replica import Replica
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import FetchRequest
    from pykafkad.waiting import Moved

    Answer = tuple[Followed, FetchResponse.PartitionData, int]
    Reading = Generator[None, None, FetchResponse | Context]


FEW = 64  # partitions that are read, or elements that are looked at, without a pause
READ_AT_ONCE = 8  # partitions of a large request that are read between two looks at the clock

TOPIC_IDS_SINCE = 13
LEADER_SINCE = 16
READ_COMMITTED = 1
# Errors of partitions that do not exist, or that the client may not know of. They come last in the answer, and do not
# keep a fetch from waiting for the others.
ABSENT = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.TOPIC_AUTHORIZATION_FAILED,
)

TopicResponse = FetchResponse.FetchableTopicResponse
PartitionData = FetchResponse.PartitionData
EpochEndOffset = FetchResponse.EpochEndOffset
LeaderIdAndEpoch = FetchResponse.LeaderIdAndEpoch
AbortedTransaction = FetchResponse.AbortedTransaction


class Fetch:
    """One fetch request of a client of a single node: its partitions, and what was read of them last.

    A small request is read at once, and again whenever a partition has advanced. A large one (`in_slices`) is read and
    answered in slices; while it waits only the partitions that advanced are read again, to see whether that is enough.
    """

    __slots__ = (
        "absent",
        "answers",
        "asked",
        "broker",
        "context",
        "decision",
        "end_ms",
        "followed",
        "limit",
        "partitions",
        "places",
        "request",
        "size",
        "urgent",
    )

    is_follower = False

    def __init__(
        self,
        broker: Broker,
        request: FetchRequest,
        context: Context,
        decision: Decision,
        asked: dict[Key, Followed],
        followed: list[Followed],
    ) -> None:
        self.broker = broker
        self.request = request
        self.context = context
        self.decision = decision
        self.asked = asked
        self.followed = followed
        self.limit = min(request.max_bytes, broker.config.fetch_max_bytes)

    # -- small requests

    def at_once(self) -> FetchResponse | Context:
        self.read()
        request = self.request
        if request.max_wait_ms <= 0 or self.is_enough():
            return self.response()
        self.context.defer()
        self.broker.wait(
            self.context.connection,
            self.partitions,
            request.max_wait_ms,
            self.attempt,
            is_follower=self.is_follower,
        )
        return self.context

    def attempt(self, expired: bool, moved: Moved) -> bool:
        """Called when a partition advanced or was deleted, or when the time is up; whether the request was answered."""
        found = len(self.partitions)
        self.read()
        if not expired and not self.is_enough() and len(self.partitions) == found:
            return False
        self.context.answer(self.response())
        return True

    def read(self) -> None:
        self.begin_reading()
        self.read_some(self.followed)
        self.end_reading()

    def response(self) -> FetchResponse:
        response, session = self.begin_response()
        self.tell(response, session, self.answers)
        return response

    # -- large requests

    def in_slices(self) -> Reading:
        self.end_ms = self.broker.clock.monotonic_ms() + self.request.max_wait_ms
        return (yield from self.read_or_wait(self.request.max_wait_ms))

    def read_or_wait(self, left_ms: int, found: int | None = None) -> Reading:
        """Read all partitions, and answer or wait. `found` is how many partitions existed when they were read before:
        if that has changed, the answer is sent at once."""
        self.begin_reading()
        for start in range(0, len(self.followed), READ_AT_ONCE):
            self.read_some(self.followed[start : start + READ_AT_ONCE])
            yield
        self.end_reading()
        if left_ms > 0 and not self.is_enough() and found in (None, len(self.partitions)):
            self.wait_for_more(left_ms)
            return self.context
        response, session = self.begin_response()
        for start in range(0, len(self.answers), READ_AT_ONCE):
            self.tell(response, session, self.answers[start : start + READ_AT_ONCE])
            yield
        return response

    def wait_for_more(self, left_ms: int) -> None:
        """There is not enough yet, and there is time left. Partitions that advanced between being read and now have to
        be looked at again, since nobody was notified of it."""
        self.places = {partition: place for place, partition in enumerate(self.partitions)}
        unheard = [
            partition
            for partition, place in self.places.items()
            if self.has_moved(partition, *self.answers[place][:2])
        ]
        self.context.defer()
        self.broker.wait(
            self.context.connection,
            self.partitions,
            left_ms,
            self.attempt_of_many,
            unheard,
            is_follower=self.is_follower,
        )

    def has_moved(self, partition: Replica, followed: Followed, answer: PartitionData) -> bool:
        return (
            answer.high_watermark != partition.high_watermark
            or answer.last_stable_offset != partition.last_stable_offset
            or self.broker.replicas.get((partition.topic, followed.index)) is not partition
        )

    def attempt_of_many(self, expired: bool, moved: Moved) -> bool:
        if not expired and len(moved) <= FEW:
            for partition in moved:
                self.read_again(partition)
            if not self.is_enough():
                return False
        left_ms = 0 if expired else max(1, self.end_ms - self.broker.clock.monotonic_ms())
        self.broker.dispatcher.give(self.context, self.read_or_wait(left_ms, len(self.partitions)))
        return True

    def read_again(self, partition: Replica) -> None:
        place = self.places[partition]
        followed, _answer, size = self.answers[place]
        self.size -= size
        try:
            if self.find(followed) is not partition:
                raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
            answer, size = self.read_partition(partition, followed, max(0, self.limit - self.size))
        except KafkaError:
            self.urgent = True
        else:
            self.size += size
            self.answers[place] = followed, answer, size

    # -- reading

    def begin_reading(self) -> None:
        self.answers: list[Answer] = []
        self.absent: list[Answer] = []
        self.partitions: list[Replica] = []
        self.size = 0
        self.urgent = False  # an error or a divergence must be answered at once

    def read_some(self, some: list[Followed]) -> None:
        """Read the partitions in turn, until the byte limit of the whole answer is used up."""
        for followed in some:
            try:
                partition = self.find(followed)
                self.partitions.append(partition)
                answer, size = self.read_partition(partition, followed, max(0, self.limit - self.size))
            except KafkaError as error:
                answer, size = self.failure(followed, error.code), 0
                if error.code in ABSENT:
                    self.absent.append((followed, answer, size))
                    continue
                self.urgent = True
            self.size += size
            self.answers.append((followed, answer, size))

    def end_reading(self) -> None:
        if not self.answers and not self.has_resting:
            self.urgent = True
        if len(self.absent) > 1:
            self.absent.sort(key=is_known)
        self.answers += self.absent

    @property
    def has_resting(self) -> bool:
        """Whether the session has partitions that need not be read."""
        session = self.decision.session
        return session is not None and bool(session.resting)

    def failure(self, followed: Followed, code: int) -> PartitionData:
        answer = failure(followed.index, code)
        if code not in ABSENT:
            answer.aborted_transactions = None
        if code == errors.NOT_LEADER_OR_FOLLOWER and self.context.version >= LEADER_SINCE:
            answer.current_leader = LeaderIdAndEpoch(leader_id=self.broker.node_id, leader_epoch=0)
        return answer

    def find(self, followed: Followed) -> Replica:
        topic = followed.topic
        if isinstance(topic, bytes):
            known = self.broker.image.topics_by_id.get(topic)
            if known is None:
                raise KafkaError(errors.UNKNOWN_TOPIC_ID)
            topic = known.name
        assert isinstance(topic, str)
        return find(self.broker, topic, followed.index, followed.current_leader_epoch)

    def read_partition(self, partition: Replica, followed: Followed, left: int) -> tuple[PartitionData, int]:
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
            diverging = partition.divergence(followed.last_fetched_epoch, followed.fetch_offset)
            if diverging is not None:
                answer.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
                self.urgent = True
                return answer, 0
        limit_offset = partition.last_stable_offset if committed_only else partition.high_watermark
        data = partition.read(
            offset,
            min(followed.max_bytes, left),
            limit_offset=limit_offset,
            at_least_one=self.at_least_one,
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

    @property
    def at_least_one(self) -> bool:
        """Whether the next batch comes however large it is."""
        return self.size == 0

    def is_enough(self) -> bool:
        return self.urgent or self.size >= min(self.request.min_bytes, self.limit)

    # -- answering

    def begin_response(self) -> tuple[FetchResponse, Session | None]:
        session = self.decision.session
        if self.decision.kind == fetch_session.FULL:
            session = self.broker.fetch_sessions.create(
                self.asked,
                privileged=self.is_follower,
                uses_topic_ids=self.context.version >= TOPIC_IDS_SINCE,
                now_ms=self.broker.clock.monotonic_ms(),
            )
            if session is not None:
                host, port = self.context.connection.peer
                committed_only = self.request.isolation_level == READ_COMMITTED
                session.client = self.context.client_id, f"{host}:{port}", committed_only
        return FetchResponse(session_id=session.id if session is not None else 0), session

    def tell(self, response: FetchResponse, session: Session | None, answers: list[Answer]) -> None:
        """Add answers to the response; in an incremental session only those with something new. Neighbours of one topic
        share its entry, and the order of the partitions stays as it is."""
        if self.decision.session is not None:
            answers = [each for each in answers if is_news(*each)]
        if session is not None:
            for followed, answer, size in answers:
                followed.told(answer.error_code, answer.high_watermark, answer.log_start_offset)
                if size and self.decision.kind == fetch_session.INCREMENTAL:
                    session.served(followed)
        field = "topic_id" if self.context.version >= TOPIC_IDS_SINCE else "topic"
        topics = response.responses
        last = getattr(topics[-1], field) if topics else None
        for followed, answer, _size in answers:
            if not topics or followed.topic != last:
                last = followed.topic
                topics.append(TopicResponse())
                setattr(topics[-1], field, last)
            topics[-1].partitions.append(answer)


class FollowersFetch(Fetch):
    """That of somebody who says to be a broker: a single node has no followers."""

    __slots__ = ()
    is_follower = True

    def find(self, followed: Followed) -> Replica:
        super().find(followed)  # it is there
        raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)


def is_known(answer: Answer) -> bool:
    """Whether there is a name for the topic's id: those without one come first."""
    return answer[1].error_code != errors.UNKNOWN_TOPIC_ID


def is_news(followed: Followed, answer: PartitionData, size: int) -> bool:
    return answer.diverging_epoch.epoch >= 0 or followed.is_news(
        answer.error_code, size, answer.high_watermark, answer.log_start_offset
    )


def failure(index: int, error_code: int) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error_code,
        high_watermark=-1,
        aborted_transactions=[],
        records=b"",
    )
