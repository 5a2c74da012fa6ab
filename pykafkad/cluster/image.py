"""The image: everything the metadata log says, replayed. Brokers, topics, configs, features, ids, ACLs,
quotas.

`apply(record)` is the only way in, at start-up and while serving, so what is served is what a restart finds. What it
changes is noted in a delta (cluster/delta.py), which `take_delta` hands out to be published.
Invariants: a topic's partitions are numbered from 0 without gaps; `topics` and `topics_by_id` hold the same
topics. What cannot be is a MetadataError: stricter than Kafka's replay, since nobody else has a copy to go by.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from pykafkad.cluster import features, topic_names
from pykafkad.cluster.delta import Delta
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.uuids import ZERO, to_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad import messages

    Endpoint = messages.RegisterBrokerRecord.BrokerEndpoint

NO_LEADER = -1
UNCHANGED_LEADER = -2
NOT_TOLD = (
    ZERO,
    bytes(15) + b"\x02",
)  # directory ids: not assigned yet, or from before directories were told
UNCHANGED_RECOVERY_STATE = -1
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
ALL_BROKERS = ""


class BrokerInfo:
    """A registered broker. Fenced: it takes no part; every broker of a stopped cluster is."""

    __slots__ = (
        "cordoned_directories",
        "directories",
        "endpoints",
        "epoch",
        "features",
        "fenced",
        "id",
        "in_controlled_shutdown",
        "incarnation_id",
        "rack",
    )

    def __init__(self, record: messages.RegisterBrokerRecord) -> None:
        self.id: int = record.broker_id
        self.epoch: int = record.broker_epoch
        self.incarnation_id: bytes = record.incarnation_id
        self.rack: str | None = record.rack
        self.fenced: bool = record.fenced
        self.in_controlled_shutdown: bool = record.in_controlled_shutdown
        self.directories: list[bytes] = list(record.log_dirs)
        self.cordoned_directories: list[bytes] | None = record.cordoned_log_dirs
        self.features: list[messages.RegisterBrokerRecord.BrokerFeature] = record.features
        self.endpoints: dict[str, Endpoint] = {
            point.name: point for point in record.end_points
        }  # by listener


@lru_cache(maxsize=1_000)
def shared(*items: Any) -> list[Any]:
    """Partitions by the thousand have the same replicas: they share such a list, which nobody changes."""
    return list(items)


NONE: list[Any] = shared()


class PartitionInfo:
    __slots__ = (
        "adding_replicas",
        "directories",
        "eligible_leader_replicas",
        "isr",
        "last_known_elr",
        "leader",
        "leader_epoch",
        "leader_recovery_state",
        "partition_epoch",
        "removing_replicas",
        "replicas",
    )

    def __init__(self, record: messages.PartitionRecord | PartitionInfo) -> None:
        self.replicas: list[int] = shared(*record.replicas)
        self.isr: list[int] = shared(*record.isr)
        self.removing_replicas: list[int] = record.removing_replicas or NONE
        self.adding_replicas: list[int] = record.adding_replicas or NONE
        self.leader: int = record.leader
        self.leader_recovery_state: int = record.leader_recovery_state
        self.leader_epoch: int = record.leader_epoch
        self.partition_epoch: int = record.partition_epoch
        self.directories: list[bytes] = shared(*record.directories)
        self.eligible_leader_replicas: list[int] = record.eligible_leader_replicas or NONE
        self.last_known_elr: list[int] = record.last_known_elr or NONE

    def change(self, record: messages.PartitionChangeRecord) -> None:
        """An absent field stays as it is; naming a leader, even the same one, begins a new leader epoch."""
        for field in CHANGEABLE:
            value = getattr(record, field)
            if value is not None:
                setattr(self, field, shared(*value))
        if record.leader != UNCHANGED_LEADER:
            self.leader = record.leader
            self.leader_epoch += 1
        if record.leader_recovery_state != UNCHANGED_RECOVERY_STATE:
            self.leader_recovery_state = record.leader_recovery_state
        self.partition_epoch += 1

    def copy(self) -> PartitionInfo:
        return PartitionInfo(self)


CHANGEABLE = (
    "isr",
    "replicas",
    "removing_replicas",
    "adding_replicas",
    "directories",
    "eligible_leader_replicas",
    "last_known_elr",
)


class Topic:
    """A topic; `cache` is for what handlers derive from it, and is dropped whenever a partition changes."""

    __slots__ = ("cache", "configs", "id", "is_internal", "name", "partitions")

    def __init__(self, name: str, topic_id: bytes, configs: dict[str, str]) -> None:
        self.name = name
        self.id = topic_id
        self.configs = configs
        self.partitions: list[PartitionInfo] = []
        self.is_internal = name in topic_names.INTERNAL
        self.cache: dict[str, Any] = {}


class Image:
    supported_features = features.SUPPORTED

    def __init__(self) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.topic_changes = 0  # goes up with every change to topics and their partitions
        self.brokers: dict[int, BrokerInfo] = {}
        self.controllers: dict[int, messages.RegisterControllerRecord] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}  # (resource type, name) -> key -> value
        self.features: dict[str, int] = {}
        self.next_producer_id = 0
        self.acls: dict[bytes, messages.AccessControlEntryRecord] = {}
        self.scram_users: dict[tuple[str, int], messages.UserScramCredentialRecord] = {}
        self.client_quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}
        self.delegation_tokens: dict[str, messages.DelegationTokenRecord] = {}
        self.kraft_version = 0  # 1: the log says who the voters are (KIP-853)
        # While a snapshot is made: topic id -> the partitions that it had, where they have changed since.
        self.before: dict[bytes, list[PartitionInfo]] | None = None
        self._copied: set[tuple[int, str]] = set()  # resources whose configs are no longer the snapshot's
        self._copied_for: dict[bytes, list[PartitionInfo]] | None = None
        self.offset = -1  # of the last record applied; ApiVersions shows it as the features' epoch
        self._delta = Delta(is_whole=True)
        self._apply: dict[int, Callable[[Any], None]] = self._appliers()

    @property
    def metadata_version(self) -> int:
        return self.features.get(features.METADATA_VERSION, 0)

    @property
    def finalized_features(self) -> dict[str, int]:
        """With the kraft.version, which the quorum keeps in control records of its own."""
        return (
            {**self.features, features.KRAFT_VERSION: self.kraft_version}
            if self.kraft_version
            else self.features
        )

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(features.ELIGIBLE_LEADER_REPLICAS, 0) > 0

    def broker_configs(self, name: str) -> dict[str, str]:
        """Dynamic configs of one broker ("1"), or of all brokers ("")."""
        return self.configs.get((BROKER_RESOURCE, name), {})

    def has_online(self, broker_id: int, directory_id: bytes) -> bool:
        """Whether that broker is there and has that log directory, as far as it says which it has."""
        broker = self.brokers.get(broker_id)
        if broker is None or broker.fenced:
            return False
        known = broker.directories
        return not known or directory_id in known or directory_id in NOT_TOLD

    def offline_replicas(self, partition: PartitionInfo) -> list[int]:
        """Those on brokers that are offline, or in log directories that their brokers no longer have (KIP-858)."""
        directories = partition.directories
        return [
            replica
            for slot, replica in enumerate(partition.replicas)
            if not self.has_online(replica, directories[slot] if slot < len(directories) else ZERO)
        ]

    def apply(self, record: Any, offset: int | None = None) -> None:
        self._apply[record.api_key](record)
        if offset is not None:
            self.offset = offset

    def take_delta(self) -> Delta:
        """What has changed since it was last taken; at first, everything there is."""
        delta, self._delta = self._delta, Delta()
        return delta

    def _appliers(self) -> dict[int, Callable[[Any], None]]:
        return {
            0: self._register_broker,
            1: self._unregister_broker,
            2: self._topic,
            3: self._partition,
            4: self._config,
            5: self._partition_change,
            7: self._fence,
            8: self._unfence,
            9: self._remove_topic,
            10: self._delegation_token,
            11: self._scram,
            12: self._feature_level,
            14: self._client_quota,
            15: self._producer_ids,
            17: self._broker_change,
            18: self._acl,
            19: self._remove_acl,
            20: _nothing,  # NoOp
            21: _nothing,  # ZkMigrationState
            22: self._remove_scram,
            23: _nothing,  # transactions are the log's matter: it hands over only what is committed
            24: _nothing,
            25: _nothing,
            26: self._remove_delegation_token,
            27: self._register_controller,
            28: self._clear_elr,
        }

    # -- brokers

    def _register_broker(self, record: messages.RegisterBrokerRecord) -> None:
        self.brokers[record.broker_id] = BrokerInfo(record)
        self._delta.brokers.add(record.broker_id)
        self._replicas_changed()

    def _unregister_broker(self, record: messages.UnregisterBrokerRecord) -> None:
        self._broker(record.broker_id, record.broker_epoch)
        del self.brokers[record.broker_id]
        self._replicas_changed()

    def _fence(self, record: messages.FenceBrokerRecord) -> None:
        self._broker(record.id, record.epoch).fenced = True
        self._replicas_changed()

    def _unfence(self, record: messages.UnfenceBrokerRecord) -> None:
        self._broker(record.id, record.epoch).fenced = False
        self._replicas_changed()

    def _broker_change(self, record: messages.BrokerRegistrationChangeRecord) -> None:
        broker = self._broker(record.broker_id, record.broker_epoch)
        if record.fenced:
            broker.fenced = record.fenced > 0
            self._replicas_changed()
        if record.in_controlled_shutdown:
            broker.in_controlled_shutdown = True
        if record.log_dirs:
            broker.directories = list(record.log_dirs)
            self._replicas_changed()
        if record.cordoned_log_dirs is not None:
            broker.cordoned_directories = list(record.cordoned_log_dirs)

    def _replicas_changed(self) -> None:
        """Other replicas are online than before: what was made of the topics says otherwise."""
        for topic in self.topics.values():
            topic.cache.clear()

    def _broker(self, broker_id: int, epoch: int) -> BrokerInfo:
        """To be changed."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise MetadataError(f"broker {broker_id} is not registered")
        if broker.epoch != epoch:
            raise MetadataError(f"broker {broker_id} has epoch {broker.epoch}, not {epoch}")
        self._delta.brokers.add(broker_id)
        return broker

    def _register_controller(self, record: messages.RegisterControllerRecord) -> None:
        self.controllers[record.controller_id] = record

    # -- topics

    def _topic(self, record: messages.TopicRecord) -> None:
        name = record.name
        if name in self.topics or record.topic_id in self.topics_by_id:
            raise MetadataError(f"topic {name} exists already")
        topic = Topic(name, record.topic_id, self.configs.setdefault((TOPIC_RESOURCE, name), {}))
        self.topics[name] = self.topics_by_id[record.topic_id] = topic
        self.topic_changes += 1
        self._delta.topic_created(topic)

    def _remove_topic(self, record: messages.RemoveTopicRecord) -> None:
        topic = self._topic_of(record.topic_id)
        del self.topics_by_id[topic.id], self.topics[topic.name]
        self.topic_changes += 1
        resource = TOPIC_RESOURCE, topic.name
        self.configs.pop(resource, None)
        self._delta.configs.pop(resource, None)
        self._delta.topic_deleted(topic)

    def _partition(self, record: messages.PartitionRecord) -> None:
        topic = self._topic_of(record.topic_id)
        if record.partition_id != len(topic.partitions):
            raise MetadataError(
                f"topic {topic.name} has {len(topic.partitions)} partitions, not {record.partition_id}"
            )
        if self.before is not None:
            self.before.setdefault(topic.id, list(topic.partitions))
        topic.partitions.append(PartitionInfo(record))
        topic.cache.clear()
        self._delta.partition_added(topic, record.partition_id)
        self.topic_changes += 1

    def _partition_change(self, record: messages.PartitionChangeRecord) -> None:
        topic = self._topic_of(record.topic_id)
        if not 0 <= record.partition_id < len(topic.partitions):
            raise MetadataError(f"topic {topic.name} has no partition {record.partition_id}")
        if self.before is not None:
            self.before.setdefault(topic.id, list(topic.partitions))
            topic.partitions[record.partition_id] = topic.partitions[record.partition_id].copy()
        topic.partitions[record.partition_id].change(record)
        topic.cache.clear()
        if record.leader != UNCHANGED_LEADER:
            self._delta.leader_elected(topic, record.partition_id)

    def _clear_elr(self, record: messages.ClearElrRecord) -> None:
        """min.insync.replicas changed: who is eligible is found out anew (empty name: in all topics)."""
        topics = self.topics.values() if not record.topic_name else [self._topic_named(record.topic_name)]
        for topic in topics:
            if not any(each.eligible_leader_replicas or each.last_known_elr for each in topic.partitions):
                continue
            if self.before is not None:
                self.before.setdefault(topic.id, topic.partitions)
                topic.partitions = [partition.copy() for partition in topic.partitions]
            for partition in topic.partitions:
                partition.eligible_leader_replicas, partition.last_known_elr = NONE, NONE
            topic.cache.clear()

    def _topic_of(self, topic_id: bytes) -> Topic:
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise MetadataError(f"there is no topic with id {to_text(topic_id)}")
        return topic

    def _topic_named(self, name: str) -> Topic:
        topic = self.topics.get(name)
        if topic is None:
            raise MetadataError(f"there is no topic {name}")
        return topic

    # -- configs, features, ids

    def _config(self, record: messages.ConfigRecord) -> None:
        resource = (record.resource_type, record.resource_name)
        if self.before is not None and resource in self.configs:
            self._replace_configs(resource)
        if record.value is not None:
            self.configs.setdefault(resource, {})[record.name] = record.value
        elif resource in self.configs:
            self.configs[resource].pop(record.name, None)
        self._delta.config_written(
            record, self.topics.get(resource[1]) if resource[0] == TOPIC_RESOURCE else None
        )

    def _replace_configs(self, resource: tuple[int, str]) -> None:
        """A snapshot holds on to the configs as they are; what changes is a copy, made once."""
        if self._copied_for is not self.before:
            self._copied_for, self._copied = self.before, set()
        if resource in self._copied:
            return
        self._copied.add(resource)
        configs = self.configs[resource] = dict(self.configs[resource])
        if resource[0] == TOPIC_RESOURCE and resource[1] in self.topics:
            self.topics[resource[1]].configs = configs

    def _feature_level(self, record: messages.FeatureLevelRecord) -> None:
        supported = features.SUPPORTED.get(record.name)
        if supported is None:
            raise MetadataError(f"unknown feature {record.name}")
        if record.feature_level > supported[1]:
            raise MetadataError(
                f"{record.name} {record.feature_level} is newer than {supported[1]}, the newest known here"
            )
        if record.name == features.METADATA_VERSION and record.feature_level < supported[0]:
            raise MetadataError(f"{record.name} {record.feature_level} is older than {supported[0]}")
        self._delta.features.add(record.name)
        if record.feature_level == 0:
            self.features.pop(record.name, None)
        else:
            self.features[record.name] = record.feature_level

    def _producer_ids(self, record: messages.ProducerIdsRecord) -> None:
        if record.next_producer_id < self.next_producer_id:
            raise MetadataError(
                f"producer ids go back from {self.next_producer_id} to {record.next_producer_id}"
            )
        self.next_producer_id = record.next_producer_id

    # -- security and quotas

    def _acl(self, record: messages.AccessControlEntryRecord) -> None:
        self.acls[record.id] = record
        self._delta.acls.add(record.id)

    def _remove_acl(self, record: messages.RemoveAccessControlEntryRecord) -> None:
        if self.acls.pop(record.id, None) is None:
            raise MetadataError(f"there is no ACL with id {to_text(record.id)}")
        self._delta.acls.add(record.id)

    def _scram(self, record: messages.UserScramCredentialRecord) -> None:
        self.scram_users[record.name, record.mechanism] = record
        self._delta.scram_users.add((record.name, record.mechanism))

    def _remove_scram(self, record: messages.RemoveUserScramCredentialRecord) -> None:
        if self.scram_users.pop((record.name, record.mechanism), None) is None:
            raise MetadataError(f"user {record.name} has no credential of mechanism {record.mechanism}")
        self._delta.scram_users.add((record.name, record.mechanism))

    def _client_quota(self, record: messages.ClientQuotaRecord) -> None:
        entity = tuple(sorted(((part.entity_type, part.entity_name) for part in record.entity), key=str))
        self._delta.client_quotas.add(entity)
        if not record.remove:
            self.client_quotas.setdefault(entity, {})[record.key] = record.value
            return
        values = self.client_quotas.get(entity, {})
        values.pop(record.key, None)
        if not values:
            self.client_quotas.pop(entity, None)

    def _delegation_token(self, record: messages.DelegationTokenRecord) -> None:
        self.delegation_tokens[record.token_id] = record
        self._delta.delegation_tokens.add(record.token_id)

    def _remove_delegation_token(self, record: messages.RemoveDelegationTokenRecord) -> None:
        self.delegation_tokens.pop(record.token_id, None)
        self._delta.delegation_tokens.add(record.token_id)


def _nothing(record: Any) -> None:
    pass
