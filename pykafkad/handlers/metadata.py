"""Metadata (key 3), versions 0 to 13: brokers, topics, partitions and who leads them.

Topics are asked for by name, by id (from version 12, KIP-516), or all: null, in version 0 an empty list. A
missing topic may be created (KIP-204 and its allow flag, KIP-487); its first answer is
UNKNOWN_TOPIC_OR_PARTITION, as in 4.3, and the client asks again. The order of topics in the answer is
Kafka's: unknown ids, existing topics, invalid names, names being created.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from pykafkad.cluster.image import Image, Topic
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


BrokerResponse = MetadataResponse.MetadataResponseBroker
TopicResponse = MetadataResponse.MetadataResponseTopic
PartitionResponse = MetadataResponse.MetadataResponsePartition

NO_TOPIC_ID = bytes(16)
IDS_SINCE = 12


def handle(broker: Broker, request: Any, context: Context) -> Any:
    asked = request.topics
    if asked is not None and (context.version > 0 or asked):
        problem = what_is_wrong(asked, context.version)
        if problem:
            return refuse(asked, problem)
    topics = find_topics(broker, request, context.version)
    return MetadataResponse(
        brokers=[
            BrokerResponse(node_id=info.id, host=endpoint.host, port=endpoint.port, rack=info.rack)
            for info, endpoint in reachable_brokers(broker, context)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        topics=topics,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def what_is_wrong(asked: list[Any], version: int) -> int:
    by_id = any(topic.topic_id != NO_TOPIC_ID for topic in asked)
    nameless = any(topic.name is None for topic in asked)
    if version < IDS_SINCE:
        return errors.INVALID_REQUEST if by_id or nameless else errors.NONE
    # Kafka stumbles over a topic that has neither name nor id, and says so in this way.
    return errors.UNKNOWN_SERVER_ERROR if nameless and not by_id else errors.NONE


def refuse(asked: list[Any], code: int) -> Any:
    """Kafka's answer to a request that it cannot make sense of: nothing but the error, for every topic."""
    return MetadataResponse(
        controller_id=-1,
        error_code=code,
        topics=[
            TopicResponse(error_code=code, name=topic.name or "", topic_id=topic.topic_id) for topic in asked
        ],
    )


def find_topics(broker: Broker, request: Any, version: int) -> list[Any]:
    asked = request.topics
    operations = TOPIC_OPERATIONS if request.include_topic_authorized_operations else NOT_ASKED
    image = broker.image
    if asked is None or (version == 0 and not asked):
        return [existing(image, topic, operations) for topic in image.topics.values()]
    ids = dict.fromkeys(topic.topic_id for topic in asked if topic.topic_id != NO_TOPIC_ID)
    if ids:
        known = [image.topics_by_id[topic_id] for topic_id in ids if topic_id in image.topics_by_id]
        unknown = [topic_id for topic_id in ids if topic_id not in image.topics_by_id]
        return [
            *(
                TopicResponse(error_code=errors.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
                for topic_id in unknown
            ),
            *(existing(image, topic, operations) for topic in known),
        ]
    names = dict.fromkeys(topic.name for topic in asked)
    found = [existing(image, image.topics[name], operations) for name in names if name in image.topics]
    missing = [name for name in names if name not in image.topics]
    if missing:
        create = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
        found += absent(broker, missing, create, operations)
    return found


def existing(image: Image, topic: Topic, operations: int) -> Any:
    partitions = topic.cache.get("metadata")
    if partitions is None:
        partitions = topic.cache["metadata"] = partition_views(
            image, topic, PartitionResponse, errors.LEADER_NOT_AVAILABLE
        )
    return TopicResponse(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.is_internal,
        partitions=partitions,
        topic_authorized_operations=operations,
    )


def absent(broker: Broker, names: list[str], create: bool, operations: int) -> list[Any]:
    answers = []
    for name in names:
        code = why_missing(name)
        if create and code == errors.UNKNOWN_TOPIC_OR_PARTITION:
            broker.controller.auto_create(name)
        answers.append(
            TopicResponse(
                error_code=code,
                name=name,
                is_internal=name in topic_names.INTERNAL,
                topic_authorized_operations=operations,
            )
        )
    if create:
        answers.sort(key=lambda answer: answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION)
    return answers
