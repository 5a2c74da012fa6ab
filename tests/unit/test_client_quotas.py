"""Client quotas: stored, described, found by filters, refused with Kafka's messages."""

from __future__ import annotations

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.clock import ManualClock
from pykafkad.cluster.client_quotas import Change, ClientQuotas, Filter, same
from pykafkad.errors import (
    INVALID_REQUEST,
    KAFKA_STORAGE_ERROR,
    POLICY_VIOLATION,
    UNSUPPORTED_VERSION,
    KafkaError,
)
from pykafkad.net import hosts
from pykafkad.slices import finish
from tests.unit.config_kit import handler, open_configurable
from tests.unit.metadata_fakes import FakeContext, Later, call

RATE = "producer_byte_rate"
Entity = dict[str, str | None]


@pytest.fixture
def broker(tmp_path: Path) -> Any:
    return open_configurable(tmp_path)


def entry(entity: Entity, **values: float | None) -> Any:
    kind = messages.AlterClientQuotasRequest
    return kind.EntryData(
        entity=[kind.EntityData(entity_type=type.replace("_", "-"), entity_name=name) for type, name in entity.items()],
        ops=[kind.OpData(key=key, value=value or 0, remove=value is None) for key, value in values.items()],
    )  # fmt: skip


def alter(broker: Any, *entries: Any, validate_only: bool = False) -> list[tuple[int, str | None]]:
    answer = call(
        broker, handler("alter_client_quotas"), 1, entries=list(entries), validate_only=validate_only
    )
    return [(each.error_code, each.error_message) for each in answer.entries]


def found(broker: Any, *components: tuple[str, int, str | None], strict: bool = False) -> dict[str, Any]:
    kind = messages.DescribeClientQuotasRequest.ComponentData
    parts = [kind(entity_type=type, match_type=match, match=name) for type, match, name in components]
    answer = call(broker, handler("describe_client_quotas"), 1, components=parts, strict=strict)
    assert answer.error_code == 0
    return {
        ",".join(f"{part.entity_type}={part.entity_name}" for part in each.entity): {
            value.key: value.value for value in each.values
        }
        for each in answer.entries
    }


def test_quotas_are_set_changed_removed_and_outlive_a_restart(broker: Any, tmp_path: Path) -> None:
    assert alter(broker, entry({"user": "ann"}, producer_byte_rate=5, request_percentage=0.5)) == [(0, None)]
    assert found(broker) == {"user=ann": {RATE: 5.0, "request_percentage": 0.5}}
    assert alter(broker, entry({"user": "ann"}, producer_byte_rate=7, request_percentage=None)) == [(0, None)]
    broker.controller.stop()
    again = open_configurable(tmp_path)
    assert found(again) == {"user=ann": {RATE: 7.0}}
    alter(again, entry({"user": "ann"}, producer_byte_rate=None))
    assert found(again) == {} and again.image.client_quotas == {}


def test_what_is_as_it_was_is_not_written(broker: Any) -> None:
    alter(broker, entry({"user": "ann"}, producer_byte_rate=5))
    before = broker.image.offset
    assert alter(broker, entry({"user": "ann"}, producer_byte_rate=5, consumer_byte_rate=None)) == [(0, None)]
    assert alter(broker, entry({"user": "bob"}, producer_byte_rate=5), validate_only=True) == [(0, None)]
    assert broker.image.offset == before


def test_changes_under_way_see_each_other(tmp_path: Path) -> None:
    later = Later()
    broker = open_configurable(tmp_path, later)
    told: list[Any] = []
    for values in ([(RATE, 5.0)], [(RATE, None)], [(RATE, None)]):
        broker.client_quotas.alter([Change({"user": "ann"}, values)], False, told.append)
    later.all()
    assert [len(changes[0].changed) for changes in sorted(told, key=lambda each: -len(each[0].changed))] == [
        1,
        1,
        0,
    ]
    assert broker.image.client_quotas == {}


def test_an_entity_is_shown_as_java_shows_it() -> None:
    for types in (["user", "client-id"], ["client-id", "user"]):
        shown = str(Change({each: None if each == "user" else "app" for each in types}, []))
        assert shown == "ClientQuotaEntity(entries={client-id=app, user=null})"


def test_of_an_entity_that_is_named_twice_the_first_counts(broker: Any) -> None:
    first, second = (entry({"user": "ann"}, producer_byte_rate=rate) for rate in (5, 6))
    ((code, message),) = alter(broker, first, second)
    assert code == INVALID_REQUEST
    assert message == "Ignoring duplicate entity ClientQuotaEntity(entries={user=ann})"
    assert found(broker) == {"user=ann": {RATE: 5.0}}


