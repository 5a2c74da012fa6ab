"""The cluster as a controller knows it in its term: brokers, topics, and the states of partitions and replicas.

Invariants: what is here was read from ZooKeeper or written there before; `brokers` are those that are alive, shutting
down or not; a replica's or partition's state that is not here is "non-existent". Iterations are in a fixed order, so
that a simulation can be repeated.
"""

from __future__ import annotations

from pykafkad.pure.controller.facts import EPOCH_DURING_DELETE, NO_EPOCH, NOT_ASSIGNED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pykafkad.pure.controller.facts import Assignment, Broker, Leadership, Partition, PartitionReplica


class Topic:
    __slots__ = ("assignments", "id", "leaderships", "partition_states", "replica_states")

    def __init__(self, topic_id: bytes) -> None:
        self.id = topic_id
        self.assignments: dict[int, Assignment] = {}
        self.leaderships: dict[int, Leadership] = {}
        self.partition_states: dict[int, str] = {}
        self.replica_states: dict[tuple[int, int], str] = {}  # by index and broker


class Context:
    __slots__ = (
        "brokers", "deleting", "deletion_started", "ineligible", "names", "offline_dirs", "reassigning",
        "refusing", "shutting_down", "topics",
    )  # fmt: skip

    def __init__(self) -> None:
        self.brokers: dict[int, Broker] = {}
        self.refusing: dict[int, int] = {}  # brokers that are registered in that epoch, and taken for gone
        self.shutting_down: set[int] = set()
        self.offline_dirs: dict[
            int, set[Partition]
        ] = {}  # by broker: replicas in log directories that failed
        self.topics: dict[str, Topic] = {}
        self.names: dict[bytes, str] = {}  # of topics, by their ids
        self.reassigning: dict[Partition, None] = {}
        self.deleting: dict[str, None] = {}  # topics that are to be deleted,
        self.deletion_started: set[str] = set()  # those of them whose replicas were told so,
        self.ineligible: set[str] = set()  # and those that have to wait for a broker

    # -- brokers

    def is_live(self, broker_id: int) -> bool:
        return broker_id in self.brokers and broker_id not in self.shutting_down

    def is_online(self, broker_id: int, partition: Partition, *, or_shutting_down: bool = False) -> bool:
        if broker_id not in self.brokers or (broker_id in self.shutting_down and not or_shutting_down):
            return False
        return partition not in self.offline_dirs.get(broker_id, ())

    # -- partitions

    def partitions(self) -> Iterator[Partition]:
        return ((name, index) for name, topic in self.topics.items() for index in topic.assignments)

    def partitions_of(self, topic: str) -> list[Partition]:
        found = self.topics.get(topic)
        return [] if found is None else [(topic, index) for index in found.assignments]

    def partitions_on(self, broker_id: int) -> list[Partition]:
        return [
            (name, index)
            for name, topic in self.topics.items()
            for index, assignment in topic.assignments.items()
            if broker_id in assignment.replicas
        ]

    def assignment(self, partition: Partition) -> Assignment:
        topic = self.topics.get(partition[0])
        return NOT_ASSIGNED if topic is None else topic.assignments.get(partition[1], NOT_ASSIGNED)

    def assign(self, partition: Partition, assignment: Assignment) -> None:
        self.topics[partition[0]].assignments[partition[1]] = assignment

    def leadership(self, partition: Partition) -> Leadership | None:
        topic = self.topics.get(partition[0])
        return None if topic is None else topic.leaderships.get(partition[1])

    def lead(self, partition: Partition, leadership: Leadership) -> None:
        self.topics[partition[0]].leaderships[partition[1]] = leadership

    def stop_epoch(self, partition: Partition) -> int:
        """The leader epoch to be named when a replica is stopped."""
        if partition[0] in self.deleting:
            return EPOCH_DURING_DELETE
        leadership = self.leadership(partition)
        return NO_EPOCH if leadership is None else leadership.leader_epoch

    def led_partitions(self) -> list[Partition]:
        """Those with a leadership, of topics that stay."""
        return [
            (name, index)
            for name, topic in self.topics.items()
            if name not in self.deleting
            for index in topic.leaderships
        ]

    def partitions_with_offline_leader(self) -> list[Partition]:
        topics = self.topics
        return [
            (name, index)
            for name, index in self.led_partitions()
            if not self.is_online(topics[name].leaderships[index].leader, (name, index))
        ]

    # -- states

    def partition_state(self, partition: Partition) -> str | None:
        topic = self.topics.get(partition[0])
        return None if topic is None else topic.partition_states.get(partition[1])

    def set_partition_state(self, partition: Partition, state: str | None) -> None:
        states = self.topics[partition[0]].partition_states
        if state is None:
            states.pop(partition[1], None)
        else:
            states[partition[1]] = state

    def partitions_in(self, states: Collection[str], topic: str | None = None) -> list[Partition]:
        names = self.topics if topic is None else [topic] if topic in self.topics else []
        return [
            (name, index)
            for name in names
            for index, state in self.topics[name].partition_states.items()
            if state in states
        ]

    def replica_state(self, replica: PartitionReplica) -> str | None:
        (name, index), broker_id = replica
        topic = self.topics.get(name)
        return None if topic is None else topic.replica_states.get((index, broker_id))

    def set_replica_state(self, replica: PartitionReplica, state: str | None) -> None:
        (name, index), broker_id = replica
        states = self.topics[name].replica_states
        if state is None:
            states.pop((index, broker_id), None)
        else:
            states[index, broker_id] = state

    def replicas_of(self, topic: str) -> list[PartitionReplica]:
        found = self.topics.get(topic)
        if found is None:
            return []
        return [
            ((topic, index), replica)
            for index, assignment in found.assignments.items()
            for replica in assignment.replicas
        ]

    def replicas_in(self, topic: str, state: str) -> list[PartitionReplica]:
        return [each for each in self.replicas_of(topic) if self.replica_state(each) == state]

    # -- topics

    def topic_id(self, topic: str) -> bytes:
        return self.topics[topic].id

    def add_topic(self, name: str, topic_id: bytes) -> Topic:
        topic = self.topics[name] = Topic(topic_id)
        self.names[topic_id] = name
        return topic

    def remove_topic(self, topic: str) -> None:
        found = self.topics.pop(topic, None)
        if found is not None:
            self.names.pop(found.id, None)
        self.deleting.pop(topic, None)
        self.deletion_started.discard(topic)
        self.ineligible.discard(topic)
        for partition in [each for each in self.reassigning if each[0] == topic]:
            del self.reassigning[partition]
        for partitions in self.offline_dirs.values():
            partitions -= {each for each in partitions if each[0] == topic}
