"""Which feature levels may change to which, and the records that follow; the texts are Kafka's."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad.cluster import features
from pykafkad.cluster.feature_changes import (
    FAILED_ALL,
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    Update,
    plan,
    update_of,
)
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_records import config_record
from pykafkad.errors import INVALID_UPDATE_VERSION, KafkaError
from pykafkad.messages import FeatureLevelRecord, UpdateFeaturesRequest

VERSION, KRAFT, ELR = "metadata.version", "kraft.version", "eligible.leader.replicas.version"
GROUP, TRANSACTION = "group.version", "transaction.version"
NODE_ID = 7
NO_TYPE = "The controller does not support the given upgrade type."
NEGATIVE = "A feature version cannot be less than 0."
NO_UPGRADE = "Can't downgrade to a newer version."
UNSAID = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe"
    " downgrade."
)
LOSES = "Refusing to perform the requested downgrade because it might delete metadata information."
UNSAFE = "Unsafe metadata downgrade is not supported in this version."
NEEDS_23 = f"{ELR} could not be set to 1 because it depends on metadata.version level 23"


def image_of(kraft_version: int = 0, **levels: int) -> Image:
    image = Image()
    image.kraft_version = kraft_version
    for name, level in levels.items():
        image.apply(FeatureLevelRecord(name=name.replace("_", "."), feature_level=level))
    return image


def planned(image: Image, *updates: tuple[str, int, int]) -> list[Any]:
    return [record for record, _ in plan([Update(*each) for each in updates], image, NODE_ID, "3")]


def refusal(image: Image, *updates: tuple[str, int, int]) -> str:
    with pytest.raises(KafkaError) as caught:
        planned(image, *updates)
    text = caught.value.text or ""
    assert caught.value.code == INVALID_UPDATE_VERSION and text.startswith(FAILED_ALL)
    return text.removeprefix(FAILED_ALL)


@pytest.mark.parametrize(
    ("current", "name", "level", "kind"),
    [
        (0, GROUP, 1, UPGRADE),
        (1, GROUP, 1, UPGRADE),
        (1, GROUP, 1, SAFE_DOWNGRADE),
        (1, GROUP, 0, SAFE_DOWNGRADE),
        (1, GROUP, 0, UNSAFE_DOWNGRADE),
        (0, TRANSACTION, 2, UPGRADE),
        (29, VERSION, 30, UPGRADE),
        (29, VERSION, 29, UPGRADE),
        (7, VERSION, 7, SAFE_DOWNGRADE),
        (29, VERSION, 23, SAFE_DOWNGRADE),
        (22, VERSION, 17, UNSAFE_DOWNGRADE),
    ],
)
def test_a_level_that_may_be_set(current: int, name: str, level: int, kind: int) -> None:
    image = image_of(**{name: current})
    assert planned(image, (name, level, kind)) == [FeatureLevelRecord(name=name, feature_level=level)]


@pytest.mark.parametrize(
    ("current", "name", "level", "kind", "why"),
    [
        (0, GROUP, 1, 0, NO_TYPE),
        (0, GROUP, 1, 4, NO_TYPE),
        (0, GROUP, -1, SAFE_DOWNGRADE, NEGATIVE),
        (0, GROUP, 2, UPGRADE, "Local controller 7 only supports versions 0-1"),
        (0, "comet.version", 1, UPGRADE, "Local controller 7 does not support this feature."),
        (0, "comet.version", 0, UPGRADE, "Feature comet.version not found."),
        (30, VERSION, 31, UPGRADE, "Local controller 7 only supports versions 7-30"),
        (8, VERSION, 6, SAFE_DOWNGRADE, "Local controller 7 only supports versions 7-30"),
        (1, GROUP, 0, UPGRADE, UNSAID),
        (30, VERSION, 29, UPGRADE, UNSAID),
        (0, GROUP, 1, SAFE_DOWNGRADE, NO_UPGRADE),
        (0, GROUP, 1, UNSAFE_DOWNGRADE, NO_UPGRADE),
        (0, KRAFT, 1, UPGRADE, "Node 7 has no listener that other controllers could reach it at."),
    ],
)
def test_a_level_that_may_not_be_set(current: int, name: str, level: int, kind: int, why: str) -> None:
    image = image_of(**{name: current} if current else {})
    assert refusal(image, (name, level, kind)) == f"Invalid update version {level} for feature {name}. {why}"


@pytest.mark.parametrize("changed", [8, 11, 13, 14, 15, 17, 23, 30])
def test_metadata_goes_down_only_to_where_its_records_are_the_same(changed: int) -> None:
    image = image_of(**{VERSION: changed})
    for kind, why in ((SAFE_DOWNGRADE, LOSES), (UNSAFE_DOWNGRADE, UNSAFE)):
        said = f"Unsupported metadata.version downgrade from {changed} to {changed - 1}. {why}"
        assert refusal(image, (VERSION, changed - 1, kind)) == said


def test_the_level_of_a_dynamic_quorum_stays_and_is_no_record() -> None:
    image = image_of(kraft_version=1)
    assert planned(image, (KRAFT, 1, UPGRADE), (KRAFT, 0, SAFE_DOWNGRADE)) == []
    assert planned(image_of(), (KRAFT, 0, UPGRADE)) == []


def test_eligible_leaders_need_a_level_of_the_metadata_and_min_isr_of_the_cluster() -> None:
    old = image_of(metadata_version=22)
    said = f"Invalid update version 1 for feature {ELR}. {NEEDS_23}"
    assert refusal(old, (ELR, 1, UPGRADE)) == said
    assert refusal(image_of(), (ELR, 1, UPGRADE)) == said
    both = planned(old, (ELR, 1, UPGRADE), (VERSION, 23, UPGRADE))
    assert [record.name for record in both] == [ELR, "min.insync.replicas", VERSION]
    image = image_of(metadata_version=23)
    level, off = (FeatureLevelRecord(name=ELR, feature_level=each) for each in (1, 0))
    for_all = config_record(4, "", "min.insync.replicas", "3")
    assert planned(image, (ELR, 1, UPGRADE)) == [level, for_all]
    assert planned(image, (ELR, 0, UPGRADE)) == [off]
    for resource in ((4, ""), (4, "1"), (2, "topic")):
        image.apply(config_record(*resource, "min.insync.replicas", "2"))
    image.apply(config_record(4, "2", "log.retention.ms", "2"))
    own = config_record(4, "1", "min.insync.replicas", None)
    assert planned(image, (ELR, 1, UPGRADE)) == [level, own]


def test_all_of_a_request_or_nothing_and_the_last_of_a_feature_counts() -> None:
    image = image_of(metadata_version=30)
    assert refusal(image, (GROUP, 1, UPGRADE), (TRANSACTION, 3, UPGRADE)).startswith(
        "Invalid update version 3"
    )
    found = planned(image, (GROUP, 9, UPGRADE), (TRANSACTION, 2, UPGRADE), (GROUP, 1, UPGRADE))
    assert [(record.name, record.feature_level) for record in found] == [(GROUP, 1), (TRANSACTION, 2)]


def test_version_0_of_the_request_only_goes_up() -> None:
    kind = UpdateFeaturesRequest.FeatureUpdateKey
    item = kind(feature=GROUP, max_version_level=1, upgrade_type=SAFE_DOWNGRADE, allow_downgrade=True)
    old, new = update_of(item, 0), update_of(item, 1)
    assert (old.name, old.level, old.kind, new.kind) == (GROUP, 1, UPGRADE, SAFE_DOWNGRADE)


@pytest.mark.parametrize(
    ("level", "broker", "partition"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (22, 3, 1), (23, 3, 2), (29, 3, 2), (30, 4, 2)],
)
def test_records_are_of_the_versions_that_a_level_knows(level: int, broker: int, partition: int) -> None:
    assert features.register_broker_version(level) == broker
    assert features.partition_version(level) == partition
