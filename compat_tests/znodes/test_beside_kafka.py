"""Our side of ZooKeeper beside a real Kafka 3.9.2 broker, which is the controller: it obeys what we write, and we read
what it writes."""

from __future__ import annotations

import queue
import random
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from compat_tests.znodes.conftest import PASSWORD, USER, Kafka
from pykafkad.clock import Clock
from pykafkad.cluster.client_quotas import record_of
from pykafkad.cluster.image import Image
from pykafkad.cluster.metadata_records import config_record
from pykafkad.cluster.names import Names
from pykafkad.cluster.publishing import Publishers
from pykafkad.cluster.turns import Turns
from pykafkad.cluster.zookeeper.changes import ClusterChanges
from pykafkad.cluster.zookeeper.registration import BrokerRegistration
from pykafkad.config import BrokerConfig
from pykafkad.config_listeners import Endpoint
from pykafkad.messages import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from pykafkad.net.client import Cluster
from pykafkad.quiet import always
from pykafkad.slices import Slices
from pykafkad.zookeeper.client import NO_AUTH, Create, Exists, GetData, SetData, State
from pykafkad.zookeeper.kazoo_client import KazooZooKeeper
from pykafkad.zookeeper.settings import Login, Settings
from pykafkad.zookeeper.znodes import read_assignment, topic

PATIENCE_S = 60


class Ours:
    """What a broker of ours has of ZooKeeper, on a loop that is this test's."""

    def __init__(self, kafka: Kafka, **settings: Any) -> None:
        self._calls: queue.Queue[tuple[Callable[..., Any], tuple[Any, ...]]] = queue.Queue()
        self.zookeeper = KazooZooKeeper(
            Settings(kafka.zookeeper, session_timeout_ms=6000, **settings), self._post
        )
        self.states: list[State] = []
        self.zookeeper.on_state(self.states.append)
        self.image = Image()
        self.image.apply(RegisterBrokerRecord(broker_id=0, rack="a"))
        run = Slices(self._post, Clock()).run
        self.registration = BrokerRegistration(self.zookeeper, 3, run, now_ms)
        self.changes = ClusterChanges(
            BrokerConfig({"node.id": "3"}),
            self.zookeeper,
            self.image,
            Names(self.image),
            Publishers(),
            Turns(run).run,
            lambda: True,
            run,
            now_ms,
            lambda ms, call: None,
            random.randrange,
            always,
        )
        self.zookeeper.start()
        self.until(lambda: self.states)

    def _post(self, call: Callable[..., Any], *arguments: Any) -> None:
        self._calls.put((call, arguments))

    def until(self, is_so: Callable[[], Any]) -> Any:
        """Let the loop run until this is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := is_so()):
            assert time.monotonic() < deadline
            try:
                call, arguments = self._calls.get(timeout=0.1)
            except queue.Empty:
                continue
            call(*arguments)
        return found

    def told(self, ask: Callable[..., None], *arguments: Any) -> Any:
        answers: list[Any] = []
        ask(*arguments, answers.append)
        self.until(lambda: answers)
        return answers[0]

    def read(self, path: str) -> Any:
        return self.asked(GetData(path))

    def asked(self, op: Any) -> Any:
        answers: list[Any] = []
        self.zookeeper.submit([op], answers.append)
        self.until(lambda: answers)
        return answers[0][0]

    def commit(self, *records: Any) -> None:
        assert self.told(self.changes.commit, [(record, 0) for record in records]) is None


def now_ms() -> int:
    return int(time.time() * 1000)


@pytest.fixture
def ours(kafka: Kafka) -> Iterator[Ours]:
    ours = Ours(kafka)
    try:
        assert ours.told(ours.changes.load) is None
        yield ours
    finally:
        ours.zookeeper.close()


@pytest.fixture
def admin(kafka: Kafka) -> Iterator[KafkaAdminClient]:
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    yield admin
    admin.close()


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def eventually(ours: Ours, is_so: Callable[[], Any]) -> Any:
    """With the loop running, as long as it takes Kafka."""
    last = [0.0]

    def ask() -> Any:
        if time.monotonic() - last[0] < 0.2:
            return None
        last[0] = time.monotonic()
        return is_so()

    return ours.until(ask)


def described(kafka: Kafka, name: str) -> str | None:
    """A config of the broker, as it counts there."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=4, resource_name="0", configuration_keys=[name]
    )
    answer = asked(kafka, DescribeConfigsRequest(resources=[resource]))
    return next((each.value for each in answer.results[0].configs), None)


def asked(kafka: Kafka, request: Any) -> Any:
    cluster = Cluster(kafka.bootstrap)
    try:
        return cluster.ask_any("test", request)
    finally:
        cluster.close()


