"""Metadata (key 3), versions 0 to 13: brokers, topics, partitions and their leaders.

Topics are asked for by name, by id (from version 12, KIP-516), or all at once, by null or in version 0 by an empty
list. A missing topic may be created (KIP-204; whether the client allows it, KIP-487), and the answer waits for it if its
partitions are few: Kafka answers UNKNOWN_TOPIC_OR_PARTITION, which costs every client one or two sleeps of 100 ms before
it asks again. The order of topics in the answer is Kafka's: unknown ids, existing topics, invalid names, topics that
were not there when the answer was made.
"""

from __future__ import annotations

from functools import partial

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.handlers.cluster_view import (
    CLUSTER_OPERATIONS,
    NOT_ASKED,
    TOPIC_OPERATIONS,
    partition_views,
    reachable_brokers,
    why_missing,
)
from pykafkad.messages import MetadataResponse
from pykafkad.pure.authorization import CREATE, DESCRIBE, TOPIC, Need
from pykafkad.slices import begun, chunks
from pykafkad.uuids import ZERO as NO_TOPIC_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from pykafkad.cluster.image import Image, Topic
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import MetadataRequest
    from pykafkad.slices import OrWork, Work

    TopicRequest = MetadataRequest.MetadataRequestTopic
    Key = TypeVar("Key", bytes, str)


BrokerResponse = MetadataResponse.MetadataResponseBroker
TopicResponse = MetadataResponse.MetadataResponseTopic
PartitionResponse = MetadataResponse.MetadataResponsePartition

IDS_SINCE = 12
FEW = 16  # topics
WAITED_FOR = 100  # partitions: to make many may take longer than a client waits for its answer
CACHED = "metadata"  # the key under which a topic caches the views of its partitions


needs = (
    Need(DESCRIBE, TOPIC, by_handler=True),
    Need(CREATE, TOPIC, or_on_cluster=CREATE, by_handler=True),
)


def handle(broker: Broker, request: MetadataRequest, context: Context) -> OrWork[MetadataResponse | Context]:
    topics = kept(broker.image, request, context.version)
    if topics is not None:
        return response(broker, request, context, topics)
    return begun(respond(broker, request, context))


def handle_guarded(
    broker: Broker, request: MetadataRequest, context: Context
) -> OrWork[MetadataResponse | Context]:
    """Where there is an authorizer."""
    from pykafkad.handlers.metadata_guarded import respond_guarded

    return begun(respond_guarded(broker, request, context))


def kept(image: Image, request: MetadataRequest, version: int) -> list[TopicResponse] | None:
    """The answers for a few topics whose partitions are all cached, which is what most requests ask for."""
    asked = request.topics
    if asked is None or len(asked) > FEW or (version == 0 and not asked):
        return None
    operations = operations_for(request)
    answers = {}
    for each in asked:
        topic = image.topics.get(each.name or "")
        partitions = topic.cache.get(CACHED) if topic is not None else None
        if topic is None or partitions is None or each.topic_id != NO_TOPIC_ID:
            return None
        answers[each.name] = answer(topic, partitions, operations)
    return list(answers.values())


def respond(
    broker: Broker,
    request: MetadataRequest,
    context: Context,
    *,
    create: bool = True,
    again: Callable[[], Work[MetadataResponse | Context]] | None = None,
) -> Work[MetadataResponse | Context]:
    """`create`: what is missing, if this was not done yet; then `again` makes the answer."""
    asked = request.topics
    if asked:
        problem = yield from what_is_wrong(asked, context.version)
        if problem:
            return (yield from refuse(asked, problem))
    topics, missing = yield from find_topics(broker, request, context.version)
    if not missing or not create:
        return response(broker, request, context, topics)
    if len(missing) * broker.config["num.partitions"] > WAITED_FOR:
        broker.controller.auto_create_all(missing, lambda: None)
        return response(broker, request, context, topics)
    work = respond(broker, request, context, create=False) if again is None else again()
    context.defer()
    created: Callable[[], None] = partial(broker.dispatcher.give, context, work)
    if broker.cluster is not None:
        from pykafkad.handlers.cluster_waits import in_time

        created = in_time(broker, created)
    broker.controller.auto_create_all(missing, created)
    return context


