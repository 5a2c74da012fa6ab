"""What a client does while its broker is under torture: it produces (plain, idempotent, with keys), deletes records,
commits offsets, creates and deletes topics, alters configs, moves a partition, fetches, and all of that in transactions
(transactional.py).

Each operation is one request. The ledger learns of it before it is sent, and of its answer. `run` keeps a few of them
in flight until the broker is gone or the time is up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pykafkad import errors
from pykafkad.hot import records
from pykafkad.messages import (
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    OffsetCommitRequest,
    ProduceRequest,
)
from tests.torture import transactional
from tests.torture.ledger import KEYS, Entry, Fault, Group, Ledger, Log, Sent
from tests.torture.pipeline import Pipeline

UNDER_WAY_MAX = 12
IDEMPOTENT_UNDER_WAY_MAX = 4
TEMPORARY_TOPICS = 4
GROUPS = 3
TRANSACTIONS = 0.4  # of rounds that end with one
TOPIC, INCREMENTAL_SET = 2, 0
OFFSETS = "__consumer_offsets"
CHANGES = {
    "segment.ms": (50, 604_800_000),
    "max.message.bytes": (4096, 1_048_588),
    "flush.ms": (100, 1 << 40),
}
PRODUCE_VERSION = 9

# Errors of a broker that has just started, or whose topic does not exist yet, or no longer.
PASSING = frozenset(
    (
        errors.NONE,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.NOT_COORDINATOR,
    )
)
SMALL = {"index.interval.bytes": 256, "file.delete.delay.ms": 20}


def standard_logs() -> dict[str, Log]:
    """The topics that every run has: one for each kind of log."""
    cleaned = {"min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": 50, **SMALL}
    logs = [
        Log("plain", {"internal.segment.bytes": 4096, **SMALL}),
        Log("once", {"internal.segment.bytes": 3000, **SMALL}, idempotent=True),
        Log(
            "newest", {"internal.segment.bytes": 2048, "cleanup.policy": "compact", **cleaned}, compacted=True
        ),
        Log(
            "both",
            {
                "internal.segment.bytes": 2048,
                "cleanup.policy": "compact,delete",
                "retention.bytes": 6000,
                **cleaned,
            },
            compacted=True,
            retention_bytes=6000,
        ),
        Log(
            "brief",
            {"internal.segment.bytes": 2048, "retention.bytes": 8192, **SMALL},
            retention_bytes=8192,
        ),
    ]
    return {log.name: log for log in logs}


@dataclass
class Operation:
    request: Any
    version: int
    answered: Callable[[Any], None]  # tells the ledger


class Workload:
    """`tolerant`: the broker is made to fail, so any error may be answered; otherwise an unexplained one is a Fault.
    `transactions`: whether there are any."""

    def __init__(
        self,
        ledger: Ledger,
        chance: random.Random,
        directories: list[str],
        *,
        tolerant: bool = False,
        transactions: bool = True,
    ) -> None:
        self.ledger = ledger
        self.chance = chance
        self.directories = directories
        self.tolerant = tolerant
        self._idempotent_under_way = 0
        for name, log in standard_logs().items():
            ledger.logs.setdefault(name, log)
        if transactions:
            for name in transactional.TOPICS:
                ledger.logs.setdefault(name, Log(name, {"internal.segment.bytes": 3000, **SMALL}))
            ledger.producers = ledger.producers or transactional.producers()

    def run(self, host: str, port: int, seconds: float, rounds: int = 1 << 30) -> bool:
        """Whether the broker was still running at the end."""
        deadline = time.monotonic() + seconds
        try:
            with Pipeline(host, port) as client:
                self._begin(client)
                for _ in range(rounds):
                    if time.monotonic() > deadline:
                        break
                    self._round(client, self._choose(self.chance.randint(1, UNDER_WAY_MAX)))
                    self._transact(client)
        except (ConnectionError, TimeoutError):
            return False
        return True

    def _begin(self, client: Pipeline) -> None:
        absent = [log for log in self.ledger.logs.values() if log.state == "absent"]
        self._round(client, [find_coordinator(), *(self.create(log) for log in absent)])
        if self.ledger.producers:
            transactional.find_coordinator(client)
        for log in self.ledger.logs.values():
            if log.idempotent and log.state == "there":
                self._begin_producer(client, log)

    def _transact(self, client: Pipeline) -> None:
        there = all(log.state == "there" for log in map(self.ledger.logs.get, transactional.TOPICS) if log)
        if self.ledger.producers and there and self.chance.random() < TRANSACTIONS:
            producer = self.chance.choice(list(self.ledger.producers.values()))
            number = self.ledger.next_number
            transactional.transact(client, producer, self.chance, number, self.passes)

    def _begin_producer(self, client: Pipeline, log: Log) -> None:
        """A new producer gets its id; an existing one repeats the batches without an answer."""
        if log.producer_id < 0:
            client.send(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 4)
            answer = client.receive()
            if self.passes(answer.error_code, "InitProducerId") and answer.error_code == errors.NONE:
                log.producer_id, log.sequence = answer.producer_id, 0
            return
        self._repeat_last(client, log)
        for sent in list(log.unsure):
            self._round(client, [self.send_batch(log, sent)])

    def _repeat_last(self, client: Pipeline, log: Log) -> None:
        """The last batch in the log, sent again, is recognized as a duplicate."""
        if log.last_stored is None:
            return
        client.send(produce(log, log.last_stored), PRODUCE_VERSION)
        row = client.receive().responses[0].partition_responses[0]
        if self.passes(row.error_code, "a repeated batch") and row.error_code == errors.NONE:
            known = log.entries.get(row.base_offset)
            if known is not None and known != log.last_stored.entries[0]:
                raise Fault(f"{log.name}: the repeated {log.last_stored} is said to be at {row.base_offset}")
            if known is None and row.base_offset >= log.end:
                raise Fault(f"{log.name}: the repeated {log.last_stored} was stored again")

    def _round(self, client: Pipeline, operations: list[Operation]) -> None:
        for operation in operations:
            client.send(operation.request, operation.version)
        for operation in operations:
            operation.answered(client.receive())

    def passes(self, code: int, what: str) -> bool:
        """Whether the broker may answer this."""
        if code in PASSING or self.tolerant:
            return True
        raise Fault(f"{what} was answered {errors.NAMES.get(code, code)}")

    # -- which

    def _choose(self, count: int) -> list[Operation]:
        self._idempotent_under_way = 0
        made = (self.chance.choices(self._makers, self._weights)[0](self) for _ in range(count))
        return [operation for operation in made if operation is not None]

    def _standard(self) -> list[Log]:
        return [
            log
            for log in self.ledger.logs.values()
            if log.state == "there" and log.name not in transactional.TOPICS
        ]

    def produce_somewhere(self) -> Operation | None:
        logs = self._standard()
        if not logs:
            return None
        log = self.chance.choice(logs)
        if log.idempotent and (log.broken or log.producer_id < 0):
            return None
        if log.idempotent:
            self._idempotent_under_way += 1
            if self._idempotent_under_way > IDEMPOTENT_UNDER_WAY_MAX:
                return None
        return self.send_batch(log, self._new_batch(log))

    def _new_batch(self, log: Log) -> Sent:
        entries = []
        for _ in range(self.chance.randint(1, 5)):
            key = b"key-%d" % self.chance.randrange(KEYS) if log.compacted else None
            has_value = not log.compacted or self.chance.random() > 0.15
            entries.append(Entry(key, self.ledger.next_number(), has_value))
        sent = Sent(entries)
        if log.idempotent:
            sent.sequence = log.sequence
            log.sequence += len(entries)
        log.unsure.append(sent)
        return sent

    # -- what

    def send_batch(self, log: Log, sent: Sent) -> Operation:
        def answered(answer: Any) -> None:
            row = answer.responses[0].partition_responses[0]
            if row.error_code == errors.NONE:
                self.ledger.acknowledgements += 1
                log.acknowledged(sent, row.base_offset)
            elif log.state == "there":
                self.passes(row.error_code, f"Produce to {log.name}")
                log.broken = True

        return Operation(produce(log, sent), PRODUCE_VERSION, answered)

    def create(self, log: Log) -> Operation:
        kind = CreateTopicsRequest
        configs = [
            kind.CreatableTopicConfig(name=name, value=str(value)) for name, value in log.config.items()
        ]
        topic = kind.CreatableTopic(name=log.name, num_partitions=1, replication_factor=1, configs=configs)
        log.state = "creating"

        def answered(answer: Any) -> None:
            if answer.topics[0].error_code == errors.NONE:
                log.state = "there"
            else:
                self.passes(answer.topics[0].error_code, f"CreateTopics of {log.name}")

        return Operation(kind(topics=[topic], timeout_ms=5000), 7, answered)

    def create_temporary(self) -> Operation | None:
        temporary = [log for log in self.ledger.logs.values() if log.name.startswith("temporary-")]
        if sum(log.state in ("creating", "there") for log in temporary) >= TEMPORARY_TOPICS:
            return None
        log = Log(f"temporary-{len(temporary)}", {"internal.segment.bytes": 1024, **SMALL})
        self.ledger.logs[log.name] = log
        return self.create(log)

    def delete_temporary(self) -> Operation | None:
        there = [log for log in self._standard() if log.name.startswith("temporary-")]
        if not there:
            return None
        log = self.chance.choice(there)
        log.state = "deleting"

        def answered(answer: Any) -> None:
            if answer.responses[0].error_code == errors.NONE:
                log.state = "deleted"
            else:
                self.passes(answer.responses[0].error_code, f"DeleteTopics of {log.name}")

        return Operation(DeleteTopicsRequest(topic_names=[log.name], timeout_ms=5000), 4, answered)

    def delete_records(self) -> Operation | None:
        log = self.chance.choice([self.ledger.logs["brief"], self.ledger.logs["both"]])
        if log.state != "there" or log.end <= log.floor:
            return None
        offset = self.chance.randint(log.floor, log.end)
        log.asked_floor = max(log.asked_floor, offset)
        kind = DeleteRecordsRequest
        rows = [kind.DeleteRecordsPartition(partition_index=0, offset=offset)]
        request = kind(topics=[kind.DeleteRecordsTopic(name=log.name, partitions=rows)], timeout_ms=5000)

        def answered(answer: Any) -> None:
            row = answer.topics[0].partitions[0]
            if row.error_code == errors.NONE:
                log.floor = max(log.floor, offset)
            else:
                self.passes(row.error_code, f"DeleteRecords of {log.name}")

        return Operation(request, 2, answered)

    def commit(self) -> Operation:
        name = f"group-{self.chance.randrange(GROUPS)}"
        group = self.ledger.groups.setdefault(name, Group())
        group.sent += 1
        offset = group.sent
        kind = OffsetCommitRequest
        rows = [kind.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)]
        request = kind(group_id=name, topics=[kind.OffsetCommitRequestTopic(name="once", partitions=rows)])

        def answered(answer: Any) -> None:
            code = answer.topics[0].partitions[0].error_code
            if code == errors.NONE:
                self.ledger.acknowledgements += 1
                group.acknowledged = offset
            elif code != errors.UNKNOWN_TOPIC_OR_PARTITION or self.ledger.logs["once"].state == "there":
                self.passes(code, f"OffsetCommit of {name}")

        return Operation(request, 8, answered)

    def change_config(self) -> Operation | None:
        log = self.ledger.logs["plain"]
        name, values = self.chance.choice(list(CHANGES.items()))
        return self.alter("plain", {name: self.chance.choice(values)}) if log.state == "there" else None

    def shrink_offsets(self) -> Operation | None:
        """The offsets topic is created with large segments; small ones are rolled and cleaned too."""
        if self.ledger.offsets_are_small:
            return None
        return self.alter(
            OFFSETS, {"internal.segment.bytes": 4096, "min.cleanable.dirty.ratio": "0.01", **SMALL}
        )

    def alter(self, topic: str, values: Mapping[str, object]) -> Operation:
        kind = IncrementalAlterConfigsRequest
        changes = [
            kind.AlterableConfig(name=name, config_operation=INCREMENTAL_SET, value=str(value))
            for name, value in values.items()
        ]
        resource = kind.AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=changes)

        def answered(answer: Any) -> None:
            code = answer.responses[0].error_code
            if topic != OFFSETS:
                self.passes(code, f"IncrementalAlterConfigs of {topic}")
            elif code == errors.NONE:
                self.ledger.offsets_are_small = True

        return Operation(kind(resources=[resource]), 1, answered)

    def move(self) -> Operation | None:
        logs = self._standard()
        if len(self.directories) < 2 or not logs:
            return None
        log = self.chance.choice(logs)
        kind = AlterReplicaLogDirsRequest
        topic = kind.AlterReplicaLogDirTopic(name=log.name, partitions=[0])
        target = kind.AlterReplicaLogDir(path=self.chance.choice(self.directories), topics=[topic])

        def answered(answer: Any) -> None:
            if log.state == "there":
                self.passes(answer.results[0].partitions[0].error_code, f"AlterReplicaLogDirs of {log.name}")

        return Operation(kind(dirs=[target]), 2, answered)

    def fetch(self) -> Operation | None:
        logs = self._standard()
        if not logs:
            return None
        log = self.chance.choice(logs)
        offset = self.chance.randint(log.floor, max(log.end, log.floor))
        entries = dict(log.entries)
        return Operation(
            fetch(log.name, offset), 12, lambda answer: check_fetched(log, entries, offset, answer)
        )

    _makers = (
        produce_somewhere,
        commit,
        fetch,
        delete_records,
        create_temporary,
        delete_temporary,
        change_config,
        shrink_offsets,
        move,
    )
    _weights = (12, 3, 1, 0.5, 0.2, 0.2, 0.1, 1, 0.1)


def find_coordinator() -> Operation:
    """The first request makes the broker create __consumer_offsets."""
    return Operation(FindCoordinatorRequest(coordinator_keys=["group-0"]), 4, lambda answer: None)


def produce(log: Log, sent: Sent) -> Any:
    now_ms = int(time.time() * 1000)
    batch = records.build(
        [(entry.key, entry.value, [("n", b"%d" % entry.number)], now_ms) for entry in sent.entries],
        producer_id=log.producer_id if log.idempotent else -1,
        producer_epoch=0 if log.idempotent else -1,
        base_sequence=sent.sequence,
        codec="lz4" if sent.entries[0].number % 5 == 0 else "none",
    )
    item = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topics = [ProduceRequest.TopicProduceData(name=log.name, partition_data=[item])]
    return ProduceRequest(acks=-1, timeout_ms=5000, topic_data=topics)


def fetch(topic: str, offset: int, max_bytes: int = 1 << 20, *, index: int = 0) -> Any:
    item = FetchRequest.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchRequest.FetchTopic(topic=topic, partitions=[item])]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=max_bytes, topics=topics)


def check_fetched(log: Log, entries: dict[int, Entry], offset: int, answer: Any) -> None:
    """A consumer gets what was sent, and each record once, whatever happens to the log in the meantime."""
    row = answer.responses[0].partitions[0]
    if row.error_code != errors.NONE:
        return
    last = -1
    for found, entry in read_entries(log.name, row.records):
        if found <= last:
            raise Fault(f"{log.name}: offset {found} is served after {last}")
        last = found
        if found in entries and entries[found] != entry:
            raise Fault(f"{log.name}: offset {found} is served as {entry} and is {entries[found]}")


def read_entries(topic: str, data: Any) -> list[tuple[int, Entry]]:
    """The records of fetched bytes; their checksums and values are checked."""
    found = []
    try:
        for record in records.read(data):
            number = int(record.headers[0][1] or b"-1")
            entry = Entry(record.key, number, record.value is not None)
            if record.value != entry.value:
                raise Fault(
                    f"{topic}: offset {record.offset} has a value that was never sent: {record.value!r}"
                )
            found.append((record.offset, entry))
    except records.RecordsError as error:
        raise Fault(f"{topic}: damaged bytes are served: {error}") from error
    return found
