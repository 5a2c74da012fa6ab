"""CreateTopics (key 19), versions 2 to 7: creates topics, or only validates the request (`validate_only`).

The answer is sent when the topics can be used. From version 5 it has the partitions, replicas and all configs of each
topic (KIP-525), from version 7 its id. The checks of the whole request are here, those of a topic in
cluster/topic_creation. Missing: the controller mutation quota (KIP-599).
"""

from __future__ import annotations

from functools import lru_cache
from operator import attrgetter

from pykafkad import errors
from pykafkad.cluster import topic_configs, topic_names
from pykafkad.handlers import zookeeper_forms
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import named_once
from pykafkad.messages import CreateTopicsResponse
from pykafkad.pure.authorization import CLUSTER, CREATE, DESCRIBE_CONFIGS, TOPIC, Need
from pykafkad.slices import begun, chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.cluster.topic_creation import Planned
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import CreateTopicsRequest
    from pykafkad.slices import OrWork, Work

    CreatableTopic = CreateTopicsRequest.CreatableTopic


TopicResult = CreateTopicsResponse.CreatableTopicResult
TopicConfigs = CreateTopicsResponse.CreatableTopicConfigs

CONFIGS_SINCE = 5
DENIED = "Authorization failed."
PROHIBITED = f"Creation of internal topic {topic_names.CLUSTER_METADATA} is prohibited."


needs = (
    Need(CREATE, TOPIC, or_on_cluster=CREATE, by_handler=True),
    Need(DESCRIBE_CONFIGS, TOPIC, by_handler=True),
)


def handle(
    broker: Broker, request: CreateTopicsRequest, context: Context
) -> OrWork[CreateTopicsResponse | Context]:
    return begun(create(broker, request, context))


def create(
    broker: Broker, request: CreateTopicsRequest, context: Context
) -> Work[CreateTopicsResponse | Context]:
    if zookeeper_forms.is_another_controller(broker):
        elsewhere = yield from refuse_all(request.topics, errors.NOT_CONTROLLER, "")
        return CreateTopicsResponse(topics=elsewhere)
    if request.timeout_ms <= 0:
        # Kafka's controller sees that the deadline has passed before it begins.
        late = yield from refuse_all(request.topics, errors.REQUEST_TIMED_OUT)
        return CreateTopicsResponse(topics=late)
    topics, refused = yield from sort_out(request.topics)
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    if permits is not None and not permits.show(CREATE, CLUSTER):
        topics, denied = yield from permits.split(CREATE, TOPIC, topics, attrgetter("name"))
        refused += [failed(topic.name, errors.TOPIC_AUTHORIZATION_FAILED, DENIED) for topic in denied]
    if not topics:
        return (yield from answer(broker, request, (), refused, False, permits))
    with_configs = context.version >= CONFIGS_SINCE
    context.defer()
    broker.controller.create_topics(
        topics,
        request.validate_only,
        lambda planned: broker.dispatcher.give(
            context, answer(broker, request, planned, refused, with_configs, permits)
        ),
    )
    return context


def refuse_all(
    topics: Sequence[CreatableTopic], code: int, text: str | None = None
) -> Work[list[TopicResult]]:
    results: list[TopicResult] = []
    for some in chunks(topics):
        results += [failed(topic.name, code, text) for topic in some]
        yield
    return results


def sort_out(topics: Sequence[CreatableTopic]) -> Work[tuple[list[CreatableTopic], list[TopicResult]]]:
    """The topics to look at, and answers for those that are named twice or that clients may not create."""
    once, twice = yield from named_once(topics)
    refused: list[TopicResult] = []
    for name in twice:
        refused.append(failed(name, errors.INVALID_REQUEST, "Duplicate topic name."))
        yield
    good: list[CreatableTopic] = []
    for some in chunks(once):
        good += [topic for topic in some if topic.name != topic_names.CLUSTER_METADATA]
        yield
    if len(good) < len(once):
        refused.append(failed(topic_names.CLUSTER_METADATA, errors.INVALID_REQUEST, PROHIBITED))
    return good, refused


def answer(
    broker: Broker,
    request: CreateTopicsRequest,
    planned: Sequence[Planned],
    refused: list[TopicResult],
    with_configs: bool,
    permits: Permits | None,
) -> Work[CreateTopicsResponse]:
    results = []
    for topic in planned:
        results.append(result(topic))
        if not errors.fits(results[-1].error_message):
            unsaid = yield from refuse_all(request.topics, errors.UNKNOWN_SERVER_ERROR)
            return CreateTopicsResponse(topics=unsaid)
        if topic.error is None and not (
            permits is None or permits.allow(DESCRIBE_CONFIGS, TOPIC, topic.name)
        ):
            hide(results[-1])
        elif with_configs and topic.error is None:
            shown = topic_configs.effective(broker.config, broker.image, broker.node_id, topic.configs)
            results[-1].configs = configs(shown) if topic.configs else inherited(shown)
        yield
    results += refused
    if broker.config.on_zookeeper:
        results = yield from zookeeper_forms.created(request, results, permits)
    return CreateTopicsResponse(topics=results)


def failed(name: str, code: int, text: str | None) -> TopicResult:
    return TopicResult(name=name, error_code=code, error_message=text)


def result(planned: Planned) -> TopicResult:
    if planned.error is not None:
        return failed(planned.name, planned.error.code, planned.error.text)
    return TopicResult(
        name=planned.name,
        topic_id=planned.topic_id,
        error_message=None,
        num_partitions=len(planned.replicas),
        replication_factor=len(planned.replicas[0]),
    )


def hide(created: TopicResult) -> None:
    """What only those may see who may see the topic's configs."""
    created.topic_config_error_code = errors.TOPIC_AUTHORIZATION_FAILED
    created.num_partitions = created.replication_factor = -1


def configs(shown: Sequence[topic_configs.Entry]) -> list[TopicConfigs]:
    return [
        TopicConfigs(name=name, value=value, read_only=False, config_source=source, is_sensitive=sensitive)
        for name, value, source, sensitive in shown
    ]


inherited = lru_cache(maxsize=1)(
    configs
)  # of all topics without configs of their own: the answers share them
