"""CreatePartitions (key 37), versions 0 to 3: adds partitions to topics that exist (KIP-195; KIP-599's error codes in
3), or only validates the request (`validate_only`).

The answer is sent when the new partitions can be used. The checks of a topic are in cluster/partition_changes. Missing:
the controller mutation quota.
"""

from __future__ import annotations

from operator import attrgetter

from pykafkad import errors
from pykafkad.handlers import zookeeper_forms
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import named_once
from pykafkad.messages import CreatePartitionsResponse
from pykafkad.pure.authorization import ALTER, TOPIC, Need
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.cluster.controller import Grown
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import CreatePartitionsRequest
    from pykafkad.slices import Work

    TopicRequest = CreatePartitionsRequest.CreatePartitionsTopic


TopicResult = CreatePartitionsResponse.CreatePartitionsTopicResult


TWICE = "Duplicate topic name."


needs = (Need(ALTER, TOPIC, by_handler=True),)


def handle(
    broker: Broker, request: CreatePartitionsRequest, context: Context
) -> Work[CreatePartitionsResponse | Context]:
    if zookeeper_forms.is_another_controller(broker):
        elsewhere: list[TopicResult] = []
        once, again = yield from named_once(request.topics)
        for each in chunks([*(topic.name for topic in once), *again]):
            elsewhere += [failed(name, errors.NOT_CONTROLLER, None) for name in each]
            yield
        return CreatePartitionsResponse(results=elsewhere)
    if request.timeout_ms <= 0:
        # Kafka's controller sees that the deadline has passed before it begins.
        late: list[TopicResult] = []
        for some in chunks(request.topics):
            late += [failed(topic.name, errors.REQUEST_TIMED_OUT, None) for topic in some]
            yield
        return CreatePartitionsResponse(results=late)
    of_zookeeper = broker.config.on_zookeeper
    text = zookeeper_forms.TWICE_GROWN if of_zookeeper else TWICE
    topics, refused = yield from sort_out(request.topics, text)
    if broker.authorizer is not None:
        permits = Permits(broker.authorizer, context)
        topics, denied = yield from permits.split(ALTER, TOPIC, topics, attrgetter("name"))
        code = errors.TOPIC_AUTHORIZATION_FAILED
        why = zookeeper_forms.GROWTH_DENIED if of_zookeeper else None
        refused += [failed(topic.name, code, why) for topic in denied]
    if not topics:
        return CreatePartitionsResponse(results=refused)
    broker.controller.create_partitions(
        topics,
        request.validate_only,
        lambda planned: broker.dispatcher.give(context, answer(planned, refused)),
    )
    return context


def sort_out(
    topics: Sequence[TopicRequest], text: str
) -> Work[tuple[Sequence[TopicRequest], list[TopicResult]]]:
    """The topics to look at, and answers for those that are named twice."""
    once, twice = yield from named_once(topics)
    refused: list[TopicResult] = []
    for name in twice:
        refused.append(failed(name, errors.INVALID_REQUEST, text))
        yield
    return once, refused


def answer(planned: Sequence[Grown], refused: list[TopicResult]) -> Work[CreatePartitionsResponse]:
    results = refused
    for some in chunks(planned):
        results += map(result, some)
        yield
    return CreatePartitionsResponse(results=results)


def result(grown: Grown) -> TopicResult:
    if grown.error is None:
        return failed(grown.name, errors.NONE, None)
    return failed(grown.name, grown.error.code, grown.error.message)


def failed(name: str, code: int, text: str | None) -> TopicResult:
    return TopicResult(name=name, error_code=code, error_message=text)
