"""CreateAcls, DescribeAcls and DeleteAcls."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.differential.acl_requests import (
    ALL,
    ALLOW,
    ALTER,
    CLUSTER,
    DENY,
    DESCRIBE,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    acl_filter,
    create_acls,
    creation,
    delete_acls,
    describe_acls,
)
from compat_tests.differential.config_requests import BROKER, describe_one
from compat_tests.differential.conftest import made_pair
from compat_tests.differential.pair import Pair
from compat_tests.differential.versions import at_every_version
from pykafkad import errors, messages

AUTHORIZER, STANDARD = "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SECONDS = 30
NEW_PRODUCER = messages.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
NAMES = ["a", "ab", "abc", "b", "hardcode", "other"]
CODES = ("resource_type", "resource_pattern_type", "operation", "permission_type")


@at_every_version("CreateAcls")
def test_without_an_authorizer(pair: Pair, version: int) -> None:
    pair.same(create_acls(creation(), creation("")), version)
    pair.same(create_acls(), version)
    pair.same(describe_acls(), version)
    pair.same(delete_acls(acl_filter(), acl_filter(operation=99)), version)
    pair.same(delete_acls(), version)


@pytest.mark.parametrize("field", CODES)
@pytest.mark.parametrize("code", [0, 1, 99])
def test_codes_that_make_no_acl_without_an_authorizer(pair: Pair, field: str, code: int) -> None:
    pair.same(create_acls(creation(**{field: code})), 3)


# -- with one, for which everybody here is a super user


@pytest.fixture(scope="module")
def authorized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with made_pair(tmp_path_factory, {AUTHORIZER: STANDARD, "super.users": "User:ANONYMOUS"}) as made:
        yield made


@pytest.fixture
def clean(authorized: Pair) -> Iterator[Pair]:
    yield authorized
    for side in authorized.sides:
        side.demand(delete_acls(acl_filter()), 3)
    until_same(authorized, 0)


def until_same(pair: Pair, count: int) -> None:
    """Kafka's broker learns of changes a moment after they are answered."""

    def acls() -> list[int]:
        found = [side.demand(describe_acls(), 3) for side in pair.sides]
        return [sum(len(resource.acls) for resource in each.resources) for each in found]

    deadline = time.monotonic() + SECONDS
    while acls() != [count, count]:
        assert time.monotonic() < deadline, (acls(), count)
        time.sleep(0.02)


SOME = [
    creation(),
    creation(operation=WRITE),
    creation(principal="User:bob", permission_type=DENY, host="10.0.0.1"),
    creation("*", operation=DESCRIBE),
    creation("t", resource_pattern_type=PREFIXED),
    creation("to", resource_pattern_type=PREFIXED, principal="User:*"),
    creation("a/b", resource_type=GROUP),
    creation("kafka-cluster", resource_type=CLUSTER, operation=ALL),
    creation("tx", resource_type=TRANSACTIONAL_ID, operation=WRITE),
    creation("token", resource_type=6, operation=DESCRIBE),
    creation("User:ann", resource_type=7, operation=13),
    creation(operation=15),
    creation(host="nonsense", principal="Group:x"),
]
FILTERS: list[dict[str, Any]] = [
    {},
    {"resource_type_filter": TOPIC},
    {"resource_type_filter": 9},
    {"resource_name_filter": "t"},
    {"resource_name_filter": "t", "resource_type_filter": TOPIC, "pattern_type_filter": PREFIXED},
    {"resource_name_filter": "topic", "pattern_type_filter": MATCH},
    {"resource_name_filter": "*", "pattern_type_filter": MATCH},
    {"resource_name_filter": "*", "pattern_type_filter": LITERAL},
    {"resource_name_filter": ""},
    {"pattern_type_filter": MATCH},
    {"pattern_type_filter": 99},
    {"principal_filter": "User:ann"},
    {"principal_filter": "User:*"},
    {"principal_filter": "ann"},
    {"host_filter": "10.0.0.1"},
    {"host_filter": ""},
    {"operation": WRITE},
    {"operation": ALL},
    {"operation": 99},
    {"permission_type": DENY},
    {"permission_type": 9},
]


@at_every_version("CreateAcls")
def test_acls_are_made_found_and_removed(clean: Pair, version: int) -> None:
    clean.same(create_acls(*SOME), version)
    until_same(clean, len(SOME))
    for wanted in FILTERS:
        clean.same(describe_acls(**wanted), version)
    clean.same(create_acls(SOME[0], SOME[0], creation("new")), version)
    until_same(clean, len(SOME) + 1)
    clean.same(delete_acls(*(acl_filter(**wanted) for wanted in FILTERS[2:6])), version)
    clean.same(delete_acls(*(acl_filter(**wanted) for wanted in FILTERS)), version)
    until_same(clean, 0)


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_what_a_filter_removes(clean: Pair, wanted: dict[str, Any]) -> None:
    clean.same(create_acls(*SOME), 3)
    clean.same(delete_acls(acl_filter(**wanted)), 3)
    clean.same(delete_acls(acl_filter()), 3)


