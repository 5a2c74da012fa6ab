"""Fetch in a cluster: by followers, by consumers that read from a follower, and where the leader is elsewhere.

A follower reads up to the end of what is written, and says with the offset that it asks for what it has; a leader's next
append ends its wait. A consumer reads up to the high watermark, of the leader or (KIP-392, since version 11) of a
follower; a leader may name it a replica in its rack instead of records. Whoever asks the wrong broker or in another epoch
is told of the leader (KIP-951), and a wait ends when the epoch does.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.replica import Tail
from pykafkad.errors import KafkaError
from pykafkad.handlers.fetching import (
    ABSENT,
    FEW,
    LEADER_SINCE,
    READ_COMMITTED,
    EpochEndOffset,
    Fetch,
    LeaderIdAndEpoch,
    PartitionData,
    failure,
)
from pykafkad.handlers.partitions import missing, other_epoch
from pykafkad.messages import FetchResponse
from pykafkad.pure.replica_selection import Candidate, by_rack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.image import Endpoint
    from pykafkad.cluster.replica import Replica
    from pykafkad.handlers.fetching import Answer
    from pykafkad.messages import FetchRequest
    from pykafkad.pure.fetch_session import Followed, Session
    from pykafkad.waiting import Moved

BATCHES_SINCE = 4
READS_FOLLOWERS_SINCE = 11
DEBUGGING = -2  # a replica id of tools, which compare replicas
NO_LEADER = -1
NOBODY: frozenset[int] = frozenset()
LED_ELSEWHERE = (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH)

NodeEndpoint = FetchResponse.NodeEndpoint


def kind_of(request: FetchRequest, version: int) -> type[Fetch]:
    kind = ReplicaFetch if replica_of(request) >= 0 else ClusterFetch
    if version >= BATCHES_SINCE:
        return kind
    from pykafkad.handlers.old_fetches import converting

    return converting(kind)


def replica_of(request: FetchRequest) -> int:
    """Up to version 14 it is in one place, then in another."""
    return max(request.replica_id, request.replica_state.replica_id)


class ClusterFetch(Fetch):
    """By a consumer."""

    __slots__ = ("leaders",)

    # -- whose it is

    def find(self, followed: Followed) -> Replica:
        topic = self.name_of(followed)
        if not topic and isinstance(followed.topic, bytes):
            raise KafkaError(errors.UNKNOWN_TOPIC_ID)
        partition = self.broker.replicas.get((topic, followed.index))
        if partition is None:
            raise KafkaError(missing(self.broker, topic, followed.index))
        if isinstance(followed.topic, bytes) and partition.log.topic_id != followed.topic:
            raise KafkaError(errors.INCONSISTENT_TOPIC_ID)
        if followed.current_leader_epoch not in (-1, partition.leader_epoch):
            raise other_epoch(partition, followed.current_leader_epoch)
        if partition.leadership is None and not self.may_follow(partition):
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        return partition

    def name_of(self, followed: Followed) -> str:
        """Empty where nobody has such an id, or not any more."""
        topic = followed.topic
        if isinstance(topic, bytes):
            known = self.broker.image.topics_by_id.get(topic)
            return known.name if known is not None else ""
        assert isinstance(topic, str)
        return topic

    def may_follow(self, partition: Replica) -> bool:
        """Whether a follower is good enough, if this one follows."""
        asks_any = self.context.version >= READS_FOLLOWERS_SINCE or self.request.replica_id == DEBUGGING
        return asks_any and partition.leader_id != NO_LEADER

    # -- reading

    def begin_reading(self) -> None:
        super().begin_reading()
        self.leaders: frozenset[int] = NOBODY

    def read_partition(self, partition: Replica, followed: Followed, left: int) -> tuple[PartitionData, int]:
        preferred = self.preferred(partition, followed.fetch_offset)
        if preferred is None:
            return super().read_partition(partition, followed, left)
        self.urgent = True
        answer = self.seen(partition, followed)
        answer.preferred_read_replica = preferred
        return answer, 0

    def seen(self, partition: Replica, followed: Followed) -> PartitionData:
        """What is known of the partition, without records."""
        committed_only = self.request.isolation_level == READ_COMMITTED
        return PartitionData(
            partition_index=followed.index,
            high_watermark=partition.high_watermark,
            last_stable_offset=partition.last_stable_offset,
            log_start_offset=partition.log_start_offset,
            aborted_transactions=[] if committed_only else None,
            records=b"",
        )

    def preferred(self, partition: Replica, offset: int) -> int | None:
        """Another replica that the consumer should ask, by the selector; None: this one will do."""
        cluster, leadership = self.broker.cluster, partition.leadership
        rack = self.request.rack_id
        if cluster is None or leadership is None or not rack or not cluster.replication.selects_by_rack:
            return None
        here = self.broker.node_id
        leader = Candidate(
            self.rack_of(here), partition.log_end_offset, partition.surroundings.now_ms(), here
        )
        followers = [
            Candidate(self.rack_of(node_id), each.end_offset, each.caught_up_ms, node_id)
            for node_id, each in leadership.followers.items()
            if each.start_offset <= offset <= each.end_offset and node_id in self.broker.image.brokers
        ]
        found = by_rack(rack, leader, followers)
        return None if found == here else found

    def rack_of(self, node_id: int) -> str | None:
        broker = self.broker.image.brokers.get(node_id)
        return broker.rack if broker is not None else None

    # -- who leads instead

    def failure(self, followed: Followed, code: int) -> PartitionData:
        answer = failure(followed.index, code)
        if code not in ABSENT:
            answer.aborted_transactions = None
        if code in LED_ELSEWHERE and self.context.version >= LEADER_SINCE:
            leader_id, leader_epoch = self.leader_of(followed)
            answer.current_leader = LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
            if leader_id != NO_LEADER:
                self.leaders |= {leader_id}
        return answer

    def leader_of(self, followed: Followed) -> tuple[int, int]:
        topic = self.name_of(followed)
        here = self.broker.replicas.get((topic, followed.index))
        if here is not None and here.leader_epoch >= 0:
            return here.leader_id, here.leader_epoch
        known = self.broker.image.topics.get(topic)
        if known is None or followed.index >= len(known.partitions):
            return NO_LEADER, -1
        told = known.partitions[followed.index]
        return told.leader, told.leader_epoch

    def begin_response(self) -> tuple[FetchResponse, Session | None]:
        response, session = super().begin_response()
        if self.leaders:
            response.node_endpoints = [
                NodeEndpoint(node_id=node_id, host=point.host, port=point.port, rack=self.rack_of(node_id))
                for node_id in sorted(self.leaders)
                if (point := self.endpoint_of(node_id)) is not None
            ]
        return response, session

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """On the listener that the request came in by."""
        broker = self.broker.image.brokers.get(node_id)
        return broker.endpoints.get(self.context.listener_name) if broker is not None else None


class ReplicaFetch(ClusterFetch):
    """By a follower. Its waits are at the ends of logs, which move with each append, and at its session: partitions that
    rest there are not read until something stirs them, so that a fetch costs what has changed."""

    __slots__ = ("is_noted", "replica")
    is_follower = True

    def find(self, followed: Followed) -> Replica:
        partition = super().find(followed)
        leadership = partition.leadership
        if leadership is not None and self.replica not in leadership.followers:
            expects = followed.current_leader_epoch >= 0
            raise KafkaError(errors.UNKNOWN_LEADER_EPOCH if expects else errors.NOT_LEADER_OR_FOLLOWER)
        return partition

    def may_follow(self, partition: Replica) -> bool:
        return False

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.replica = replica_of(self.request)
        self.is_noted = False  # what the follower has, for which the first reading is enough

    def end_reading(self) -> None:
        super().end_reading()
        self.is_noted = True
        self.partitions: list[Any] = [tail_of(partition) for partition in self.partitions]
        if self.decision.session is not None:
            self.partitions.append(self.decision.session)

    def read_partition(self, partition: Replica, followed: Followed, left: int) -> tuple[PartitionData, int]:
        answer = self.seen(partition, followed)
        offset = followed.fetch_offset
        if followed.last_fetched_epoch >= 0:
            diverging = partition.divergence(followed.last_fetched_epoch, offset)
            if diverging is not None:
                answer.diverging_epoch = EpochEndOffset(epoch=diverging[0], end_offset=diverging[1])
                self.urgent = True
                return answer, 0
        if -1 < followed.log_start_offset < answer.log_start_offset:
            self.urgent = True  # records were deleted, and whoever asked for that waits for the followers
        data, end = None, partition.written_offset
        if offset != end:  # else it has everything, as nearly always when it asks
            data = partition.read(
                offset, min(followed.max_bytes, left), limit_offset=end, at_least_one=self.at_least_one
            )
        if not self.is_noted:
            epoch = self.request.replica_state.replica_epoch
            partition.follower_fetched(self.replica, offset, followed.start_offset, epoch)
        if data is None or not data.size or self.is_held(partition):
            return answer, 0
        answer.records = data
        return answer, data.size

    def is_held(self, partition: Replica) -> bool:
        """Whether the quota for replication leaves nothing for it."""
        cluster, leadership = self.broker.cluster, partition.leadership
        assert cluster is not None and leadership is not None
        quota = cluster.replication.leader_quota
        return (
            self.replica not in leadership.isr
            and quota.is_exceeded
            and quota.covers(partition.topic, partition.index)
        )

    # -- waiting

    def attempt(self, expired: bool, moved: Moved) -> bool:
        session = self.decision.session
        if session is not None:
            self.followed = list(session.partitions.values())
            if len(self.followed) > FEW:
                return self.answer_in_slices()
        return super().attempt(expired, moved)

    def attempt_of_many(self, expired: bool, moved: Moved) -> bool:
        session = self.decision.session
        if session is not None and session in moved:
            self.followed = list(session.partitions.values())
            return self.answer_in_slices()
        return super().attempt_of_many(expired, moved)

    def answer_in_slices(self) -> bool:
        self.broker.dispatcher.give(self.context, self.read_or_wait(0))
        return True

    def has_moved(self, partition: Replica | Tail, followed: Followed, answer: PartitionData) -> bool:
        try:
            found = self.find(followed)
        except KafkaError:
            return True
        return tail_of(found) is not partition or (
            not answer.records and found.written_offset > followed.fetch_offset
        )

    def read_again(self, partition: Any) -> None:
        place = self.places[partition]
        followed, _answer, size = self.answers[place]
        self.size -= size
        try:
            found = self.find(followed)
            answer, size = self.read_partition(found, followed, max(0, self.limit - self.size))
        except KafkaError:
            self.urgent = True
        else:
            self.size += size
            self.answers[place] = followed, answer, size

    def tell(self, response: FetchResponse, session: Session | None, answers: list[Answer]) -> None:
        cluster = self.broker.cluster
        assert cluster is not None
        quota = cluster.replication.leader_quota
        if quota.limit is not None:
            for followed, _answer, size in answers:
                if size:
                    quota.record(self.name_of(followed), followed.index, size)
        super().tell(response, session, answers)
        if session is not None:
            for followed, answer, size in answers:
                if not (size or answer.error_code or answer.diverging_epoch.epoch >= 0):
                    self.let_rest(session, followed)

    def let_rest(self, session: Session, followed: Followed) -> None:
        partition = self.broker.replicas.get((self.name_of(followed), followed.index))
        if partition is not None:
            partition.let_rest(self.replica, session, followed)


def tail_of(partition: Replica) -> Tail:
    if partition.tail is None:
        partition.tail = Tail(partition.name)
    return partition.tail
