"""Clients' telemetry: subscriptions, instances, intervals, and what is refused."""

from __future__ import annotations

import gzip
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from pykafkad.pure import telemetry
from pykafkad.pure.regex.automaton import finish, for_text
from pykafkad.pure.regex.java_syntax import NAMED_MAX, Unsupported, parse
from pykafkad.pure.regex.parsing import InvalidPattern
from pykafkad.pure.telemetry import Match, MatchError, Subscription, Telemetry
from pykafkad.slices import is_work
from pykafkad.unfolding import Unfolding
from tests.unit.config_kit import CLIENT_METRICS, DELETE, SET, alter, context_of, handler, open_configurable

ID = bytes(range(1, 17))
NOW_MS = 1_700_000_000_000


def machine(**subscriptions: Subscription) -> Telemetry:
    made = Telemetry(1000, lambda data: len(data))
    for name, subscription in subscriptions.items():
        made.subscribe(name, subscription)
    return made


def to(*metrics: str, interval_ms: int = 1000, match: str = "") -> Subscription:
    return Subscription(metrics, interval_ms, Match(match.split(",") if match else []))


def evaluated(made: Telemetry, instance_id: bytes, now_ms: int, **values: str) -> Any:
    """What the handlers ask for at first."""
    if made.knows(instance_id, now_ms):
        return None
    return finish(made.evaluate(instance_id, {"client_id": "app", **values}))


def get(
    made: Telemetry, now_ms: int = NOW_MS, instance_id: bytes = ID, connection: Any = 1, **values: str
) -> Any:
    return made.get(instance_id, evaluated(made, instance_id, now_ms, **values), connection, now_ms)


def push(made: Telemetry, subscription_id: int, now_ms: int = NOW_MS, **fields: Any) -> int:
    """Push metrics; returns the error code, 0 if they were accepted."""
    given = {"is_terminating": False, "compression": 0, "size": 3, "instance_id": ID, **fields}
    instance_id = given.pop("instance_id")
    try:
        known = evaluated(made, instance_id, now_ms)
        made.push(instance_id, known, 1, now_ms, subscription_id=subscription_id, **given)
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
    nothing = get(machine())
    assert nothing.metrics == [] and nothing.interval_ms == 300_000
    assert get(machine(one=to("a"), all=to("*"))).metrics == ["*"]


def test_all_patterns_must_match_the_whole_attribute() -> None:
    both = Match(["client_id=app", "client_software_name = ja.*"])
    assert finish(both.takes({"client_id": "app", "client_software_name": "java"}))
    assert not finish(both.takes({"client_id": "app", "client_software_name": "a java"}))
    assert not finish(both.takes({"client_id": "app", "client_software_name": None}))
    assert finish(Match([]).takes({}))


@pytest.mark.parametrize(
    "text", ["client_id", "client_id=", "=x", "nosuch=x", "client_id=a=b", "client_id=[", ""]
)
def test_patterns_that_are_none(text: str) -> None:
    with pytest.raises(MatchError, match=f"^Illegal client matching pattern: {re.escape(text)}$"):
        Match([text])


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a)\\1", "backreferences are not supported"),
        ("(?!app).*", "lookaheads are not supported"),
        ("a++", "possessive and repeated repetitions are not supported"),
        ("(a{50}){50}", "expressions as large as this are not supported"),
    ],
)
def test_what_java_takes_and_we_do_not_is_refused_with_the_reason(
    broker: Any, pattern: str, why: str
) -> None:
    code, message = alter(broker, CLIENT_METRICS, "one", ("match", SET, f"client_id={pattern}"))
    assert code == errors.INVALID_CONFIG
    assert message == f"Illegal client matching pattern: client_id={pattern}: {why}"


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|aa)+b", "(.*a){20}b", "(a?){30}a{30}b"])
def test_no_pattern_takes_more_than_steps_in_proportion_to_the_client_id(pattern: str) -> None:
    """Python's re (and Java's) practically never finish here."""

    def steps(length: int) -> int:
        automaton = finish(for_text(pattern))
        assert not finish(automaton.matches("a" * length))
        return automaton.steps

    assert steps(36) < 5_000
    assert steps(4_000) < 5 * steps(1_000)


HARD = ".*[ab].{400}"
LONG = "".join(random.Random(1).choices("abcd", k=32_000))


