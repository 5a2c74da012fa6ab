"""CreatePartitions (key 37), versions 0 to 3: more partitions for topics that exist (KIP-195, KIP-599's error
codes in 3), or with `validate_only` a look at what would come of it.

Answered when the new partitions can be used. The checks of a topic are in cluster/partition_changes. Missing:
the controller mutation quota.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.messages import CreatePartitionsResponse

if TYPE_CHECKING:
    from pykafkad.cluster.partition_changes import Grown
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


TopicResult = CreatePartitionsResponse.CreatePartitionsTopicResult


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if request.timeout_ms <= 0:
        # Kafka's controller finds the deadline passed before it begins.
        late = [failed(topic.name, errors.REQUEST_TIMED_OUT, None) for topic in request.topics]
        return CreatePartitionsResponse(results=late)
    topics, refused = sort_out(request.topics)
    if not topics:
        return CreatePartitionsResponse(results=refused)
    promise = context.defer()

    def done(planned: list[Grown]) -> None:
        promise.answer(CreatePartitionsResponse(results=[*refused, *map(result, planned)]))

    broker.controller.create_partitions(topics, request.validate_only, done)
    return promise


def sort_out(topics: list[Any]) -> tuple[list[Any], list[Any]]:
    """The topics to look at, and answers for those that are named twice."""
    times: dict[str, int] = {}
    for topic in topics:
        times[topic.name] = times.get(topic.name, 0) + 1
    twice = [name for name, count in times.items() if count > 1]
    refused = [failed(name, errors.INVALID_REQUEST, "Duplicate topic name.") for name in twice]
    return [topic for topic in topics if times[topic.name] == 1], refused


def result(grown: Grown) -> Any:
    if grown.error is None:
        return failed(grown.name, errors.NONE, None)
    return failed(grown.name, grown.error.code, grown.error.message)


def failed(name: str, code: int, text: str | None) -> Any:
    return TopicResult(name=name, error_code=code, error_message=text)
