"""DescribeTopicPartitions (key 75), version 0: topics page by page, with their eligible leader replicas (KIP-966).

Topics come in the order of their names, with at most as many partitions as the limit says; the next request continues
at the cursor of the answer.
"""

from __future__ import annotations

from heapq import merge
from itertools import islice
from operator import attrgetter

from pykafkad import errors
from pykafkad.handlers.cluster_view import TOPIC_OPERATIONS, partition_views, why_missing
from pykafkad.handlers.permits import Permits
from pykafkad.messages import DescribeTopicPartitionsResponse
from pykafkad.pure.authorization import DESCRIBE, TOPIC, Need
from pykafkad.slices import CHUNK, chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DescribeTopicPartitionsRequest
    from pykafkad.slices import Work


TopicResponse = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
PartitionResponse = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor

ELIGIBLE = ("eligible_leader_replicas", "last_known_elr")


needs = (Need(DESCRIBE, TOPIC, by_handler=True),)


def handle(
    broker: Broker, request: DescribeTopicPartitionsRequest, context: Context
) -> Work[DescribeTopicPartitionsResponse]:
    cursor = request.cursor
    all_topics = not request.topics
    first = cursor.topic_name if cursor is not None else ""
    names: set[str] = set()
    asked = map(name_of, request.topics) if request.topics else iter(list(broker.image.topics))
    while some := list(islice(asked, CHUNK)):
        names.update([name for name in some if name >= first])
        yield
    if cursor is not None and (cursor.partition_index < 0 or not (all_topics or cursor.topic_name in names)):
        return (yield from refuse(request, errors.INVALID_REQUEST))
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    hidden: list[str] = []
    if permits is not None:
        allowed, hidden = yield from permits.split(DESCRIBE, TOPIC, names, str, asked=not all_topics)
        names = set(allowed)
    if "" in names:
        return (yield from refuse(request, errors.UNKNOWN_SERVER_ERROR))  # Kafka fails on an empty name
    most = broker.config["max.request.partition.size.limit"]
    room = max(1, min(most, request.response_partition_limit))
    response = yield from describe(broker, (yield from in_order(list(names))), cursor, room)
    if permits is not None:
        yield from show_operations(response, permits)
    if not all_topics:
        code = errors.TOPIC_AUTHORIZATION_FAILED
        response.topics += [TopicResponse(error_code=code, name=name) for name in hidden]
    return response


def show_operations(response: DescribeTopicPartitionsResponse, permits: Permits) -> Work[None]:
    for topic in response.topics:
        topic.topic_authorized_operations = permits.operations(TOPIC, topic.name or "")
        yield


name_of = attrgetter("name")


def in_order(names: list[str]) -> Work[Iterator[str]]:
    """An iterator over these names in order. Most of the sorting is done while it is read."""
    runs = []
    for some in chunks(names):
        runs.append(sorted(some, key=java_order))
        yield
    return merge(*runs, key=java_order)


def java_order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")


def refuse(request: DescribeTopicPartitionsRequest, code: int) -> Work[DescribeTopicPartitionsResponse]:
    topics: list[TopicResponse] = []
    for some in chunks(request.topics):
        topics += [TopicResponse(error_code=code, name=topic.name) for topic in some]
        yield
    return DescribeTopicPartitionsResponse(topics=topics)


def describe(
    broker: Broker, names: Iterator[str], cursor: DescribeTopicPartitionsRequest.Cursor | None, room: int
) -> Work[DescribeTopicPartitionsResponse]:
    response = DescribeTopicPartitionsResponse()
    for name in names:
        yield
        if room == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = broker.image.topics.get(name)
        if topic is None:
            response.topics.append(
                TopicResponse(
                    error_code=why_missing(name), name=name, topic_authorized_operations=TOPIC_OPERATIONS
                )
            )
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        views = yield from partition_views(
            broker.image, topic, "describe", PartitionResponse, errors.NONE, *ELIGIBLE
        )
        partitions = views[first : first + room]
        response.topics.append(
            TopicResponse(
                name=name,
                topic_id=topic.id,
                is_internal=topic.is_internal,
                partitions=partitions,
                topic_authorized_operations=TOPIC_OPERATIONS,
            )
        )
        if first + room < len(views):
            response.next_cursor = Cursor(topic_name=name, partition_index=first + room)
            break
        room -= len(partitions)
    return response
