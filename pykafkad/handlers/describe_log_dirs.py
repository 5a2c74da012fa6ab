"""DescribeLogDirs (key 35), versions 1 to 5: the log directories, what lies in them and how much room is left
(KIP-113; room in 4, KIP-827; whether it is cordoned in 5, KIP-1066).

Null asks for all partitions. Those that are not there, or not here, are left out. A partition on its way to
another directory is listed there too, as a future replica with the offsets it lags behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.messages import DescribeLogDirsResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.partition import Partition


Result = DescribeLogDirsResponse.DescribeLogDirsResult
TopicResult = DescribeLogDirsResponse.DescribeLogDirsTopic
PartitionResult = DescribeLogDirsResponse.DescribeLogDirsPartition

Found = dict[int, dict[str, list[Any]]]  # by id() of the directory, then by topic


def handle(broker: Broker, request: Any, context: Context) -> Any:
    found: Found = {}
    for partition in asked_for(broker, request.topics):
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
    return DescribeLogDirsResponse(
        results=[
            describe(broker, directory, found.get(id(directory), {}))
            for directory in broker.storage.directories
        ]
    )


def asked_for(broker: Broker, topics: list[Any] | None) -> Iterable[Partition]:
    partitions = broker.storage.partitions
    if topics is None:
        return partitions.values()
    keys = dict.fromkeys((topic.topic, index) for topic in topics for index in topic.partitions)
    return [partitions[key] for key in keys if key in partitions]


def of_log(partition: Partition) -> Any:
    return PartitionResult(partition_index=partition.index, partition_size=partition.size)


def note(found: Found, directory: LogDirectory, topic: str, result: Any) -> None:
    found.setdefault(id(directory), {}).setdefault(topic, []).append(result)


def describe(broker: Broker, directory: LogDirectory, topics: dict[str, list[Any]]) -> Any:
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
