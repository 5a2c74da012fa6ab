"""The image: the effect of each record, and records that cannot be applied."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import messages as m
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_records import MetadataError
from pykafkad.uuids import ZERO

TOPIC_ID = b"\x01" * 16


def image_with(*records: Any) -> Image:
    image = Image()
    for offset, record in enumerate(records):
        image.apply(record, offset)
    return image


def registered(epoch: int = 7, **fields: Any) -> Any:
    return m.RegisterBrokerRecord(broker_id=1, broker_epoch=epoch, **fields)


def topic(name: str = "orders", topic_id: bytes = TOPIC_ID) -> Any:
    return m.TopicRecord(name=name, topic_id=topic_id)


def partition(index: int = 0) -> Any:
    return m.PartitionRecord(
        partition_id=index,
        topic_id=TOPIC_ID,
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=4,
        partition_epoch=9,
    )


def change(**fields: Any) -> Any:
    return m.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)


def config(kind: int, name: str, key: str, value: str | None) -> Any:
    return m.ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value)


def test_a_topic_has_its_partitions_and_configs() -> None:
    image = image_with(topic(), config(2, "orders", "retention.ms", "5"), partition(0), partition(1))
    assert image.topics["orders"] is image.topics_by_id[TOPIC_ID]
    assert image.topics["orders"].configs == {"retention.ms": "5"}
    assert [item.leader_epoch for item in image.topics["orders"].partitions] == [4, 4]
    assert image.offset == 3


def test_a_removed_topic_leaves_nothing_behind() -> None:
    image = image_with(topic("a.b"), config(2, "a.b", "retention.ms", "5"))
    image.take_delta()
    image.apply(m.RemoveTopicRecord(topic_id=TOPIC_ID))
    assert not image.topics and not image.topics_by_id
    assert (2, "a.b") not in image.configs
    assert [gone.name for gone in image.take_delta().deleted.values()] == ["a.b"]
    image.apply(topic("a.b"))
    assert image.topics["a.b"].configs == {}


def test_a_change_that_names_a_leader_begins_a_leader_epoch() -> None:
    image = image_with(topic(), partition())
    found = image.topics["orders"].partitions[0]
    image.apply(change(leader=1))
    assert (found.leader, found.leader_epoch, found.partition_epoch, found.isr) == (1, 5, 10, [1])


def test_a_change_leaves_alone_what_it_does_not_name() -> None:
    image = image_with(topic(), partition())
    found = image.topics["orders"].partitions[0]
    image.apply(change(isr=[], eligible_leader_replicas=[1], last_known_elr=[1]))
    assert (found.leader, found.leader_epoch, found.partition_epoch) == (1, 4, 10)
    assert (found.isr, found.eligible_leader_replicas, found.last_known_elr) == ([], [1], [1])
    image.apply(m.ClearElrRecord(topic_name="orders"))
    assert (found.eligible_leader_replicas, found.last_known_elr) == ([], [])


def test_a_change_drops_what_was_derived_from_the_topic() -> None:
    image = image_with(topic(), partition())
    image.topics["orders"].cache["view"] = "old"
    image.apply(change(leader=-1))
    assert image.topics["orders"].cache == {}


def test_a_broker_is_fenced_and_unfenced_in_its_epoch_only() -> None:
    image = image_with(registered(epoch=7, fenced=True))
    image.apply(m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=-1))
    assert not image.brokers[1].fenced
    image.apply(m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, in_controlled_shutdown=1), 9)
    assert image.brokers[1].in_controlled_shutdown and not image.brokers[1].fenced
    with pytest.raises(MetadataError, match="broker 1 has epoch 7, not 6"):
        image.apply(m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=6, fenced=1))


def test_a_config_is_set_changed_and_removed() -> None:
    image = image_with(config(4, "", "background.threads", "5"), config(4, "", "background.threads", "6"))
    assert image.broker_configs("") == {"background.threads": "6"}
    image.apply(config(4, "", "background.threads", None))
    assert image.broker_configs("") == {}
    image.apply(config(4, "7", "background.threads", None))
    assert image.broker_configs("7") == {}


def test_a_quota_is_set_and_removed() -> None:
    entity = [m.ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)]
    image = image_with(m.ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=5.0))
    assert image.client_quotas == {(("user", None),): {"producer_byte_rate": 5.0}}
    image.apply(m.ClientQuotaRecord(entity=entity, key="producer_byte_rate", remove=True))
    assert image.client_quotas == {}


@pytest.mark.parametrize(
    ("record", "why"),
    [
        (topic(), "exists already"),
        (m.TopicRecord(name="other", topic_id=TOPIC_ID), "exists already"),
        (partition(2), "has 1 partitions, not 2"),
        (m.RemoveTopicRecord(topic_id=b"\x02" * 16), "there is no topic with id AgICAgICAgICAgICAgICAg"),
        (m.PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID), "has no partition 1"),
        (m.PartitionChangeRecord(partition_id=0, topic_id=b"\x02" * 16), "there is no topic"),
        (m.FeatureLevelRecord(name="metadata.version", feature_level=31), "newer than 30"),
        (m.FeatureLevelRecord(name="metadata.version", feature_level=6), "older than 7"),
        (m.FeatureLevelRecord(name="nonsense.version", feature_level=1), "unknown feature"),
        (m.UnregisterBrokerRecord(broker_id=3, broker_epoch=0), "broker 3 is not registered"),
        (m.RemoveAccessControlEntryRecord(id=TOPIC_ID), "there is no ACL"),
        (m.RemoveUserScramCredentialRecord(name="alice", mechanism=1), "has no credential"),
        (m.ProducerIdsRecord(broker_id=1, next_producer_id=19), "go back from 20 to 19"),
        (m.PartitionChangeRecord(partition_id=-1, topic_id=TOPIC_ID), "has no partition -1"),
        (m.ClearElrRecord(topic_name="other"), "there is no topic other"),
    ],
)
def test_what_cannot_be_is_refused(record: Any, why: str) -> None:
    image = image_with(topic(), partition(), m.ProducerIdsRecord(broker_id=1, next_producer_id=20))
    with pytest.raises(MetadataError, match=why):
        image.apply(record)


def test_every_record_type_has_a_meaning() -> None:
    from pykafkad.cluster.metadata_records import NAMES

    assert set(Image()._apply) == set(NAMES)


def test_configs_that_a_snapshot_holds_on_to_are_copied_once() -> None:
    image = image_with(config(4, "", "a", "0"))
    for number in (1, 2):  # as many snapshots
        held = image.configs[4, ""]
        was = dict(held)
        image.before = {}
        image.apply(config(4, "", "a", f"{number}"))
        copied = image.configs[4, ""]
        image.apply(config(4, "", f"b{number}", "x"))
        assert image.configs[4, ""] is copied is not held
        assert held == was and copied[f"b{number}"] == "x"
        image.before = None


def test_eligibility_is_found_anew_only_where_there_is_any() -> None:
    image = image_with(topic(), partition(0), partition(1))
    partitions = image.topics["orders"].partitions
    image.topics["orders"].cache["kept"] = True
    image.before = {}
    image.apply(m.ClearElrRecord(topic_name=""))
    assert (
        image.topics["orders"].partitions is partitions and image.topics["orders"].cache and not image.before
    )
    partitions[1].eligible_leader_replicas = [1]
    image.apply(m.ClearElrRecord(topic_name=""))
    assert [each.eligible_leader_replicas for each in image.topics["orders"].partitions] == [[], []]
    assert image.before[TOPIC_ID] is partitions and partitions[1].eligible_leader_replicas == [1]


def broker_change(**fields: Any) -> Any:
    return m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, **fields)


@pytest.mark.parametrize(
    ("record", "drops"),
    [
        (registered(8), True),
        (m.UnregisterBrokerRecord(broker_id=1, broker_epoch=7), True),
        (m.FenceBrokerRecord(id=1, epoch=7), True),
        (m.UnfenceBrokerRecord(id=1, epoch=7), True),
        (broker_change(fenced=1), True),
        (broker_change(log_dirs=[b"\5" * 16]), True),
        (broker_change(in_controlled_shutdown=1), False),
        (broker_change(cordoned_log_dirs=[b"\5" * 16]), False),
        (change(isr=[1]), True),
        (partition(1), True),
        (config(2, "orders", "retention.ms", "1"), False),
    ],
)
def test_what_was_made_of_a_topic_counts_until_it_or_its_replicas_change(record: Any, drops: bool) -> None:
    image = image_with(registered(), topic(), partition())
    image.topics["orders"].cache["view"] = "old"
    image.apply(record)
    assert bool(image.topics["orders"].cache) != drops


def test_a_registration_changes_in_what_is_named() -> None:
    image = image_with(registered(log_dirs=[b"\4" * 16], cordoned_log_dirs=None))
    broker = image.brokers[1]

    def state() -> tuple[Any, ...]:
        return (
            broker.fenced,
            broker.in_controlled_shutdown,
            broker.directories,
            broker.cordoned_directories,
        )

    broker.fenced = False
    image.apply(broker_change(fenced=1))
    assert state() == (True, False, [b"\4" * 16], None)
    image.apply(broker_change(log_dirs=[b"\5" * 16], cordoned_log_dirs=[b"\5" * 16]))
    assert state() == (True, False, [b"\5" * 16], [b"\5" * 16])
    image.apply(broker_change(in_controlled_shutdown=1, cordoned_log_dirs=[]))
    assert state() == (True, True, [b"\5" * 16], [])
    image.apply(m.UnfenceBrokerRecord(id=1, epoch=7))
    assert not broker.fenced
    image.apply(m.FenceBrokerRecord(id=1, epoch=7))
    assert broker.fenced
    image.apply(m.UnregisterBrokerRecord(broker_id=1, broker_epoch=7))
    assert not image.brokers


def test_a_replica_is_offline_with_its_broker_or_its_directory() -> None:
    mine, other, lost = b"\4" * 16, b"\5" * 16, bytes(15) + b"\1"
    image = image_with(registered(log_dirs=[mine, other], fenced=False), topic(), partition())
    silent = m.RegisterBrokerRecord(broker_id=2, broker_epoch=1, fenced=False)
    image.apply(silent)
    for directory in (mine, other, ZERO, bytes(15) + b"\2"):  # or where it has not said yet in which
        assert image.has_online(1, directory)
    assert not image.has_online(1, lost) and not image.has_online(3, mine)
    assert image.has_online(2, lost), "it does not say which directories it has"
    image.apply(change(replicas=[1, 2, 3], directories=[lost, lost, lost]))
    (found,) = image.topics["orders"].partitions
    assert image.offline_replicas(found) == [1, 3]
    image.apply(change(directories=[]))
    assert image.offline_replicas(image.topics["orders"].partitions[0]) == [3]
    image.apply(m.FenceBrokerRecord(id=2, epoch=1))
    assert not image.has_online(2, mine)


def test_features_count_from_their_record_on_and_level_0_is_none() -> None:
    elr, version = "eligible.leader.replicas.version", "metadata.version"
    image = Image()
    assert (image.metadata_version, image.elr_enabled, image.finalized_features) == (0, False, {})
    for name, level in ((version, 7), (elr, 1), ("group.version", 1), ("group.version", 0)):
        image.apply(m.FeatureLevelRecord(name=name, feature_level=level))
    assert (image.metadata_version, image.elr_enabled) == (7, True)
    assert image.finalized_features == {version: 7, elr: 1}
    image.kraft_version = 1
    image.apply(m.FeatureLevelRecord(name=version, feature_level=30))
    image.apply(m.FeatureLevelRecord(name=elr, feature_level=0))
    assert image.finalized_features == {version: 30, "kraft.version": 1}
    assert image.features == {version: 30} and not image.elr_enabled


def test_every_change_of_topics_is_counted_and_no_other() -> None:
    image = image_with(topic(), partition())
    seen = [image.topic_changes]
    for record in (partition(1), m.RemoveTopicRecord(topic_id=TOPIC_ID), topic()):
        image.apply(record)
        seen.append(image.topic_changes)
    assert len(set(seen)) == 4
    image.apply(config(2, "orders", "retention.ms", "1"))
    assert image.topic_changes == seen[-1]


def test_an_entitys_quotas_are_one_however_it_is_written() -> None:
    def quota(key: str, value: float | None, *entity: tuple[str, str | None]) -> Any:
        parts = [m.ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity]
        return m.ClientQuotaRecord(entity=parts, key=key, value=value or 0.0, remove=value is None)

    user, client = ("user", None), ("client-id", "app")
    image = image_with(quota("a", 1.0, user, client), quota("b", 2.0, client, user), quota("a", 5.0, user))
    assert image.client_quotas == {(client, user): {"a": 1.0, "b": 2.0}, (user,): {"a": 5.0}}
    image.apply(quota("a", None, client, user))
    image.apply(quota("nosuch", None, ("ip", "1.2.3.4")))
    assert image.client_quotas == {(client, user): {"b": 2.0}, (user,): {"a": 5.0}}


def test_credentials_tokens_acls_and_controllers_are_kept_until_they_are_removed() -> None:
    scram = m.UserScramCredentialRecord(name="ann", mechanism=1)
    token, acl = m.DelegationTokenRecord(token_id="t"), m.AccessControlEntryRecord(id=TOPIC_ID)
    controller = m.RegisterControllerRecord(controller_id=3)
    image = image_with(scram, token, acl, controller, m.ProducerIdsRecord(next_producer_id=5))
    assert image.scram_users == {("ann", 1): scram} and image.delegation_tokens == {"t": token}
    assert image.acls == {TOPIC_ID: acl} and image.controllers == {3: controller}
    image.apply(m.ProducerIdsRecord(next_producer_id=5))
    assert image.next_producer_id == 5 and image.offset == 4
    for record in (
        m.RemoveUserScramCredentialRecord(name="ann", mechanism=1),
        m.RemoveDelegationTokenRecord(token_id="t"),
        m.RemoveDelegationTokenRecord(token_id="nosuch"),
        m.RemoveAccessControlEntryRecord(id=TOPIC_ID),
    ):
        image.apply(record)
    assert not image.scram_users and not image.delegation_tokens and not image.acls


def test_a_change_sets_every_field_that_it_names() -> None:
    image = image_with(topic(), partition())
    found = image.topics["orders"].partitions[0]
    fields: dict[str, Any] = {
        "isr": [2],
        "replicas": [2, 3],
        "removing_replicas": [1],
        "adding_replicas": [3],
        "directories": [ZERO, ZERO],
        "eligible_leader_replicas": [3],
        "last_known_elr": [4],
        "leader_recovery_state": 1,
    }
    image.apply(change(**fields))
    image.apply(change())
    assert {name: getattr(found, name) for name in fields} == fields
    assert (found.leader, found.leader_epoch, found.partition_epoch) == (1, 4, 11)
    image.apply(change(leader_recovery_state=0))
    assert found.leader_recovery_state == 0


def test_a_partition_begins_as_its_record_says() -> None:
    fields: dict[str, Any] = {
        "replicas": [1, 2, 3],
        "isr": [1, 2],
        "removing_replicas": [3],
        "adding_replicas": [2],
        "leader": 2,
        "leader_recovery_state": 1,
        "leader_epoch": 5,
        "partition_epoch": 6,
        "directories": [ZERO, ZERO, TOPIC_ID],
        "eligible_leader_replicas": [3],
        "last_known_elr": [1],
    }
    image = image_with(topic(), m.PartitionRecord(partition_id=0, topic_id=TOPIC_ID, **fields))
    (found,) = image.topics["orders"].partitions
    assert {name: getattr(found, name) for name in found.__slots__} == fields
    assert {name: getattr(found.copy(), name) for name in found.__slots__} == fields


def test_what_was_made_of_a_topic_goes_with_what_was_eligible() -> None:
    image = image_with(topic(), partition())
    orders = image.topics["orders"]
    for field in ("eligible_leader_replicas", "last_known_elr"):
        setattr(orders.partitions[0], field, [1])
        orders.cache["view"] = "old"
        image.apply(m.ClearElrRecord(topic_name="orders"))
        assert not orders.cache and getattr(orders.partitions[0], field) == []


def test_a_snapshot_keeps_the_partitions_that_it_was_taken_of() -> None:
    other = b"\2" * 16
    image = image_with(topic(), partition(), topic("other", other))
    was = image.topics["orders"].partitions[0]
    was.eligible_leader_replicas = [1]
    image.before = {}
    for record in (change(isr=[]), partition(1), m.ClearElrRecord(topic_name="")):
        image.apply(record)
    added = m.PartitionRecord(partition_id=0, topic_id=other, replicas=[1])
    image.apply(added)
    assert image.before == {TOPIC_ID: [was], other: []}
    assert (was.isr, was.eligible_leader_replicas, was.partition_epoch) == ([1], [1], 9)
    now = image.topics["orders"].partitions
    assert [(each.isr, each.partition_epoch) for each in now] == [([], 10), ([1], 9)]
    assert now[0].eligible_leader_replicas == []


def test_a_snapshot_keeps_the_configs_that_it_was_taken_of() -> None:
    image = image_with(topic(), config(2, "orders", "a", "1"), config(2, "gone", "a", "1"))
    held, gone = image.configs[2, "orders"], image.configs[2, "gone"]
    image.before = {}
    for record in (config(2, "orders", "a", "2"), config(2, "gone", "a", None), config(4, "7", "a", "1")):
        image.apply(record)
    assert (held, gone) == ({"a": "1"}, {"a": "1"})
    assert image.topics["orders"].configs == image.configs[2, "orders"] == {"a": "2"}
    assert image.topics["orders"].configs is image.configs[2, "orders"]
    assert not image.configs[2, "gone"] and image.broker_configs("7") == {"a": "1"}
