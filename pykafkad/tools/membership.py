"""Membership of a group by the classic protocol: join, sync, heartbeat, leave.

Owns the member's identity and generation, and the thread that sends heartbeats, so that a reader whose output is slow
stays a member. The assignor is Kafka's `range`; a leader assigns for the whole group. Rebalances are eager: all
partitions are revoked before joining again (KIP-394 member ids, KIP-345 static members).
"""

from __future__ import annotations

import threading
import time

from pykafkad import errors
from pykafkad.hot.wire import WireError
from pykafkad.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from pykafkad.net.client import ClientError, Cluster, check
from pykafkad.net.reaching import Unreachable
from pykafkad.tools import settings
from pykafkad.tools.admin import Partition, grouped
from pykafkad.tools.admin_groups import NOT_READY, read_assignment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

RANGE = "range"
RANGE_CLASS = "org.apache.kafka.clients.consumer.RangeAssignor"
COOPERATIVE_CLASS = "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 1
JOIN_GRACE_S = 5.0
START_AGAIN = frozenset({errors.UNKNOWN_MEMBER_ID, errors.ILLEGAL_GENERATION})


class MemberSettings:
    """The configs of a member, of either protocol."""

    def __init__(self, configs: Mapping[str, str]) -> None:
        self.group_id = configs["group.id"]
        self.instance_id = configs.get("group.instance.id") or None
        self.session_timeout_ms = settings.number(configs, "session.timeout.ms", 45_000)
        self.heartbeat_interval_s = settings.number(configs, "heartbeat.interval.ms", 3_000) / 1000
        self.rebalance_timeout_ms = settings.number(configs, "max.poll.interval.ms", 300_000)
        self.retry_backoff_s = settings.number(configs, "retry.backoff.ms", 100) / 1000
        self.assignor = configs.get("group.remote.assignor") or None
        strategies = configs.get("partition.assignment.strategy", RANGE_CLASS)
        if RANGE_CLASS not in [name.strip() for name in strategies.split(",")]:
            raise ClientError(
                f"partition.assignment.strategy={strategies}: this client assigns by {RANGE_CLASS} only"
            )


