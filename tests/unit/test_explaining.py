"""Why is nothing arriving? One case for each rule, and the cases in which it must say nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad.pure.explaining import RULES, explain
from pykafkad.pure.explaining_facts import CAUSE, LIKELY, Facts, Finding, facts_from
from pykafkad.pure.explaining_words import are_near, distance

Row = dict[str, Any]


def partition(index: int = 0, topic: str = "t", **changed: Any) -> Row:
    row = {
        "topic": topic,
        "index": index,
        "leader": 1,
        "leads": True,
        "start": 0,
        "high_watermark": 10,
        "end": 10,
    }
    return {"partition": {**row, "last_stable": 10, "transaction": None, **changed}}


def topic(name: str = "t", **changed: Any) -> Row:
    return {"topic": {"name": name, "exists": True, "partitions": 1, **changed}}


def group(**changed: Any) -> Row:
    row = {
        "id": "g",
        "type": "classic",
        "state": "Stable",
        "generation": 3,
        "members": 1,
        "is_initial": False,
    }
    return {"group": {**row, **changed}}


def member(name: str = "m", **changed: Any) -> Row:
    row = {"id": name, "client_id": name, "host": "127.0.0.1", "instance_id": None, "assigned": {"t": [0]}}
    return {"member": {**row, "topics": ["t"], "behind": None, **changed}}


def fetch(index: int = 0, **changed: Any) -> Row:
    row = {
        "client_id": "m",
        "host": "127.0.0.1",
        "address": "127.0.0.1:5000",
        "connected": True,
        "idle_ms": 0,
        "committed_only": False,
    }
    row |= {"topic": "t", "partition": index, "offset": 5, "max_bytes": 1000, "next_bytes": 100}
    return {"fetch": {**row, **changed}}


def committed(offset: int, index: int = 0) -> Row:
    return {"committed": {"topic": "t", "partition": index, "offset": offset, "lag": 0}}


def found(*rows: Row, name: str | None = "g", about: str | None = "t", **more: Any) -> list[Finding]:
    return explain(facts_from(name, about, rows)._replace(**more))


def only(*rows: Row, **options: Any) -> Finding:
    (finding,) = found(*rows, **options)
    return finding


WELL = (topic(), partition(), group(), member(), fetch())


def test_where_all_is_well_nothing_is_said() -> None:
    assert found(*WELL) == []
    assert found(topic(), partition(), fetch(), name=None) == []


def test_no_facts_no_findings_and_no_failure() -> None:
    assert explain(Facts()) == []
    for rule in RULES:
        assert list(rule(Facts())) == []


def test_an_advertised_address_that_cannot_be_reached() -> None:
    finding = only(*WELL, listeners=[("kafka:9092", "kafka does not resolve"), ("127.0.0.1:9093", None)])
    assert (finding.kind, finding.certainty) == ("unreachable-listener", CAUSE)
    assert "kafka:9092" in finding.text and "kafka does not resolve" in finding.text


def test_a_topic_that_is_not_there_and_the_names_near_it() -> None:
    finding = only(topic(exists=False, others=["T", "t-1", "payments"]), name=None)
    assert finding.kind == "no-topic" and finding.text == "topic t does not exist; there is T"
    assert only(topic(exists=False, others=["payments"]), name=None).text == "topic t does not exist"


@pytest.mark.parametrize(
    ("one", "other", "near"),
    [
        ("orders", "order", True),
        ("orders", "Orders", True),
        ("my-orders", "my_orders", True),
        ("ordres", "orders", True),
        ("orders", "payments", False),
        ("a", "b", False),
        ("", "abc", False),
        ("orders-2024-archive", "orders", True),
    ],
)
def test_names_that_may_have_been_meant(one: str, other: str, near: bool) -> None:
    assert are_near(one, other) is near


@pytest.mark.parametrize(
    ("one", "other", "letters"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("abc", "", 3),
        ("a", "b", 1),
        ("orders", "orers", 1),
        ("flaw", "lawn", 2),
        ("kitten", "sitting", 3),
        ("ab", "ba", 2),
    ],
)
def test_names_differ_in_so_many_letters(one: str, other: str, letters: int) -> None:
    assert distance(one, other) == distance(other, one) == letters


def test_partitions_that_are_not_served() -> None:
    offline = {"partition": {"topic": "t", "index": 1, "leader": -1, "leads": False}}
    finding = only(*WELL, offline)
    assert (
        finding.kind == "offline"
        and "1 partition of t is not served" in finding.text
        and ": 1" in finding.text
    )


def test_topics_without_records() -> None:
    empty = partition(high_watermark=0, end=0, last_stable=0)
    assert only(topic(), empty, group(), member(), fetch(offset=0)).kind == "empty-topic"
    deleted = partition(start=10)
    assert only(topic(), deleted, group(), member(), fetch(offset=10)).kind == "no-records"
    assert (
        found(
            topic(), empty, partition(1), group(), member(assigned={"t": [0, 1]}), fetch(offset=0), fetch(1)
        )
        == []
    )


def test_a_transaction_that_holds_the_last_stable_offset() -> None:
    held = partition(
        last_stable=5, transaction={"producer_id": 77, "first_offset": 5, "last_timestamp_ms": 0}
    )
    stuck = only(topic(), held, group(), member(), fetch(offset=5, committed_only=True))
    assert (stuck.kind, stuck.certainty) == ("open-transaction", CAUSE)
    assert (
        "the last 5 records of t-0" in stuck.text
        and "producer id 77" in stuck.text
        and "offset 5" in stuck.text
    )
    free = only(topic(), held, group(), member(), fetch(offset=5, committed_only=False))
    assert free.certainty == LIKELY
    early = only(topic(), held, group(), member(), fetch(offset=4, committed_only=True))
    assert early.certainty == LIKELY


def test_groups_that_are_not_there_and_groups_without_members() -> None:
    assert only(topic(), partition()).kind == "no-group"
    assert only(topic(), partition(), group(state="Empty", members=0)).kind == "no-members"
    assert only(topic(), partition(), {"coordinator": "loading"}).kind == "loading"
    assert found(*WELL[:2], {"coordinator": "loading"}, *WELL[2:]) == []


@pytest.mark.parametrize(
    ("state", "behind", "said"),
    [
        ("PreparingRebalance", "rejoin", "has not joined again"),
        ("CompletingRebalance", "assign", "is the leader and has not said"),
        ("CompletingRebalance", "sync", "has joined and not asked for its partitions"),
        ("Reconciling", "revoke", "has not given up partitions"),
        ("Reconciling", "reconcile", "has not taken over"),
    ],
)
def test_a_rebalance_names_the_member_that_it_waits_for(state: str, behind: str, said: str) -> None:
    late = member("slow", client_id="app", behind=behind, instance_id="i1")
    finding = only(topic(), partition(), group(state=state, members=2), member(assigned=None), late)
    assert (finding.kind, finding.certainty) == ("rebalancing", CAUSE)
    assert 'member slow (client id "app", 127.0.0.1, group.instance.id i1)' in finding.text
    assert said in finding.text and "generation 3" in finding.text


def test_a_new_group_waits_for_more_members() -> None:
    finding = only(
        topic(), partition(), group(state="PreparingRebalance", is_initial=True), member(assigned=None)
    )
    assert finding.kind == "initial-rebalance" and "group.initial.rebalance.delay.ms=0" in finding.advice


def test_a_group_that_has_not_subscribed() -> None:
    other = member(topics=["payments"], assigned={"payments": [0]})
    finding = only(topic(), partition(), group(), other)
    assert finding.kind == "not-subscribed" and "but to payments" in finding.text


def test_a_member_without_partitions_is_told_who_has_them() -> None:
    idle = member("idle", assigned={})
    finding = only(topic(), partition(), group(members=2), member(), idle, fetch())
    assert finding.kind == "assigned-to-others"
    assert (
        finding.text.startswith("member idle ")
        and "the 1 partition of t is assigned to member m" in finding.text
    )


def test_committed_offsets_out_of_range() -> None:
    empty = group(state="Empty", members=0)
    beyond, behind = committed(11), committed(1)
    kinds = [each.kind for each in found(topic(), partition(), empty, beyond)]
    assert kinds == ["no-members", "out-of-range"]
    text = found(topic(), partition(), empty, beyond)[1].text
    assert "committed offset 11 of t-0, which is" in text and "beyond its end 10" in text
    assert "before its start 3" in found(topic(), partition(start=3), empty, behind)[1].text
    assert [each.kind for each in found(topic(), partition(start=1), empty, behind)] == ["no-members"]


def test_a_consumer_at_the_end() -> None:
    finding = only(
        topic(),
        partition(),
        partition(1),
        group(),
        member(assigned={"t": [0, 1]}),
        fetch(offset=10),
        fetch(1, offset=10),
    )
    assert finding.kind == "at-end" and "(t-0 at 10, t-1 at 10)" in finding.text
    assert (
        found(
            topic(),
            partition(),
            partition(1),
            group(),
            member(assigned={"t": [0, 1]}),
            fetch(offset=10),
            fetch(1),
        )
        == []
    )


def test_where_nobody_fetches_a_commit_tells_the_position() -> None:
    kinds = [
        each.kind for each in found(topic(), partition(), group(state="Empty", members=0), committed(10))
    ]
    assert kinds == ["no-members", "at-end"]


def test_fetches_of_other_clients_say_nothing_of_the_group() -> None:
    other = fetch(offset=10, client_id="other", address="127.0.0.1:6000")
    assert [each.kind for each in found(topic(), partition(), group(), member(), fetch(), other)] == []
    assert [each.kind for each in found(topic(), partition(), group(), member(), other)] == ["not-fetching"]


def test_a_batch_that_is_larger_than_the_client_takes() -> None:
    finding = only(topic(), partition(), group(), member(), fetch(next_bytes=1001))
    assert (finding.kind, finding.certainty) == ("large-batch", LIKELY)
    assert " of t-0 has 1001 bytes" in finding.text and "takes 1000" in finding.text
    assert found(topic(), partition(), group(), member(), fetch(next_bytes=1000)) == []


def test_a_member_that_does_not_fetch_what_is_assigned_to_it() -> None:
    finding = only(topic(), partition(), partition(1), group(), member(assigned={"t": [0, 1]}), fetch())
    assert finding.kind == "not-fetching" and "does not fetch from t-1, which is assigned" in finding.text
    late = only(topic(), partition(), group(), member(), fetch(idle_ms=42_000))
    assert "has fetched 42 s ago for the last time from t-0" in late.text
    gone = only(topic(), partition(), group(), member(), fetch(connected=False))
    assert "does not fetch from t-0" in gone.text


def test_nobody_fetches_from_a_topic() -> None:
    assert only(topic(), partition(), name=None).kind == "nobody-fetches"
    assert only(topic(), partition(), fetch(idle_ms=60_000), name=None).kind == "nobody-fetches"


def test_the_surest_finding_is_told_first() -> None:
    rows = (
        topic(),
        partition(),
        partition(1, high_watermark=0, end=0),
        group(),
        member(assigned={"t": [0, 1]}),
    )
    told = found(*rows, fetch(next_bytes=2000), listeners=[("kafka:9092", "refused")])
    assert [each.certainty for each in told] == [CAUSE, LIKELY, LIKELY]


def test_of_several_looks_the_last_one_counts_and_no_fetch_is_lost() -> None:
    gone = member("gone")
    facts = facts_from("g", "t", [*WELL, gone, fetch(offset=1), *WELL[:4]])
    assert [each["id"] for each in facts.members] == ["m"]
    assert [each["offset"] for each in facts.fetches] == [1]