def test_configs_that_we_write_are_obeyed(
    ours: Ours, admin: KafkaAdminClient, kafka: Kafka, name: str
) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    ours.commit(config_record(2, name, "max.message.bytes", "1000"))
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, acks=1)

    def is_refused() -> bool:
        try:
            producer.send(name, bytes(5000)).get(PATIENCE_S)
        except Exception as error:
            return "large" in str(error).lower() or "10" in str(error)
        return False

    assert eventually(ours, is_refused)
    producer.close()
    ours.commit(config_record(4, "", "log.retention.ms", "123456789"))
    assert eventually(ours, lambda: described(kafka, "log.retention.ms") == "123456789")
    ours.commit(config_record(4, "", "log.retention.ms", None))


def test_a_topic_that_we_make_is_led_grown_and_deleted(
    ours: Ours, admin: KafkaAdminClient, kafka: Kafka, name: str
) -> None:
    wanted = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    ours.changes.create_topics([wanted], False, lambda planned: None)
    assert eventually(ours, lambda: leaders(admin, name) == [0, 0])
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, acks="all")
    assert producer.send(name, b"x", partition=1).get(PATIENCE_S).offset == 0
    producer.close()
    more = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=4, assignments=None)
    ours.changes.create_partitions([more], False, lambda grown: None)
    assert eventually(ours, lambda: leaders(admin, name) == [0] * 4)
    topic_id = read_assignment(ours.read(topic(name)).data).topic_id
    ours.image.apply(TopicRecord(name=name, topic_id=topic_id))
    failures: list[Any] = []
    ours.changes.delete_topics([topic_id], failures.append)
    gone = eventually(ours, lambda: ours.read(topic(name)).error)
    assert gone and name not in admin.list_topics()
    ours.image.apply(RemoveTopicRecord(topic_id=topic_id))
    ours.changes.image_changed()
    assert failures == [{}]


def leaders(admin: KafkaAdminClient, name: str) -> list[int]:
    (found,) = admin.describe_topics([name])
    return sorted(part.get("leader_id", part.get("leader")) for part in found["partitions"])


def test_what_kafka_writes_is_read(ours: Ours, admin: KafkaAdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, configs={"retention.ms": "4711"})])
    ours.until(lambda: ours.image.configs.get((2, name), {}).get("retention.ms") == "4711")


def test_quotas_that_we_write_are_shown(ours: Ours, kafka: Kafka) -> None:
    user = f"u-{uuid.uuid4().hex[:8]}"
    entity = {"user": user, "client-id": None}
    ours.commit(
        record_of(entity, "producer_byte_rate", 2048.0), record_of(entity, "request_percentage", 12.5)
    )
    found = ours.read(f"/config/users/{user}/clients/<default>")
    assert found.data == b'{"version":1,"config":{"producer_byte_rate":"2048","request_percentage":"12.5"}}'
    assert quotas(kafka, user) == {"producer_byte_rate": 2048.0, "request_percentage": 12.5}
    ours.commit(record_of(entity, "producer_byte_rate", None), record_of(entity, "request_percentage", None))
    assert ours.read(f"/config/users/{user}").error and quotas(kafka, user) == {}


def quotas(kafka: Kafka, user: str) -> dict[str, float]:
    """As Kafka answers DescribeClientQuotas."""
    component = DescribeClientQuotasRequest.ComponentData(entity_type="user", match_type=0, match=user)
    answer = asked(kafka, DescribeClientQuotasRequest(components=[component], strict=False))
    return {value.key: value.value for entry in answer.entries or () for value in entry.values}


def test_a_broker_that_we_register_is_shown(ours: Ours, admin: KafkaAdminClient) -> None:
    endpoint = Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9)
    assert ours.told(ours.registration.register, [endpoint], "b") is None

    def shown() -> Any:
        return {
            each["broker_id"]: (each["port"], each["rack"]) for each in admin.describe_cluster()["brokers"]
        }

    assert eventually(ours, lambda: shown().get(3) == (9, "b"))
    assert ours.registration.broker_epoch == ours.asked(Exists("/brokers/ids/3")).czxid > 0
    ours.registration.close(lambda: None)
    deadline = time.monotonic() + PATIENCE_S
    while 3 in shown():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_logins_and_who_may_change_what_we_create(ours: Ours, kafka: Kafka) -> None:
    path = f"/secured-{uuid.uuid4().hex[:8]}"
    known = Ours(kafka, secure=True, login=Login("sasl", USER, PASSWORD))
    refused = Ours(kafka, login=Login("sasl", USER, "wrong"))
    try:
        assert known.states == [State.NEW_SESSION] and refused.states[0] is State.FAILED
        assert known.asked(Create(path, b"1")).error == 0
        assert ours.asked(SetData(path, b"2")).error == NO_AUTH and ours.read(path).data == b"1"
        assert known.asked(SetData(path, b"2")).error == 0
    finally:
        known.zookeeper.close()
        refused.zookeeper.close()
