"""ACLs of a cluster on ZooKeeper, between brokers that share a ZooKeeper in memory."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.cluster.acls import Deleted
from pykafkad.cluster.image import Image
from pykafkad.cluster.publishing import ACLS, Publishers
from pykafkad.cluster.turns import Turns
from pykafkad.cluster.zookeeper.acl_znodes import MAX_TRIES, AclZnodes
from pykafkad.cluster.zookeeper.acls import ClusterAcls
from pykafkad.cluster.zookeeper.asking import Asking
from pykafkad.errors import KafkaError
from pykafkad.pure.acl_rules import RulesOfZooKeeper
from pykafkad.pure.acls import ALLOW, DENY, LITERAL, PREFIXED, Acl, Filter
from pykafkad.pure.authorization import CLUSTER, READ, TOPIC, WRITE
from pykafkad.slices import Slices
from pykafkad.zookeeper.client import Create, Delete, SetData
from pykafkad.zookeeper.config_znodes import ACL_PATHS, write_acls
from pykafkad.zookeeper.config_znodes import Acl as ZnodeAcl
from tests.unit.test_zookeeper_configs import Clock
from tests.zookeeper_kit import MemoryZooKeeper

T = Acl(TOPIC, "t", LITERAL, "User:ann", "*", READ, ALLOW)
EVERYTHING = Filter(1, None, 1, None, None, 1, 1)
OF_T = EVERYTHING._replace(resource_type=TOPIC, name="t", pattern_type=LITERAL)


class One:
    """One broker's view of the ACLs."""

    def __init__(self, server: MemoryZooKeeper, clock: Clock) -> None:
        self.server = server
        self.zookeeper = server.client()
        self.image = Image()
        self.image.take_delta()
        self.publishers = Publishers()
        self.pauses: list[float] = []
        run = Slices(lambda call: server._queue.append(call), clock).run  # type: ignore[arg-type]
        self.znodes = AclZnodes(Asking(self.zookeeper), clock.now_ms, self.later, lambda number: 0)
        self.rules = RulesOfZooKeeper()
        self.acls = ClusterAcls(
            self.zookeeper, self.znodes, self.image, self.rules, self.publishers, Turns(run).run, run
        )
        self.publishers.add(ACLS, self.acls.publish)
        self.zookeeper.start()
        server.settle()

    def later(self, ms: float, call: Any) -> None:
        self.pauses.append(ms)
        self.server._queue.append(call)

    def told(self, ask: Any, *arguments: Any) -> Any:
        answers: list[Any] = []
        ask(*arguments, answers.append)
        self.server.settle()
        (answer,) = answers
        return answer

    def load(self) -> KafkaError | None:
        found: KafkaError | None = self.told(self.acls.load)
        return found

    def create(self, *acls: Acl) -> list[int]:
        return [each.code if each else 0 for each in self.told(self.acls.create, acls)]

    def delete(self, *filters: Filter) -> list[list[Acl]]:
        found: list[Deleted] = self.told(self.acls.delete, filters)
        assert all(each.error is None for each in found)
        return [[acl for acl, error in each.acls if error is None] for each in found]

    @property
    def held(self) -> set[Acl]:
        return {acl for pattern in self.rules.patterns for acl in self.rules.of(pattern)}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def server(clock: Clock) -> MemoryZooKeeper:
    return MemoryZooKeeper(clock=clock.now_ms)


@pytest.fixture
def ours(server: MemoryZooKeeper, clock: Clock) -> One:
    one = One(server, clock)
    assert one.load() is None
    return one


@pytest.fixture
def theirs(server: MemoryZooKeeper, clock: Clock, ours: One) -> One:
    other = One(server, clock)
    assert other.load() is None
    return other


def json(*entries: tuple[str, str, str, str]) -> bytes:
    """As Kafka 3.9.2 writes them."""
    listed = ",".join(
        f'{{"principal":"{who}","permissionType":"{permission}","host":"{host}","operation":"{operation}"}}'
        for who, permission, host, operation in entries
    )
    return f'{{"acls":[{listed}],"version":1}}'.encode()


def test_a_start_makes_the_paths_that_kafka_makes(server: MemoryZooKeeper, ours: One) -> None:
    assert set(ACL_PATHS) <= server.tree().keys()
    assert [server.data(path) for path in ACL_PATHS] == [None] * len(ACL_PATHS)


