"""UpdateFeatures: which feature levels may change to which, in Kafka's words (KIP-584, KIP-1022).

Nothing here writes or waits. Invariant: a level that is refused refuses the whole request, so the features of a
request change together or not at all. kraft.version is not the metadata log's to change (it needs controllers
that reach each other by listeners of their own, which this node has not), and stays as it is.
"""

from __future__ import annotations

from pykafkad.cluster.features import ELIGIBLE_LEADER_REPLICAS, KRAFT_VERSION, METADATA_VERSION, SUPPORTED
from pykafkad.cluster.image import ALL_BROKERS, BROKER_RESOURCE
from pykafkad.cluster.metadata_records import config_record
from pykafkad.errors import INVALID_UPDATE_VERSION, KafkaError
from pykafkad.messages import FeatureLevelRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.cluster.image import Image
    from pykafkad.cluster.metadata_records import Record
    from pykafkad.messages import UpdateFeaturesRequest

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
MIN_ISR = "min.insync.replicas"

# metadata.version levels at which the records changed: a downgrade may not cross one.
CHANGED_RECORDS = frozenset((7, 8, 11, 13, 14, 15, 17, 23, 30))
# (feature, level) -> the metadata.version level that it needs
NEEDS_METADATA_VERSION = {(ELIGIBLE_LEADER_REPLICAS, 1): 23}

FAILED_ALL = "The update failed for all features since the following feature had an error: "


class Update:
    """One feature of a request: the level it is to have and how it may get there."""

    __slots__ = ("kind", "level", "name")

    def __init__(self, name: str, level: int, kind: int) -> None:
        self.name = name
        self.level = level
        self.kind = kind


def plan(updates: Sequence[Update], image: Image, node_id: int, min_isr: str) -> list[Record]:
    """The records of these updates, or KafkaError. Of a feature that is named twice the last update counts.

    `min_isr`: min.insync.replicas of this broker's properties; eligible leader replicas want it cluster-wide.
    """
    wanted = {update.name: update for update in updates}
    proposed = {**image.features, **{name: update.level for name, update in wanted.items()}}
    records: list[Record] = []
    for update in wanted.values():
        problem = why_refused(update, image.finalized_features.get(update.name, 0), proposed, node_id)
        if problem is not None:
            raise KafkaError(INVALID_UPDATE_VERSION, FAILED_ALL + problem)
        if update.name != KRAFT_VERSION:
            records.append((FeatureLevelRecord(name=update.name, feature_level=update.level), 0))
        if update.name == ELIGIBLE_LEADER_REPLICAS and update.level > 0:
            records += safe_min_isr(image, min_isr)
    return records


def why_refused(update: Update, current: int, proposed: dict[str, int], node_id: int) -> str | None:
    """Kafka's text on why this feature cannot have this level, or None."""
    name, level, kind = update.name, update.level, update.kind
    reason = reason_against(update, current, node_id)
    if reason is not None:
        return f"Invalid update version {level} for feature {name}. {reason}"
    if name == METADATA_VERSION:
        return reason_against_downgrade(current, level, kind)
    if name not in SUPPORTED:
        return f"Invalid update version {level} for feature {name}. Feature {name} not found."
    needed = NEEDS_METADATA_VERSION.get((name, level), 0)
    if proposed.get(METADATA_VERSION, 0) < needed:
        return (
            f"Invalid update version {level} for feature {name}. {name} could not be set to {level} because "
            f"it depends on {METADATA_VERSION} level {needed}"
        )
    return None


def reason_against(update: Update, current: int, node_id: int) -> str | None:
    level, kind = update.level, update.kind
    if kind not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    supported = SUPPORTED.get(update.name)
    if supported is None and level > 0:
        return f"Local controller {node_id} does not support this feature."
    if supported is not None and not supported[0] <= level <= supported[1]:
        return f"Local controller {node_id} only supports versions {supported[0]}-{supported[1]}"
    if level < current and kind == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if level > current and kind != UPGRADE:
        return "Can't downgrade to a newer version."
    if level > current and update.name == KRAFT_VERSION:
        return f"Node {node_id} has no listener that other controllers could reach it at."
    return None


def reason_against_downgrade(current: int, level: int, kind: int) -> str | None:
    """metadata.version goes down only where no record changed in between."""
    if not any(level < changed <= current for changed in CHANGED_RECORDS):
        return None
    said = f"Unsupported {METADATA_VERSION} downgrade from {current} to {level}. "
    if kind == UNSAFE_DOWNGRADE:
        return said + "Unsafe metadata downgrade is not supported in this version."
    return said + (
        "Refusing to perform the requested downgrade because it might delete metadata information."
    )


def safe_min_isr(image: Image, min_isr: str) -> list[Record]:
    """With eligible leader replicas min.insync.replicas is the cluster's, never a single broker's (KIP-966)."""
    records: list[Record] = []
    if MIN_ISR not in image.broker_configs(ALL_BROKERS):
        records.append((config_record(BROKER_RESOURCE, ALL_BROKERS, MIN_ISR, min_isr), 0))
    for (kind, broker), configs in image.configs.items():
        if kind == BROKER_RESOURCE and broker != ALL_BROKERS and MIN_ISR in configs:
            records.append((config_record(BROKER_RESOURCE, broker, MIN_ISR, None), 0))
    return records


def update_of(item: UpdateFeaturesRequest.FeatureUpdateKey, version: int) -> Update:
    """One of an UpdateFeaturesRequest. Version 0's leave to go down is not looked at, as in Kafka."""
    return Update(item.feature, item.max_version_level, item.upgrade_type if version > 0 else UPGRADE)
