"""FindCoordinator: one key or many, of each type, valid and invalid."""

from __future__ import annotations

import time
from typing import Any

import pytest

from compat_tests.differential.meant import LATER
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad.messages import FindCoordinatorRequest

COORDINATOR_NOT_AVAILABLE = 15
FOUND_SECONDS = 30
GROUP, TRANSACTION, SHARE = 0, 1, 2
SERVED = [GROUP, TRANSACTION]
WRONG = [3, -1, 127] if "share groups" in LATER else [SHARE, 3, -1, 127]


def settle(pair: Pair, request: FindCoordinatorRequest, version: int) -> None:
    """Ask until both have created their internal topic."""
    deadline = time.monotonic() + FOUND_SECONDS
    for side in pair.sides:
        while COORDINATOR_NOT_AVAILABLE in codes(side.demand(request, version)):
            assert time.monotonic() < deadline, f"{side.name} finds no coordinator"
            time.sleep(0.05)


def codes(answer: Any) -> list[int]:
    return [answer.error_code, *(coordinator.error_code for coordinator in answer.coordinators)]


@at_every_version("FindCoordinator", until=3)
def test_a_group(pair: Pair, version: int) -> None:
    request = FindCoordinatorRequest(key="group")
    settle(pair, request, version)
    pair.same(request, version)


@at_every_version("FindCoordinator", until=3)
def test_an_empty_key(pair: Pair, version: int) -> None:
    settle(pair, FindCoordinatorRequest(key="group"), version)
    pair.same(FindCoordinatorRequest(key=""), version)


@at_every_version("FindCoordinator", since=1, until=3)
@pytest.mark.parametrize("key_type", SERVED + WRONG)
def test_key_types(pair: Pair, version: int, key_type: int) -> None:
    request = FindCoordinatorRequest(key="some", key_type=key_type)
    if key_type in SERVED:
        settle(pair, request, version)
    pair.same(request, version)


@at_every_version("FindCoordinator", since=4)
@pytest.mark.parametrize("keys", [["group"], ["a", "b"], ["a", "a"], [""], [], ["a", "", "b"], ["é"]])
@pytest.mark.parametrize("key_type", SERVED)
def test_many_keys(pair: Pair, version: int, keys: list[str], key_type: int) -> None:
    settle(pair, FindCoordinatorRequest(coordinator_keys=["any"], key_type=key_type), version)
    pair.same(FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type), version)


@at_every_version("FindCoordinator", since=4)
@pytest.mark.parametrize("key_type", WRONG)
@pytest.mark.parametrize("keys", [["group"], ["a:b"], ["g:AAAAAAAAAAAAAAAAAAAAAA:x"], ["::"], [""], []])
def test_share_keys_and_unknown_types(pair: Pair, version: int, key_type: int, keys: list[str]) -> None:
    pair.same(FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type), version)
