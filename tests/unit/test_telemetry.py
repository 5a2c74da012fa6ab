"""Clients' telemetry: subscriptions, instances, intervals, and what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from config_kit import CLIENT_METRICS, DELETE, SET, alter, context_of, handler, open_configurable

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from pykafkad.pure import telemetry
from pykafkad.pure.telemetry import Match, MatchError, Subscription, Telemetry

ID = bytes(range(1, 17))
NOW_MS = 1_700_000_000_000


def machine(**subscriptions: Subscription) -> Telemetry:
    made = Telemetry(1000, lambda data: len(data))
    for name, subscription in subscriptions.items():
        made.subscribe(name, subscription)
    return made


def to(*metrics: str, interval_ms: int = 1000, match: str = "") -> Subscription:
    return Subscription(metrics, interval_ms, Match(match.split(",") if match else []))


def attributes(**values: str) -> Any:
    return lambda instance_id: {"client_id": "app", **values}


def get(
    made: Telemetry, now_ms: int = NOW_MS, instance_id: bytes = ID, connection: Any = 1, **values: str
) -> Any:
    return made.get(instance_id, attributes(**values), connection, now_ms)


def push(made: Telemetry, subscription_id: int, now_ms: int = NOW_MS, **fields: Any) -> int:
    """The error code, 0 if it was taken."""
    given = {"is_terminating": False, "compression": 0, "size": 3, "instance_id": ID, **fields}
    instance_id = given.pop("instance_id")
    try:
        made.push(instance_id, attributes(), 1, now_ms, subscription_id=subscription_id, **given)
    except KafkaError as error:
        return error.code
    return 0


def test_a_client_gets_what_all_matching_subscriptions_say() -> None:
    made = machine(
        all=to("a", "b", interval_ms=5000),
        mine=to("b", "c", interval_ms=700, match="client_id=a.p"),
        other=to("never", interval_ms=100, match="client_id=ap"),
    )
    found = get(made)
    assert sorted(found.metrics) == ["a", "b", "c"] and found.interval_ms == 700
    assert get(machine(), instance_id=ID).metrics == []
    assert get(machine(one=to("a"), all=to("*"))).metrics == ["*"]


def test_all_patterns_must_match_the_whole_attribute() -> None:
    both = Match(["client_id=app", "client_software_name = ja.*"])
    assert both.takes({"client_id": "app", "client_software_name": "java"})
    assert not both.takes({"client_id": "app", "client_software_name": "a java"})
    assert not both.takes({"client_id": "app", "client_software_name": None})
    assert Match([]).takes({})


@pytest.mark.parametrize(
    "text", ["client_id", "client_id=", "=x", "nosuch=x", "client_id=a=b", "client_id=[", ""]
)
def test_patterns_that_are_none(text: str) -> None:
    with pytest.raises(MatchError, match="Illegal client matching pattern"):
        Match([text])


def test_who_asks_before_the_interval_is_over_is_told_so() -> None:
    made = machine(one=to("a", interval_ms=1000))
    get(made)
    with pytest.raises(KafkaError) as refused:
        get(made, NOW_MS + 999)
    assert refused.value.code == errors.THROTTLING_QUOTA_EXCEEDED
    assert get(made, NOW_MS + 1000).metrics == ["a"]


def test_a_changed_subscription_may_be_asked_for_at_once() -> None:
    made = machine(one=to("a"))
    before = get(made)
    made.subscribe("one", to("b"))
    after = get(made, NOW_MS + 1)
    assert after.metrics == ["b"]
    made.subscribe("one", None)
    made.subscribe("never-there", None)
    assert get(made, NOW_MS + 2).metrics == []
    assert before.metrics == ["a"]


def test_pushes_come_after_the_question_and_then_at_intervals() -> None:
    made = machine(one=to("a", interval_ms=1000))
    known = get(made).subscription_id
    assert push(made, known, NOW_MS + 1) == 0
    assert push(made, known, NOW_MS + 1000) == errors.THROTTLING_QUOTA_EXCEEDED
    assert push(made, known, NOW_MS + 1001) == 0
    assert push(made, known, NOW_MS + 1002, is_terminating=True) == 0
    assert push(made, known, NOW_MS + 9000) == errors.INVALID_REQUEST, "it said that it was the last"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"size": 1000}, 0),
        ({"size": 1001}, errors.TELEMETRY_TOO_LARGE),
        ({"compression": 4}, 0),
        ({"compression": 5}, errors.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression": -1}, errors.UNSUPPORTED_COMPRESSION_TYPE),
        ({"instance_id": bytes(16)}, errors.INVALID_REQUEST),
        ({"instance_id": bytes(15) + b"\1"}, errors.INVALID_REQUEST),
    ],
    ids=str,
)
def test_what_may_be_pushed(fields: dict[str, Any], code: int) -> None:
    made = machine(one=to("a"))
    assert push(made, get(made).subscription_id, **fields) == code


def test_a_subscription_that_is_not_the_clients_is_unknown() -> None:
    made = machine(one=to("a"))
    assert push(made, get(made).subscription_id + 1) == errors.UNKNOWN_SUBSCRIPTION_ID


def test_instances_go_with_their_connections_with_time_and_with_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = machine(one=to("a", interval_ms=1000))
    get(made, connection="gone")
    made.disconnected("gone")
    made.disconnected("never here")
    assert made.instances == {}
    get(made)
    get(made, NOW_MS + 60_000, instance_id=bytes(16))
    assert list(made.instances) == [bytes(16)], "silent for a minute"
    monkeypatch.setattr(telemetry, "INSTANCES_MAX", 3)
    for number in range(1, 6):
        get(made, NOW_MS + 60_000, instance_id=bytes([number]) * 16, connection=number)
    assert [instance_id[0] for instance_id in made.instances] == [3, 4, 5]
    assert made._of_connection.keys() == {3, 4, 5}


# -- the handlers


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    made = open_configurable(tmp_path)
    made.clock.advance(10_000_000)
    return made


def test_a_client_asks_and_pushes(broker: Any) -> None:
    alter(
        broker, CLIENT_METRICS, "fast", ("metrics", SET, "a.,b."), ("match", SET, "client_software_name=java")
    )
    context = context_of()
    answer = handler("get_telemetry_subscriptions").handle(
        broker, GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16)), context
    )
    assert answer.error_code == 0 and answer.client_instance_id != bytes(16)
    assert sorted(answer.requested_metrics) == ["a.", "b."]
    request = PushTelemetryRequest(
        client_instance_id=answer.client_instance_id,
        subscription_id=answer.subscription_id,
        compression_type=1,
        metrics=gzip.compress(b"metrics"),
    )
    assert handler("push_telemetry").handle(broker, request, context).error_code == 0
    assert broker.telemetry.pushes == 1 and broker.telemetry.pushed_bytes == len(request.metrics)


@pytest.mark.parametrize(
    "metrics",
    [b"not gzip", gzip.compress(bytes(1048577)), gzip.compress(b"abc")[:-3]],
    ids=["not gzip", "too much", "cut"],  # the bytes have the time in them
)
def test_metrics_that_do_not_unfold_or_unfold_to_too_much(broker: Any, metrics: bytes) -> None:
    context = context_of()
    get = GetTelemetrySubscriptionsRequest(client_instance_id=ID)
    known = handler("get_telemetry_subscriptions").handle(broker, get, context).subscription_id
    request = PushTelemetryRequest(
        client_instance_id=ID, subscription_id=known, compression_type=1, metrics=metrics
    )
    assert handler("push_telemetry").handle(broker, request, context).error_code == errors.INVALID_RECORD
    assert broker.telemetry.pushes == 0


def test_a_subscription_without_configs_is_gone(broker: Any) -> None:
    alter(broker, CLIENT_METRICS, "fast", ("metrics", SET, "a"))
    assert broker.telemetry.subscriptions.keys() == {"fast"}
    alter(broker, CLIENT_METRICS, "fast", ("metrics", DELETE, None))
    assert broker.telemetry.subscriptions == {}
