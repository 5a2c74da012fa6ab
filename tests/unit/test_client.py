"""The tools' client of a cluster: which addresses it tries and for how long, what it tries again, whom it asks."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.errors import KafkaError
from pykafkad.net import client
from pykafkad.net.client import CallTimeout, ClientError, Cluster, addresses, api_timeouts, resolves
from pykafkad.net.connection import CONNECT_TIMEOUT_S, UnsupportedVersion
from pykafkad.net.reaching import NotKafka, Unreachable

A, B = ("a", 1), ("b", 2)


class World:
    """Time, which passes in pauses only, and what connections come to: `there` is set by the test."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.pauses: list[float] = []
        self.tried: list[tuple[tuple[str, int], float]] = []  # addresses, and how long the try might take
        self.there: dict[tuple[str, int], Exception | None] = {}
        self.answers: list[Any] = []
        self.asked: list[Any] = []
        self.closed: list[tuple[str, int]] = []
        self.version = 6  # of any API that both sides know

    def sleep(self, seconds: float) -> None:
        self.pauses.append(round(seconds, 6))
        self.now_s += seconds


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    class Connection:
        def __init__(self, host: str, port: int, client_id: str, *, timeout_s: float, **sizes: int) -> None:
            self.address, self.sizes = (host, port), sizes
            world.tried.append((self.address, round(timeout_s, 6)))
            problem = world.there.get(self.address)
            if problem is not None:
                raise problem

        def learn_versions(self, deadline: float) -> None:
            self.deadline = deadline

        def version_for(self, request: Any) -> int:
            return world.version

        def call(self, request: Any, deadline: float, *, at_most: int) -> Any:
            world.asked.append((self.address, request, round(deadline - world.now_s, 6)))
            answer = world.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        def close(self) -> None:
            world.closed.append(self.address)

    monkeypatch.setattr(client, "Connection", Connection)
    monkeypatch.setattr(client, "time", SimpleNamespace(monotonic=lambda: world.now_s, sleep=world.sleep))
    return world


# -- addresses


def test_addresses_are_hosts_and_ports_with_or_without_a_protocol() -> None:
    assert addresses("a:1") == [A]
    assert addresses(" a:1 ,, PLAINTEXT://b:2,") == [A, B]
    assert addresses("[::1]:9092,x:65535,y:0") == [("::1", 9092), ("x", 65535), ("y", 0)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "No resolvable bootstrap urls given in bootstrap.servers"),
        (" , ", "No resolvable bootstrap urls given in bootstrap.servers"),
        ("host", "Invalid url in bootstrap.servers: host (HOST:PORT is expected)"),
        (":1", "Invalid url in bootstrap.servers: :1 (HOST:PORT is expected)"),
        ("a:1/b:2", "Invalid url in bootstrap.servers: a:1/b:2 (HOST:PORT is expected)"),
        ("a:x", "Invalid url in bootstrap.servers: a:x (HOST:PORT is expected)"),
        ("a:-1", "Invalid url in bootstrap.servers: a:-1 (HOST:PORT is expected)"),
        ("a:65536", "Invalid port in bootstrap.servers: a:65536"),
    ],
)
def test_what_is_no_address_is_told(text: str, why: str) -> None:
    with pytest.raises(ClientError) as refused:
        addresses(text)
    assert str(refused.value) == why


def test_an_address_resolves_to_itself_and_nonsense_to_nothing() -> None:
    assert resolves("127.0.0.1") is True
    assert resolves("a..b") is False and resolves("x" * 64 + ".") is False


def test_timeouts_are_taken_from_a_clients_configs() -> None:
    configs = {
        "request.timeout.ms": "1",
        "default.api.timeout.ms": "2",
        "retry.backoff.ms": "3",
        "socket.connection.setup.timeout.ms": "4",
        "send.buffer.bytes": "5",
        "receive.buffer.bytes": "-1",
        "linger.ms": "7",
    }
    found = api_timeouts(configs)
    assert found == {
        "request_timeout_ms": 1,
        "api_timeout_ms": 2,
        "retry_backoff_ms": 3,
        "setup_timeout_ms": 4,
        "send_bytes": 5,
        "receive_bytes": -1,
    }
    Cluster("a:1", **found)  # type: ignore[arg-type]
    assert api_timeouts({}) == {}
    with pytest.raises(ClientError) as refused:
        api_timeouts({"retry.backoff.ms": "soon"})
    assert str(refused.value) == (
        "Invalid value soon for configuration retry.backoff.ms: Not a number of type INT"
    )