def response(
    broker: Broker, request: MetadataRequest, context: Context, topics: list[TopicResponse]
) -> MetadataResponse:
    return MetadataResponse(
        brokers=[
            BrokerResponse(node_id=info.id, host=endpoint.host, port=endpoint.port, rack=info.rack)
            for info, endpoint in reachable_brokers(broker, context)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.controller.controller_id,
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def operations_for(request: MetadataRequest) -> int:
    return TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED


def what_is_wrong(asked: list[TopicRequest], version: int) -> Work[int]:
    by_id = nameless = False
    for some in chunks(asked):
        by_id = by_id or any(topic.topic_id != NO_TOPIC_ID for topic in some)
        nameless = nameless or any(topic.name is None for topic in some)
        yield
    if version < IDS_SINCE:
        return errors.INVALID_REQUEST if by_id or nameless else errors.NONE
    # Kafka's code does not expect a topic that has neither name nor id, so it answers with this error.
    return errors.UNKNOWN_SERVER_ERROR if nameless and not by_id else errors.NONE


def refuse(asked: list[TopicRequest], code: int) -> Work[MetadataResponse]:
    """Kafka's answer to a request that it cannot make sense of: for every topic nothing but the error."""
    topics: list[TopicResponse] = []
    for some in chunks(asked):
        topics += [
            TopicResponse(error_code=code, name=topic.name or "", topic_id=topic.topic_id) for topic in some
        ]
        yield
    return MetadataResponse(controller_id=-1, error_code=code, topics=topics)


def find_topics(
    broker: Broker, request: MetadataRequest, version: int
) -> Work[tuple[list[TopicResponse], Sequence[str]]]:
    """The answers, and the names of those topics that can be created."""
    asked = request.topics
    operations, image = operations_for(request), broker.image
    if asked is None or (version == 0 and not asked):
        return (yield from existing(image, list(image.topics.values()), operations)), ()
    ids: dict[bytes, None] = {}
    names: dict[str, None] = {}
    for some in chunks(asked):
        ids.update(dict.fromkeys([topic.topic_id for topic in some if topic.topic_id != NO_TOPIC_ID]))
        names.update(dict.fromkeys([topic.name for topic in some if topic.name is not None]))
        yield
    if ids:
        known, unknown = yield from split(image.topics_by_id, list(ids))
        answers = [
            TopicResponse(error_code=errors.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
            for topic_id in unknown
        ]
        return [*answers, *(yield from existing(image, known, operations))], ()
    known, missing = yield from split(image.topics, list(names))
    found = yield from existing(image, known, operations)
    if not missing:
        return found, ()
    create = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
    refused, creatable = yield from absent(missing, create, operations)
    return [*found, *refused, *creatable], [each.name for each in creatable if each.name is not None]


def split(topics: Mapping[Key, Topic], asked: list[Key]) -> Work[tuple[list[Topic], list[Key]]]:
    """The topics that exist, and the names of those that do not."""
    known: list[Topic] = []
    unknown: list[Key] = []
    for some in chunks(asked):
        for each in some:
            topic = topics.get(each)
            if topic is None:
                unknown.append(each)
            else:
                known.append(topic)
        yield
    return known, unknown


def existing(image: Image, topics: list[Topic], operations: int) -> Work[list[TopicResponse]]:
    answers = []
    for topic in topics:
        partitions = topic.cache.get(CACHED)
        if partitions is None:
            partitions = yield from partition_views(
                image, topic, CACHED, PartitionResponse, errors.LEADER_NOT_AVAILABLE
            )
        answers.append(answer(topic, partitions, operations))
        yield
    return answers


def answer(topic: Topic, partitions: list[PartitionResponse], operations: int) -> TopicResponse:
    return TopicResponse(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=operations,
    )


def absent(
    names: list[str], create: bool, operations: int
) -> Work[tuple[list[TopicResponse], list[TopicResponse]]]:
    """Invalid names, and those of topics to create. If none is to be created, all come in the order of the request."""
    answers: list[TopicResponse] = []
    creatable: list[TopicResponse] = []
    for name in names:
        code = why_missing(name)
        refused = TopicResponse(
            error_code=code,
            name=name,
            is_internal=name in topic_names.INTERNAL,
            topic_authorized_operations=operations,
        )
        is_creatable = create and code == errors.UNKNOWN_TOPIC_OR_PARTITION
        (creatable if is_creatable else answers).append(refused)
        yield
    return answers, creatable
