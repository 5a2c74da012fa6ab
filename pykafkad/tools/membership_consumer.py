"""Membership of a group by the consumer protocol (KIP-848), which needs heartbeats alone.

Owns the member id (generated here), the epoch, and the thread that sends heartbeats. The broker assigns: the assignment
in the answer to a heartbeat is taken over at the next poll, which first revokes what is no longer assigned; the next
heartbeat reports the partitions that are owned. A fenced member joins again without partitions.
"""

from __future__ import annotations

import threading

from pykafkad import errors, uuids
from pykafkad.messages import ConsumerGroupHeartbeatRequest
from pykafkad.net.client import Cluster
from pykafkad.net.reaching import Unreachable
from pykafkad.tools.admin import Partition, list_topics
from pykafkad.tools.membership import MemberSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
FENCED = frozenset({errors.FENCED_MEMBER_EPOCH, errors.UNKNOWN_MEMBER_ID})
FIRST_INTERVAL_S = 0.1  # until the broker has sent its interval

Assignment = dict[bytes, list[int]]  # topic id -> partitions


class ConsumerMembership:
    """The same interface as ClassicMembership; `generation` is the member epoch."""

    def __init__(self, cluster: Cluster, beats: Cluster, member: MemberSettings) -> None:
        self._cluster = cluster
        self._beats = beats
        self._settings = member
        self.member_id = uuids.to_text(uuids.random_uuid())
        self.generation = JOIN_EPOCH
        self.assigned: list[Partition] | None = None
        self._topics: list[str] = []
        self._sent_topics: list[str] | None = None
        self._target: Assignment | None = None  # the assignment that the broker has sent last
        self._owned: Assignment = {}
        self._sent_owned: Assignment | None = None
        self._names: dict[bytes, str] = {}
        self._was_fenced = False
        self._fatal: Exception | None = None
        self._interval_s = FIRST_INTERVAL_S
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopped = False
        self._thread: threading.Thread | None = None

    @property
    def instance_id(self) -> str | None:
        return self._settings.instance_id

    def subscribe(self, topics: Sequence[str]) -> None:
        with self._lock:
            self._topics = sorted(topics)
        self._wake.set()

    def check_counts(self, counts: Mapping[str, int]) -> None:
        """Nothing to do: the broker watches the topics itself."""

    def poll(self, give_up: Callable[[Sequence[Partition]], object]) -> bool:
        """Take over the broker's assignment; whether it is new."""
        if self._fatal is not None:
            raise self._fatal
        if self._thread is None and self._topics:
            self._thread = threading.Thread(target=self._beat_for_ever, daemon=True)
            self._thread.start()
        with self._lock:
            was_fenced, self._was_fenced = self._was_fenced, False
            target = self._target
            owned = self._owned
        if was_fenced:
            self.assigned = None
            self._own({})
            return True
        if target is None or (target == owned and self.assigned is not None):
            return False
        wanted = self._named(target)
        if wanted is None:
            return False
        revoked = [key for key in self.assigned or [] if key not in wanted]
        if revoked:
            give_up(revoked)
        self.assigned = wanted
        self._own(target)
        return True

    def _own(self, assignment: Assignment) -> None:
        with self._lock:
            self._owned = assignment
        self._wake.set()

    def _named(self, assignment: Assignment) -> list[Partition] | None:
        """The assignment by topic names; None while the name of a topic is not known yet."""
        if any(topic_id not in self._names for topic_id in assignment):
            self._names = {topic.id: topic.name for topic in list_topics(self._cluster)}
        if any(topic_id not in self._names for topic_id in assignment):
            return None
        return [
            (self._names[topic_id], index) for topic_id, indexes in assignment.items() for index in indexes
        ]

    # -- heartbeats

    def _beat_for_ever(self) -> None:
        while not self._stopped:
            try:
                self._beat()
            except OSError:
                self._beats.forget_coordinators()
            except (errors.KafkaError, Unreachable) as problem:
                self._beats.forget_coordinators()
                if isinstance(problem, Unreachable) or problem.code not in _PASSING:
                    self._fatal = problem
                    return
            self._wake.wait(self._interval_s)
            self._wake.clear()

    def _request(self) -> Any:
        """All fields when joining, afterwards only those that have changed."""
        is_joining = self.generation == JOIN_EPOCH
        changed_topics = is_joining or self._topics != self._sent_topics
        changed_owned = is_joining or self._owned != self._sent_owned
        return ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=self.generation,
            instance_id=self._settings.instance_id,
            rebalance_timeout_ms=self._settings.rebalance_timeout_ms if is_joining else -1,
            subscribed_topic_names=list(self._topics) if changed_topics else None,
            server_assignor=self._settings.assignor if is_joining else None,
            topic_partitions=[
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=list(indexes))
                for topic_id, indexes in self._owned.items()
            ]
            if changed_owned
            else None,
        )

    def _beat(self) -> None:
        with self._lock:
            topics, owned = list(self._topics), dict(self._owned)
            request = self._request()
        response = self._beats.call(self._beats.coordinator(self._settings.group_id), request)
        with self._lock:
            if response.error_code in FENCED:
                self.generation = JOIN_EPOCH
                self._owned, self._target = {}, None
                self._was_fenced = True
                self._wake.set()
                return
            if response.error_code:
                raise errors.KafkaError(response.error_code, response.error_message)
            self._sent_topics, self._sent_owned = topics, owned
            self.generation = response.member_epoch
            self._interval_s = response.heartbeat_interval_ms / 1000
            if response.assignment is not None:
                self._target = {
                    row.topic_id: list(row.partitions) for row in response.assignment.topic_partitions
                }

    # -- leaving

    def leave(self) -> None:
        self._stopped = True
        self._wake.set()
        if self._thread is None:
            return
        self._thread.join(2)
        is_static = self._settings.instance_id is not None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._settings.group_id,
            member_id=self.member_id,
            member_epoch=STATIC_LEAVE_EPOCH if is_static else LEAVE_EPOCH,
            instance_id=self._settings.instance_id,
        )
        try:
            self._cluster.call(self._cluster.coordinator(self._settings.group_id), request)
        except (errors.KafkaError, OSError, Unreachable):
            pass  # the session times out instead


_PASSING = frozenset(
    {
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
        errors.UNRELEASED_INSTANCE_ID,
        errors.REQUEST_TIMED_OUT,
        errors.NETWORK_EXCEPTION,
    }
)
