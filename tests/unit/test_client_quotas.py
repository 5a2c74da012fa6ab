"""Client quotas: kept, shown, found by filters, refused in Kafka's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from config_kit import handler, open_configurable
from metadata_fakes import Later, call

from pykafkad import messages
from pykafkad.cluster.client_quotas import Filter
from pykafkad.errors import INVALID_REQUEST, KafkaError
from pykafkad.net import hosts

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
        broker.client_quotas.alter([({"user": "ann"}, values)], False, told.append)
    later.all()
    assert [len(changes[0].records) for changes in sorted(told, key=lambda each: -len(each[0].records))] == [
        1,
        1,
        0,
    ]
    assert broker.image.client_quotas == {}


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
        ({"user": "x"}, {RATE: 1.5}, f"{RATE} cannot be a fractional value."),
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


def test_host_names_are_looked_up_outside_of_the_loop(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[set[str]] = []

    def unresolvable(names: set[str]) -> frozenset[str]:
        asked.append(names)
        return frozenset({"nowhere"})

    monkeypatch.setattr("pykafkad.cluster.client_quotas.unresolvable", unresolvable)
    rate = {"connection_creation_rate": 5.0}
    answers = alter(broker, *(entry({"ip": host}, **rate) for host in ("nowhere", "here", "::1", "10.0.0.1")))
    assert asked == [{"nowhere", "here"}]
    assert answers == [(INVALID_REQUEST, "nowhere is not a valid IP or resolvable host."), *[(0, None)] * 3]


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
    "components",
    [
        [("", 0, "x")],
        [("nosuch", 0, "x")],
        [("user", 0, None)],
        [("user", 1, "x")],
        [("user", 2, "x")],
        [("user", 3, None)],
        [("user", 0, "x"), ("user", 2, None)],
        [("ip", 2, None), ("user", 2, None)],
    ],
    ids=str,
)
def test_filters_that_make_no_sense(components: list[tuple[str, int, str | None]]) -> None:
    with pytest.raises(KafkaError):
        Filter(components, strict=False)
