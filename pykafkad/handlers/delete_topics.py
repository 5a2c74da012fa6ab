"""DeleteTopics (key 20), versions 1 to 6: by name, from version 6 also by id (KIP-516).

The answer is sent when the metadata log has the deletion on disk and the logs are renamed; their files are deleted
later. As in Kafka, a topic that is named twice is refused, and so is one that is named both by name and by id.
"""

from __future__ import annotations

from pykafkad import errors, unserved
from pykafkad.handlers import zookeeper_forms
from pykafkad.handlers.permits import Permits
from pykafkad.messages import DeleteTopicsResponse
from pykafkad.pure.authorization import CLUSTER, DELETE, DESCRIBE, TOPIC, Need
from pykafkad.slices import begun, chunks
from pykafkad.uuids import ZERO as NO_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pykafkad.cluster.names import Names
    from pykafkad.context import Context
    from pykafkad.errors import KafkaError
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import DeleteTopicsRequest
    from pykafkad.pure.authorization import Authorizer
    from pykafkad.slices import OrWork, Work


Result = DeleteTopicsResponse.DeletableTopicResult

DISABLED_SINCE = 3
IDS_SINCE = 6


needs = (
    Need(DESCRIBE, TOPIC, or_on_cluster=DELETE, by_handler=True),
    Need(DELETE, TOPIC, or_on_cluster=DELETE, by_handler=True),
)


def handle(
    broker: Broker, request: DeleteTopicsRequest, context: Context
) -> OrWork[DeleteTopicsResponse | Context]:
    return begun(delete(broker, request, context))


def delete(
    broker: Broker, request: DeleteTopicsRequest, context: Context
) -> Work[DeleteTopicsResponse | Context]:
    if zookeeper_forms.is_another_controller(broker):
        return (yield from refuse_all(request, context.version, errors.NOT_CONTROLLER))
    if not broker.config.delete_topic_enable:
        unserved.say(broker.quiet, context, "topics cannot be deleted: delete.topic.enable is false")
        code = errors.TOPIC_DELETION_DISABLED if context.version >= DISABLED_SINCE else errors.INVALID_REQUEST
        return (yield from refuse_all(request, context.version, code))
    if request.timeout_ms <= 0:
        return (yield from refuse_all(request, context.version, errors.REQUEST_TIMED_OUT))
    rights = None if broker.authorizer is None else Rights(broker, broker.authorizer, context)
    of_zookeeper = broker.config.on_zookeeper
    names = broker.controller.names
    found, refused = yield from sort_out(names, request, context.version, rights, of_zookeeper)
    if not found:
        return (yield from answer(broker, request, context.version, found, {}, refused))
    context.defer()
    broker.controller.delete_topics(
        list(found),
        lambda failures: broker.dispatcher.give(
            context, answer(broker, request, context.version, found, failures, refused)
        ),
    )
    return context


def asked_for(request: DeleteTopicsRequest, version: int) -> Iterator[list[tuple[str | None, bytes]]]:
    """The topics that are asked for, a chunk at a time."""
    if version < IDS_SINCE:
        for names in chunks(request.topic_names):
            yield [(name, NO_ID) for name in names]
    else:
        for topics in chunks(request.topics):
            yield [(topic.name, topic.topic_id) for topic in topics]


def refuse_all(request: DeleteTopicsRequest, version: int, code: int) -> Work[DeleteTopicsResponse]:
    responses: list[Result] = []
    for some in asked_for(request, version):
        responses += [failed(name, topic_id, code, None) for name, topic_id in some]
        yield
    return DeleteTopicsResponse(responses=responses)


def answer(
    broker: Broker,
    request: DeleteTopicsRequest,
    version: int,
    found: dict[bytes, str],
    failures: dict[bytes, KafkaError],
    refused: list[Result],
) -> Work[DeleteTopicsResponse]:
    responses = []
    for topic_id, name in found.items():
        error = failures.get(topic_id)
        code, text = (errors.NONE, None) if error is None else (error.code, error.text)
        if code == errors.UNKNOWN_SERVER_ERROR:
            text = None  # Kafka's list of records is full, or there was an unexpected error
        responses.append(failed(name, topic_id, code, text))
        yield
    responses += refused
    if broker.config.on_zookeeper:
        responses = yield from zookeeper_forms.deleted(asked_for(request, version), responses)
    return DeleteTopicsResponse(responses=responses)