def test_what_would_take_too_long_does_not_match() -> None:
    match = Match([f"client_id={HARD}"])
    assert finish(match.takes({"client_id": LONG[:500] + "a" + LONG[:400]}))
    assert not finish(match.takes({"client_id": LONG}))


def test_a_client_is_matched_in_pieces_once_an_instance(broker: Any) -> None:
    alter(broker, CLIENT_METRICS, "one", ("metrics", SET, "a"), ("match", SET, f"client_id={HARD}"))
    context = context_of()
    context.client_id = LONG
    request = GetTelemetrySubscriptionsRequest(client_instance_id=ID)
    handle = handler("get_telemetry_subscriptions").handle
    pieces = sum(1 for _ in handle(broker, request, context))
    assert pieces > 1_000
    assert handle(broker, request, context).error_code == errors.THROTTLING_QUOTA_EXCEEDED  # at once


def test_subscriptions_that_change_while_a_client_is_matched_count_with_its_next_request() -> None:
    made = machine(one=to("a", match="client_id=app"))
    work = made.evaluate(ID, {"client_id": "app"})
    next(work)
    made.subscribe("one", to("b"))
    assert made.get(ID, finish(work), 1, NOW_MS).metrics == ["a"]
    assert not made.knows(ID, NOW_MS)
    assert get(made, NOW_MS + 1).metrics == ["b"]


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


@pytest.mark.parametrize(
    ("wrong", "fields", "code"),
    [
        (1, {}, errors.UNKNOWN_SUBSCRIPTION_ID),
        (0, {"compression": 5}, errors.UNSUPPORTED_COMPRESSION_TYPE),
    ],
)
def test_who_pushed_by_what_is_over_may_ask_again_at_once_and_once(
    wrong: int, fields: dict[str, Any], code: int
) -> None:
    made = machine(one=to("a", interval_ms=1000))
    known = get(made).subscription_id
    assert push(made, known + wrong, NOW_MS + 1, **fields) == code
    assert get(made, NOW_MS + 2).subscription_id == known
    with pytest.raises(KafkaError) as refused:
        get(made, NOW_MS + 3)
    assert refused.value.code == errors.THROTTLING_QUOTA_EXCEEDED
    assert push(made, known + wrong, NOW_MS + 1001, **fields) == code
    assert push(made, known, NOW_MS + 1002) == errors.THROTTLING_QUOTA_EXCEEDED
    with pytest.raises(KafkaError):
        get(made, NOW_MS + 1003)  # its last error was for being too early


def test_a_push_that_is_too_large_is_no_reason_to_ask_again() -> None:
    made = machine(one=to("a", interval_ms=1000))
    assert push(made, get(made).subscription_id, NOW_MS + 1, size=1001) == errors.TELEMETRY_TOO_LARGE
    with pytest.raises(KafkaError):
        get(made, NOW_MS + 2)


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


def test_who_was_silent_for_too_long_is_not_known() -> None:
    made = machine(one=to("a", interval_ms=1000))
    get(made)
    assert made.knows(ID, NOW_MS + 59_999)
    assert not made.knows(ID, NOW_MS + 60_000)


def test_a_pattern_may_have_so_many_characters_outside_ascii() -> None:
    many = "".join(map(chr, range(0x100, 0x100 + NAMED_MAX)))
    assert finish(finish(for_text(f"[{many}]")).matches(many[-1]))
    with pytest.raises(
        Unsupported, match=f"^more than {NAMED_MAX} different characters outside ASCII are not"
    ):
        parse(f"[{many}\u0400]")


