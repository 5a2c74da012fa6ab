"""`pykafkad explain` and `status`, with real clients in each of the situations that they are made for."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from pykafkad.control.client import ControlClient
from pykafkad.hot import records
from pykafkad.messages import ProduceRequest
from pykafkad.testing import Broker
from pykafkad.tools import explain, status, trace

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    config = {"group.initial.rebalance.delay.ms": 0, "transaction.partition.verification.enable": False}
    with Broker(config=config) as broker:
        yield broker


class Reader:
    """A kafka-python consumer that polls in a thread until it is told not to; it stays in its group all the same."""

    def __init__(self, kafka: Broker, topic: str, group: str, client_id: str, **configs: Any) -> None:
        configs = {"auto_offset_reset": "earliest", "max_poll_interval_ms": 60_000, **configs}
        self.consumer = KafkaConsumer(
            bootstrap_servers=kafka.bootstrap_servers, group_id=group, client_id=client_id, **configs
        )
        self.consumer.partitions_for_topic(topic)  # else it may join before it knows of them, and get none
        self.consumer.subscribe([topic])
        self.got = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        while not self._stopping.is_set():
            self.got += sum(map(len, self.consumer.poll(50).values()))

    def stop_polling(self) -> None:
        self._stopping.set()
        self._thread.join()

    def close(self) -> None:
        self.stop_polling()
        self.consumer.close()  # which may be done twice


def reading(*arguments: Any, **configs: Any) -> contextlib.closing[Reader]:
    return contextlib.closing(Reader(*arguments, **configs))


def until(what: Callable[[], Any]) -> Any:
    end = time.monotonic() + DEADLINE_S
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def fill(kafka: Broker, topic: str, count: int, partitions: int = 1) -> None:
    kafka.create_topic(topic, partitions)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    for number in range(count):
        producer.send(topic, b"value", partition=number % partitions)
    producer.close()


@pytest.fixture
def explained(kafka: Broker, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, dict[str, str]]]:
    """The findings for these arguments by their kind."""

    def ask(*arguments: str) -> dict[str, dict[str, str]]:
        capsys.readouterr()
        assert explain.main(["--data", kafka.data, "--json", *arguments]) == 0
        from pykafkad.tools import output

        output.flush()
        return {each["kind"]: each for each in json.loads(capsys.readouterr().out)["findings"]}

    return ask


Explained = Callable[..., dict[str, dict[str, str]]]


def test_all_is_well_while_records_are_read(kafka: Broker, explained: Explained) -> None:
    fill(kafka, "flows", 1)
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap_servers)
    with reading(kafka, "flows", "flowing", "reader") as reader:
        until(lambda: reader.got)
        producer.send("flows", b"more")
        producer.flush()
        assert set(explained("--group", "flowing")) <= {"at-end"}  # it is, unless a record has just come
    producer.close()


def test_at_the_end(kafka: Broker, explained: Explained) -> None:
    fill(kafka, "read", 4, partitions=2)
    with reading(kafka, "read", "done", "reader") as reader:
        until(lambda: reader.got == 4)
        found = until(lambda: explained("--group", "done", "--topic", "read"))
        assert list(found) == ["at-end"] and "read-0 at 2, read-1 at 2" in found["at-end"]["text"]


def test_nobody_and_nothing(kafka: Broker, explained: Explained) -> None:
    assert list(explained("--topic", "flowz")) == ["no-topic"]
    kafka.create_topic("silent")
    assert set(explained("--topic", "silent")) == {"empty-topic", "nobody-fetches"}
    assert list(explained("--group", "unheard-of")) == ["no-group"]


def test_a_member_that_has_not_joined_again_holds_the_group(kafka: Broker, explained: Explained) -> None:
    fill(kafka, "held", 4, partitions=2)
    with reading(kafka, "held", "holding", "slow") as slow:
        until(lambda: slow.got == 4)
        slow.stop_polling()  # its heartbeats go on
        with reading(kafka, "held", "holding", "quick"):
            found = until(
                lambda: {k: v for k, v in explained("--group", "holding").items() if k == "rebalancing"}
            )
            text = found["rebalancing"]["text"]
            assert 'client id "slow", 127.0.0.1' in text and "has not joined again" in text
            assert "quick" not in text
            slow.close()  # else the other one would wait for it at its own close


def test_with_the_consumer_protocol_too(kafka: Broker, explained: Explained) -> None:
    """Whoever must give up partitions and does not poll."""
    fill(kafka, "kept", 2, partitions=2)

    def member(client_id: str) -> Consumer:
        configs = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "keeping",
            "client.id": client_id,
        }
        consumer = Consumer({**configs, "group.protocol": "consumer", "auto.offset.reset": "earliest"})
        consumer.subscribe(["kept"])
        return consumer

    slow = member("slow")
    until(lambda: slow.poll(0.1))
    quick = member("quick")
    try:

        def waits() -> Any:
            quick.poll(0.1)
            text = explained("--group", "keeping").get("rebalancing", {"text": ""})["text"]
            return text if "has not given up partitions" in text else None  # at first both have to be told

        assert 'client id "slow"' in until(waits)
    finally:
        slow.close()
        quick.close()


def test_more_members_than_partitions(kafka: Broker, explained: Explained) -> None:
    fill(kafka, "narrow", 1)
    with reading(kafka, "narrow", "crowd", "first"), reading(kafka, "narrow", "crowd", "second"):
        found = until(lambda: explained("--group", "crowd", "--topic", "narrow").get("assigned-to-others"))
        assert "has no partition: the 1 partition of narrow is assigned to member" in found["text"]


def test_another_topic_was_subscribed_to(kafka: Broker, explained: Explained) -> None:
    fill(kafka, "payments", 1)
    fill(kafka, "payment", 1)
    with reading(kafka, "payment", "payers", "reader") as reader:
        until(lambda: reader.got)
        found = until(lambda: explained("--group", "payers", "--topic", "payments").get("not-subscribed"))
        assert "but to payment" in found["text"]


def test_a_committed_offset_beyond_the_end(kafka: Broker, explained: Explained) -> None:
    fill(kafka, "short", 3)
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, group_id="ahead")
    consumer.assign([TopicPartition("short", 0)])
    consumer.commit({TopicPartition("short", 0): OffsetAndMetadata(100, "", -1)})
    consumer.close()
    found = explained("--group", "ahead")
    assert set(found) == {"no-members", "out-of-range"}
    assert "offset 100 of short-0, which is beyond its end 3" in found["out-of-range"]["text"]


def test_a_paused_consumer(kafka: Broker, explained: Explained) -> None:
    fill(kafka, "paused", 1)
    with reading(kafka, "paused", "resting", "reader") as reader:
        until(lambda: reader.got)
        reader.stop_polling()
        reader.consumer.pause(*reader.consumer.assignment())
        stopping = threading.Event()
        polling = threading.Thread(
            target=lambda: [reader.consumer.poll(50) for _ in iter(stopping.is_set, True)]
        )
        polling.start()
        try:
            assert "paused-0" in until(lambda: explained("--group", "resting").get("not-fetching"))["text"]
        finally:
            stopping.set()
            polling.join()


def test_an_open_transaction(kafka: Broker, explained: Explained) -> None:
    fill(kafka, "held-back", 2)
    batch = records.build(
        [(None, b"open", [], int(time.time() * 1000))],
        producer_id=4711,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    partition: Any = ProduceRequest.PartitionProduceData
    topic: Any = ProduceRequest.TopicProduceData
    data = [topic(name="held-back", partition_data=[partition(index=0, records=batch)])]
    with kafka.client() as client:
        request = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=1000, topic_data=data)
        answer = client.call(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    with reading(kafka, "held-back", "patient", "reader", isolation_level="read_committed") as reader:
        until(lambda: reader.got == 2)
        found = until(lambda: explained("--group", "patient").get("open-transaction"))
        assert found["certainty"] == "cause" and "producer id 4711, open since offset 2" in found["text"]


def address_of(broker: Broker) -> str:
    """Where it listens."""
    client = ControlClient(broker.data)
    (listener,) = next(client.ask("status"))["broker"]["listeners"]
    client.close()
    return str(listener.rpartition("//")[2])


def test_an_advertised_address_that_leads_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    """The broker is found by where it listens, since what it tells clients is what is wrong."""
    with Broker(config={"advertised.listeners": "PLAINTEXT://nowhere.invalid:9092"}) as broker:
        assert explain.main(["--bootstrap-server", address_of(broker), "--topic", "t"]) == 0
        from pykafkad.tools import output

        output.flush()
        said = capsys.readouterr().out
    assert "clients are told to connect to nowhere.invalid:9092" in said and "does not resolve" in said


def test_status_and_trace_name_the_clients(kafka: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    from pykafkad.tools import output

    fill(kafka, "seen", 1)
    with reading(kafka, "seen", "watching", "watcher") as reader:
        until(lambda: reader.got)

        def found() -> Any:
            capsys.readouterr()
            assert status.main(["--bootstrap-server", kafka.bootstrap_servers, "--json"]) == 0
            output.flush()
            shown = json.loads(capsys.readouterr().out)
            return shown if any(each.get("client_id") == "watcher" for each in shown["waiting"]) else None

        shown = until(found)
        (group,) = [each for each in shown["groups"] if each["id"] == "watching"]
        assert (group["state"], group["members"], group["lag"]) == ("Stable", 1, 0)
        software = [each["software"] for each in shown["connections"] if each["client_id"] == "watcher"]
        assert set(software) == {"kafka-python"}
        assert trace.main(["--data", kafka.data, "--client", "watch*", "--api", "fetch", "-n", "2"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2 and all('"watcher" Fetch v' in line for line in lines)
