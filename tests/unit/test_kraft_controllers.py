"""Asking the active controller: who that is, again when it is not, what clients ask within an Envelope, and where
partitions lie."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from pykafkad import errors
from pykafkad.cluster.kraft.assignments import Assignments
from pykafkad.cluster.kraft.controllers import AGAIN_MS, Controllers
from pykafkad.cluster.kraft.forwarding import Forwarding
from pykafkad.cluster.kraft.image import QuorumImage
from pykafkad.errors import KafkaError
from pykafkad.handlers import Unanswerable
from pykafkad.hot import wire
from pykafkad.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AssignReplicasToDirsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DefaultPrincipalData,
    EnvelopeResponse,
    PartitionRecord,
    TopicRecord,
    VotersRecord,
)
from pykafkad.net.peers import Purpose
from pykafkad.pure.authorization import Principal
from tests.unit.peers_kit import FakePeers

CONFIG = {
    "controller.listener.names": ["CONTROLLER"],
    "controller.quorum.voters": ["100@h:1", "101@h:2"],
    "controller.quorum.bootstrap.servers": ["b:3"],
}
PURPOSE = Purpose("test")


class World:
    def __init__(self) -> None:
        self.now_ms = 0
        self.later: list[tuple[int, Any]] = []
        self.fake = FakePeers()
        self.where: Any = None
        self.controllers = Controllers(CONFIG, self.connect, self.call_later, lambda: self.now_ms)
        self.answers: list[Any] = []

    def connect(self, where: Any) -> Any:
        self.where = where
        return self.fake

    def call_later(self, delay_ms: int, call: Any) -> None:
        self.later.append((delay_ms, call))

    def go_on(self, ms: int = AGAIN_MS) -> None:
        self.now_ms += ms
        later, self.later = self.later, []
        for _, call in later:
            call()

    def ask(self) -> None:
        def request(version: int) -> Any:
            return AllocateProducerIdsRequest(broker_id=2)

        self.controllers.ask(PURPOSE, 67, 0, request, self.answers.append, patience_ms=1_000)


def test_where_they_listen_is_configured_and_learned() -> None:
    world = World()
    assert world.controllers.configured == [100, 101, -2]
    assert [world.where(node) for node in (100, -2, 102)] == [("h", 1), ("b", 3), None]
    world.controllers.learn([(102, ("h", 9)), (100, ("h", 1))])
    assert world.where(102) == ("h", 9)
    assert world.fake.closed == [102]


def test_voters_are_learned_with_the_listener_that_is_configured() -> None:
    world = World()
    kind = VotersRecord

    def voter(id: int, name: str) -> Any:
        return kind.Voter(voter_id=id, endpoints=[kind.Endpoint(name=name, host="v", port=id)])

    record = kind(voters=[voter(101, "controller"), voter(102, "CONTROLLER"), voter(103, "OTHER")])
    assert world.controllers.voters_are(bytes(record.encode(0))) == [101, 102]
    assert [world.where(node) for node in (101, 102, 103)] == [("v", 101), ("v", 102), None]


def test_who_was_active_is_not_waited_for() -> None:
    world = World()
    world.controllers.follow(100)
    world.controllers.follow(100)
    assert world.fake.closed == []
    world.controllers.follow(101)
    assert (world.controllers.active, world.fake.closed) == (101, [100])


def test_it_waits_for_an_active_one() -> None:
    world = World()
    world.ask()
    assert not world.fake.sent
    world.controllers.active = 101
    world.go_on()
    assert world.fake.take().broker_id == 101


def test_who_is_active_no_more_is_left_for_the_next() -> None:
    world = World()
    world.controllers.active = 100
    world.ask()
    world.fake.take().done(AllocateProducerIdsResponse(error_code=errors.NOT_CONTROLLER))
    world.controllers.active = 101
    world.go_on()
    sent = world.fake.take()
    assert sent.broker_id == 101
    answer = AllocateProducerIdsResponse(producer_id_start=1000)
    sent.done(answer)
    assert world.answers == [answer]


def test_another_error_is_the_answer() -> None:
    world = World()
    world.controllers.active = 100
    world.ask()
    answer = AllocateProducerIdsResponse(error_code=errors.STALE_BROKER_EPOCH)
    world.fake.take().done(answer)
    assert world.answers == [answer]


def test_patience_ends() -> None:
    world = World()
    world.controllers.active = 100
    world.ask()
    world.fake.take().done(ConnectionError("away"))
    world.go_on(2_000)
    world.fake.take().done(ConnectionError("away still"))
    assert [str(each) for each in world.answers] == ["away still"]
    assert not world.later


# -- forwarding


def context() -> Any:
    return SimpleNamespace(
        version=7,
        correlation_id=41,
        client_id="someone",
        principal=Principal("User", "alice"),
        connection=SimpleNamespace(peer=("127.0.0.9", 5)),
    )


def test_a_request_goes_as_it_came_with_who_asked_and_from_where() -> None:
    world = World()
    world.controllers.active = 100
    request = CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="t")], timeout_ms=5)
    Forwarding(2, world.controllers).forward(request, context(), world.answers.append)
    sent = world.fake.take()
    whole = wire.request(request, 7, 41, "someone")
    assert isinstance(whole, bytes)
    assert sent.request.request_data == whole[4:]
    assert sent.request.client_host_address == bytes([127, 0, 0, 9])
    packed = bytes(sent.request.request_principal)
    assert packed[:2] == b"\0\0"
    principal = DefaultPrincipalData.decode(packed, 0, 2)
    assert (principal.type, principal.name, principal.token_authenticated) == ("User", "alice", False)
    answer = CreateTopicsResponse(
        topics=[CreateTopicsResponse.CreatableTopicResult(name="t", topic_id=b"i" * 16)]
    )
    framed = wire.frame(answer, 7, 41, True)
    assert isinstance(framed, bytes)
    sent.done(EnvelopeResponse(response_data=framed[4:]))
    assert world.answers == [answer]


def test_what_the_controller_does_not_take_ends_the_connection() -> None:
    world = World()
    world.controllers.active = 100
    Forwarding(2, world.controllers).forward(CreateTopicsRequest(), context(), world.answers.append)
    world.fake.take().done(EnvelopeResponse(error_code=errors.CLUSTER_AUTHORIZATION_FAILED))
    assert isinstance(world.answers[0], Unanswerable)
    assert "CLUSTER_AUTHORIZATION_FAILED" in str(world.answers[0])


# -- where partitions lie

ID, HERE, FIRST, SECOND = b"\x07" * 16, 2, b"\x0a" * 16, b"\x0b" * 16


def assigned(world: World, named: bytes) -> Assignments:
    image = QuorumImage()
    image.apply(TopicRecord(name="t", topic_id=ID))
    image.apply(
        PartitionRecord(
            partition_id=0, topic_id=ID, replicas=[1, HERE], leader=1, directories=[SECOND, named]
        )
    )
    return Assignments(HERE, image, cast("Any", None), world.controllers, lambda: 17, world.call_later)


def log_in(directory: bytes) -> Any:
    return SimpleNamespace(
        topic="t", index=0, topic_id=ID, log_directory=SimpleNamespace(directory_id=directory)
    )


def told(code: int = 0) -> AssignReplicasToDirsResponse:
    kind = AssignReplicasToDirsResponse
    row = kind.PartitionData(partition_index=0, error_code=code)
    topic = kind.TopicData(topic_id=ID, partitions=[row])
    return kind(directories=[kind.DirectoryData(id=FIRST, topics=[topic])])


def test_where_a_partition_lies_is_told_if_the_metadata_says_otherwise() -> None:
    world = World()
    world.controllers.active = 100
    assignments = assigned(world, SECOND)
    assignments.note(log_in(SECOND))
    assignments.note(log_in(FIRST))
    assert not world.fake.sent  # the broker is not registered yet
    assignments.begin()
    request = world.fake.take().request
    assert (request.broker_id, request.broker_epoch) == (HERE, 17)
    assert [(each.id, each.topics[0].topic_id) for each in request.directories] == [(FIRST, ID)]


def test_it_is_told_again_until_it_is_known() -> None:
    world = World()
    world.controllers.active = 100
    assignments = assigned(world, SECOND)
    assignments.begin()
    done: list[KafkaError | None] = []
    assignments.moved(log_in(SECOND), cast("Any", SimpleNamespace(directory_id=FIRST)), done.append)
    world.fake.take().done(AssignReplicasToDirsResponse(error_code=errors.STALE_BROKER_EPOCH))
    assert not done
    world.go_on()
    world.fake.take().done(told())
    assert done == [None]


def test_directories_that_are_none_are_not_told_as_such() -> None:
    world = World()
    for special in range(3):
        assert assigned(world, special.to_bytes(16, "big")).directory_of("t", 0) == bytes(16)
    assert assigned(world, FIRST).directory_of("t", 0) == FIRST
    assert assigned(world, FIRST).directory_of("t", 1) == bytes(16)
