"""AlterReplicaLogDirs (key 34), versions 1 and 2: moves partitions to another log directory (KIP-113).

The answer is sent when the move has begun; DescribeLogDirs shows its progress. If a partition is named twice, its last
directory is the one that counts. storage/moves does the moving. In a cluster a partition may be asked for that comes to
this broker later: it is REPLICA_NOT_AVAILABLE, and goes there when it comes, as kafka-reassign-partitions.sh wants it.
"""

from __future__ import annotations

from typing import cast

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import items_of, missing
from pykafkad.messages import AlterReplicaLogDirsResponse
from pykafkad.pure.authorization import ALTER, CLUSTER, Need
from pykafkad.slices import GO_ON, each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import AlterReplicaLogDirsRequest
    from pykafkad.slices import Work
    from pykafkad.storage.zookeeper_directories import ZooKeeperLogs

MOVES_AT_ONCE = 1

TopicResult = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
PartitionResult = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


needs = (Need(ALTER, CLUSTER),)


def handle(
    broker: Broker, request: AlterReplicaLogDirsRequest, context: Context
) -> Work[AlterReplicaLogDirsResponse]:
    return answer(broker, request)


def answer(broker: Broker, request: AlterReplicaLogDirsRequest) -> Work[AlterReplicaLogDirsResponse]:
    paths: dict[tuple[str, int], str] = {}
    for asked in request.dirs:
        for pause, (topic, index) in each(items_of(asked.topics), 64):
            if pause:
                yield GO_ON
            if index is not None:
                paths[topic.name, index] = asked.path
        yield GO_ON
    results: dict[str, list[PartitionResult]] = {}
    for pause, ((name, index), path) in each(paths.items(), MOVES_AT_ONCE):
        if pause:
            yield GO_ON
        code = ask(broker, name, index, path)
        results.setdefault(name, []).append(PartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(
        results=[TopicResult(topic_name=name, partitions=partitions) for name, partitions in results.items()]
    )


def ask(broker: Broker, topic: str, index: int, path: str) -> int:
    try:
        broker.storage.moves.ask(topic, index, path)
    except KafkaError as error:
        if error.code != errors.UNKNOWN_TOPIC_OR_PARTITION:
            return error.code
        code = missing(broker, topic, index)
        if code != errors.NOT_LEADER_OR_FOLLOWER:
            return code
        cast("ZooKeeperLogs", broker.storage).prefer(topic, index, path)
        return errors.REPLICA_NOT_AVAILABLE
    return errors.NONE


def unauthorized(
    request: AlterReplicaLogDirsRequest, version: int, code: int
) -> Work[AlterReplicaLogDirsResponse]:
    results: dict[str, list[PartitionResult]] = {}
    for asked in request.dirs:
        for pause, (topic, index) in each(items_of(asked.topics), 64):
            if pause:
                yield
            if index is not None:
                refused = PartitionResult(partition_index=index, error_code=code)
                results.setdefault(topic.name, []).append(refused)
    return AlterReplicaLogDirsResponse(
        results=[TopicResult(topic_name=name, partitions=partitions) for name, partitions in results.items()]
    )