class ClassicMembership:
    """`generation` and `member_id` are what a commit carries; `assigned` is None while there is none."""

    def __init__(self, cluster: Cluster, beats: Cluster, member: MemberSettings) -> None:
        self._cluster = cluster
        self._beats = beats  # connections of the heartbeat thread
        self._settings = member
        self.member_id = ""
        self.generation = -1
        self.assigned: list[Partition] | None = None
        self._topics: list[str] = []
        self._counts: dict[str, int] = {}  # the partitions of the group's topics, as the leader saw them last
        self._must_join = True
        self._fatal: Exception | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def instance_id(self) -> str | None:
        return self._settings.instance_id

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to these topics from now on."""
        if sorted(topics) != self._topics:
            self._topics = sorted(topics)
            self._must_join = True

    def poll(self, give_up: Callable[[Sequence[Partition]], object]) -> bool:
        """Join if that is due, after revoking what is assigned; whether there is a new assignment."""
        if self._fatal is not None:
            raise self._fatal
        if not self._must_join or not self._topics:
            return False
        if self.assigned:
            give_up(self.assigned)
        self.assigned = None
        self._join()
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat_for_ever, daemon=True)
            self._thread.start()
        return True

    def check_counts(self, counts: Mapping[str, int]) -> None:
        """If topics that this member, as the leader, has assigned have got new partitions, join again to assign them."""
        if any(counts.get(topic, known) != known for topic, known in self._counts.items()):
            self._must_join = True

    # -- joining

    def _join(self) -> None:
        pause = self._settings.retry_backoff_s
        while True:
            try:
                joined = self._ask_to_join()
                self.assigned = self._sync(joined)
                self._must_join = False
                return
            except errors.KafkaError as problem:
                if problem.code in START_AGAIN:
                    with self._lock:
                        self.generation = -1
                        if problem.code == errors.UNKNOWN_MEMBER_ID:
                            self.member_id = ""
                elif problem.code not in NOT_READY:
                    raise
                elif problem.code == errors.REBALANCE_IN_PROGRESS:
                    continue
            except OSError:
                pass
            time.sleep(pause)

    def _ask_to_join(self) -> Any:
        subscription = ConsumerProtocolSubscription(
            topics=self._topics, owned_partitions=[], generation_id=self.generation
        )
        metadata = SUBSCRIPTION_VERSION.to_bytes(2, "big") + subscription.encode(SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id=self._settings.group_id,
            session_timeout_ms=self._settings.session_timeout_ms,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=RANGE, metadata=metadata)],
        )
        connection = self._coordinator()
        wait_ms = self._settings.rebalance_timeout_ms + int(JOIN_GRACE_S * 1000)
        response = self._cluster.call(connection, request, wait_ms=wait_ms)
        if response.error_code == errors.MEMBER_ID_REQUIRED:
            self.member_id = request.member_id = response.member_id
            response = self._cluster.call(connection, request, wait_ms=wait_ms)
        check(response.error_code)
        with self._lock:
            self.member_id, self.generation = response.member_id, response.generation_id
        return response

    def _coordinator(self) -> Any:
        try:
            return self._cluster.coordinator(self._settings.group_id)
        except errors.KafkaError as problem:
            if problem.code in NOT_READY or problem.code == errors.BROKER_NOT_AVAILABLE:
                raise errors.KafkaError(errors.COORDINATOR_NOT_AVAILABLE) from problem
            raise

    def _sync(self, joined: Any) -> list[Partition]:
        assignments: dict[str, list[Partition]] = {}
        self._counts = {}
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = self._assign(joined.members)
        request = SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            group_instance_id=self._settings.instance_id,
            protocol_type="consumer",
            protocol_name=joined.protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=member_id, assignment=_encode_assignment(partitions)
                )
                for member_id, partitions in assignments.items()
            ],
        )
        response = self._cluster.call(
            self._coordinator(), request, wait_ms=self._settings.rebalance_timeout_ms
        )
        check(response.error_code)
        return read_assignment(response.assignment)

    def _assign(self, members: Sequence[Any]) -> dict[str, list[Partition]]:
        subscriptions = {
            member.member_id: (member.group_instance_id, _read_topics(member.metadata)) for member in members
        }
        topics = sorted({topic for _, names in subscriptions.values() for topic in names})
        rows = self._cluster.metadata(topics).topics if topics else []
        self._counts = {row.name: len(row.partitions) for row in rows}
        return assign_ranges(subscriptions, self._counts)

    # -- heartbeats

    def _beat_for_ever(self) -> None:
        while not self._stop.wait(self._settings.heartbeat_interval_s):
            if self._must_join:
                continue
            try:
                self._beat()
            except (errors.KafkaError, OSError, Unreachable):
                self._beats.forget_coordinators()

    def _beat(self) -> None:
        with self._lock:
            request = HeartbeatRequest(
                group_id=self._settings.group_id,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=self._settings.instance_id,
            )
        code = self._beats.call(self._beats.coordinator(self._settings.group_id), request).error_code
        if not code:
            return
        with self._lock:
            if request.generation_id != self.generation:
                return  # it was about an earlier generation
            if code == errors.UNKNOWN_MEMBER_ID:
                self.member_id = ""
            if code in (errors.FENCED_INSTANCE_ID, errors.GROUP_AUTHORIZATION_FAILED):
                self._fatal = errors.KafkaError(code)
            elif code in START_AGAIN or code == errors.REBALANCE_IN_PROGRESS:
                self._must_join = True
            else:
                raise errors.KafkaError(code)

    # -- leaving

    def leave(self) -> None:
        """Dynamic members leave the group. Static members do not: they keep their assignment until their session times
        out."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(self._settings.heartbeat_interval_s + 1)
        if not self.member_id or self._settings.instance_id is not None:
            return
        request = LeaveGroupRequest(group_id=self._settings.group_id)
        member = LeaveGroupRequest.MemberIdentity(
            member_id=self.member_id, reason="the consumer is being closed"
        )
        try:
            connection = self._cluster.coordinator(self._settings.group_id)
            version = connection.version_for(request)
            if version >= 5:
                request.members = [member]
            elif version >= 3:
                member.reason = None
                request.members = [member]
            else:
                request.member_id = self.member_id
            self._cluster.call(connection, request)
        except (errors.KafkaError, OSError, Unreachable):
            pass  # the session times out instead


def _read_topics(metadata: bytes) -> list[str]:
    if len(metadata) < 2:
        return []
    version = min(int.from_bytes(metadata[:2], "big"), ConsumerProtocolSubscription.max_version)
    try:
        found, _ = ConsumerProtocolSubscription.decode_prefix(metadata, version, 2)
    except WireError:
        return []
    return found.topics


def _encode_assignment(partitions: Sequence[Partition]) -> bytes:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in grouped(partitions).items()
        ],
        user_data=None,
    )
    return ASSIGNMENT_VERSION.to_bytes(2, "big") + assignment.encode(ASSIGNMENT_VERSION)


def assign_ranges(
    subscriptions: Mapping[str, tuple[str | None, Sequence[str]]], counts: Mapping[str, int]
) -> dict[str, list[Partition]]:
    """Kafka's range assignor: of each topic, members in order get neighbouring partitions."""
    found: dict[str, list[Partition]] = {member_id: [] for member_id in subscriptions}
    order = sorted(
        subscriptions,
        key=lambda member_id: (subscriptions[member_id][0] is None, subscriptions[member_id][0] or member_id),
    )
    for topic in sorted(counts):
        takers = [member_id for member_id in order if topic in subscriptions[member_id][1]]
        if not takers:
            continue
        each, more = divmod(counts[topic], len(takers))
        start = 0
        for at, member_id in enumerate(takers):
            count = each + (at < more)
            found[member_id] += [(topic, index) for index in range(start, start + count)]
            start += count
    return found