# -- how long an address is tried


def test_one_address_has_all_the_time_and_what_is_left_at_the_next_try(world: World) -> None:
    world.there[A] = ConnectionRefusedError(111, "Connection refused")
    cluster = Cluster("a:1")
    for passed_s in (0, 1, 2, 1, 1):
        world.now_s += passed_s
        with pytest.raises(ConnectionRefusedError):
            cluster.connect(A)
    assert [limit for _, limit in world.tried] == [3.5, 2.5, 0.5, 0.2, 0.2]
    assert cluster._is_hopeless(A, OSError())


def test_of_several_bootstrap_addresses_each_has_its_share(world: World) -> None:
    for text, share in (("a:1,b:2", 1.75), ("a:1,b:2,c:3,d:4", 1.0)):
        world.there[A] = TimeoutError()
        cluster = Cluster(text)
        with pytest.raises(TimeoutError):
            cluster.connect(A)
        cluster.connect(("other", 3))
        assert [limit for _, limit in world.tried] == [share, 3.5]
        world.tried.clear()


def test_the_configured_times_are_kept_to(world: World) -> None:
    Cluster("a:1", setup_timeout_ms=2000).connect(A)
    Cluster("a:1", setup_timeout_ms=9000, api_timeout_ms=8000).connect(A)
    assert [limit for _, limit in world.tried] == [2.0, 8.0]


def test_an_address_that_has_answered_is_not_in_a_hurry(world: World, capsys: Any) -> None:
    cluster = Cluster("a:1,b:2")
    first = cluster.connect(A)
    assert cluster.connect(A) is first and len(world.tried) == 1
    cluster.drop(first)
    assert world.closed == [A]
    world.there[A] = ConnectionRefusedError()
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            cluster.connect(A)
    assert world.tried[1][1] == CONNECT_TIMEOUT_S
    warning = "WARN Connection to a:1 could not be established. Broker may not be available.\n"
    assert capsys.readouterr().err == warning, "said once"


def test_an_advertised_address_that_never_answers_is_told_when_its_time_is_up(world: World) -> None:
    cluster = Cluster("a:1")
    cluster.connect(A)
    cluster.brokers = {5: B}
    world.there[B] = ConnectionRefusedError()
    with pytest.raises(ConnectionRefusedError):
        cluster.connect(B)
    world.now_s += 2.99
    with pytest.raises(ConnectionRefusedError):
        cluster.connect(B)
    world.now_s += 0.01
    with pytest.raises(Unreachable, match="The broker at a:1 advertises broker 5 as b:2"):
        cluster.connect(B)


def test_any_broker_is_a_known_one_or_else_one_of_the_bootstrap(world: World) -> None:
    cluster = Cluster("a:1")
    cluster.brokers = {1: B}
    world.there[B] = TimeoutError()
    assert cluster.any_broker().address == A  # type: ignore[attr-defined]
    assert [address for address, _ in world.tried] == [B, A]
    assert cluster.any_broker().address == A and len(world.tried) == 2  # type: ignore[attr-defined]


def test_where_no_broker_is_the_last_problem_is_told_until_all_is_hopeless(world: World) -> None:
    world.there = {A: TimeoutError(), B: ConnectionRefusedError(111, "Connection refused")}
    cluster = Cluster("a:1,b:2")
    with pytest.raises(ConnectionRefusedError):
        cluster.any_broker()
    world.now_s += 3.0
    with pytest.raises(Unreachable, match=r"No broker answers at a:1: .*; b:2: connection refused"):
        cluster.any_broker()
    world.there = {A: NotKafka(b"HTTP/"), B: NotKafka(b"HTTP/")}
    with pytest.raises(Unreachable, match="what answers there is HTTP"):
        Cluster("a:1,b:2").any_broker()