@pytest.mark.parametrize(
    ("entity", "values", "why"),
    [
        ({}, {RATE: 1.0}, "Invalid empty client quota entity"),
        ({"nosuch": "x"}, {RATE: 1.0}, "Unhandled client quota entity type: nosuch"),
        ({"user": ""}, {RATE: 1.0}, "Empty user not supported"),
        ({"user": "x"}, {"nosuch": 1.0}, "Invalid configuration key nosuch"),
        ({"ip": "1.2.3.4"}, {RATE: 1.0}, f"Invalid configuration key {RATE}"),
        ({"user": "x"}, {RATE: 0.0}, f"Quota {RATE} must be greater than 0"),
        ({"user": "x"}, {RATE: -1.0}, f"Quota {RATE} must be greater than 0"),
        ({"user": "x"}, {RATE: 1.5}, f"{RATE} cannot be a fractional value."),
        ({"user": "x"}, {RATE: 1.00001}, f"{RATE} cannot be a fractional value."),
        (
            {"ip": "1.2.3.4"},
            {"connection_creation_rate": 2.0**31},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
        (
            {"ip": "1.2.3.4", "user": "x"},
            {"connection_creation_rate": 1.0},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
        ),
        ({"user": "x"}, {RATE: 1e30}, f"Proposed value for {RATE} is too large for a LONG."),
        (
            {"ip": "1.2.3.4"},
            {"connection_creation_rate": 3e9},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
def test_what_is_refused(broker: Any, entity: Entity, values: dict[str, float], why: str) -> None:
    assert alter(broker, entry(entity, **values)) == [(INVALID_REQUEST, why)]
    assert broker.image.client_quotas == {}


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ({"user": "x"}, {RATE: 1e-9 + 1, "request_percentage": 0.001}),
        ({"client-id": None}, {RATE: 2.0**63, "controller_mutation_rate": 1.5}),
        ({"ip": "1.2.3.4"}, {"connection_creation_rate": 2.0**31 - 1}),
        ({"ip": None}, {"connection_creation_rate": 1.0}),
    ],
)
def test_the_smallest_and_the_largest_that_a_quota_may_be(
    broker: Any, entity: Entity, values: dict[str, float]
) -> None:
    assert alter(broker, entry(entity, **values)) == [(0, None)]
    assert list(broker.image.client_quotas.values()) == [values]


def test_a_request_makes_ten_thousand_records_at_most(broker: Any) -> None:
    def asked(count: int) -> list[Change]:
        told: list[Any] = []
        changes = [Change({"user": f"u{number}"}, [(RATE, 5.0)]) for number in range(count)]
        broker.client_quotas.alter(changes, False, told.append)
        (answered,) = told
        return list(answered)

    refused = asked(10_001)
    assert {each.error.code for each in refused if each.error is not None} == {POLICY_VIOLATION}
    assert len(refused) == 10_001 and broker.image.client_quotas == {}
    assert not any(each.error for each in asked(10_000))
    assert len(broker.image.client_quotas) == 10_000


def test_nothing_counts_where_the_disk_fails(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    failure = KafkaError(KAFKA_STORAGE_ERROR, "no")
    with monkeypatch.context() as patch:
        patch.setattr(broker.controller, "commit", lambda records, done: done(failure))
        bad = entry({"user": "bob"}, nosuch=1.0)
        found_bad, failed = alter(broker, bad, entry({"user": "ann"}, producer_byte_rate=5))
    assert failed == (KAFKA_STORAGE_ERROR, "no") and found_bad[0] == INVALID_REQUEST
    assert alter(broker, entry({"user": "ann"}, producer_byte_rate=5)) == [(0, None)]
    assert found(broker) == {"user=ann": {RATE: 5.0}}


def test_host_names_are_looked_up_apart(broker: Any) -> None:
    asked: list[set[str]] = []
    answers: list[Any] = []

    def look_up(hosts: set[str], done: Any) -> None:
        asked.append(set(hosts))
        answers.append(lambda: done({host: host for host in hosts if host != "nowhere"}))

    broker.client_quotas = ClientQuotas(broker.controller, look_up, broker.slices.run)  # type: ignore[arg-type]
    rate = {"connection_creation_rate": 5.0}
    request = messages.AlterClientQuotasRequest(
        entries=[entry({"ip": host}, **rate) for host in ("nowhere", "here", "::1", "10.0.0.1")]
    )
    context = FakeContext(1)
    assert finish(handler("alter_client_quotas").handle(broker, request, context)) is context
    assert asked == [{"nowhere", "here", "::1", "10.0.0.1"}] and not context.answers
    answers[0]()
    assert [(each.error_code, each.error_message) for each in context.answers[0].entries] == [
        (INVALID_REQUEST, "nowhere is not a valid IP or resolvable host."),
        *[(0, None)] * 3,
    ]


class Resolving:
    """A resolver whose thread works when a test lets it, and takes a second for each name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, unknown: str = "") -> None:
        self.clock = ManualClock()
        self.timers: list[Any] = []
        self.jobs: list[Any] = []
        self.asked: list[str] = []
        self.told: list[dict[str, str]] = []
        monkeypatch.setattr(hosts, "address_of", self.address_of)
        self.resolver = hosts.Resolver(lambda *_: None, self.call_later, self.clock)
        self.resolver._submit = lambda work, done: self.jobs.append((work, done))

    def address_of(self, name: str) -> str | None:
        self.asked.append(name)
        self.clock.advance(1000)
        return None if name.startswith("no") else "10.0.0.1"

    def call_later(self, delay_ms: int, action: Any) -> Any:
        assert delay_ms == hosts.DEADLINE_MS
        self.timers.append(action)
        return SimpleNamespace(cancel=lambda: self.timers.remove(action))

    def look_up(self, *names: str) -> None:
        self.resolver.look_up(names, lambda found: self.told.append(dict(found)))

    def work(self) -> None:
        work, done = self.jobs.pop(0)
        done(work())


def test_addresses_are_never_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Resolving(monkeypatch)
    here.look_up("::1", "10.0.0.1")
    assert here.told == [{"::1": "::1", "10.0.0.1": "10.0.0.1"}] and not here.jobs


def test_a_name_that_nobody_knows_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Resolving(monkeypatch)
    here.look_up("here", "nowhere", "::1")
    here.work()
    assert here.told == [{"::1": "::1", "here": "10.0.0.1"}] and not here.timers


def test_nobody_waits_longer_for_names_than_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Resolving(monkeypatch)
    here.look_up("slow", "::1")
    here.timers[0]()
    assert here.told == [{"::1": "::1"}]
    here.work()
    assert len(here.told) == 1, "it is told once"


def test_what_nobody_waits_for_any_more_is_not_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Resolving(monkeypatch)
    here.look_up(*(f"h{number}" for number in range(240)))
    here.look_up("another")
    here.work()
    assert len(here.asked) == 5, "a second each, and the deadline is five"
    here.work()
    assert len(here.asked) == 5 and here.told[1] == {}


def test_only_so_many_names_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    here = Resolving(monkeypatch)
    here.look_up(*(f"h{number}" for number in range(hosts.WAITING_MAX)))
    here.look_up("one more", "::1")
    assert here.told == [{"::1": "::1"}]
    here.work()
    here.look_up("room again")
    assert len(here.told) == 2 and len(here.jobs) == 1


def test_a_name_that_is_too_long_for_one_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("asked"))
    assert hosts.address_of("a" * 256) is None


@pytest.mark.parametrize(
    ("host", "is_name"),
    [("127.0.0.1", False), ("::1", False), ("", False), (None, False), ("a.b", True), ("a\0", True)],
)
def test_an_address_is_no_name(host: str | None, is_name: bool) -> None:
    assert hosts.is_a_name(host) == is_name


def test_filters(broker: Any) -> None:
    entities: list[Entity] = [
        {"user": "ann"},
        {"user": None},
        {"user": "ann", "client-id": "app"},
        {"client-id": None},
    ]
    alter(broker, *(entry(entity, producer_byte_rate=5) for entity in entities))
    assert len(found(broker)) == 4
    assert found(broker, strict=True) == {}
    assert found(broker, ("user", 0, "ann")).keys() == {"user=ann", "client-id=app,user=ann"}
    assert found(broker, ("user", 0, "ann"), strict=True).keys() == {"user=ann"}
    assert found(broker, ("user", 1, None)).keys() == {"user=None"}
    assert found(broker, ("user", 2, None), ("client-id", 2, None)).keys() == {"client-id=app,user=ann"}


@pytest.mark.parametrize(
    ("components", "why"),
    [
        ([("", 0, "x")], "Invalid empty entity type."),
        ([("nosuch", 0, "x")], "Unsupported entity type nosuch"),
        ([("user", 0, None)], "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        (
            [("user", 1, "x")],
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [("user", 2, "x")],
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ([("user", 3, None)], "Unknown match type 3"),
        (
            [("user", 0, "x"), ("user", 2, None)],
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            [("user", 2, None), ("user", 0, "x")],
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            [("ip", 2, None), ("user", 2, None)],
            "Invalid entity filter component combination. IP filter component should not be used with"
            " user or clientId filter component.",
        ),
    ],
    ids=str,
)
def test_filters_that_make_no_sense(components: list[tuple[str, int, str | None]], why: str) -> None:
    with pytest.raises(KafkaError) as caught:
        Filter(components, strict=False)
    unknown = why.startswith("Unsupported")
    assert (caught.value.code, caught.value.text) == (
        UNSUPPORTED_VERSION if unknown else INVALID_REQUEST,
        why,
    )


def test_a_filter_of_addresses_alone_makes_sense() -> None:
    """Whether it asks for one, for all, or for the default of all."""
    entity = (("ip", "1.2.3.4"),)
    for match, takes in ((("ip", 2, None), True), (("ip", 0, "1.2.3.4"), True), (("ip", 1, None), False)):
        assert Filter([match], strict=True).takes(entity) == takes


def test_not_a_number_is_the_same_as_itself_alone() -> None:
    nan = float("nan")
    assert same(nan, float("nan")) and same(1.5, 1.5) and same(None, None)
    assert not same(nan, 1.5) and not same(1.5, nan) and not same(1.5, 2.5) and not same(None, nan)
