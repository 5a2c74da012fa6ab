"""The image of a cluster of several brokers, as the controllers' metadata log says it.

It is cluster/image.py's, whose delta names every partition that has changed, not only those with a new leader: replicas
come and go, and ISRs change, without one. `become` makes it another image, where a snapshot was fetched.
"""

from __future__ import annotations

from pykafkad.cluster.image import TOPIC_RESOURCE, Image
from pykafkad.cluster.metadata_records import config_record
from pykafkad.messages import FeatureLevelRecord, RemoveTopicRecord, TopicRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.cluster.image import BrokerInfo, PartitionInfo, Topic

PARTS = ("acls", "scram_users", "client_quotas", "delegation_tokens")  # of the image, and of its delta


class QuorumImage(Image):
    def _partition_change(self, record: Any) -> None:
        super()._partition_change(record)
        self._delta.leader_elected(self._topic_of(record.topic_id), record.partition_id)

    # -- becoming another one

    def become(self, other: Image) -> None:
        """Everything that is not the same goes into the delta."""
        self._become_brokers(other.brokers)
        self._become_topics(other)
        self._become_configs(other)
        for name in [*self.features, *other.features]:
            level = other.features.get(name, 0)
            if self.features.get(name, 0) != level:
                self.apply(FeatureLevelRecord(name=name, feature_level=level))
        for part in PARTS:
            ours, theirs = getattr(self, part), getattr(other, part)
            changed = {key for key in (*ours, *theirs) if ours.get(key) != theirs.get(key)}
            getattr(self._delta, part).update(changed)
            setattr(self, part, theirs)
        self.controllers, self.next_producer_id = other.controllers, other.next_producer_id
        self.kraft_version, self.offset = other.kraft_version, other.offset

    def _become_brokers(self, brokers: dict[int, BrokerInfo]) -> None:
        self._delta.brokers.update(
            broker_id
            for broker_id in (*self.brokers, *brokers)
            if broker_id not in brokers
            or broker_id not in self.brokers
            or not same(self.brokers[broker_id], brokers[broker_id])
        )
        self.brokers.clear()
        self.brokers.update(brokers)
        self._replicas_changed()

    def _become_topics(self, other: Image) -> None:
        for topic in list(self.topics.values()):
            if topic.id not in other.topics_by_id:
                self.apply(RemoveTopicRecord(topic_id=topic.id))
        for theirs in other.topics.values():
            ours = self.topics_by_id.get(theirs.id)
            if ours is None:
                self.apply(TopicRecord(name=theirs.name, topic_id=theirs.id))
                ours = self.topics_by_id[theirs.id]
            self._become_partitions(ours, theirs.partitions)

    def _become_partitions(self, topic: Topic, partitions: list[PartitionInfo]) -> None:
        if self.before is not None:
            self.before.setdefault(topic.id, list(topic.partitions))
        for index, theirs in enumerate(partitions):
            if index >= len(topic.partitions):
                topic.partitions.append(theirs)
                self._delta.partition_added(topic, index)
            elif not same(topic.partitions[index], theirs):
                topic.partitions[index] = theirs
                self._delta.leader_elected(topic, index)
        self.topic_changes += 1
        topic.cache.clear()

    def _become_configs(self, other: Image) -> None:
        for kind, name in [*self.configs, *other.configs]:
            if kind == TOPIC_RESOURCE and name not in self.topics:
                continue
            ours = dict(self.configs.get((kind, name), {}))
            theirs = other.configs.get((kind, name), {})
            for key in {*ours, *theirs}:
                if ours.get(key) != theirs.get(key):
                    self.apply(config_record(kind, name, key, theirs.get(key)))


def same(ours: Any, theirs: Any) -> bool:
    """Of two objects with the same slots."""
    return all(getattr(ours, slot) == getattr(theirs, slot) for slot in type(ours).__slots__)