# -- what is tried again


def failing(*problems: Exception) -> tuple[Callable[[], str], list[Exception]]:
    left = list(problems)

    def call() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return call, left


def test_what_may_pass_is_tried_again_after_longer_and_longer_pauses(world: World) -> None:
    cluster = Cluster("a:1")
    cluster._coordinators[client.GROUP, "g"] = 1
    told: list[int] = []
    call, _ = failing(
        *[KafkaError(errors.NOT_COORDINATOR)] * 4, OSError(), KafkaError(errors.NOT_COORDINATOR)
    )
    assert cluster.attempt("x", call, after_failure=lambda: told.append(1)) == "done"
    assert world.pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0] and len(told) == 6
    assert not cluster._coordinators


def test_the_last_fault_is_told_when_the_time_is_up(world: World) -> None:
    cluster = Cluster("a:1", api_timeout_ms=300, retry_backoff_ms=100)
    call, left = failing(*[KafkaError(errors.NOT_COORDINATOR)] * 5)
    with pytest.raises(KafkaError) as fault:
        cluster.attempt("x", call)
    assert (fault.value.code, world.pauses, len(left)) == (errors.NOT_COORDINATOR, [0.1], 3)
    call, left = failing(*[OSError()] * 5)
    with pytest.raises(CallTimeout, match=r"Timed out waiting for a node assignment\. Call: listTopics"):
        cluster.attempt("listTopics", call, timeout_ms=300)
    assert (world.pauses[1:], len(left)) == ([0.1], 3)
    call, left = failing(*[OSError()] * 5)
    with pytest.raises(CallTimeout):
        cluster.attempt("x", call, timeout_ms=100)
    assert len(left) == 4, "a pause that would end with the time is none"


@pytest.mark.parametrize(
    "problem",
    [
        KafkaError(errors.INVALID_REQUEST),
        CallTimeout("late"),
        UnsupportedVersion("old"),
        ClientError("wrong"),
    ],
)
def test_what_does_not_pass_is_told_at_once(world: World, problem: Exception) -> None:
    call, _ = failing(problem)
    with pytest.raises(type(problem)):
        Cluster("a:1").attempt("x", call)
    assert world.pauses == []


def test_the_caller_may_say_what_passes(world: World) -> None:
    call, _ = failing(KafkaError(errors.INVALID_REQUEST))
    assert Cluster("a:1").attempt("x", call, retriable=errors.INVALID_REQUEST.__eq__) == "done"


# -- whom it asks


def metadata(controller_id: int, **brokers: int) -> Any:
    Response = messages.MetadataResponse
    rows = [
        Response.MetadataResponseBroker(node_id=port, host=host, port=port) for host, port in brokers.items()
    ]
    return Response(brokers=rows, controller_id=controller_id)


def test_a_broker_is_found_by_its_id_in_the_metadata(world: World) -> None:
    cluster = Cluster("boot:9")
    world.answers = [metadata(2, a=1, b=2)]
    assert cluster.broker(2).address == B  # type: ignore[attr-defined]
    assert cluster.broker(1).address == A and len(world.asked) == 1  # type: ignore[attr-defined]
    world.answers = [metadata(2, a=1, b=2)]
    with pytest.raises(KafkaError, match="Node 7 is not known") as refused:
        cluster.broker(7)
    assert refused.value.code == errors.BROKER_NOT_AVAILABLE
    world.answers = [metadata(-1)]
    with pytest.raises(KafkaError) as refused:
        cluster.metadata(None)
    assert refused.value.code == errors.BROKER_NOT_AVAILABLE


@pytest.mark.parametrize(("controller_id", "asked"), [(0, ("z", 0)), (2, B), (-1, ("boot", 9))])
def test_the_controller_is_asked_or_else_any_broker(
    world: World, controller_id: int, asked: tuple[str, int]
) -> None:
    cluster = Cluster("boot:9")
    world.answers = [metadata(controller_id, z=0, b=2)]
    assert cluster.controller().address == asked  # type: ignore[attr-defined]
    if controller_id >= 0:
        assert cluster.controller().address == asked and not world.answers  # type: ignore[attr-defined]


