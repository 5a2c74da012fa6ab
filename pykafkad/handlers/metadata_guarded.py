"""Metadata where there is an authorizer: what the client may not describe is left out where it asks for all topics, and
refused where it asks for some, before anybody looks whether it exists. A topic that is missing is created for those who
may create it.
"""

from __future__ import annotations

from typing import cast

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.handlers.cluster_view import NOT_ASKED
from pykafkad.handlers.metadata import TopicResponse, respond, response, what_is_wrong
from pykafkad.handlers.permits import AT_ONCE, Permits
from pykafkad.pure.authorization import CLUSTER, CREATE, DESCRIBE, TOPIC
from pykafkad.slices import chunks
from pykafkad.uuids import ZERO as NO_TOPIC_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import MetadataRequest, MetadataResponse
    from pykafkad.slices import Work

    TopicRequest = MetadataRequest.MetadataRequestTopic
    Refused = list[TopicResponse]

DENIED = errors.TOPIC_AUTHORIZATION_FAILED


def respond_guarded(
    broker: Broker, request: MetadataRequest, context: Context
) -> Work[MetadataResponse | Context]:
    assert broker.authorizer is not None
    permits = Permits(broker.authorizer, context)
    asked = request.topics
    wants_all = asked is None or (context.version == 0 and not asked)
    refused: Refused = []
    if asked and (yield from what_is_wrong(asked, context.version)):
        return (yield from respond(broker, request, context))
    if asked:
        request.topics, refused = yield from sort_out(broker, request, asked, permits)
    is_empty = not wants_all and not request.topics  # which version 0 would take for all topics

    def answer(create: bool) -> Work[MetadataResponse | Context]:
        made: Any = response(broker, request, context, []) if is_empty else None
        if made is None:
            made = yield from respond(broker, request, context, create=create, again=lambda: answer(False))
        if made is context:
            return cast("Context", context)
        if wants_all:
            made.topics = yield from permits.only(DESCRIBE, TOPIC, made.topics, lambda topic: topic.name)
        yield from show_operations(request, made, permits)
        made.topics = [*made.topics, *refused]
        return cast("MetadataResponse", made)

    return (yield from answer(True))


def sort_out(
    broker: Broker, request: MetadataRequest, asked: list[TopicRequest], permits: Permits
) -> Work[tuple[list[TopicRequest], Refused]]:
    """What may be told, and answers for the rest: behind what may not be created comes what may not be described."""
    by_id = [topic for topic in asked if topic.topic_id != NO_TOPIC_ID]
    if by_id:
        return (yield from sort_out_ids(broker, by_id, permits))
    create = request.allow_auto_topic_creation and broker.config.auto_create_topics_enable
    left: list[TopicRequest] = []
    names: dict[str, list[TopicRequest]] = {}
    for some in chunks(asked):
        for topic in some:
            names.setdefault(topic.name or "", []).append(topic)
        yield
    uncreated: Refused = []
    hidden: Refused = []
    for place, (name, topics) in enumerate(names.items(), 1):
        if not permits.allow(DESCRIBE, TOPIC, name):
            hidden.append(TopicResponse(error_code=DENIED, name=name))
        elif create and name not in broker.image.topics and not may_create(permits, name):
            is_internal = name in topic_names.INTERNAL
            uncreated.append(TopicResponse(error_code=DENIED, name=name, is_internal=is_internal))
        else:
            left += topics
        if not place % AT_ONCE:
            yield
    return left, uncreated + hidden


def sort_out_ids(
    broker: Broker, asked: list[TopicRequest], permits: Permits
) -> Work[tuple[list[TopicRequest], Refused]]:
    """Ids are no secret; names are."""
    left: list[TopicRequest] = []
    hidden: dict[bytes, TopicResponse] = {}
    for place, topic in enumerate(asked, 1):
        known = broker.image.topics_by_id.get(topic.topic_id)
        if known is None or permits.allow(DESCRIBE, TOPIC, known.name):
            left.append(topic)
        else:
            hidden[known.id] = TopicResponse(error_code=DENIED, name=None, topic_id=known.id)
        if not place % AT_ONCE:
            yield
    return left, list(hidden.values())


def may_create(permits: Permits, name: str) -> bool:
    return permits.show(CREATE, CLUSTER) or permits.allow(CREATE, TOPIC, name)


def show_operations(request: MetadataRequest, response: MetadataResponse, permits: Permits) -> Work[None]:
    if response.cluster_authorized_operations != NOT_ASKED:
        response.cluster_authorized_operations = permits.cluster_operations()
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if topic.name is not None:
                topic.topic_authorized_operations = permits.operations(TOPIC, topic.name)
            yield
