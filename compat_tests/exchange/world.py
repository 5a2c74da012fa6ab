"""What was written into a directory by whichever program ran on it, and the proof that it is all there.

Owns: the expected topics (ids, partitions, configs), every acknowledged record, committed offsets, the producers with
their sequences. `act` changes something of everything; `check` compares what is served with what is expected.
"""

from __future__ import annotations

import time
from typing import Any

from compat_tests.exchange.home import Home
from compat_tests.exchange.members import LEDGER, Ledger, Readers
from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import (
    AlterClientQuotasRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
)

TOPIC, BROKER = 2, 4
LATER = {
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_COORDINATOR,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.CONCURRENT_TRANSACTIONS,
}
SECONDS = 30
COMPACTED = {
    "cleanup.policy": "compact",
    "internal.segment.bytes": "4096",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "1000",
}
RETAINED = {"internal.segment.bytes": "2048", "retention.bytes": "10000"}
BATCHES_A_TURN = 12
KEYS = 7

Place = tuple[str, int]


class Producer:
    """An idempotent producer of one partition, which continues its sequence whichever program serves."""

    def __init__(self, place: Place, producer_id: int, epoch: int) -> None:
        self.place = place
        self.id, self.epoch = producer_id, epoch
        self.sequence = 0
        self.last: tuple[bytes, int] | None = None  # the last batch, and its offset