def test_topics_are_asked_for_by_name_by_id_or_all(world: World) -> None:
    cluster = Cluster("a:1")
    world.answers = [metadata(1, a=1)] * 3
    cluster.metadata(None)
    cluster.metadata([])
    cluster.metadata(["t"], topic_ids=[bytes(range(16))], auto_create=True)
    asked = [request for _, request, _ in world.asked]
    assert asked[0].topics is None and asked[1].topics == []
    assert [(topic.name, topic.topic_id) for topic in asked[2].topics] == [
        ("t", bytes(16)),
        (None, bytes(range(16))),
    ]
    assert [request.allow_auto_topic_creation for request in asked] == [False, False, True]


def test_the_cluster_is_described(world: World) -> None:
    cluster = Cluster("boot:9")
    Response = messages.DescribeClusterResponse
    row = Response.DescribeClusterBroker(broker_id=2, host="b", port=2)
    world.answers = [Response(brokers=[row], controller_id=2)]
    response = cluster.describe_cluster()
    assert [each.broker_id for each in response.brokers] == [2]
    assert (cluster.brokers, cluster.controller_id) == ({2: B}, 2)
    world.answers = [Response(error_code=errors.CLUSTER_AUTHORIZATION_FAILED, error_message="no")]
    with pytest.raises(KafkaError, match="no"):
        cluster.describe_cluster()


def test_a_coordinator_is_remembered_until_it_is_forgotten(world: World) -> None:
    cluster = Cluster("boot:9")
    Response = messages.FindCoordinatorResponse
    told = Response(coordinators=[Response.Coordinator(key="g", node_id=2, host="b", port=2)])
    world.answers = [told, told]
    assert [cluster.coordinator_id("g"), cluster.coordinator_id("g")] == [2, 2]
    assert len(world.asked) == 1 and cluster.coordinator("g").address == B  # type: ignore[attr-defined]
    assert (world.asked[0][1].key, world.asked[0][1].coordinator_keys) == ("", ["g"])
    cluster.forget_coordinators()
    cluster.coordinator_id("g")
    assert len(world.asked) == 2


@pytest.mark.parametrize(("version", "key", "keys"), [(3, "g", []), (4, "", ["g"]), (5, "", ["g"])])
def test_a_coordinator_is_asked_for_as_its_broker_knows_it(
    world: World, version: int, key: str, keys: list[str]
) -> None:
    """Since version 4 several are asked for at once, and then the answer has a row for each."""
    cluster = Cluster("boot:9")
    Response = messages.FindCoordinatorResponse
    row = Response.Coordinator(key="g", node_id=2, host="b", port=2)
    world.version = version
    world.answers = [Response(coordinators=[row]) if keys else Response(node_id=2, host="b", port=2)]
    assert cluster.coordinator_id("g") == 2 and cluster.brokers == {2: B}
    assert (world.asked[0][1].key, world.asked[0][1].coordinator_keys) == (key, keys)


def test_a_request_that_fails_costs_its_connection(world: World) -> None:
    cluster = Cluster("a:1", request_timeout_ms=5000)
    connection = cluster.connect(A)
    world.answers = [messages.ListGroupsResponse(), messages.ListGroupsResponse(), TimeoutError()]
    cluster.call(connection, messages.ListGroupsRequest())
    cluster.call(connection, messages.ListGroupsRequest(), wait_ms=1500)
    with pytest.raises(TimeoutError):
        cluster.call(connection, messages.ListGroupsRequest())
    assert [left for _, _, left in world.asked] == [5.0, 6.5, 5.0]
    assert world.closed == [A] and cluster.connect(A) is not connection


def test_at_its_end_all_connections_are_closed(world: World) -> None:
    cluster = Cluster("a:1")
    for address in (A, B):
        cluster.connect(address)
    cluster.close()
    cluster.close()
    assert world.closed == [A, B]
