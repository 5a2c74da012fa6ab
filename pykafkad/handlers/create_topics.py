"""CreateTopics (key 19), versions 2 to 7: new topics, or with `validate_only` a look at what would come
of them.

Answered when the topics can be used. From version 5 the answer has the partitions, replicas and all configs
of each topic (KIP-525), from version 7 its id. Kafka's checks of the whole request are here, those of a
topic in cluster/topic_creation. Missing: the controller mutation quota (KIP-599).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.cluster import topic_configs, topic_names
from pykafkad.messages import CreateTopicsResponse

if TYPE_CHECKING:
    from pykafkad.cluster.topic_creation import Planned
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


TopicResult = CreateTopicsResponse.CreatableTopicResult
TopicConfigs = CreateTopicsResponse.CreatableTopicConfigs

CONFIGS_SINCE = 5
PROHIBITED = f"Creation of internal topic {topic_names.CLUSTER_METADATA} is prohibited."


def handle(broker: Broker, request: Any, context: Context) -> Any:
    if request.timeout_ms <= 0:
        # Kafka's controller finds the deadline passed before it begins.
        return CreateTopicsResponse(
            topics=[failed(topic.name, errors.REQUEST_TIMED_OUT, None) for topic in request.topics]
        )
    topics, refused = sort_out(request.topics)
    if not topics:
        return CreateTopicsResponse(topics=refused)
    with_configs = context.version >= CONFIGS_SINCE
    answered: list[Any] = []
    promises: list[Context] = []

    def done(planned: list[Planned]) -> None:
        results = [result(broker, topic, with_configs) for topic in planned]
        response = CreateTopicsResponse(topics=[*results, *refused])
        if promises:
            promises[0].answer(response)
        else:
            answered.append(response)

    broker.controller.create_topics(topics, request.validate_only, done)
    if answered:
        return answered[0]
    promises.append(context.defer())
    return promises[0]


def sort_out(topics: list[Any]) -> tuple[list[Any], list[Any]]:
    """The topics to look at, and answers for those that are named twice or not for clients to create."""
    times: dict[str, int] = {}
    for topic in topics:
        times[topic.name] = times.get(topic.name, 0) + 1
    twice = [name for name, count in times.items() if count > 1]
    refused = [failed(name, errors.INVALID_REQUEST, "Duplicate topic name.") for name in twice]
    if times.get(topic_names.CLUSTER_METADATA) == 1:
        refused.append(failed(topic_names.CLUSTER_METADATA, errors.INVALID_REQUEST, PROHIBITED))
    good = [
        topic for topic in topics if times[topic.name] == 1 and topic.name != topic_names.CLUSTER_METADATA
    ]
    return good, refused


def failed(name: str, code: int, text: str | None) -> Any:
    return TopicResult(name=name, error_code=code, error_message=text)


def result(broker: Broker, planned: Planned, with_configs: bool) -> Any:
    if planned.error is not None:
        return failed(planned.name, planned.error.code, planned.error.text)
    answer = TopicResult(
        name=planned.name,
        topic_id=planned.topic_id,
        error_message=None,
        num_partitions=len(planned.replicas),
        replication_factor=len(planned.replicas[0]),
    )
    if with_configs:
        answer.configs = [
            TopicConfigs(
                name=name, value=value, read_only=False, config_source=source, is_sensitive=sensitive
            )
            for name, value, source, sensitive in topic_configs.effective(
                broker.config, broker.image, broker.node_id, planned.configs
            )
        ]
    return answer
