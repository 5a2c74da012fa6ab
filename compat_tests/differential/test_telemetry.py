"""GetTelemetrySubscriptions and PushTelemetry, which Kafka answers without advertising them if it has no telemetry
plugin.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.differential.config_requests import (
    CLIENT_METRICS,
    DELETE,
    SET,
    alter_one,
    describe_one,
    settled,
)
from compat_tests.differential.pair import Pair
from pykafkad.messages import (
    ApiVersionsRequest,
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)

SUBSCRIPTIONS = {
    "all-raw": {"metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.", "match": "client_id=raw"},
    "fast": {
        "metrics": "one,two",
        "interval.ms": "60000",
        "match": "client_software_name=fast,client_id=r..",
    },
    "everything": {"metrics": "*", "match": "client_software_name=greedy"},
    "nobody": {"metrics": "never", "match": "client_id=ra"},
    "nothing": {"interval.ms": "1000000"},
}


tests_begun = itertools.count(1)
test_number = 0


@pytest.fixture(autouse=True)
def other_clients() -> None:
    """Kafka forgets a client some time after its connection closed: each test has clients of its own."""
    global test_number
    test_number = next(tests_begun)


def instance(number: int) -> bytes:
    return bytes([9, number, test_number]) + bytes(range(13))


def get(number: int) -> Any:
    return GetTelemetrySubscriptionsRequest(client_instance_id=instance(number))


def push(number: int, subscription_id: int, **fields: Any) -> Any:
    given = {"terminating": False, "compression_type": 0, "metrics": b"abc", **fields}
    return PushTelemetryRequest(client_instance_id=instance(number), subscription_id=subscription_id, **given)


@pytest.fixture
def subscribed(pair: Pair) -> Iterator[Pair]:
    for name, configs in SUBSCRIPTIONS.items():
        pair.same(alter_one(CLIENT_METRICS, name, *((key, SET, value) for key, value in configs.items())), 1)
        settled(pair, describe_one(CLIENT_METRICS, name), 4)
    for side in pair.sides:
        side.hang_up()
    yield pair
    for name, configs in SUBSCRIPTIONS.items():
        pair.same(alter_one(CLIENT_METRICS, name, *((key, DELETE, None) for key in configs)), 1)
        settled(pair, describe_one(CLIENT_METRICS, name), 4)
    for side in pair.sides:
        side.hang_up()


def test_neither_is_advertised(pair: Pair) -> None:
    for side in pair.sides:
        assert not {71, 72} & {row.api_key for row in side.demand(ApiVersionsRequest(), 0).api_keys}


@pytest.mark.parametrize("software", ["fast", "greedy", "slow"])
def test_what_a_client_is_subscribed_to(subscribed: Pair, software: str) -> None:
    for side in subscribed.sides:
        side.demand(ApiVersionsRequest(client_software_name=software, client_software_version="1.0"), 4)
    answer = subscribed.same(get(1), 0)
    assert answer.error_code == 0
    assert ("one" in answer.requested_metrics) == (software == "fast")


def test_a_new_client_gets_an_id(pair: Pair) -> None:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16))
    for side in pair.sides:
        answer = side.demand(request, 0)
        assert answer.client_instance_id != bytes(16)
        assert answer.error_code == 0


def test_who_asks_again_too_soon_is_told_so(subscribed: Pair) -> None:
    subscribed.same(get(2), 0)
    assert subscribed.same(get(2), 0).error_code


def test_pushing(subscribed: Pair) -> None:
    known = subscribed.same(get(3), 0).subscription_id
    assert subscribed.same(push(3, known), 0).error_code == 0
    assert subscribed.same(push(3, known), 0).error_code, "too soon"
    subscribed.same(push(3, known, terminating=True), 0)
    subscribed.same(push(3, known, terminating=True), 0)
    subscribed.same(push(3, known), 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"compression_type": 4},
        {"compression_type": 1, "metrics": gzip.compress(b"abc")},
        {"compression_type": 1, "metrics": gzip.compress(b"abc")[:-5]},
        {"compression_type": 1, "metrics": gzip.compress(bytes(1048576))},
        {"compression_type": 1, "metrics": gzip.compress(bytes(1048577))},
        {"compression_type": 2, "metrics": b"abc"},
        {"compression_type": 3, "metrics": b"abc"},
        {"compression_type": 4, "metrics": b""},
        {"compression_type": 5},
        {"compression_type": -1},
        {"metrics": b""},
        {"metrics": b"x" * 1048576},
        {"metrics": b"x" * 1048577},
        {"terminating": True},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_what_is_pushed(subscribed: Pair, fields: dict[str, Any]) -> None:
    known = subscribed.same(get(4), 0).subscription_id
    subscribed.same(push(4, known, **fields), 0)


def test_wrong_subscriptions_and_clients(subscribed: Pair) -> None:
    known = subscribed.same(get(5), 0).subscription_id
    subscribed.same(push(5, known + 1), 0)
    subscribed.same(push(5, known), 0)
    subscribed.same(push(6, 1), 0)
    for reserved in (bytes(16), bytes(15) + b"\1"):
        subscribed.same(PushTelemetryRequest(client_instance_id=reserved, metrics=b"abc"), 0)


WRONG_ID, GOOD, UNKNOWN_CODEC, TOO_LARGE, GET = "wrong id", "good", "unknown codec", "too large", "get"


@pytest.mark.parametrize(
    "steps",
    [
        (WRONG_ID, GET, GET),
        (UNKNOWN_CODEC, GET, GET),
        (TOO_LARGE, GET),
        (GOOD, GET, GET),
        (WRONG_ID, GOOD, GET),
        (WRONG_ID, GET, GOOD, GET),
        (WRONG_ID, GET, WRONG_ID, GET),
        (UNKNOWN_CODEC, GET, UNKNOWN_CODEC, GET),
        (GET, WRONG_ID, GET, GET),
        (GET, GET, WRONG_ID, GOOD, GET),
    ],
    ids=", ".join,
)
def test_after_some_errors_a_client_may_ask_again_at_once(pair: Pair, steps: tuple[str, ...]) -> None:
    for side in pair.sides:
        side.hang_up()
    known = pair.same(get(9), 0).subscription_id
    fields: dict[str, dict[str, Any]] = {
        UNKNOWN_CODEC: {"compression_type": 5},
        TOO_LARGE: {"metrics": bytes(1048577)},
    }
    for step in steps:
        pair.same(get(9) if step == GET else push(9, known + (step == WRONG_ID), **fields.get(step, {})), 0)


def test_a_changed_subscription_is_told_at_once(subscribed: Pair) -> None:
    before = subscribed.same(get(7), 0)
    subscribed.same(alter_one(CLIENT_METRICS, "all-raw", ("metrics", SET, "other")), 1)
    settled(subscribed, describe_one(CLIENT_METRICS, "all-raw"), 4)
    after = subscribed.same(get(7), 0)
    assert after.requested_metrics == ["other"]
    assert after.subscription_id != before.subscription_id
