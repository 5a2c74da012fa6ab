"""How ACLs decide: what Apache Kafka 4.3.1 was seen to decide, and a twin that looks at every ACL each time."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import pytest

from pykafkad.pure import acl_rules
from pykafkad.pure.acl_rules import Rules, RulesOfZooKeeper
from pykafkad.pure.acls import ALLOW, DENY, LITERAL, PREFIXED, Acl, Filter, Pattern
from pykafkad.pure.authorization import (
    ALTER,
    ALTER_CONFIGS,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    WRITE,
    Principal,
)

ALL = 2
ALICE = Principal("User", "alice")
HOST = "127.0.0.1"
Asked = tuple[str, int]


def acl(
    name: str,
    operation: int,
    permission: int = ALLOW,
    pattern_type: int = LITERAL,
    *,
    principal: str = "User:alice",
    host: str = "*",
    kind: int = TOPIC,
) -> Acl:
    return Acl(kind, name, pattern_type, principal, host, operation, permission)


def rules_of(
    *acls: Acl, kind: type[Rules] = Rules, users: Iterable[str] = (), everyone: bool = False
) -> Rules:
    rules = kind(frozenset(users), everyone_if_no_acl=everyone)
    for each in acls:
        rules.add(each)
    return rules


def allowed(rules: Rules, name: str, operation: int, who: Principal = ALICE, host: str = HOST) -> bool:
    return rules.allows(who, host, operation, TOPIC, name)


MEASURED: list[tuple[list[Acl], list[tuple[str, int, bool]]]] = [
    (
        [acl("t", READ)],
        [("t", READ, True), ("t", DESCRIBE, True), ("t", DESCRIBE_CONFIGS, False), ("u", READ, False)],
    ),
    ([acl("t", READ), acl("t", READ, DENY)], [("t", READ, False), ("t", DESCRIBE, True)]),
    (
        [acl("pay.", ALL, ALLOW, PREFIXED), acl("pay.b", ALL, DENY)],
        [("pay.a", READ, True), ("pay.b", READ, False), ("pay.b", DESCRIBE, False), ("pay", READ, False)],
    ),
    (
        [acl("*", READ), acl("p", READ, DENY, PREFIXED)],
        [("log", READ, True), ("pay.a", READ, False), ("pay.a", DESCRIBE, True)],
    ),
    ([acl("t", READ), acl("*", READ, DENY, principal="User:*")], [("t", READ, False)]),
    ([acl("t", DELETE)], [("t", DESCRIBE, True), ("t", READ, False)]),
    ([acl("t", CREATE)], [("t", DESCRIBE, False), ("t", CREATE, True)]),
    ([acl("t", ALTER_CONFIGS)], [("t", DESCRIBE_CONFIGS, True), ("t", DESCRIBE, False)]),
    ([acl("*", READ, ALLOW, PREFIXED)], [("*a", READ, True), ("a", READ, False)]),
]


@pytest.mark.parametrize(("acls", "checks"), MEASURED)
@pytest.mark.parametrize("kind", [Rules, RulesOfZooKeeper])
def test_what_kafka_was_seen_to_decide(
    kind: type[Rules], acls: list[Acl], checks: list[tuple[str, int, bool]]
) -> None:
    rules = rules_of(*acls, kind=kind)
    assert [(name, operation, allowed(rules, name, operation)) for name, operation, _ in checks] == checks


def test_to_write_somewhere_is_enough_unless_it_is_denied_everywhere() -> None:
    rules = rules_of(acl("t", WRITE))
    assert rules.allows_some(ALICE, HOST, WRITE, TOPIC) and not rules.allows_some(ALICE, HOST, WRITE, GROUP)
    rules.add(acl("*", WRITE, DENY))
    assert not rules.allows_some(ALICE, HOST, WRITE, TOPIC)


@pytest.mark.parametrize(
    ("acls", "some"),
    [
        ([], False),
        ([acl("*", WRITE)], True),
        ([acl("t", ALL)], True),
        ([acl("t", WRITE), acl("t", WRITE, DENY)], False),
        ([acl("tx", WRITE), acl("t", WRITE, DENY, PREFIXED)], False),
        ([acl("t", WRITE, ALLOW, PREFIXED), acl("tx", WRITE, DENY, PREFIXED)], True),
        ([acl("t", WRITE, ALLOW, PREFIXED), acl("t", WRITE, DENY, PREFIXED)], False),
        ([acl("t", WRITE, ALLOW, PREFIXED), acl("t", WRITE, DENY)], True),
        ([acl("t", WRITE, principal="User:bob")], False),
        ([acl("t", WRITE, host="10.0.0.1")], False),
    ],
)
@pytest.mark.parametrize("kind", [Rules, RulesOfZooKeeper])
def test_what_is_left_of_all_names(kind: type[Rules], acls: list[Acl], some: bool) -> None:
    assert rules_of(*acls, kind=kind).allows_some(ALICE, HOST, WRITE, TOPIC) == some


def test_a_super_user_may_do_everything() -> None:
    rules = rules_of(acl("t", ALL, DENY), users=["User:alice"])
    assert allowed(rules, "t", READ) and rules.allows_some(ALICE, HOST, WRITE, TOPIC)
    assert not allowed(rules, "t", READ, Principal("User", "bob"))
    assert not allowed(rules, "t", READ, Principal("Group", "alice"))


def test_a_resource_without_acls_is_nobodys_or_everybodys() -> None:
    rules = rules_of(acl("t", READ, principal="User:bob"), everyone=True)
    assert allowed(rules, "u", READ) and not allowed(rules, "t", READ)
    assert not allowed(rules_of(), "u", READ)


def test_both_kinds_of_authorizer_differ_where_everybody_may_and_some_names_have_acls() -> None:
    taken = acl(acl_rules.SOME_NAME, READ, principal="User:bob")
    asked = (ALICE, HOST, WRITE, TOPIC)
    assert not rules_of(taken, everyone=True).allows_some(*asked)
    assert rules_of(taken, everyone=True, kind=RulesOfZooKeeper).allows_some(*asked)
    denied = acl("*", WRITE, DENY)
    assert not rules_of(denied, everyone=True, kind=RulesOfZooKeeper).allows_some(*asked)
    assert rules_of(denied, users=["User:alice"], kind=RulesOfZooKeeper).allows_some(*asked)


@pytest.mark.parametrize(
    ("connected", "text"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("::1", "0:0:0:0:0:0:0:1"),
    ],
)
def test_a_host_is_what_java_calls_it(connected: str, text: str) -> None:
    rules = rules_of(acl("t", READ, host=text))
    assert allowed(rules, "t", READ, host=connected) and not allowed(rules, "t", READ, host="10.0.0.8")


def test_one_of_three_is_removed_and_the_rest_still_counts() -> None:
    """CVE-2024-27309."""
    three = [acl("t", READ), acl("t", WRITE), acl("t", READ, DENY, host="10.0.0.1")]
    rules = rules_of(*three)
    rules.remove(three[1])
    assert rules.count == 2 and not rules.holds(three[1])
    assert allowed(rules, "t", READ) and not allowed(rules, "t", WRITE)
    assert not allowed(rules, "t", READ, host="10.0.0.1")
    assert set(rules.of(Pattern(TOPIC, "t", LITERAL))) == {three[0], three[2]}


def test_nothing_is_kept_of_what_is_gone() -> None:
    ways = itertools.product(("a", "ab"), (READ, ALL), (DENY, ALLOW), (LITERAL, PREFIXED))
    some = [acl(*way) for way in ways]
    rules = rules_of(*some, *some)
    assert rules.count == len(some)
    for each in [*some, *some]:
        rules.remove(each)
    assert (rules.count, rules.patterns, rules._lengths, rules._of_pair) == (0, [], {TOPIC: {}}, {})


def test_decisions_are_remembered_until_an_acl_changes_and_not_without_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(acl_rules, "DECISIONS_MAX", 3)
    rules = rules_of(acl("t", READ))
    assert allowed(rules, "t", READ)
    monkeypatch.setattr(rules, "_decide", lambda *asked: False)
    assert allowed(rules, "t", READ)
    for name in "abcde":
        assert not allowed(rules, name, READ)
    assert len(rules._decisions) <= 3
    assert not allowed(rules, "t", READ)
    rules = rules_of(acl("t", READ))
    assert allowed(rules, "t", READ)
    rules.remove(acl("t", READ))
    assert not allowed(rules, "t", READ)
    rules.add(acl("t", READ))
    assert allowed(rules, "t", READ)


# -- a twin

NAMES = ["a", "ab", "abc", "b", "hardcode", "hard", "*", "*a"]
WHO = ["User:alice", "User:bob", "User:*"]
HOSTS = [HOST, "10.0.0.1", "*"]
SOME_OPERATIONS = [ALL, READ, WRITE, DELETE, ALTER, DESCRIBE, DESCRIBE_CONFIGS, ALTER_CONFIGS, CREATE]
IMPLIED = {DESCRIBE: {READ, WRITE, DELETE, ALTER}, DESCRIBE_CONFIGS: {ALTER_CONFIGS}}


def applies(each: Acl, who: str, host: str, operation: int, implied: Iterable[int] = ()) -> bool:
    return (
        each.principal in (who, "User:*")
        and each.host in (host, "*")
        and each.operation in (operation, ALL, *implied)
    )


def is_about(each: Acl, kind: int, name: str) -> bool:
    if each.resource_type != kind:
        return False
    if each.pattern_type == PREFIXED:
        return name.startswith(each.name)
    return each.name in (name, "*")


def twins_verdict(
    acls: Iterable[Acl], everyone: bool, who: str, host: str, operation: int, kind: int, name: str
) -> bool:
    about = [each for each in acls if is_about(each, kind, name)]
    if not about:
        return everyone
    if any(each.permission == DENY and applies(each, who, host, operation) for each in about):
        return False
    implied = IMPLIED.get(operation, ())
    return any(each.permission == ALLOW and applies(each, who, host, operation, implied) for each in about)


def twins_verdict_on_some(
    acls: Iterable[Acl], everyone: bool, who: str, host: str, operation: int, kind: int
) -> bool:
    if twins_verdict(acls, everyone, who, host, operation, kind, "hardcode"):
        return True
    mine = [each for each in acls if each.resource_type == kind and applies(each, who, host, operation)]
    denying = [each for each in mine if each.permission == DENY]
    if any((each.pattern_type, each.name) == (LITERAL, "*") for each in denying):
        return False
    for each in mine:
        if each.permission == DENY:
            continue
        literal = each.pattern_type == LITERAL
        if literal and each.name == "*":
            return True
        if not any(
            each.name.startswith(deny.name)
            if deny.pattern_type == PREFIXED
            else literal and deny.name == each.name
            for deny in denying
        ):
            return True
    return False


def drawn(dice: random.Random) -> Acl:
    return Acl(
        dice.choice([TOPIC, GROUP]),
        dice.choice(NAMES),
        dice.choice([LITERAL, PREFIXED]),
        dice.choice(WHO),
        dice.choice(HOSTS),
        dice.choice(SOME_OPERATIONS),
        dice.choice([DENY, ALLOW, ALLOW]),
    )


@pytest.mark.parametrize("seed", range(40))
def test_a_twin_that_looks_at_every_acl_decides_the_same(seed: int) -> None:
    dice = random.Random(seed)
    everyone = dice.random() < 0.3
    rules = rules_of(everyone=everyone)
    held: set[Acl] = set()
    for _ in range(60):
        if held and dice.random() < 0.4:
            gone = dice.choice(sorted(held))
            rules.remove(gone)
            held.discard(gone)
        else:
            new = drawn(dice)
            rules.add(new)
            held.add(new)
        assert {each for pattern in rules.patterns for each in rules.of(pattern)} == held
        for name, operation in itertools.product(NAMES[:6], SOME_OPERATIONS[1:]):
            expected = twins_verdict(held, everyone, "User:alice", HOST, operation, TOPIC, name)
            assert allowed(rules, name, operation) == expected, (seed, held, name, operation)
        expected = twins_verdict_on_some(held, everyone, "User:alice", HOST, WRITE, TOPIC)
        assert rules.allows_some(ALICE, HOST, WRITE, TOPIC) == expected, (seed, held)
        wanted = drawn_filter(dice)
        found = [each for each in rules.matching(wanted) if each is not None]
        assert len(found) == len(set(found))
        assert set(found) == {each for each in held if wanted.matches(each)}, (seed, held, wanted)


def drawn_filter(dice: random.Random) -> Filter:
    return Filter(
        dice.choice([1, TOPIC, GROUP]),
        dice.choice([None, *NAMES]),
        dice.choice([1, 2, LITERAL, PREFIXED]),
        dice.choice([None, *WHO]),
        dice.choice([None, *HOSTS]),
        dice.choice([1, *SOME_OPERATIONS]),
        dice.choice([1, DENY, ALLOW]),
    )


def test_of_ten_thousand_acls_a_decision_looks_at_few(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = rules_of(
        *(acl(f"topic-{number}", READ, principal=f"User:u{number % 100}") for number in range(5_000)),
        *(acl("*", READ, principal=f"User:u{number}") for number in range(4_000)),
        *(acl(f"p{number:04}.", READ, ALLOW, PREFIXED) for number in range(1_000)),
    )
    assert rules.count == 10_000
    assert len(list(rules._about(TOPIC, "p0500.x"))) == 2
    assert allowed(rules, "p0500.x", READ) and not allowed(rules, "topic-7", READ)


@pytest.mark.parametrize("kind", [Rules, RulesOfZooKeeper])
def test_without_acls_nobody_may_do_anything_unless_everyone_may(kind: type[Rules]) -> None:
    assert not allowed(kind(), "t", READ)
    assert allowed(kind(everyone_if_no_acl=True), "t", READ)
