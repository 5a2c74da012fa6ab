"""AlterReplicaLogDirs (key 34), versions 1 and 2: partitions are to go to another log directory (KIP-113).

Answered when the move is under way; DescribeLogDirs shows how far it is. Of a partition that is named twice the
last directory counts. storage/moves does the moving.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.partitions import missing
from pykafkad.messages import AlterReplicaLogDirsResponse

if TYPE_CHECKING:
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


TopicResult = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
PartitionResult = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


def handle(broker: Broker, request: Any, context: Context) -> Any:
    paths = {
        (topic.name, index): asked.path
        for asked in request.dirs
        for topic in asked.topics
        for index in topic.partitions
    }
    results: dict[str, list[Any]] = {}
    for (topic, index), path in paths.items():
        code = errors.NONE
        try:
            broker.storage.moves.ask(topic, index, path)
        except KafkaError as error:
            code = error.code
            if code == errors.UNKNOWN_TOPIC_OR_PARTITION:
                code = missing(broker, topic, index)
        results.setdefault(topic, []).append(PartitionResult(partition_index=index, error_code=code))
    return AlterReplicaLogDirsResponse(
        results=[TopicResult(topic_name=name, partitions=partitions) for name, partitions in results.items()]
    )
