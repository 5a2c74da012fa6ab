"""ACLs in a cluster on ZooKeeper: a real Kafka 3.9.2 and ours keep them in the same znodes, byte for byte, and go by what
the other has changed."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from compat_tests.cluster.brokers import DEADLINE_S, KAFKA, OURS, MixedCluster, kafka_libs
from compat_tests.cluster.test_zookeeper import Session
from compat_tests.differential.acl_requests import (
    ALL,
    ALLOW,
    CLUSTER,
    DENY,
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
from pykafkad import errors
from pykafkad.config_authorizer import OF_ZOOKEEPER
from pykafkad.messages import MetadataRequest
from pykafkad.testing.client import Client
from pykafkad.zookeeper.client import GetChildren, GetData

REAL, OUR = 0, 1
CONFIG = {
    "authorizer.class.name": OF_ZOOKEEPER,
    # Without TLS and SASL everybody is called so, the brokers too. Nobody has ACLs on the cluster here.
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:nobody-here",
}
Row = tuple[int, str, int, str, str, int, int]


class Guarded(MixedCluster):
    def ask(self, id: int, request: Any, version: int = 3) -> Any:
        broker = self.home.brokers[id]
        with Client(broker.host, broker.port) as client:
            return client.call(request, version)

    def acls(self, id: int, **wanted: Any) -> set[Row]:
        answer = self.ask(id, describe_acls(**wanted))
        assert answer.error_code == 0, answer
        return {
            (
                *(each.resource_type, each.resource_name, each.pattern_type),
                *(one.principal, one.host, one.operation, one.permission_type),
            )
            for each in answer.resources
            for one in each.acls
        }

    def until_same(self) -> set[Row]:
        deadline = time.monotonic() + DEADLINE_S
        while (ours := self.acls(OUR)) != self.acls(REAL):
            assert time.monotonic() < deadline, (ours, self.acls(REAL))
            time.sleep(0.02)
        return ours

    def clean(self) -> None:
        self.until_same()  # what is to be removed is what each knows
        self.ask(REAL, delete_acls(acl_filter()))
        assert self.until_same() == set()


@pytest.fixture(scope="module")
def started() -> Iterator[Guarded]:
    with Guarded([KAFKA, OURS], config=CONFIG) as cluster:
        yield cluster


@pytest.fixture
def cluster(started: Guarded) -> Iterator[Guarded]:
    yield started
    started.clean()


def znodes(cluster: Guarded, under: str) -> dict[str, bytes | None]:
    """All below, with their data."""
    session = Session(cluster.home.zookeeper_connect)
    found: dict[str, bytes | None] = {}

    def visit(path: str) -> None:
        data, children = session.ask(GetData(path), GetChildren(path))
        found[path] = data.data
        for name in sorted(children.children):
            visit(f"{path}/{name}")

    try:
        visit(under)
    finally:
        session.client.close()
    return found


def of(word: str, other: str, found: dict[str, bytes | None]) -> list[tuple[str, bytes]]:
    """What is about names that begin with a word, as if they began with another."""
    return [
        (path.replace(word, other), (data or b"").replace(word.encode(), other.encode()))
        for path, data in found.items()
        if word in path or word.encode() in (data or b"")
    ]


def made(word: str) -> list[Any]:
    """One for each kind of pattern, and several for one."""
    return [
        creation(f"{word}-a"),
        creation(f"{word}-b", operation=READ, host="10.0.0.1", permission_type=DENY),
        creation(f"{word}-b", operation=WRITE),
        creation(f"{word}-b", operation=ALL, principal="User:*"),
        creation(f"{word}-", resource_pattern_type=PREFIXED, operation=8),
        creation(
            f"{word}-",
            resource_type=GROUP,
            resource_pattern_type=PREFIXED,
            permission_type=DENY,
            operation=ALL,
        ),
        creation(f"{word}-x", resource_type=TRANSACTIONAL_ID, operation=WRITE),
        creation(f"{word}-t", resource_type=6, operation=8),
        creation(f"{word}-u", resource_type=7, operation=13),
        creation(f'{word}-ä "quoted" \\', principal="User:CN=ä,O=x"),
        creation(f"{word}-many", operation=10),
        creation(f"{word}-many", operation=11),
    ]


ROOTS = ("/kafka-acl", "/kafka-acl-extended", "/kafka-acl-changes", "/kafka-acl-extended-changes")


def test_the_same_requests_leave_the_same_znodes(cluster: Guarded) -> None:
    for id, word in ((REAL, "real"), (OUR, "mine")):
        answer = cluster.ask(id, create_acls(*made(word)))
        assert [row.error_code for row in answer.results] == [0] * len(made(word))
    cluster.until_same()
    for root in ROOTS[:2]:
        found = znodes(cluster, root)
        assert of("mine", "real", found) == of("real", "real", found), root
        assert len(of("real", "real", found)) > 1
    for root in ROOTS[2:]:
        found = znodes(cluster, root)
        data = [[each for _, each in of(word, "real", found)] for word in ("mine", "real")]
        assert sorted(data[0]) == sorted(data[1]) != [], root
    for id, word in ((REAL, "real"), (OUR, "mine")):
        prefix = acl_filter(
            resource_name_filter=f"{word}-", pattern_type_filter=PREFIXED, resource_type_filter=TOPIC
        )
        some = acl_filter(resource_name_filter=f"{word}-b", operation=WRITE)
        cluster.ask(id, delete_acls(prefix, some))
    cluster.until_same()
    for root in ROOTS[:2]:
        found = znodes(cluster, root)
        # What is left of several may be in any order.
        assert [path for path, _ in of("mine", "real", found)] == [
            path for path, _ in of("real", "real", found)
        ]


REFUSED = [
    creation("a/b"),
    creation(""),
    creation("other", resource_type=CLUSTER),
    creation("x", resource_type=TRANSACTIONAL_ID, operation=9),
    creation(resource_type=99),
    creation(operation=15),
    creation(operation=99),
    creation(permission_type=9),
    creation(principal="ann"),
    creation("ok"),
]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_both_answer_alike(cluster: Guarded, version: int) -> None:
    requests = [
        create_acls(*REFUSED),
        *(create_acls(each) for each in REFUSED),
        create_acls(creation(resource_type=1), creation("ok")),
        create_acls(creation(resource_pattern_type=MATCH)),
        create_acls(),
        describe_acls(resource_type_filter=99),
        describe_acls(operation=99),
        delete_acls(acl_filter(resource_type_filter=99), acl_filter(operation=99)),
        delete_acls(acl_filter(resource_name_filter="ok"), acl_filter()),
        delete_acls(),
    ]
    for request in requests:
        answers = []
        for id in (REAL, OUR):
            cluster.clean()
            cluster.ask(REAL, create_acls(creation("ok")))
            cluster.until_same()
            answers.append(in_order(cluster.ask(id, request, version)))
        assert answers[0] == answers[1], request


def in_order(answer: Any) -> Any:
    for row in getattr(answer, "filter_results", ()):
        row.matching_acls.sort(key=str)
    return answer


@pytest.mark.parametrize(("one", "other"), [(REAL, OUR), (OUR, REAL)])
def test_what_is_changed_at_one_is_seen_at_the_other(cluster: Guarded, one: int, other: int) -> None:
    waits = []
    for number in range(10):
        request = create_acls(creation(f"n{number}"), creation("n", host=f"10.0.0.{number}"))
        assert not any(row.error_code for row in cluster.ask(one, request).results)
        began = time.monotonic()
        while not cluster.acls(other, resource_name_filter=f"n{number}"):
            assert time.monotonic() < began + DEADLINE_S
        waits.append(time.monotonic() - began)
    print(f"seen after {sorted(waits)[5]:.3f} s, at most {max(waits):.3f} s")
    assert len(cluster.until_same()) == 20
    cluster.ask(one, delete_acls(acl_filter(resource_name_filter="n", host_filter="10.0.0.3")))
    assert len(cluster.until_same()) == 19


def test_both_write_the_same_znode_and_nothing_is_lost(cluster: Guarded) -> None:
    for number in range(20):
        for id in (REAL, OUR):
            answer = cluster.ask(id, create_acls(creation("n", host=f"10.0.{id}.{number}")))
            assert answer.results[0].error_code == 0
    assert len(cluster.until_same()) == 40


def test_who_is_denied_at_one_is_denied_at_the_other(cluster: Guarded) -> None:
    if "open" not in {row.name for row in cluster.ask(OUR, MetadataRequest(topics=None), 9).topics}:
        cluster.create_topic("open", 1)
        cluster.create_topic("shut", 1)
    both = {"open": 0, "shut": 0}
    cluster.until("both know them", lambda status: codes(cluster, REAL) == codes(cluster, OUR) == both)
    cluster.ask(OUR, create_acls(creation("shut", principal="User:bob")))
    cluster.until_same()
    for id in (REAL, OUR):
        assert codes(cluster, id) == {"open": 0, "shut": errors.TOPIC_AUTHORIZATION_FAILED}
    cluster.ask(
        REAL,
        create_acls(creation("sh", principal="User:*", resource_pattern_type=PREFIXED, host="127.0.0.1")),
    )
    cluster.until_same()
    for id in (REAL, OUR):
        assert codes(cluster, id) == {"open": 0, "shut": 0}


def codes(cluster: Guarded, id: int) -> dict[str, int]:
    kind = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[kind(name=name) for name in ("open", "shut")], allow_auto_topic_creation=False
    )
    return {row.name: row.error_code for row in cluster.ask(id, request, 9).topics}


def test_a_broker_that_starts_knows_what_was_changed_meanwhile(cluster: Guarded) -> None:
    cluster.ask(OUR, create_acls(creation("before"), creation("gone")))
    cluster.until_same()
    cluster.stop(OUR)
    cluster.ask(REAL, create_acls(creation("meanwhile")))
    cluster.ask(REAL, delete_acls(acl_filter(resource_name_filter="gone")))
    cluster.start(OUR)
    assert {row[1] for row in cluster.until_same()} == {"before", "meanwhile"}


def test_a_broker_whose_session_ended_reads_everything_again(cluster: Guarded) -> None:
    cluster.ask(OUR, create_acls(creation("before"), creation("gone")))
    cluster.until_same()
    cluster.pause(OUR)
    cluster.until("its session has ended", lambda status: len(status["brokers"]) == 2 and gone(cluster))
    cluster.ask(REAL, create_acls(creation("meanwhile")))
    cluster.ask(REAL, delete_acls(acl_filter(resource_name_filter="gone")))
    cluster.resume(OUR)
    assert {row[1] for row in cluster.until_same()} == {"before", "meanwhile"}


def gone(cluster: Guarded) -> bool:
    return "/brokers/ids/1" not in znodes(cluster, "/brokers/ids")


def test_kafkas_tool_works_on_both(cluster: Guarded) -> None:
    given = (
        *("--allow-principal", "User:bob", "--operation", "Read"),
        *("--topic", "t", "--resource-pattern-type", "prefixed"),
    )
    assert "PREFIXED" in acl_command(cluster, "--add", *given)
    assert cluster.until_same() == {(TOPIC, "t", PREFIXED, "User:bob", "*", READ, ALLOW)}
    acl_command(cluster, "--add", "--deny-principal", "User:eve", "--operation", "All", "--topic", "t")
    assert {row[2] for row in cluster.until_same()} == {LITERAL, PREFIXED}
    acl_command(cluster, "--remove", "--force", *given)
    assert {row[2] for row in cluster.until_same()} == {LITERAL}


def acl_command(cluster: Guarded, *arguments: str) -> str:
    """Of the release that knows ZooKeeper, where it has another name; any of the brokers is asked."""
    command = ["java", "-cp", f"{kafka_libs()}/*", "kafka.admin.AclCommand"]
    command += ["--bootstrap-server", cluster.bootstrap_servers, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S * 2, check=False)
    assert done.returncode == 0, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout
