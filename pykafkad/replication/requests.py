"""What a follower asks its leader, as messages, and in which versions: those that inter.broker.protocol.version means,
since nobody asks the leader which it knows."""

from __future__ import annotations

from typing import NamedTuple

from pykafkad.errors import StartupError
from pykafkad.messages import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from pykafkad.pure.following.fetcher import AskEpochs, AskOffsets, Following
from pykafkad.pure.following.session import Gone, Named, Wanted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from pykafkad.pure.following.fetcher import Request

    Question = FetchRequest | ListOffsetsRequest | OffsetForLeaderEpochRequest

Release = tuple[int, int, int]

TOPIC_IDS_SINCE = 13
REPLICA_STATE_SINCE = 15
TRUNCATION_ON_FETCH_SINCE = 12
ALTER_PARTITION_SINCE = (2, 7, 2)

# Of each request, the newest first: from which inter.broker.protocol.version on it has which version.
FETCH = (
    ((3, 9, 0), 17), ((3, 7, 4), 16), ((3, 5, 1), 15), ((3, 5, 0), 14), ((3, 1, 0), 13), ((2, 7, 1), 12),
    ((2, 3, 1), 11), ((2, 1, 2), 10),
)  # fmt: skip
LIST_OFFSETS = (
    ((3, 9, 0), 9), ((3, 5, 0), 8), ((3, 0, 1), 7), ((2, 8, 0), 6), ((2, 2, 1), 5), ((2, 1, 1), 4),
)  # fmt: skip
OFFSET_FOR_LEADER_EPOCH = (((2, 8, 0), 4), ((2, 3, 1), 3), ((2, 1, 1), 2))


class Versions(NamedTuple):
    fetch: int
    list_offsets: int
    epochs: int
    alter_partition: bool  # else leaders write the ISR into ZooKeeper themselves

    @property
    def truncates_on_fetch(self) -> bool:
        return self.fetch >= TRUNCATION_ON_FETCH_SINCE


def versions_for(text: str) -> Versions:
    """Of an inter.broker.protocol.version, such as 3.9, 3.9-IV0 or 2.3.1-IV1."""
    release = release_of(text)
    try:
        return Versions(
            version_in(FETCH, release),
            version_in(LIST_OFFSETS, release),
            version_in(OFFSET_FOR_LEADER_EPOCH, release),
            release >= ALTER_PARTITION_SINCE,
        )
    except LookupError:
        raise StartupError(f"inter.broker.protocol.version {text} is too old: 2.1-IV2 is the first") from None


def release_of(text: str) -> Release:
    """Without -IV the last of a release is meant."""
    numbers, _, level = text.partition("-IV")
    try:
        major, minor = (int(part) for part in numbers.split(".")[:2])
        return major, minor, int(level) if level else 99
    except ValueError:
        raise StartupError(f"inter.broker.protocol.version {text} is no version of Kafka") from None


def version_in(table: tuple[tuple[Release, int], ...], release: Release) -> int:
    for since, version in table:
        if release >= since:
            return version
    raise LookupError


class Asking:
    """Makes the messages of one follower."""

    def __init__(self, config: Any, versions: Versions, node_id: int) -> None:
        self._versions = versions
        self._node_id = node_id
        # None of these can be changed while the broker runs.
        self._max_wait_ms: int = config["replica.fetch.wait.max.ms"]
        self._min_bytes: int = config["replica.fetch.min.bytes"]
        self._max_bytes: int = config["replica.fetch.response.max.bytes"]
        self._partition_max_bytes: int = config["replica.fetch.max.bytes"]

    def message(self, request: Request, broker_epoch: int) -> tuple[Question, int]:
        """With its version."""
        if isinstance(request, Named):
            return self._fetch(request, broker_epoch)
        if isinstance(request, AskOffsets):
            return self._offsets(request), self._versions.list_offsets
        return self._epochs(request), self._versions.epochs

    def _fetch(self, request: Named, broker_epoch: int) -> tuple[FetchRequest, int]:
        version = (
            self._versions.fetch if request.uses_topic_ids else min(self._versions.fetch, TOPIC_IDS_SINCE - 1)
        )
        message = FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            session_id=request.session_id,
            session_epoch=request.session_epoch,
            topics=self._wanted(request.wanted),
            forgotten_topics_data=forgotten(request.forgotten),
        )
        if version >= REPLICA_STATE_SINCE:
            message.replica_state = FetchRequest.ReplicaState(
                replica_id=self._node_id, replica_epoch=broker_epoch
            )
        else:
            message.replica_id = self._node_id
        return message, version

    def _wanted(self, wanted: Iterable[Wanted]) -> list[FetchRequest.FetchTopic]:
        topics: dict[tuple[str, bytes], FetchRequest.FetchTopic] = {}
        for each in wanted:
            topic = topics.get((each.topic, each.topic_id))
            if topic is None:
                topic = FetchRequest.FetchTopic(topic=each.topic, topic_id=each.topic_id)
                topics[each.topic, each.topic_id] = topic
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=each.partition,
                    current_leader_epoch=each.leader_epoch,
                    fetch_offset=each.offset,
                    last_fetched_epoch=each.last_epoch,
                    log_start_offset=each.log_start_offset,
                    partition_max_bytes=self._partition_max_bytes,
                )
            )
        return list(topics.values())

    def _offsets(self, request: AskOffsets) -> ListOffsetsRequest:
        topics = {
            name: ListOffsetsRequest.ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=each.index,
                        current_leader_epoch=each.leader_epoch,
                        timestamp=request.timestamp,
                    )
                    for each in some
                ],
            )
            for name, some in by_topic(request.partitions).items()
        }
        return ListOffsetsRequest(replica_id=self._node_id, topics=list(topics.values()))

    def _epochs(self, request: AskEpochs) -> OffsetForLeaderEpochRequest:
        epochs = {each.key: epoch for each, epoch in request.partitions}
        topics = [
            OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                topic=name,
                partitions=[
                    OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                        partition=each.index,
                        current_leader_epoch=each.leader_epoch,
                        leader_epoch=epochs[each.key],
                    )
                    for each in some
                ],
            )
            for name, some in by_topic(each for each, _ in request.partitions).items()
        ]
        return OffsetForLeaderEpochRequest(replica_id=self._node_id, topics=topics)


def by_topic(partitions: Iterable[Following]) -> dict[str, list[Following]]:
    topics: dict[str, list[Following]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(each)
    return topics


def forgotten(gone: Iterable[Gone]) -> list[FetchRequest.ForgottenTopic]:
    topics: dict[tuple[str, bytes], FetchRequest.ForgottenTopic] = {}
    for each in gone:
        key = each.topic, each.topic_id
        if key not in topics:
            topics[key] = FetchRequest.ForgottenTopic(topic=each.topic, topic_id=each.topic_id)
        topics[key].partitions.append(each.partition)
    return list(topics.values())