def test_acls_are_written_as_kafka_writes_them_and_told_of(server: MemoryZooKeeper, ours: One) -> None:
    prefixed = Acl(3, "g-", PREFIXED, "User:b", "10.0.0.1", 2, DENY)
    transactional = Acl(5, "*", LITERAL, "User:*", "*", WRITE, ALLOW)
    assert ours.create(T, prefixed, transactional, T._replace(operation=WRITE)) == [0, 0, 0, 0]
    assert server.data("/kafka-acl/Topic/t") == json(
        ("User:ann", "Allow", "*", "Read"), ("User:ann", "Allow", "*", "Write")
    )
    assert server.data("/kafka-acl-extended/prefixed/Group/g-") == json(("User:b", "Deny", "10.0.0.1", "All"))
    assert server.data("/kafka-acl/TransactionalId/*") == json(("User:*", "Allow", "*", "Write"))
    assert server.tree("/kafka-acl-changes") == {
        "/kafka-acl-changes": None,
        "/kafka-acl-changes/acl_changes_0000000000": b"TOPIC:t",
        "/kafka-acl-changes/acl_changes_0000000001": b"TRANSACTIONAL_ID:*",
    }
    assert server.data("/kafka-acl-extended-changes/acl_changes_0000000000") == (
        b'{"version":1,"resourceType":"GROUP","name":"g-","patternType":"PREFIXED"}'
    )
    assert ours.held == {T, prefixed, transactional, T._replace(operation=WRITE)}


def test_what_one_makes_and_removes_counts_at_the_other(ours: One, theirs: One) -> None:
    ours.create(T, T._replace(name="u", pattern_type=PREFIXED))
    assert theirs.held == ours.held and len(theirs.held) == 2
    assert theirs.delete(OF_T) == [[T]]
    assert theirs.held == ours.held == {T._replace(name="u", pattern_type=PREFIXED)}


def test_the_last_acl_takes_its_znode_along(server: MemoryZooKeeper, ours: One) -> None:
    ours.create(T, T._replace(operation=WRITE))
    ours.delete(OF_T._replace(operation=READ))
    assert server.data("/kafka-acl/Topic/t") == json(("User:ann", "Allow", "*", "Write"))
    ours.delete(OF_T)
    assert "/kafka-acl/Topic/t" not in server.tree("/kafka-acl/Topic")
    assert len(server.tree("/kafka-acl-changes")) == 4 and not ours.held and not ours.image.acls


def test_one_of_three_is_removed_and_the_denial_stays(ours: One, theirs: One) -> None:
    """CVE-2024-27309."""
    denial = T._replace(permission=DENY, operation=WRITE)
    ours.create(T, denial, T._replace(principal="User:bob"))
    ours.delete(OF_T._replace(principal="User:bob"))
    assert ours.held == theirs.held == {T, denial}


def test_what_is_there_already_is_no_change(server: MemoryZooKeeper, ours: One) -> None:
    assert ours.create(T) == ours.create(T) == [0]
    assert server.nodes["/kafka-acl/Topic/t"].version == 0 and len(server.tree("/kafka-acl-changes")) == 2
    assert ours.delete(OF_T._replace(name="nothing")) == [[]]


def test_what_others_made_is_found_even_before_its_notification(server: MemoryZooKeeper, ours: One) -> None:
    server.do(Create("/kafka-acl/Topic/t", json(("User:ann", "Allow", "*", "Read"))))
    assert ours.delete(EVERYTHING._replace(name="t", pattern_type=2)) == [
        []
    ]  # any pattern that matches: those known
    assert ours.delete(OF_T) == [[T]]


def test_an_acl_goes_with_the_first_filter_that_means_it(ours: One) -> None:
    other = T._replace(name="u")
    ours.create(T, other)
    assert ours.delete(OF_T, EVERYTHING) == [[T], [other]]


def test_a_notification_only_names_what_is_to_be_read(server: MemoryZooKeeper, ours: One) -> None:
    server.do(
        Create("/kafka-acl/Topic/t", json(("User:ann", "Allow", "*", "Read"))),
        Create("/kafka-acl/Group/g", json(("User:ann", "Allow", "*", "Read"))),
        Create("/kafka-acl-changes/acl_changes_", b"nonsense", sequential=True),
        Create("/kafka-acl-changes/acl_changes_", b"TOPIC:t", sequential=True),
    )
    server.settle()
    assert ours.held == {T}


def test_what_a_start_finds_counts_from_its_beginning(
    server: MemoryZooKeeper, clock: Clock, ours: One
) -> None:
    ours.create(
        T, T._replace(name="p", pattern_type=PREFIXED), Acl(7, "bob", LITERAL, "User:ann", "*", 13, ALLOW)
    )
    late = One(server, clock)
    assert late.load() is None and late.held == ours.held and len(late.held) == 3


