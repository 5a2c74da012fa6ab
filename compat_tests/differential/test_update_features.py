"""UpdateFeatures: levels up and down, what each kind of downgrade allows, and several features together."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad.cluster.features import NOT_SERVED
from pykafkad.messages import ApiVersionsRequest, UpdateFeaturesRequest

Key = UpdateFeaturesRequest.FeatureUpdateKey

LEVELS = [
    *(("metadata.version", level) for level in (30, 31, 29, 28, 23, 22, 20, 7, 6, 1, 0, -1, 32767)),
    *(("group.version", level) for level in (1, 0, 2, -1)),
    *(("transaction.version", level) for level in (2, 1, 0, 3)),
    *(("eligible.leader.replicas.version", level) for level in (1, 0, 2)),
    *(("kraft.version", level) for level in (0, 2, -1)),  # to 1: see test_kraft_version
    *(("share.version", level) for level in (1, 0, 2)),
    *(("streams.version", level) for level in (1, 0, 2)),
    *(("no.such.version", level) for level in (1, 0, -1)),
    ("", 1),
]
UPGRADE, SAFE, UNSAFE = 1, 2, 3


def request(version: int, *updates: tuple[str, int, int], validate_only: bool = False) -> Any:
    if version == 0:
        keys = [
            Key(feature=name, max_version_level=level, allow_downgrade=kind > 1)
            for name, level, kind in updates
        ]
        return UpdateFeaturesRequest(feature_updates=keys)
    keys = [Key(feature=name, max_version_level=level, upgrade_type=kind) for name, level, kind in updates]
    return UpdateFeaturesRequest(feature_updates=keys, validate_only=validate_only)


def same_levels(pair: Pair) -> None:
    """Kafka's broker applies its controller's changes a moment later."""
    asked = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        ours, theirs = (
            {
                row.name: row.max_version_level
                for row in side.demand(asked, 4).finalized_features
                if row.name not in NOT_SERVED
            }
            for side in pair.sides
        )
        if ours == theirs:
            break
        time.sleep(0.02)
    pair.same(asked, 4)


@pytest.fixture(autouse=True)
def levels_as_before(pair: Pair) -> Iterator[None]:
    yield
    for name, level in (
        ("group.version", 1),
        ("transaction.version", 2),
        ("eligible.leader.replicas.version", 1),
        ("share.version", 1),
        ("streams.version", 1),
    ):
        pair.same(request(2, (name, level, UPGRADE)), 2)
    same_levels(pair)


@at_every_version("UpdateFeatures", since=1)
@pytest.mark.parametrize("kind", [UPGRADE, SAFE, UNSAFE, 0, 4, -1])
def test_every_feature_to_all_kinds_of_levels(pair: Pair, version: int, kind: int) -> None:
    for name, level in LEVELS:
        pair.same(request(version, (name, level, kind), validate_only=True), version)


@pytest.mark.parametrize("kind", [UPGRADE, SAFE])
def test_version_0_says_only_whether_a_downgrade_is_allowed(pair: Pair, kind: int) -> None:
    for name, level in LEVELS:
        if name != "share.version" and name != "streams.version":
            pair.same(request(0, (name, level, kind)), 0)


@at_every_version("UpdateFeatures", since=1)
def test_down_and_up_again(pair: Pair, version: int) -> None:
    pair.same(request(version, ("transaction.version", 0, SAFE), ("group.version", 0, SAFE)), version)
    same_levels(pair)
    for kind in (SAFE, UNSAFE):
        pair.same(request(version, ("group.version", 1, kind)), version)
    pair.same(request(version, ("transaction.version", 1, UPGRADE)), version)
    same_levels(pair)
    pair.same(request(version, ("eligible.leader.replicas.version", 0, SAFE)), version)
    pair.same(request(version, ("eligible.leader.replicas.version", 1, UPGRADE)), version)
    same_levels(pair)


@at_every_version("UpdateFeatures", since=1)
def test_one_refusal_refuses_them_all(pair: Pair, version: int) -> None:
    pair.same(request(version, ("group.version", 0, SAFE), ("transaction.version", 3, UPGRADE)), version)
    pair.same(request(version, ("no.such.version", 1, UPGRADE), ("group.version", 0, SAFE)), version)
    same_levels(pair)


@at_every_version("UpdateFeatures")
def test_one_feature_twice(pair: Pair, version: int) -> None:
    pair.same(
        request(version, ("transaction.version", 1, SAFE), ("transaction.version", 2, UPGRADE)), version
    )
    pair.same(
        request(version, ("transaction.version", 2, UPGRADE), ("transaction.version", 1, UPGRADE)), version
    )


@at_every_version("UpdateFeatures")
@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1])
def test_nothing_asked(pair: Pair, version: int, timeout_ms: int) -> None:
    pair.same(UpdateFeaturesRequest(timeout_ms=timeout_ms), version)
    asked = request(version, ("group.version", 1, UPGRADE))
    asked.timeout_ms = timeout_ms
    pair.same(asked, version)


def test_kraft_version(pair: Pair) -> None:
    asked = request(2, ("kraft.version", 1, UPGRADE), validate_only=True)
    pair.differ("a quorum that is made dynamic", asked, 2)
    pair.same(request(2, ("kraft.version", 1, SAFE), validate_only=True), 2)


@at_every_version("UpdateFeatures", since=1)
def test_a_text_that_no_answer_can_carry(pair: Pair, version: int) -> None:
    pair.same(request(version, ("f" * 32_700, 1, UPGRADE)), version)
