"""AlterClientQuotas and DescribeClientQuotas: entities, keys, values, filters, and the messages for invalid ones."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compat_tests.differential.config_requests import Entity, alter_quotas, describe_quotas, quota, settled
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version

RATE = "producer_byte_rate"
ENTITIES: list[Entity] = [
    {"user": "ann"},
    {"user": None},
    {"client-id": "app"},
    {"client-id": None},
    {"user": "ann", "client-id": "app"},
    {"user": "ann", "client-id": None},
    {"user": None, "client-id": "app"},
    {"user": None, "client-id": None},
    {"user": "ä, b=c"},
]
BAD_ENTITIES: list[list[tuple[str, str | None]]] = [
    [],
    [("nosuch", "x")],
    [("", "x")],
    [("user", "")],
    [("client-id", "")],
    [("ip", "")],
    [("ip", "no.such.host.invalid")],
    [("ip", "1.2.3.4"), ("user", "ann")],
    [("ip", None), ("client-id", None)],
    [("user", "ann"), ("user", "bob")],
    [("user", "ann"), ("nosuch", "x")],
    [("USER", "ann")],
]
VALUES = [0.0, -0.0, -1.0, 0.5, 1.0, 1.0000001, 1.00001, 2147483647.0, 2147483648.0, 9.2e18, 9.3e18, 1e300]
VALUES += [float("inf"), float("-inf"), float("nan"), 5e-324]
KEYS = [
    RATE,
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
    "connection_creation_rate",
]
KEYS += ["", "nosuch", "SCRAM-SHA-256", "leader.replication.throttled.rate"]

FILTERS: list[tuple[tuple[str, int, str | None], ...]] = [
    (),
    (("user", 0, "ann"),),
    (("user", 0, "nosuch"),),
    (("user", 1, None),),
    (("user", 2, None),),
    (("client-id", 0, "app"),),
    (("client-id", 1, None),),
    (("client-id", 2, None),),
    (("user", 0, "ann"), ("client-id", 0, "app")),
    (("user", 0, "ann"), ("client-id", 2, None)),
    (("user", 2, None), ("client-id", 1, None)),
    (("ip", 0, "10.0.0.1"),),
    (("ip", 1, None),),
    (("ip", 2, None),),
    (("ip", 2, None), ("user", 2, None)),
    (("client-id", 2, None), ("ip", 1, None)),
    (("nosuch", 2, None),),
    (("", 2, None),),
    (("user", 0, None),),
    (("user", 1, "x"),),
    (("user", 2, "x"),),
    (("user", 3, None),),
    (("user", -1, None),),
    (("user", 2, None), ("user", 0, "ann")),
    (("user", 0, ""),),
]


@pytest.fixture(scope="module")
def filled(pair: Pair) -> Iterator[Pair]:
    """Both brokers with quotas of all kinds."""
    addresses: list[Entity] = [{"ip": "10.0.0.1"}, {"ip": None}, {"ip": "::1"}, {"ip": "localhost"}]
    entries = [quota(entity, (RATE, 1000.0 + number)) for number, entity in enumerate(ENTITIES)]
    entries += [quota(entity, ("connection_creation_rate", 5.0)) for entity in addresses]
    pair.same(alter_quotas(*entries), 1)
    yield pair
    entries = [quota(entity, (RATE, None)) for entity in ENTITIES]
    entries += [quota(entity, ("connection_creation_rate", None)) for entity in addresses]
    pair.same(alter_quotas(*entries), 1)
    settled(pair, describe_quotas(), 1)


@at_every_version("DescribeClientQuotas")
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("components", FILTERS, ids=str)
def test_filters(
    filled: Pair, version: int, strict: bool, components: tuple[tuple[str, int, str | None], ...]
) -> None:
    settled(filled, describe_quotas(*components, strict=strict), version)


@at_every_version("AlterClientQuotas")
@pytest.mark.parametrize("entity", BAD_ENTITIES, ids=str)
def test_bad_entities(pair: Pair, version: int, entity: list[tuple[str, str | None]]) -> None:
    pair.same(alter_quotas(quota(entity, (RATE, 5.0)), validate_only=True), version)
    pair.same(alter_quotas(quota(entity, ("connection_creation_rate", 5.0)), validate_only=True), version)
    pair.same(alter_quotas(quota(entity), validate_only=True), version)


@at_every_version("AlterClientQuotas")
@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "entity", [{"user": "bob"}, {"client-id": "b", "user": "bob"}, {"ip": "10.0.0.9"}], ids=str
)
def test_keys_and_values(pair: Pair, version: int, key: str, entity: Entity) -> None:
    for value in [*VALUES, None]:
        pair.same(alter_quotas(quota(entity, (key, value)), validate_only=True), version)


@at_every_version("AlterClientQuotas")
def test_the_story_of_an_entity(pair: Pair, version: int) -> None:
    user: Entity = {"user": f"story-{version}"}
    find = describe_quotas(("user", 0, f"story-{version}"))
    for operations in (
        [(RATE, 1000.0)],
        [(RATE, 1000.0)],
        [(RATE, 2000.0), ("request_percentage", 0.5)],
        [(RATE, 3000.0), ("nosuch", 1.0)],
        [(RATE, None), ("consumer_byte_rate", 7.0)],
        [("nosuch", None)],
        [(RATE, 1.0), (RATE, 2.0)],
        [(RATE, 1.0), (RATE, None)],
        [],
        [("consumer_byte_rate", None), ("request_percentage", None)],
    ):
        pair.same(alter_quotas(quota(user, *operations)), version)
        settled(pair, find, 1)


@at_every_version("AlterClientQuotas")
def test_several_entities(pair: Pair, version: int) -> None:
    one: Entity = {"user": f"several-{version}"}
    two: Entity = {"client-id": f"several-{version}"}
    bad: Entity = {"user": ""}
    pair.same(
        alter_quotas(quota(one, (RATE, 1.0)), quota(bad, (RATE, 1.0)), quota(two, (RATE, 2.0))), version
    )
    settled(pair, describe_quotas(("user", 0, f"several-{version}")), 1)
    pair.same(
        alter_quotas(quota(one, (RATE, 3.0)), quota(two, (RATE, 4.0)), quota(one, (RATE, 5.0))), version
    )
    settled(pair, describe_quotas(("user", 0, f"several-{version}")), 1)
    settled(pair, describe_quotas(("client-id", 0, f"several-{version}")), 1)
    pair.same(alter_quotas(quota(one, (RATE, None)), quota(two, (RATE, None))), version)
    settled(pair, describe_quotas(("user", 0, f"several-{version}")), 1)
    pair.same(alter_quotas(), version)


@pytest.mark.parametrize("entity", [{"user": "u" * 32_700}, {"t" * 32_740: "x"}], ids=["key", "type"])
def test_a_text_that_no_answer_can_carry(pair: Pair, entity: Entity) -> None:
    entries = [quota(entity, ("k" * 32_750, 5.0)), quota({"user": "bob"}, (RATE, 5.0))]
    pair.same(alter_quotas(*entries, validate_only=True), 1)
