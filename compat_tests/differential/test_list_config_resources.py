"""ListConfigResources: which types can be listed, and which resources there are of each."""

from __future__ import annotations

import time

import pytest

from compat_tests.differential.config_requests import (
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    alter_one,
    describe_one,
    settled,
)
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import ListConfigResourcesRequest

KINDS: list[list[int]] = [[], [2], [4], [8], [16], [32], [32, 2], [2, 2], [0], [1], [-1], [3], [64], [16, 64]]


@at_every_version("ListConfigResources")
@pytest.mark.parametrize("kinds", KINDS, ids=str)
def test_kinds(pair: Pair, version: int, kinds: list[int]) -> None:
    pair.topic("listed")
    if version == 0:
        pair.same(ListConfigResourcesRequest(), version)
    else:
        settled(pair, ListConfigResourcesRequest(resource_types=kinds), version)


@at_every_version("ListConfigResources")
def test_subscriptions_and_groups_are_listed_while_they_have_configs(pair: Pair, version: int) -> None:
    keys = {CLIENT_METRICS: "interval.ms", GROUP: "consumer.session.timeout.ms"}
    for resource_type, key in keys.items():
        pair.same(alter_one(resource_type, f"listed-{version}", (key, SET, "46000")), 1)
        settled(pair, describe_one(resource_type, f"listed-{version}"), 4)
    settled(pair, ListConfigResourcesRequest(), version)
    for resource_type, key in keys.items():
        pair.same(alter_one(resource_type, f"listed-{version}", (key, DELETE, None)), 1)
    time.sleep(0.05)
    settled(pair, ListConfigResourcesRequest(), version)