@pytest.mark.parametrize("field", CODES)
@pytest.mark.parametrize("code", [-1, 0, 1, 2, 5, 16, 99])
def test_codes(clean: Pair, field: str, code: int) -> None:
    clean.same(create_acls(creation("u"), creation("kafka-cluster", **{field: code}), creation("")), 3)
    clean.same(delete_acls(acl_filter()), 3)


@pytest.mark.parametrize(
    "field", ["resource_type_filter", "pattern_type_filter", "operation", "permission_type"]
)
def test_unknown_codes_in_filters(clean: Pair, field: str) -> None:
    clean.same(describe_acls(**{field: 0}), 3)
    clean.same(delete_acls(acl_filter(), acl_filter(**{field: 0})), 3)


def test_names_principals_and_hosts(clean: Pair) -> None:
    wrong = ["ann", "", "no colon"]
    right = [":", "User:", "Group:x", "a:b:c", "User:ä"]
    clean.same(create_acls(*(creation(principal=each) for each in [*wrong, *right])), 3)
    clean.same(create_acls(*(creation(host=each) for each in ("", "::1", "nonsense", "ä"))), 3)
    names = ["", "a/b", " ", "ä", "x" * 32_767, "__consumer_offsets"]
    clean.same(create_acls(*(creation(each) for each in names)), 3)
    clusters = ["", "kafka-cluster", "other", "*"]
    clean.same(create_acls(*(creation(each, resource_type=CLUSTER) for each in clusters)), 3)
    clean.same(create_acls(creation("", resource_type=99), creation(principal="ann", operation=99)), 3)
    clean.same(create_acls(creation(), creation(principal="x" * 32_760)), 3)
    clean.same(delete_acls(acl_filter()), 3)


def test_ten_thousand_at_a_time(clean: Pair) -> None:
    many = [creation(f"n{number}") for number in range(10_001)]
    clean.same(create_acls(*many), 3)
    clean.same(create_acls(*many[:-1], many[0], creation(principal="ann")), 3)
    clean.same(create_acls(*many[-2:]), 3)
    until_same(clean, 10_001)
    clean.same(delete_acls(acl_filter(resource_name_filter="n1"), acl_filter(), acl_filter(operation=99)), 3)
    clean.same(delete_acls(acl_filter(resource_name_filter="n1"), acl_filter(resource_name_filter="n1")), 3)


def test_the_configs_of_an_authorizer_are_shown_alike(authorized: Pair) -> None:
    keys = [AUTHORIZER, "super.users", "allow.everyone.if.no.acl.found", "early.start.listeners"]
    authorized.same(describe_one(BROKER, "1", keys), 4)


# -- what they decide


@pytest.fixture(scope="module")
def deciding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """What is nobody's is everybody's, so that the brokers may do their work; who may not write to the cluster as such
    needs a topic to get a producer id."""
    config = {AUTHORIZER: STANDARD, "super.users": "User:nobody", "allow.everyone.if.no.acl.found": "true"}
    with made_pair(tmp_path_factory, config) as made:
        for name in NAMES:
            for side in made.sides:
                made._create(side, name, 1, {})
            for side in made.sides:
                made._wait_for_leaders(side, name, 1)
        cluster = {"resource_type": CLUSTER, "principal": "User:ANONYMOUS"}
        operations = (ALTER, DESCRIBE, 5, 9, 10, 11)  # all but IDEMPOTENT_WRITE
        made.same(
            create_acls(*(creation("kafka-cluster", operation=each, **cluster) for each in operations)), 3
        )
        until_same(made, len(operations))
        for side in made.sides:
            while side.demand(NEW_PRODUCER, 4).error_code == errors.COORDINATOR_LOAD_IN_PROGRESS:
                time.sleep(0.02)
        yield made


def drawn(dice: random.Random) -> Any:
    return creation(
        dice.choice(["*", "a", "ab", "abc", "b", "hardcode", "*a", "x"]),
        resource_pattern_type=dice.choice([LITERAL, PREFIXED]),
        principal=dice.choice(["User:ANONYMOUS", "User:ANONYMOUS", "User:*", "User:bob", "Group:ANONYMOUS"]),
        host=dice.choice(["*", "127.0.0.1", "10.0.0.1"]),
        operation=dice.choice([ALL, READ, WRITE, 5, 6, 7, DESCRIBE, 10, 11]),
        permission_type=dice.choice([ALLOW, ALLOW, DENY]),
    )


def shown(names: list[str]) -> Any:
    """A topic that may be described is told of with all that may be done to it."""
    kind = messages.MetadataRequest
    topics = [kind.MetadataRequestTopic(name=name) for name in names]
    return kind(topics=topics, include_topic_authorized_operations=True, allow_auto_topic_creation=False)


@pytest.mark.parametrize("seed", range(40))
def test_acls_that_are_drawn_allow_the_same(deciding: Pair, seed: int) -> None:
    dice = random.Random(seed)
    acls = [drawn(dice) for _ in range(dice.randrange(1, 14))]
    deciding.same(create_acls(*acls), 3)
    until_same(deciding, len(set(map(str, acls))) + 6)
    try:
        deciding.same(shown(NAMES), 12)
        deciding.same(NEW_PRODUCER, 4)
    finally:
        deciding.same(delete_acls(acl_filter(resource_type_filter=TOPIC)), 3)
        until_same(deciding, 6)
