"""What only the controllers decide, asked of a broker of ours and of a real one in the same cluster of Apache Kafka
4.3.1: the answers are the same.

A story is told by the one and then by the other, and leaves the cluster as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from compat_tests.cluster.kraft import KAFKA, OURS, KraftCluster
from compat_tests.differential import meant
from compat_tests.differential.acl_requests import everything
from compat_tests.differential.config_requests import (
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    TOPIC,
    Entity,
    alter,
    alter_one,
    alter_quotas,
    altered,
    describe_quotas,
    quota,
    replace,
    replaced,
)
from compat_tests.differential.pair import Pair, Side
from compat_tests.differential.requests import creatable, create
from compat_tests.differential.samples import SAMPLES
from compat_tests.differential.test_quorum import describe as describe_quorum
from compat_tests.differential.test_reassignments import alter as reassign
from compat_tests.differential.test_reassignments import elect
from compat_tests.differential.test_update_features import LEVELS, SAFE, UNSAFE, UPGRADE
from compat_tests.differential.test_update_features import request as update_features
from compat_tests.differential.tree import differences
from pykafkad import messages
from pykafkad.handlers.kraft_apis import APIS, CONFIGS, FORWARDED

REAL, OURS_2 = 1, 2
NAME = "told"
MECHANISMS = (1, 2, 0, 3)
SHOWN = 10
ENTITIES: list[Entity] = [
    {"user": "ann"},
    {"client-id": None},
    {"ip": "10.0.0.1"},
    {"nosuch": "x"},
    {"user": ""},
]
WAIT_S = 30.0

Ask = Callable[[Any, int], Any]
Story = Callable[[Ask, int], object]


@pytest.fixture(scope="module")
def cluster() -> Iterator[KraftCluster]:
    with KraftCluster([KAFKA, OURS]) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def pair(cluster: KraftCluster) -> Iterator[Pair]:
    made = Pair(Side("pykafkad", cluster.brokers[OURS_2].port), Side("kafka", cluster.brokers[REAL].port))
    yield made
    for side in made.sides:
        side.hang_up()


def told_by(side: Side, story: Story, version: int) -> list[Any]:
    answers = []

    def ask(request: Any, version: int) -> Any:
        answer = side.demand(request, version)
        answers.append(answer)
        return answer

    story(ask, version)
    for answer in answers:
        if isinstance(answer, messages.DeleteTopicsResponse):
            for row in answer.responses:
                row.topic_id = bytes([any(row.topic_id)] * 16)  # they are random
    return answers


def same(pair: Pair, story: Story, version: int) -> None:
    ours, theirs = (told_by(side, story, version) for side in pair.sides)
    assert len(ours) == len(theirs)
    found = [
        f"answer {number}: {each}"
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True))
        for each in differences(pair, mine, other)
    ]
    assert not found, "\n".join(found[:SHOWN])


def until(look: Callable[[], Any], wanted: Any) -> None:
    """A broker knows of a change a moment after the controller has answered."""
    deadline = time.monotonic() + WAIT_S
    while (seen := look()) != wanted:
        assert time.monotonic() < deadline, f"{seen}, not {wanted}"
        time.sleep(0.02)


VERSIONS = {api.name: range(api.versions[0], api.versions[1] + 1) for api in APIS.values()}


def at_all(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("version", VERSIONS[name])


# -- one of each


@pytest.mark.parametrize("api", sorted({APIS[key].name for key in FORWARDED | CONFIGS} & {*SAMPLES}))
def test_a_request_that_changes_nothing(pair: Pair, api: str) -> None:
    for version in VERSIONS[api]:
        pair.same(SAMPLES[api](version), version)


@at_all("DescribeQuorum")
def test_the_quorum(pair: Pair, version: int) -> None:
    ours, theirs = (side.demand(describe_quorum(("__cluster_metadata", [0])), version) for side in pair.sides)
    for answer in (ours, theirs):
        row = answer.topics[0].partitions[0]
        row.leader_epoch = row.high_watermark = 0
        for each in (*row.current_voters, *row.observers):
            each.log_end_offset = 0
            if version:
                each.last_fetch_timestamp = each.last_caught_up_timestamp = 0
        row.observers.sort(key=lambda each: each.replica_id)
    assert ours == theirs


# -- stories of topics


def deletion(version: int, *names: str) -> Any:
    kind = messages.DeleteTopicsRequest
    if version < 6:
        return kind(topic_names=list(names), timeout_ms=10_000)
    return kind(topics=[kind.DeleteTopicState(name=name) for name in names], timeout_ms=10_000)


@at_all("CreateTopics")
def test_topics_are_created(pair: Pair, version: int) -> None:
    def story(ask: Ask, version: int) -> None:
        asked = [
            creatable(NAME, {"retention.ms": "123456"}, num_partitions=3, replication_factor=2),
            creatable("a b"),
            creatable("far", replication_factor=9),
            creatable("none", num_partitions=0),
            creatable("set", {"retention.ms": "soon"}),
            creatable("odd", {"no.such.key": "1"}),
        ]
        ask(create(*asked, validate_only=True), version)
        ask(create(*asked), version)
        ask(create(*asked), version)
        ask(create(creatable("twice"), creatable("twice")), version)
        if version >= 4:
            ask(create(creatable("default", num_partitions=-1, replication_factor=-1)), version)
        ask(deletion(6, NAME, "default", "never-made"), 6)

    same(pair, story, version)


@at_all("CreatePartitions")
def test_partitions_are_created(pair: Pair, version: int) -> None:
    kind = messages.CreatePartitionsRequest

    def grown(name: str, count: int, *assignments: list[int]) -> Any:
        rows = [kind.CreatePartitionsAssignment(broker_ids=each) for each in assignments]
        return kind.CreatePartitionsTopic(name=name, count=count, assignments=rows or None)

    def story(ask: Ask, version: int) -> None:
        ask(create(creatable(NAME, num_partitions=2)), 7)
        for topics in (
            [grown(NAME, 1), grown("never-made", 4)],
            [grown(NAME, 2)],
            [grown(NAME, 3, [9])],
            [grown(NAME, 3, [1, 2])],
            [grown(NAME, 4, [1])],
            [grown(NAME, 3, [2])],
            [grown(NAME, 5), grown(NAME, 6)],
        ):
            for only in (True, False):
                ask(kind(topics=topics, timeout_ms=10_000, validate_only=only), version)
        ask(deletion(6, NAME), 6)

    same(pair, story, version)


@at_all("DeleteTopics")
def test_topics_are_deleted(pair: Pair, version: int) -> None:
    kind = messages.DeleteTopicsRequest

    def story(ask: Ask, version: int) -> None:
        made = ask(create(creatable(NAME), creatable("other")), 7)
        ask(deletion(version, NAME, "never-made", ""), version)
        ask(deletion(version, NAME), version)
        if version >= 6:
            for topic_id in (made.topics[1].topic_id, bytes(range(16))):
                state = kind.DeleteTopicState(name=None, topic_id=topic_id)
                ask(kind(topics=[state], timeout_ms=10_000), version)
        else:
            ask(deletion(version, "other"), version)

    same(pair, story, version)


@at_all("AlterPartitionReassignments")
def test_partitions_are_reassigned(pair: Pair, version: int) -> None:
    listing = messages.ListPartitionReassignmentsRequest()

    def story(ask: Ask, version: int) -> None:
        topic = creatable(NAME, num_partitions=-1, replication_factor=-1)
        topic.assignments = [
            messages.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])
        ]
        ask(create(topic), 7)
        for replicas in ([9], [], [1, 1], [-1], None, [1]):
            ask(reassign((NAME, [(0, replicas), (5, [1])]), ("never-made", [(0, [1])])), version)
        ask(reassign((NAME, [(0, [2])])), version)
        until(lambda: pair.theirs.demand(listing, 0).topics, [])
        ask(reassign((NAME, [(0, None)])), version)
        ask(elect((NAME, [0, 5])), 2)
        ask(deletion(6, NAME), 6)

    same(pair, story, version)


@at_all("ElectLeaders")
def test_leaders_are_elected(pair: Pair, version: int) -> None:
    def story(ask: Ask, version: int) -> None:
        ask(create(creatable(NAME, num_partitions=2, replication_factor=2)), 7)
        until(lambda: [led(side) for side in pair.sides], [2, 2])
        kinds = (0, 1, 2) if version >= 1 else (0,)
        for kind in kinds:
            fields = {"election_type": kind} if version >= 1 else {}
            ask(elect((NAME, [0, 1, 7]), ("never-made", [0]), timeout_ms=10_000, **fields), version)
        ask(deletion(6, NAME), 6)

    def led(side: Side) -> int:
        kind = messages.MetadataRequest
        (topic,) = side.demand(kind(topics=[kind.MetadataRequestTopic(name=NAME)]), 12).topics
        return sum(row.leader_id >= 0 for row in topic.partitions)

    same(pair, story, version)


# -- stories of configs and quotas


@at_all("IncrementalAlterConfigs")
def test_configs_are_altered(pair: Pair, version: int) -> None:
    def story(ask: Ask, version: int) -> None:
        ask(create(creatable(NAME)), 7)
        for operations in (
            [("retention.ms", SET, "1000")],
            [("retention.ms", SET, "soon")],
            [("no.such.key", SET, "1")],
            [("retention.ms", DELETE, None)],
            [("cleanup.policy", 2, "compact")],
            [("cleanup.policy", 3, "compact")],
            [("retention.ms", 2, "1")],
            [("retention.ms", 9, "1")],
            [("retention.ms", SET, None)],
        ):
            for only in (True, False):
                asked = [altered(TOPIC, NAME, *operations), altered(TOPIC, "never-made", *operations)]
                ask(alter(*asked, validate_only=only), version)
        ask(deletion(6, NAME), 6)

    same(pair, story, version)


@at_all("AlterConfigs")
def test_configs_are_replaced(pair: Pair, version: int) -> None:
    def story(ask: Ask, version: int) -> None:
        ask(create(creatable(NAME)), 7)
        for configs in ([("retention.ms", "1000")], [("retention.ms", "soon")], [("no.such.key", "1")], []):
            for only in (True, False):
                asked = [replaced(TOPIC, NAME, *configs), replaced(TOPIC, "never-made", *configs)]
                ask(replace(*asked, validate_only=only), version)
        ask(deletion(6, NAME), 6)

    same(pair, story, version)


@at_all("IncrementalAlterConfigs")
@pytest.mark.parametrize(
    ("kind", "name"),
    [(BROKER, ""), (GROUP, "some"), (CLIENT_METRICS, "some"), (0, "some"), (77, "some")],
)
def test_configs_of_other_things(pair: Pair, version: int, kind: int, name: str) -> None:
    def story(ask: Ask, version: int) -> None:
        for key, value in (
            ("log.cleaner.threads", "2"),
            ("consumer.session.timeout.ms", "50000"),
            ("interval.ms", "1000"),
        ):
            for operation in (SET, DELETE):
                ask(alter_one(kind, name, (key, operation, value)), version)

    same(pair, story, version)


@at_all("AlterClientQuotas")
def test_quotas_are_altered(pair: Pair, version: int) -> None:
    def story(ask: Ask, version: int) -> None:
        rate = "producer_byte_rate"
        for entity in ENTITIES:
            for value in (1000.0, -1.0, None):
                for only in (True, False):
                    ask(alter_quotas(quota(entity, (rate, value)), validate_only=only), version)
        ask(alter_quotas(quota({"user": "bob"}, (rate, 5.0))), version)
        find = describe_quotas(("user", 0, "bob"))
        until(lambda: [len(side.demand(find, 1).entries) for side in pair.sides], [1, 1])
        ask(find, 1)
        ask(alter_quotas(quota({"user": "bob"}, (rate, None))), version)
        until(lambda: [len(side.demand(find, 1).entries or ()) for side in pair.sides], [0, 0])

    same(pair, story, version)


# -- stories of users, ACLs and tokens


def test_credentials_are_altered(pair: Pair) -> None:
    kind = messages.AlterUserScramCredentialsRequest
    find = messages.DescribeUserScramCredentialsRequest()

    def upsertion(name: str, mechanism: int, iterations: int = 4096) -> Any:
        password = b"p" * (64 if mechanism == 2 else 32)
        return kind.ScramCredentialUpsertion(
            name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=password
        )

    def deletion(name: str, mechanism: int) -> Any:
        return kind.ScramCredentialDeletion(name=name, mechanism=mechanism)

    def story(ask: Ask, version: int) -> None:
        for mechanism in MECHANISMS:
            ask(kind(deletions=[deletion("ann", mechanism)]), 0)
            for iterations in (4096, 1, 20_000):
                ask(kind(upsertions=[upsertion("ann", mechanism, iterations)]), 0)
        ask(kind(upsertions=[upsertion("", 1)]), 0)
        ask(kind(upsertions=[upsertion("bob", 1), upsertion("bob", 1), upsertion("cyd", 2)]), 0)
        until(users, [["ann", "cyd"]] * 2)
        ask(find, 0)
        ask(kind(deletions=[deletion("bob", 1), deletion("cyd", 2)], upsertions=[upsertion("bob", 1)]), 0)
        ask(kind(deletions=[deletion("ann", 1), deletion("ann", 2)]), 0)
        for mechanism in MECHANISMS:
            ask(kind(deletions=[deletion("ann", mechanism)]), 0)
        ask(kind(deletions=[deletion("cyd", 2)]), 0)
        until(users, [[], []])
        ask(find, 0)

    def users() -> list[list[str]]:
        return [sorted(row.user for row in side.demand(find, 0).results) for side in pair.sides]

    same(pair, story, 0)


@at_all("CreateAcls")
def test_acls_without_an_authorizer(pair: Pair, version: int) -> None:
    creating, deleting = messages.CreateAclsRequest, messages.DeleteAclsRequest

    def story(ask: Ask, version: int) -> None:
        ask(creating(creations=[acl(creating.AclCreation)] * 2), version)
        ask(deleting(filters=[everything(deleting.DeleteAclsFilter)] * 2), version)
        ask(everything(messages.DescribeAclsRequest), version)

    same(pair, story, version)


def acl(kind: Any) -> Any:
    return kind(
        resource_type=2, resource_name="t", principal="User:ann", host="*", operation=3, permission_type=3
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_tokens_where_nobody_says_who_he_is(pair: Pair, version: int) -> None:
    creating, describing = messages.CreateDelegationTokenRequest, messages.DescribeDelegationTokenRequest

    def story(ask: Ask, version: int) -> None:
        renewers = [creating.CreatableRenewers(principal_type="User", principal_name="ann")]
        owners = [describing.DescribeDelegationTokenOwner(principal_type="User", principal_name="ann")]
        ask(creating(renewers=renewers, max_lifetime_ms=-1), version)
        if version >= 3:
            owned = creating(owner_principal_type="User", owner_principal_name="bob", max_lifetime_ms=-1)
            ask(owned, version)
        ask(messages.RenewDelegationTokenRequest(hmac=b"h", renew_period_ms=1), min(version, 2))
        ask(messages.ExpireDelegationTokenRequest(hmac=b"h", expiry_time_period_ms=1), min(version, 2))
        for asked in (None, [], owners):
            ask(describing(owners=asked), version)

    same(pair, story, version)


# -- stories of brokers, features and the quorum


@at_all("UpdateFeatures")
def test_features(pair: Pair, version: int) -> None:
    def story(ask: Ask, version: int) -> None:
        for name, level in LEVELS:
            for kind in (UPGRADE, SAFE, UNSAFE):
                if version:
                    ask(update_features(version, (name, level, kind), validate_only=True), version)
        if version:
            ask(update_features(version, ("group.version", 0, SAFE)), version)
            ask(update_features(version, ("group.version", 1, UPGRADE)), version)

    same(pair, story, version)


def test_unregistering(pair: Pair) -> None:
    def story(ask: Ask, version: int) -> None:
        for id in (99, -1, 100):
            ask(messages.UnregisterBrokerRequest(broker_id=id), 0)

    same(pair, story, 0)


def test_both_advertise_the_same_but_for_what_is_said(pair: Pair) -> None:
    asked = messages.ApiVersionsRequest(client_software_name="a", client_software_version="1")
    ours, theirs = (side.demand(asked, 4) for side in pair.sides)
    missing = {row.api_key for row in theirs.api_keys} - {row.api_key for row in ours.api_keys}
    beside_controllers = {29, 30, 31, 38, 39, 40, 41, 51}
    assert missing == set(meant.APIS_LATER) - beside_controllers