@pytest.mark.parametrize("pattern", ["(?i)*a", "(?i)+a", "(?i)?a", "a(?i)*a", "(?i){2}a"])
def test_flags_alone_cannot_be_repeated_and_groups_can(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        parse(pattern)
    assert finish(for_text(pattern.replace("(?i)", "(?i:b)")))


@pytest.mark.parametrize(
    ("name", "matching"),
    [
        ("Print", range(0x20, 0x7F)),
        ("Graph", range(0x21, 0x7F)),
        ("Cntrl", [*range(0x20), 0x7F]),
        ("Blank", b"\t "),
        ("Space", b"\t\n\v\f\r "),
        ("Digit", range(0x30, 0x3A)),
    ],
)
def test_classes_of_characters_are_javas(name: str, matching: Iterable[int]) -> None:
    made = finish(for_text(f"\\p{{{name}}}"))
    assert [code for code in range(128) if finish(made.matches(chr(code)))] == list(matching)


@pytest.mark.parametrize("flag", "mdux")
def test_flags_that_are_not_supported_are_named(flag: str) -> None:
    with pytest.raises(Unsupported, match=r"^flags but i and s are not supported$"):
        parse(f"(?{flag})a")


# -- the handlers


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    made = open_configurable(tmp_path)
    made.clock.advance(10_000_000)
    made.unfolding = Unfolding()
    return made


def answered(given: Any) -> Any:
    return finish(given) if is_work(given) else given


def test_a_client_asks_and_pushes(broker: Any) -> None:
    alter(
        broker, CLIENT_METRICS, "fast", ("metrics", SET, "a.,b."), ("match", SET, "client_software_name=java")
    )
    context = context_of()
    request = GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16))
    answer = finish(handler("get_telemetry_subscriptions").handle(broker, request, context))
    assert answer.error_code == 0 and answer.client_instance_id != bytes(16)
    assert sorted(answer.requested_metrics) == ["a.", "b."]
    push = PushTelemetryRequest(
        client_instance_id=answer.client_instance_id,
        subscription_id=answer.subscription_id,
        compression_type=1,
        metrics=gzip.compress(b"metrics"),
    )
    assert answered(handler("push_telemetry").handle(broker, push, context)).error_code == 0
    assert broker.telemetry.pushes == 1 and broker.telemetry.pushed_bytes == len(push.metrics)


@pytest.mark.parametrize(
    "metrics",
    [b"not gzip", gzip.compress(bytes(1048577)), gzip.compress(b"abc")[:-3]],
    ids=["not gzip", "too much", "cut"],  # the bytes have the time in them
)
def test_metrics_that_do_not_unfold_or_unfold_to_too_much(broker: Any, metrics: bytes) -> None:
    context = context_of()
    get = GetTelemetrySubscriptionsRequest(client_instance_id=ID)
    known = finish(handler("get_telemetry_subscriptions").handle(broker, get, context)).subscription_id
    push = PushTelemetryRequest(
        client_instance_id=ID, subscription_id=known, compression_type=1, metrics=metrics
    )
    given = handler("push_telemetry").handle(broker, push, context)
    assert answered(given).error_code == errors.INVALID_RECORD
    assert broker.telemetry.pushes == 0


def test_metrics_that_take_long_to_unfold_are_unfolded_in_slices(broker: Any) -> None:
    """A megabyte of gzip members without anything in them."""
    context = context_of()
    get = GetTelemetrySubscriptionsRequest(client_instance_id=ID)
    known = finish(handler("get_telemetry_subscriptions").handle(broker, get, context)).subscription_id
    metrics = gzip.compress(b"") * 50_000
    push = PushTelemetryRequest(
        client_instance_id=ID, subscription_id=known, compression_type=1, metrics=metrics
    )
    work = handler("push_telemetry").handle(broker, push, context)
    assert sum(1 for _ in work) > 49_000
    assert broker.telemetry.pushes == 1


def test_a_subscription_without_configs_is_gone(broker: Any) -> None:
    alter(broker, CLIENT_METRICS, "fast", ("metrics", SET, "a"))
    assert broker.telemetry.subscriptions.keys() == {"fast"}
    alter(broker, CLIENT_METRICS, "fast", ("metrics", DELETE, None))
    assert broker.telemetry.subscriptions == {}


def test_who_asks_twice_before_it_is_known_is_one_instance() -> None:
    made = machine(one=to("a"))
    first, second = (evaluated(made, ID, NOW_MS) for _ in range(2))
    assert made.get(ID, first, 1, NOW_MS).metrics == ["a"]
    with pytest.raises(KafkaError) as refused:
        made.get(ID, second, 1, NOW_MS)
    assert refused.value.code == errors.THROTTLING_QUOTA_EXCEEDED


def test_compressions_are_offered_as_kafka_does() -> None:
    assert telemetry.COMPRESSIONS == (4, 3, 1, 2)


def test_an_instance_is_remembered_for_three_intervals() -> None:
    made = machine(one=to("a", interval_ms=100_000))
    get(made)
    assert made.knows(ID, NOW_MS + 299_999) and not made.knows(ID, NOW_MS + 300_000)