def failed(name: str | None, topic_id: bytes, code: int, text: str | None) -> Result:
    return Result(name=name, topic_id=topic_id, error_code=code, error_message=text)


class Rights:
    """What the client may do to topics, if there is an authorizer. (The short cut by the cluster is that of controllers
    of KRaft, and not of brokers on ZooKeeper.)"""

    def __init__(self, broker: Broker, authorizer: Authorizer, context: Context) -> None:
        self._permits = Permits(authorizer, context)
        self._deletes_first = broker.config.on_zookeeper
        self._all = broker.cluster is None and self._permits.show(DELETE, CLUSTER)

    def may_describe(self, name: str) -> bool:
        return self._all or self._permits.allow(DESCRIBE, TOPIC, name)

    def may_ask_for(self, name: str) -> bool:
        """Whether it may hear if there is a topic of this name."""
        return self.may_delete(name) if self._deletes_first else self.may_describe(name)

    def may_delete(self, name: str) -> bool:
        return self._all or self._permits.allow(DELETE, TOPIC, name)


def sort_out(
    topics: Names,
    request: DeleteTopicsRequest,
    version: int,
    rights: Rights | None = None,
    may_repeat: bool = False,
) -> Work[tuple[dict[bytes, str], list[Result]]]:
    """The topics to delete, and answers for those that cannot be deleted. `may_repeat`: the request a topic."""
    refused: list[Result] = []
    names: dict[str, int] = {}  # and how often, where that matters
    ids: dict[bytes, int] = {}
    for some in asked_for(request, version):
        for name, topic_id in some:
            if name is None and topic_id == NO_ID:
                text = "Neither topic name nor id were specified."
                refused.append(failed(name, topic_id, errors.INVALID_REQUEST, text))
            elif name is None:
                ids[topic_id] = 1 if may_repeat else ids.get(topic_id, 0) + 1
            elif topic_id == NO_ID:
                names[name] = 1 if may_repeat else names.get(name, 0) + 1
            else:
                text = "You may not specify both topic name and topic id."
                refused.append(failed(name, topic_id, errors.INVALID_REQUEST, text))
        yield
    found = yield from sort_out_ids(topics, ids, refused, rights)
    by_both = yield from sort_out_names(topics, names, ids, found, refused, rights)
    for topic_id in by_both:
        found.pop(topic_id, None)
    return found, refused


def denied(name: str | None, topic_id: bytes) -> Result:
    code = errors.TOPIC_AUTHORIZATION_FAILED
    return failed(name, topic_id, code, errors.MESSAGES[code])


def sort_out_ids(
    topics: Names, ids: dict[bytes, int], refused: list[Result], rights: Rights | None
) -> Work[dict[bytes, str]]:
    found: dict[bytes, str] = {}
    for topic_id, count in ids.items():
        known = topics.name_of(topic_id)
        if count > 1:
            refused.append(failed(None, topic_id, errors.INVALID_REQUEST, "Duplicate topic id."))
        elif known is None:
            code = errors.UNKNOWN_TOPIC_ID
            refused.append(failed(None, topic_id, code, errors.MESSAGES[code]))
        elif rights is not None and not rights.may_delete(known):
            refused.append(denied(known if rights.may_describe(known) else None, topic_id))
        else:
            found[topic_id] = known
        yield
    return found


def sort_out_names(
    topics: Names,
    names: dict[str, int],
    ids: dict[bytes, int],
    found: dict[bytes, str],
    refused: list[Result],
    rights: Rights | None,
) -> Work[set[bytes]]:
    """Add topics that are named by name to `found`; returns the ids of those that are named by id as well."""
    by_both: set[bytes] = set()
    for name, count in names.items():
        known = topics.id_of(name)
        if count > 1:
            refused.append(failed(name, NO_ID, errors.INVALID_REQUEST, "Duplicate topic name."))
        elif rights is not None and not rights.may_ask_for(name):
            refused.append(denied(name, NO_ID))
        elif known is None:
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(failed(name, NO_ID, code, errors.MESSAGES[code]))
        elif rights is not None and not rights.may_delete(name):
            refused.append(denied(name, NO_ID))
        elif known in ids:
            text = "The provided topic name maps to an ID that was already supplied."
            refused.append(failed(name, known, errors.INVALID_REQUEST, text))
            by_both.add(known)
        else:
            found[known] = name
        yield
    return by_both