class World:
    def __init__(self, home: Home) -> None:
        self.home = home
        self.ids: dict[str, bytes] = {}
        self.partitions: dict[str, int] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.records: dict[Place, list[tuple[int, bytes | None, bytes | None]]] = {}
        self.offsets: dict[str, dict[Place, int]] = {}
        self.producers: list[Producer] = []
        self.producer_ids: set[int] = set()
        self.quotas: dict[str, float] = {}
        self.turns = 0
        self.readers = Readers(self, "orders")
        self.ledger = Ledger(self)

    # -- requests

    def ask(self, request: Any, version: int, errors_of: Any = None) -> Any:
        """The answer, once it has no transient errors."""
        deadline = time.monotonic() + SECONDS
        while True:
            answer = self.home.client.ask(request, version)
            codes = set(errors_of(answer)) if errors_of is not None else set()
            if not codes & LATER or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    # -- changes

    def act(self) -> None:
        """The changes of one turn: some of every kind."""
        self.turns += 1
        turn = self.turns
        if turn == 1:
            self.create("orders", 2, {"retention.ms": "-1"})
            self.create("keys", 1, COMPACTED)
            self.create("rolling", 1, RETAINED)
            self.create(LEDGER, 1, {})
            del self.records[LEDGER, 0]  # the ledger has its own
        self.create(f"of-turn-{turn}", 1, {"retention.ms": str(86_400_000 * turn)})
        if turn > 2:
            self.delete(f"of-turn-{turn - 2}")
        if turn % 3 == 0:
            self.grow("orders", self.partitions["orders"] + 1)
        self.configure(TOPIC, "orders", "max.message.bytes", str(500_000 + turn))
        self.configure(BROKER, "", "log.cleaner.delete.retention.ms", str(80_000_000 + turn))
        self.set_quota(f"user-{turn}", 1000.0 * turn)
        self.producers.append(self.new_producer(("orders", turn % 2)))
        self.producers.append(self.new_producer(("keys", 0)))
        for producer in self.producers[-6:]:
            self.go_on(producer)
        self.fill("rolling")
        self.commit("simple", {("orders", 0): len(self.records["orders", 0])})
        self.readers.go_on()
        self.ledger.write()

    def create(self, name: str, partitions: int, configs: dict[str, str]) -> None:
        kind = CreateTopicsRequest
        topic = kind.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[kind.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        made = self.home.client.ask(kind(topics=[topic], timeout_ms=30_000), 7).topics[0]
        assert made.error_code == 0, made
        self.ids[name], self.partitions[name] = made.topic_id, partitions
        self.configs[TOPIC, name] = dict(configs)
        for index in range(partitions):
            self.records[name, index] = []

    def delete(self, name: str) -> None:
        kind = DeleteTopicsRequest
        answer = self.home.client.ask(kind(topics=[kind.DeleteTopicState(name=name)], timeout_ms=30_000), 6)
        assert answer.responses[0].error_code == 0
        for index in range(self.partitions.pop(name)):
            del self.records[name, index]
        del self.ids[name], self.configs[TOPIC, name]

    def grow(self, name: str, count: int) -> None:
        kind = CreatePartitionsRequest
        topic = kind.CreatePartitionsTopic(name=name, count=count, assignments=None)
        answer = self.home.client.ask(kind(topics=[topic], timeout_ms=30_000), 3)
        assert answer.results[0].error_code == 0
        for index in range(self.partitions[name], count):
            self.records[name, index] = []
        self.partitions[name] = count

    def configure(self, resource_type: int, name: str, key: str, value: str) -> None:
        kind = IncrementalAlterConfigsRequest
        change = kind.AlterableConfig(name=key, config_operation=0, value=value)
        resource = kind.AlterConfigsResource(
            resource_type=resource_type, resource_name=name, configs=[change]
        )
        answer = self.home.client.ask(kind(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0, answer
        self.configs.setdefault((resource_type, name), {})[key] = value

    def set_quota(self, user: str, value: float) -> None:
        kind = AlterClientQuotasRequest
        entry = kind.EntryData(
            entity=[kind.EntityData(entity_type="user", entity_name=user)],
            ops=[kind.OpData(key="producer_byte_rate", value=value, remove=False)],
        )
        answer = self.home.client.ask(kind(entries=[entry], validate_only=False), 1)
        assert answer.entries[0].error_code == 0, answer
        self.quotas[user] = value

    # -- producing

    def new_producer(self, place: Place) -> Producer:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        answer = self.ask(request, 4, lambda answer: [answer.error_code])
        assert answer.error_code == 0
        assert answer.producer_id not in self.producer_ids, "a producer id was given twice"
        self.producer_ids.add(answer.producer_id)
        return Producer(place, answer.producer_id, answer.producer_epoch)

    def go_on(self, producer: Producer) -> None:
        """A duplicate of its last batch is recognized, a gap is refused, and the next batches are accepted."""
        if producer.last is not None:
            data, offset = producer.last
            again = self.produce(producer.place, data)
            assert (again.error_code, again.base_offset) == (0, offset), "a duplicate was not recognised"
            gap = self.build(producer, producer.sequence + 5, b"gap")
            refused = self.produce(producer.place, gap)
            assert refused.error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
        for number in range(BATCHES_A_TURN):
            value = b"turn %d of %s, %d of producer %d" % (
                self.turns,
                self.home.side.encode(),
                number,
                producer.id,
            )
            data = self.build(producer, producer.sequence, value)
            answer = self.produce(producer.place, data)
            assert answer.error_code == 0, answer
            self.records[producer.place].append((answer.base_offset, self.key(producer.sequence), value))
            producer.last = (data, answer.base_offset)
            producer.sequence += 1

    def key(self, number: int) -> bytes:
        return b"key-%d" % (number % KEYS)

    def build(self, producer: Producer, sequence: int, value: bytes) -> bytes:
        return records.build(
            [(self.key(sequence), value, [("turn", b"%d" % self.turns)], int(time.time() * 1000))],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )

    def produce(self, place: Place, data: bytes) -> Any:
        topic, index = place
        kind = ProduceRequest
        item = kind.PartitionProduceData(index=index, records=data)
        request = kind(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[kind.TopicProduceData(name=topic, partition_data=[item])],
        )
        answer = self.ask(request, 9, lambda answer: [answer.responses[0].partition_responses[0].error_code])
        return answer.responses[0].partition_responses[0]

    def fill(self, topic: str) -> None:
        """Write several segments of a topic that retains few."""
        for number in range(20):
            value = b"%04d" % number + b"x" * 600
            answer = self.produce((topic, 0), records.build([(None, value, [], int(time.time() * 1000))]))
            assert answer.error_code == 0
            self.records[topic, 0].append((answer.base_offset, None, value))

    def commit(self, group_id: str, offsets: dict[Place, int]) -> None:
        kind = OffsetCommitRequest
        topics = [
            kind.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    kind.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offset,
                        committed_metadata=f"turn {self.turns}",
                    )
                ],
            )
            for (topic, index), offset in offsets.items()
        ]
        self.home.wait_for_coordinator(group_id)
        answer = self.ask(
            kind(group_id=group_id, topics=topics),
            8,
            lambda answer: [row.error_code for topic in answer.topics for row in topic.partitions],
        )
        assert {row.error_code for topic in answer.topics for row in topic.partitions} == {0}, answer
        self.offsets.setdefault(group_id, {}).update(offsets)

    # -- comparisons

    def check(self) -> None:
        self.check_topics()
        self.check_configs()
        self.check_quotas()
        self.check_records()
        self.check_offsets()
        if LEDGER in self.ids:
            self.ledger.check()
        assert not [*self.home.directory.glob("*/*-stray")], "a log was set aside as stray"

    def check_topics(self) -> None:
        answer = self.home.client.ask(MetadataRequest(topics=None), 12)
        found = {
            topic.name: (topic.topic_id, len(topic.partitions))
            for topic in answer.topics
            if not topic.name.startswith("__")
        }
        assert found == {name: (self.ids[name], self.partitions[name]) for name in self.ids}

    def check_configs(self) -> None:
        kind = DescribeConfigsRequest
        for (resource_type, name), expected in self.configs.items():
            resource = kind.DescribeConfigsResource(resource_type=resource_type, resource_name=name)
            (result,) = self.home.client.ask(kind(resources=[resource]), 4).results
            dynamic = {1, 3} if resource_type == TOPIC else {3}
            found = {
                row.name: row.value
                for row in result.configs
                if row.config_source in dynamic and (resource_type != TOPIC or row.config_source == 1)
            }
            assert {key: found.get(key) for key in expected} == expected, name

    def check_quotas(self) -> None:
        kind = DescribeClientQuotasRequest
        part = kind.ComponentData(entity_type="user", match_type=2, match=None)
        answer = self.home.client.ask(kind(components=[part], strict=False), 1)
        found = {
            entry.entity[0].entity_name: {item.key: item.value for item in entry.values}
            for entry in answer.entries
        }
        assert found == {user: {"producer_byte_rate": value} for user, value in self.quotas.items()}

    def check_records(self) -> None:
        for place, expected in self.records.items():
            start, end, found = self.read(place)
            last = expected[-1][0] + 1 if expected else 0
            assert end == last, f"{place} ends at {end}, not at {last}"
            if place[0] == "keys":
                newest = {key: value for _, key, value in expected}
                assert {key: value for _, key, value in found} == newest
                assert [row for row in found if row not in set(expected)] == []
            else:
                assert found == [row for row in expected if row[0] >= start], place
            if place[0] != "rolling":
                assert start == 0, f"{place} begins at {start}"

    def read(self, place: Place) -> tuple[int, int, list[tuple[int, bytes | None, bytes | None]]]:
        """Log start, high watermark, and every record between them."""
        topic, index = place
        kind = FetchRequest
        rows: list[tuple[int, bytes | None, bytes | None]] = []
        offset = start = self.log_start(place)
        while True:
            item = kind.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
            request = kind(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=1 << 20,
                topics=[kind.FetchTopic(topic=topic, partitions=[item])],
            )
            answer = self.home.client.ask(request, 12).responses[0].partitions[0]
            if answer.error_code == errors.OFFSET_OUT_OF_RANGE:  # retention was faster
                return self.read(place)
            assert answer.error_code == 0, (place, offset, answer)
            data = answer.records or b""
            for batch in records.scan(data):
                for record in records.batch_records(
                    bytes(data[batch.position : batch.position + batch.size])
                ):
                    if record.offset >= offset and not batch.is_control:
                        rows.append((record.offset, record.key, record.value))
                offset = max(offset, batch.last_offset + 1)
            if offset >= answer.high_watermark:
                return start, answer.high_watermark, rows

    def log_start(self, place: Place) -> int:
        kind = ListOffsetsRequest
        part = kind.ListOffsetsPartition(partition_index=place[1], timestamp=-2)
        request = kind(topics=[kind.ListOffsetsTopic(name=place[0], partitions=[part])])
        answer = self.home.client.ask(request, 7).topics[0].partitions[0]
        assert answer.error_code == 0
        return int(answer.offset)

    def check_offsets(self) -> None:
        kind = OffsetFetchRequest
        for group_id, expected in self.offsets.items():
            self.home.wait_for_coordinator(group_id)
            request = kind(groups=[kind.OffsetFetchRequestGroup(group_id=group_id, topics=None)])
            answer = self.ask(request, 8, lambda answer: [answer.groups[0].error_code]).groups[0]
            found = {
                (topic.name, row.partition_index): row.committed_offset
                for topic in answer.topics
                for row in topic.partitions
            }
            assert found == expected, group_id
