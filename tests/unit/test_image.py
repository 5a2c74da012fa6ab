"""The image: the effect of each record, and records that cannot be applied."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import messages as m
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_records import MetadataError

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
        (m.ProducerIdsRecord(broker_id=1, next_producer_id=10), "go back from 20 to 10"),
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
