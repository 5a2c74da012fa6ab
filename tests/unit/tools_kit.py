"""A cluster for the tools' tests without sockets: real requests and answers, encoded and decoded, and a broker of
few lines that has topics, logs, groups of one member, and faults where a test wants them."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.hot import records, wire
from pykafkad.net import client, connection, reaching
from pykafkad.tools import fetching

ADDRESS = ("127.0.0.1", 9092)
NODE = 1


class FakeBroker:
    """`fail("Produce", 6)`: the next answer to Produce has error 6 where it has one."""

    def __init__(self) -> None:
        self.topics: dict[str, list[bytearray]] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.asked: list[Any] = []
        self.committed: dict[str, dict[tuple[str, int], int]] = defaultdict(dict)
        self.groups: dict[str, tuple[str, str]] = {}  # state, protocol type
        self.without: set[str] = set()  # APIs it does not have
        self._faults: dict[str, deque[int]] = defaultdict(deque)
        self._sequences: dict[tuple[int, str, int], int] = {}
        self._producer_ids = 0
        self._subscription = b""

    def fail(self, api: str, *codes: int) -> None:
        self._faults[api] += codes

    def fault(self, api: str) -> int:
        """0 is a turn without a fault; ConnectionError for -2."""
        code = self._faults[api].popleft() if self._faults[api] else 0
        if code == HANG_UP:
            raise ConnectionError("hung up")
        return code

    def create(self, name: str, partitions: int = 1) -> None:
        self.topics[name] = [bytearray() for _ in range(partitions)]

    def append(self, topic: str, index: int, *rows: tuple[bytes | None, bytes | None], **fields: Any) -> None:
        log = self.topics[topic][index]
        end = self.end(topic, index)
        log += records.build(
            [(key, value, [], 1_700_000_000_000) for key, value in rows], base_offset=end, **fields
        )

    def end(self, topic: str, index: int) -> int:
        batches = records.scan(self.topics[topic][index])
        return batches[-1].last_offset + 1 if batches else 0

    def values(self, topic: str, index: int = 0) -> list[bytes | None]:
        return [record.value for record in records.read(self.topics[topic][index])]

    def handle(self, request: Any) -> Any:
        self.asked.append(request)
        return getattr(self, type(request).__name__.removesuffix("Request"))(request)

    @staticmethod
    def id_of(name: str) -> bytes:
        return name.encode().ljust(16, b"\1")[:16]

    # -- APIs

    def Metadata(self, request: Any) -> Any:
        names = [row.name or self._name(row.topic_id) for row in request.topics or ()]
        if request.topics is None:
            names = list(self.topics)
        code = self.fault("Metadata")
        rows = []
        for name in names:
            if name not in self.topics and request.allow_auto_topic_creation:
                self.create(name)
            known = self.topics.get(name, [])
            missing = 0 if name in self.topics else errors.UNKNOWN_TOPIC_OR_PARTITION
            rows.append(
                messages.MetadataResponse.MetadataResponseTopic(
                    error_code=code or missing,
                    name=name,
                    topic_id=self.id_of(name),
                    is_internal=name.startswith("__"),
                    partitions=[
                        messages.MetadataResponse.MetadataResponsePartition(
                            partition_index=index, leader_id=NODE, replica_nodes=[NODE], isr_nodes=[NODE]
                        )
                        for index in range(len(known))
                    ],
                )
            )
        brokers = [
            messages.MetadataResponse.MetadataResponseBroker(node_id=NODE, host=ADDRESS[0], port=ADDRESS[1])
        ]
        return messages.MetadataResponse(brokers=brokers, controller_id=NODE, topics=rows)

    def _name(self, topic_id: bytes) -> str:
        return next(name for name in self.topics if self.id_of(name) == topic_id)

    def DescribeCluster(self, request: Any) -> Any:
        row = messages.DescribeClusterResponse.DescribeClusterBroker(
            broker_id=NODE, host=ADDRESS[0], port=ADDRESS[1]
        )
        return messages.DescribeClusterResponse(controller_id=NODE, brokers=[row])

    def CreateTopics(self, request: Any) -> Any:
        rows = []
        for topic in request.topics:
            code = self.fault("CreateTopics")
            if not code and topic.name in self.topics:
                code = errors.TOPIC_ALREADY_EXISTS
            if not code:
                self.create(topic.name, max(1, topic.num_partitions))
                self.configs[2, topic.name] = {row.name: row.value for row in topic.configs}
            text = f"Topic '{topic.name}' already exists." if code else None
            rows.append(
                messages.CreateTopicsResponse.CreatableTopicResult(
                    name=topic.name, error_code=code, error_message=text
                )
            )
        return messages.CreateTopicsResponse(topics=rows)

    def DescribeConfigs(self, request: Any) -> Any:
        rows = []
        for resource in request.resources:
            own = self.configs.get((resource.resource_type, resource.resource_name), {})
            entries = [
                messages.DescribeConfigsResponse.DescribeConfigsResourceResult(
                    name=key, value=text, config_source=1
                )
                for key, text in own.items()
            ]
            rows.append(
                messages.DescribeConfigsResponse.DescribeConfigsResult(
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                    configs=entries,
                )
            )
        return messages.DescribeConfigsResponse(results=rows)

    def ListOffsets(self, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            rows = [
                messages.ListOffsetsResponse.ListOffsetsPartitionResponse(
                    partition_index=row.partition_index,
                    error_code=self.fault("ListOffsets"),
                    offset=self.end(topic.name, row.partition_index) if row.timestamp == -1 else 0,
                )
                for row in topic.partitions
            ]
            topics.append(
                messages.ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=rows)
            )
        return messages.ListOffsetsResponse(topics=topics)

    def InitProducerId(self, request: Any) -> Any:
        self._producer_ids += 1
        code = self.fault("InitProducerId")
        return messages.InitProducerIdResponse(
            error_code=code, producer_id=self._producer_ids, producer_epoch=0
        )

    def Produce(self, request: Any) -> Any:
        topics = []
        for topic in request.topic_data:
            rows = []
            for row in topic.partition_data:
                code = self.fault("Produce") or self._take(topic.name, row.index, bytes(row.records))
                rows.append(
                    messages.ProduceResponse.PartitionProduceResponse(index=row.index, error_code=code)
                )
            topics.append(
                messages.ProduceResponse.TopicProduceResponse(name=topic.name, partition_responses=rows)
            )
        return messages.ProduceResponse(responses=topics)

    def _take(self, topic: str, index: int, data: bytes) -> int:
        """Appended, once and in the order of the sequence numbers."""
        (batch,) = records.scan(data)
        key = batch.producer_id, topic, index
        if batch.producer_id >= 0:
            expected = self._sequences.get(key, 0)
            if batch.base_sequence < expected:
                return 0
            if batch.base_sequence > expected:
                return errors.OUT_OF_ORDER_SEQUENCE_NUMBER
            self._sequences[key] = batch.last_sequence + 1
        log = self.topics[topic][index]
        log += self.end(topic, index).to_bytes(8, "big") + data[8:]
        return 0

    def Fetch(self, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            name = topic.topic or self._name(topic.topic_id)
            rows = []
            for row in topic.partitions:
                log = self.topics[name][row.partition]
                batches = [batch for batch in records.scan(log) if batch.last_offset >= row.fetch_offset]
                code = self.fault("Fetch")
                if not code and row.fetch_offset > self.end(name, row.partition):
                    code = errors.OFFSET_OUT_OF_RANGE
                data = bytes(log[batches[0].position :]) if batches and not code else b""
                rows.append(
                    messages.FetchResponse.PartitionData(
                        partition_index=row.partition,
                        error_code=code,
                        records=data,
                        aborted_transactions=self.aborted if request.isolation_level else None,
                    )
                )
            topics.append(
                messages.FetchResponse.FetchableTopicResponse(
                    topic=topic.topic, topic_id=topic.topic_id, partitions=rows
                )
            )
        return messages.FetchResponse(responses=topics)

    aborted: Any = None

    def FindCoordinator(self, request: Any) -> Any:
        code = self.fault("FindCoordinator")
        row = messages.FindCoordinatorResponse.Coordinator(
            key=request.coordinator_keys[0], node_id=NODE, host=ADDRESS[0], port=ADDRESS[1], error_code=code
        )
        return messages.FindCoordinatorResponse(coordinators=[row])

    def JoinGroup(self, request: Any) -> Any:
        code = self.fault("JoinGroup")
        if not code and not request.member_id:
            code = errors.MEMBER_ID_REQUIRED
        self._subscription = request.protocols[0].metadata
        member = messages.JoinGroupResponse.JoinGroupResponseMember(
            member_id="m", metadata=self._subscription
        )
        self.groups[request.group_id] = ("Stable", "consumer")
        return messages.JoinGroupResponse(
            error_code=code,
            generation_id=1,
            protocol_type="consumer",
            protocol_name="range",
            leader="m",
            member_id="m",
            members=[member],
        )

    def SyncGroup(self, request: Any) -> Any:
        code = self.fault("SyncGroup")
        assignment = request.assignments[0].assignment if request.assignments else b""
        return messages.SyncGroupResponse(
            error_code=code, protocol_type="consumer", protocol_name="range", assignment=assignment
        )

    def Heartbeat(self, request: Any) -> Any:
        return messages.HeartbeatResponse(error_code=self.fault("Heartbeat"))

    def LeaveGroup(self, request: Any) -> Any:
        self.groups[request.group_id] = ("Empty", "consumer")
        return messages.LeaveGroupResponse()

    def OffsetCommit(self, request: Any) -> Any:
        topics = []
        for topic in request.topics:
            rows = []
            for row in topic.partitions:
                code = self.fault("OffsetCommit")
                if not code:
                    self.committed[request.group_id][topic.name, row.partition_index] = row.committed_offset
                rows.append(
                    messages.OffsetCommitResponse.OffsetCommitResponsePartition(
                        partition_index=row.partition_index, error_code=code
                    )
                )
            topics.append(
                messages.OffsetCommitResponse.OffsetCommitResponseTopic(name=topic.name, partitions=rows)
            )
        return messages.OffsetCommitResponse(topics=topics)

    def OffsetFetch(self, request: Any) -> Any:
        (group,) = request.groups
        topics: dict[str, list[Any]] = {}
        wanted = None
        if group.topics is not None:
            wanted = {
                (row.name or self._name(row.topic_id), index)
                for row in group.topics
                for index in row.partition_indexes
            }
        for (name, index), offset in self.committed[group.group_id].items():
            if wanted is None or (name, index) in wanted:
                topics.setdefault(name, []).append(
                    messages.OffsetFetchResponse.OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=offset, committed_leader_epoch=-1
                    )
                )
        rows = [
            messages.OffsetFetchResponse.OffsetFetchResponseTopics(
                topic_id=self.id_of(name), partitions=partitions
            )
            for name, partitions in topics.items()
        ]
        answer = messages.OffsetFetchResponse.OffsetFetchResponseGroup(
            group_id=group.group_id, topics=rows, error_code=self.fault("OffsetFetch")
        )
        return messages.OffsetFetchResponse(groups=[answer])

    def ListGroups(self, request: Any) -> Any:
        rows = [
            messages.ListGroupsResponse.ListedGroup(
                group_id=name, protocol_type=kind, group_state=state, group_type="classic"
            )
            for name, (state, kind) in self.groups.items()
        ]
        return messages.ListGroupsResponse(groups=rows)

    def ConsumerGroupDescribe(self, request: Any) -> Any:
        row = messages.ConsumerGroupDescribeResponse.DescribedGroup(
            group_id=request.group_ids[0],
            error_code=errors.GROUP_ID_NOT_FOUND,
            error_message=f"Group {request.group_ids[0]} not found.",
        )
        return messages.ConsumerGroupDescribeResponse(groups=[row])

    def DescribeGroups(self, request: Any) -> Any:
        name = request.groups[0]
        state, kind = self.groups.get(name, ("Dead", ""))
        row = messages.DescribeGroupsResponse.DescribedGroup(
            group_id=name,
            error_code=0 if name in self.groups else errors.GROUP_ID_NOT_FOUND,
            group_state=state,
            protocol_type=kind,
        )
        return messages.DescribeGroupsResponse(groups=[row])

    def DeleteGroups(self, request: Any) -> Any:
        (name,) = request.groups_names
        code = 0 if self.groups.pop(name, None) else errors.GROUP_ID_NOT_FOUND
        row = messages.DeleteGroupsResponse.DeletableGroupResult(group_id=name, error_code=code)
        return messages.DeleteGroupsResponse(results=[row])


HANG_UP = -2


class FakeSocket:
    def settimeout(self, seconds: float) -> None:
        assert seconds > 0

    def close(self) -> None:
        pass


class FakeConnection(connection.Connection):
    """The real one, but what it sends goes to a FakeBroker at once."""

    def __init__(self, broker: FakeBroker, number: int) -> None:
        self.host, self.port = ADDRESS
        self._broker = broker
        self._client_id = "test"
        self._correlation_id = 0
        self._waiting = deque()
        self._socket = FakeSocket()  # type: ignore[assignment]
        self._number = number
        self._given: deque[bytes | Exception] = deque()
        self.versions = {}
        for name in dir(broker):
            if name[0].isupper() and name not in broker.without:
                request = getattr(messages, f"{name}Request")
                self.versions[request.api_key] = (request.min_version, request.max_version)

    def fileno(self) -> int:
        return self._number

    @property
    def has_answer(self) -> bool:
        return bool(self._given)

    def _send(self, request: Any, version: int) -> None:
        super_frames: list[Any] = []
        self._socket.sendall = super_frames.append  # type: ignore[assignment, method-assign]
        super()._send(request, version)
        body = request.encode(version)
        decoded = type(request).decode(body, version)
        try:
            response = self._broker.handle(decoded)
            frame = wire.frame(
                response,
                version,
                self._correlation_id,
                version >= response.flexible_since,
            )
            self._given.append(frame if isinstance(frame, bytes) else b"".join(frame))  # type: ignore[arg-type]
        except ConnectionError as problem:
            self._given.append(problem)

    def _receive(self, deadline: float, bytes_max: int = 1 << 30) -> memoryview:
        given = self._given.popleft()
        if isinstance(given, Exception):
            raise given
        return memoryview(given)[4:]


def install(monkeypatch: pytest.MonkeyPatch, broker: FakeBroker) -> None:
    """Every connection of the tools leads to this broker, nothing pauses, and what is asked is answered at once."""
    numbers = iter(range(100, 10_000))
    opened: list[FakeConnection] = []

    def fresh(self: client.Cluster, address: reaching.Address) -> FakeConnection:
        opened.append(FakeConnection(broker, next(numbers)))
        return opened[-1]

    def ready(descriptors: list[int], timeout_s: float | None) -> list[int]:
        by_number = {one.fileno(): one for one in opened}
        return [number for number in descriptors if by_number[number].has_answer]

    monkeypatch.setattr(client.Cluster, "fresh", fresh)
    monkeypatch.setattr(fetching, "readable", ready)
    monkeypatch.setattr(fetching, "RETRY_PAUSE_S", 0.0)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
