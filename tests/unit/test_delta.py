"""Deltas: what each kind of record changes for the publishers."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import messages as m
from pykafkad.cluster.delta import Delta
from pykafkad.cluster.image import Image
from tests.unit.test_image import TOPIC_ID, change, config, image_with, partition, registered, topic

ACL_ID, USER = b"\x02" * 16, [m.ClientQuotaRecord.EntityData(entity_type="user", entity_name="u")]
ORDERS = (topic(), partition(0), partition(1))
ACL = m.AccessControlEntryRecord(id=ACL_ID)
SCRAM = m.UserScramCredentialRecord(name="u", mechanism=1)
TOKEN = m.DelegationTokenRecord(token_id="t")
FIELDS = [each for each in Delta.__slots__ if each != "is_whole"]


def seen(delta: Delta) -> dict[str, Any]:
    """The non-empty fields of a delta; topics by their names."""
    found: dict[str, Any] = {}
    for field in FIELDS:
        value = getattr(delta, field)
        if field in ("created", "deleted"):
            value = [each.name for each in value.values()]
        if value:
            found[field] = value
    return found


def after(*records: Any, before: tuple[Any, ...] = ()) -> dict[str, Any]:
    image = image_with(*before)
    image.take_delta()
    for record in records:
        image.apply(record)
    return seen(image.take_delta())


@pytest.mark.parametrize(
    ("before", "record", "expected"),
    [
        ((), topic(), {"created": ["orders"]}),
        (ORDERS, m.RemoveTopicRecord(topic_id=TOPIC_ID), {"deleted": ["orders"]}),
        (ORDERS, partition(2), {"grown": {TOPIC_ID: 2}}),
        (ORDERS, change(leader=1), {"elected": {TOPIC_ID: {0}}}),
        (ORDERS, change(isr=[1]), {}),
        (ORDERS, m.ClearElrRecord(topic_name="orders"), {}),
        (ORDERS, config(2, "orders", "a", "1"), {"configs": {(2, "orders"): {"a": "1"}}}),
        ((), config(4, "", "a", None), {"configs": {(4, ""): {"a": None}}}),
        ((), config(4, "1", "a", "1"), {"configs": {(4, "1"): {"a": "1"}}}),
        ((), config(16, "metrics", "a", "1"), {"configs": {(16, "metrics"): {"a": "1"}}}),
        ((), config(32, "group", "a", "1"), {"configs": {(32, "group"): {"a": "1"}}}),
        ((), registered(), {"brokers": {1}}),
        ((registered(),), m.UnregisterBrokerRecord(broker_id=1, broker_epoch=7), {"brokers": {1}}),
        ((registered(),), m.FenceBrokerRecord(id=1, epoch=7), {"brokers": {1}}),
        ((registered(),), m.UnfenceBrokerRecord(id=1, epoch=7), {"brokers": {1}}),
        (
            (registered(),),
            m.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=1),
            {"brokers": {1}},
        ),
        (
            (),
            m.FeatureLevelRecord(name="metadata.version", feature_level=30),
            {"features": {"metadata.version"}},
        ),
        (
            (),
            m.ClientQuotaRecord(entity=USER, key="consumer_byte_rate", value=1.0),
            {"client_quotas": {(("user", "u"),)}},
        ),
        ((), ACL, {"acls": {ACL_ID}}),
        ((ACL,), m.RemoveAccessControlEntryRecord(id=ACL_ID), {"acls": {ACL_ID}}),
        ((), SCRAM, {"scram_users": {("u", 1)}}),
        (
            (SCRAM,),
            m.RemoveUserScramCredentialRecord(name="u", mechanism=1),
            {"scram_users": {("u", 1)}},
        ),
        ((), TOKEN, {"delegation_tokens": {"t"}}),
        ((TOKEN,), m.RemoveDelegationTokenRecord(token_id="t"), {"delegation_tokens": {"t"}}),
        ((), m.ProducerIdsRecord(next_producer_id=1000), {}),
        ((), m.RegisterControllerRecord(controller_id=1), {}),
        ((), m.NoOpRecord(), {}),
    ],
)
def test_what_a_record_changes(before: tuple[Any, ...], record: Any, expected: dict[str, Any]) -> None:
    assert after(record, before=before) == expected


def test_of_a_new_topic_nothing_else_is_said() -> None:
    records = *ORDERS, config(2, "orders", "a", "1"), change(leader=1)
    assert after(*records) == {"created": ["orders"]}


def test_of_a_new_partition_it_is_not_said_that_it_has_a_leader() -> None:
    second = m.PartitionChangeRecord(partition_id=1, topic_id=TOPIC_ID, leader=1)
    found = after(partition(1), second, change(leader=1), before=ORDERS[:2])
    assert found == {"grown": {TOPIC_ID: 1}, "elected": {TOPIC_ID: {0}}}


def test_which_partitions_may_have_another_leader() -> None:
    image = image_with(*ORDERS)
    orders = image.topics["orders"]
    assert list(image.take_delta().leaders_of(orders)) == [0, 1]
    image.apply(change(leader=1))
    image.apply(partition(2))
    delta = image.take_delta()
    assert list(delta.leaders_of(orders)) == [0, 2]
    assert list(image.take_delta().leaders_of(orders)) == []


def test_what_was_created_and_deleted_since_was_never_there() -> None:
    gone = m.RemoveTopicRecord(topic_id=TOPIC_ID)
    assert after(*ORDERS, config(2, "orders", "a", "1"), gone) == {}


def test_of_a_deleted_topic_only_that_is_said() -> None:
    gone = m.RemoveTopicRecord(topic_id=TOPIC_ID)
    records = config(2, "orders", "a", "1"), partition(2), change(leader=1), gone
    assert after(*records, before=ORDERS) == {"deleted": ["orders"]}


def test_a_topic_that_takes_anothers_name() -> None:
    gone, new = m.RemoveTopicRecord(topic_id=TOPIC_ID), topic(topic_id=b"\x09" * 16)
    assert after(gone, new, before=ORDERS) == {"deleted": ["orders"], "created": ["orders"]}


def test_the_first_delta_names_everything_and_the_next_what_changed() -> None:
    image = Image()
    for record in (registered(), *ORDERS, config(4, "", "a", "1")):
        image.apply(record)
    first, second = image.take_delta(), image.take_delta()
    assert seen(first) == {"created": ["orders"], "brokers": {1}, "configs": {(4, ""): {"a": "1"}}}
    assert (first.is_whole, second.is_whole, seen(second)) == (True, False, {})


def test_only_new_partitions_hold_nobody_up() -> None:
    def only_adds(*records: Any) -> bool:
        image = image_with(*ORDERS)
        image.take_delta()
        for record in records:
            image.apply(record)
        return image.take_delta().only_adds

    other = topic("other", b"\x09" * 16)
    assert only_adds(partition(2)) and only_adds(other) and only_adds(other, config(2, "other", "a", "1"))
    assert not only_adds() and not only_adds(registered()) and not only_adds(change(leader=1))
    assert not only_adds(other, config(2, "orders", "a", "1"))
    assert not only_adds(other, m.RemoveTopicRecord(topic_id=TOPIC_ID))
    quota = m.ClientQuotaRecord(entity=USER, key="producer_byte_rate", value=1.0)
    for record in (ACL, SCRAM, TOKEN, quota, registered()):
        assert not only_adds(other, record)
    assert not image_with(*ORDERS).take_delta().only_adds, "a start waits for all"
