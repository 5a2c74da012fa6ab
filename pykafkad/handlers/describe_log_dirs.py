"""DescribeLogDirs (key 35), versions 1 to 5: the log directories, the partitions in them and their free space (KIP-113;
space since 4, KIP-827; whether a directory is cordoned since 5, KIP-1066).

Null asks for all partitions. Partitions that do not exist, or not on this broker, are left out. A partition that is
being moved is also listed in its target directory, as a future replica with the number of offsets it lags behind.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.handlers.partitions import items_of
from pykafkad.messages import DescribeLogDirsResponse
from pykafkad.pure.authorization import CLUSTER, DESCRIBE, Need
from pykafkad.slices import begun, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeLogDirsRequest
    from pykafkad.slices import OrWork
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.log import Log


Result = DescribeLogDirsResponse.DescribeLogDirsResult
TopicResult = DescribeLogDirsResponse.DescribeLogDirsTopic
PartitionResult = DescribeLogDirsResponse.DescribeLogDirsPartition

PARTITIONS_AT_ONCE = 8

Key = tuple[str, int]
Found = dict[int, dict[str, list[PartitionResult]]]  # by id() of the directory, then by topic


needs = (Need(DESCRIBE, CLUSTER),)


def handle(
    broker: Broker, request: DescribeLogDirsRequest, context: Context
) -> OrWork[DescribeLogDirsResponse]:
    return begun(answer(broker, request))


def answer(broker: Broker, request: DescribeLogDirsRequest) -> Generator[None, None, DescribeLogDirsResponse]:
    found: Found = {}
    for pause, key in each((yield from asked_for(broker, request.topics)), PARTITIONS_AT_ONCE):
        if pause:
            yield
        partition = broker.storage.partitions.get(key)
        if partition is not None:
            note_partition(broker, found, partition)
    return DescribeLogDirsResponse(
        results=[
            describe(broker, directory, found.get(id(directory), {}))
            for directory in broker.storage.directories
        ]
    )


def note_partition(broker: Broker, found: Found, partition: Log) -> None:
    note(found, partition.log_directory, partition.topic, of_log(partition))
    move = broker.storage.moves.get(partition.topic, partition.index)
    if move is not None:
        future = PartitionResult(
            partition_index=partition.index,
            partition_size=move.size,
            offset_lag=move.lag,
            is_future_key=True,
        )
        note(found, move.target, partition.topic, future)


def asked_for(
    broker: Broker, topics: list[DescribeLogDirsRequest.DescribableLogDirTopic] | None
) -> Generator[None, None, list[Key]]:
    """The partitions that are asked for, each of them once."""
    if topics is None:
        return list(broker.storage.partitions)
    keys: dict[Key, None] = {}
    for pause, (topic, index) in each(items_of(topics), 64):
        if pause:
            yield
        if index is not None:
            keys[topic.topic, index] = None
    return list(keys)


def of_log(partition: Log) -> PartitionResult:
    return PartitionResult(partition_index=partition.index, partition_size=partition.size)


def note(found: Found, directory: LogDirectory, topic: str, result: PartitionResult) -> None:
    found.setdefault(id(directory), {}).setdefault(topic, []).append(result)


def describe(broker: Broker, directory: LogDirectory, topics: dict[str, list[PartitionResult]]) -> Result:
    room = broker.storage.capacity(directory)
    if room is None:
        return Result(error_code=errors.KAFKA_STORAGE_ERROR, log_dir=directory.path)
    return Result(
        log_dir=directory.path,
        topics=[TopicResult(name=name, partitions=partitions) for name, partitions in topics.items()],
        total_bytes=room[0],
        usable_bytes=room[1],
        is_cordoned=broker.storage.is_cordoned(directory),
    )


def unauthorized(request: DescribeLogDirsRequest, version: int, code: int) -> DescribeLogDirsResponse:
    """Nothing is told; before version 3 not even why."""
    return DescribeLogDirsResponse(error_code=code)