def test_a_start_that_cannot_read_an_acl_is_none(server: MemoryZooKeeper, clock: Clock, ours: One) -> None:
    server.do(Create("/kafka-acl/Topic/t", b"{"))
    error = One(server, clock).load()
    assert error is not None and error.code == errors.UNKNOWN_SERVER_ERROR


def test_what_cannot_be_read_later_stays_as_it_was(server: MemoryZooKeeper, ours: One) -> None:
    ours.create(T)
    server.do(
        SetData("/kafka-acl/Topic/t", b"{"),
        Create("/kafka-acl-changes/acl_changes_", b"TOPIC:t", sequential=True),
    )
    server.settle()
    assert ours.held == {T}
    (error,) = ours.told(ours.acls.create, [T._replace(operation=WRITE)])
    assert error.code == errors.UNKNOWN_SERVER_ERROR and ours.held == {T}


def test_what_cannot_be_read_hides_no_other_change(server: MemoryZooKeeper, ours: One) -> None:
    entry = write_acls([ZnodeAcl(T.principal, T.permission, T.host, T.operation)])
    server.do(
        Create("/kafka-acl/Topic/t", b"[" * 100_000),
        Create("/kafka-acl/Topic/u", entry),
        Create("/kafka-acl-changes/acl_changes_", b"TOPIC:t", sequential=True),
        Create("/kafka-acl-changes/acl_changes_", b"TOPIC:a/../b", sequential=True),
        Create("/kafka-acl-changes/acl_changes_", b"\xff" * 1000, sequential=True),
        Create("/kafka-acl-changes/acl_changes_", b"TOPIC:u", sequential=True),
    )
    server.settle()
    assert ours.held == {T._replace(name="u")}


def test_types_that_are_not_known_are_left_alone(server: MemoryZooKeeper, clock: Clock, ours: One) -> None:
    server.do(Create("/kafka-acl/Planet"), Create("/kafka-acl/Planet/mars", b"{"))
    assert One(server, clock).load() is None


def test_after_a_lost_session_everything_is_read_again(
    server: MemoryZooKeeper, ours: One, theirs: One
) -> None:
    ours.create(T, T._replace(name="gone"))
    theirs.zookeeper.expire()
    server.do(
        Delete("/kafka-acl/Topic/gone"),
        Create("/kafka-acl/Topic/new", json(("User:ann", "Allow", "*", "Read"))),
    )
    server.settle()
    assert theirs.held == {T, T._replace(name="new")}


def test_whoever_is_quicker_is_not_overwritten(server: MemoryZooKeeper, ours: One, theirs: One) -> None:
    told: list[Any] = []
    ours.acls.create([T], told.append)
    theirs.acls.create([T._replace(operation=WRITE)], told.append)
    server.settle()
    assert told == [[None], [None]]
    assert ours.held == theirs.held == {T, T._replace(operation=WRITE)}
    assert [*ours.pauses, *theirs.pauses] == [100]


def test_a_znode_that_others_write_all_the_time_is_given_up(
    ours: One, monkeypatch: pytest.MonkeyPatch, server: MemoryZooKeeper
) -> None:
    ours.create(T)
    write = server._write

    def quicker(session_id: int, ops: Any) -> Any:
        for op in ops:
            if isinstance(op, SetData) and session_id:
                server.nodes[op.path].version += 1
        return write(session_id, ops)

    monkeypatch.setattr(server, "_write", quicker)
    other = T._replace(operation=WRITE)
    assert ours.create(other, T._replace(name="u")) == [errors.UNKNOWN_SERVER_ERROR, 0]
    assert ours.pauses == [100] * MAX_TRIES and ours.held == {T, T._replace(name="u")}
    (deleted,) = ours.told(ours.acls.delete, [OF_T._replace(operation=READ)])
    assert deleted.error is None and deleted.acls != []


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"name": "a/b"}, errors.INVALID_REQUEST),
        ({"name": ""}, errors.INVALID_REQUEST),
        ({"resource_type": CLUSTER}, errors.INVALID_REQUEST),
        ({"operation": 15}, errors.INVALID_REQUEST),  # 3.9 has no two-phase commit
        ({"operation": 99}, errors.INVALID_REQUEST),
        ({"principal": "ann"}, errors.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_there_may_not_be(ours: One, changed: dict[str, Any], code: int) -> None:
    assert ours.create(T._replace(**changed), T) == [code, 0]
    assert ours.held == {T}
