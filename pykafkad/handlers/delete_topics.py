"""DeleteTopics (key 20), versions 1 to 6: by name, from version 6 also by id (KIP-516).

Answered when the metadata says so on disk and the logs are renamed; their files go later. What is named
twice is refused, Kafka's way: a topic that is named both by name and by id is deleted by neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.messages import DeleteTopicsResponse

if TYPE_CHECKING:
    from pykafkad.cluster.controller import Controller
    from pykafkad.dispatcher import Context
    from pykafkad.server import Broker


Result = DeleteTopicsResponse.DeletableTopicResult

IDS_SINCE = 6
NO_ID = bytes(16)


def handle(broker: Broker, request: Any, context: Context) -> Any:
    asked = asked_for(request, context.version)
    if not broker.config.delete_topic_enable:
        return refuse_all(
            asked, errors.TOPIC_DELETION_DISABLED if context.version >= 3 else errors.INVALID_REQUEST
        )
    if request.timeout_ms <= 0:
        return refuse_all(asked, errors.REQUEST_TIMED_OUT)
    found, refused = sort_out(broker.controller, asked)
    if not found:
        return DeleteTopicsResponse(responses=refused)
    promise = context.defer()

    def done(error: KafkaError | None) -> None:
        code, text = (errors.NONE, None) if error is None else (error.code, error.text)
        results = [
            Result(name=name, topic_id=topic_id, error_code=code, error_message=text)
            for topic_id, name in found.items()
        ]
        promise.answer(DeleteTopicsResponse(responses=[*results, *refused]))

    broker.controller.delete_topics(list(found), done)
    return promise


def asked_for(request: Any, version: int) -> list[tuple[str | None, bytes]]:
    if version < IDS_SINCE:
        return [(name, NO_ID) for name in request.topic_names]
    return [(topic.name, topic.topic_id) for topic in request.topics]


def refuse_all(asked: list[tuple[str | None, bytes]], code: int) -> Any:
    return DeleteTopicsResponse(responses=[failed(name, topic_id, code, None) for name, topic_id in asked])


def failed(name: str | None, topic_id: bytes, code: int, text: str | None) -> Any:
    return Result(name=name, topic_id=topic_id, error_code=code, error_message=text)


def sort_out(
    controller: Controller, asked: list[tuple[str | None, bytes]]
) -> tuple[dict[bytes, str], list[Any]]:
    """The topics to delete, and answers for what cannot be."""
    refused: list[Any] = []
    names = [name for name, topic_id in asked if name is not None and topic_id == NO_ID]
    ids = [topic_id for name, topic_id in asked if name is None and topic_id != NO_ID]
    for name, topic_id in asked:
        if name is None and topic_id == NO_ID:
            text = "Neither topic name nor id were specified."
            refused.append(failed(name, topic_id, errors.INVALID_REQUEST, text))
        elif name is not None and topic_id != NO_ID:
            text = "You may not specify both topic name and topic id."
            refused.append(failed(name, topic_id, errors.INVALID_REQUEST, text))
    found: dict[bytes, str] = {}
    by_both: set[bytes] = set()
    for topic_id in dict.fromkeys(ids):
        known = controller.name_of(topic_id)
        if ids.count(topic_id) > 1:
            refused.append(failed(None, topic_id, errors.INVALID_REQUEST, "Duplicate topic id."))
        elif known is None:
            code = errors.UNKNOWN_TOPIC_ID
            refused.append(failed(None, topic_id, code, errors.MESSAGES[code]))
        else:
            found[topic_id] = known
    for name in dict.fromkeys(names):
        known_id = controller.id_of(name)
        if names.count(name) > 1:
            refused.append(failed(name, NO_ID, errors.INVALID_REQUEST, "Duplicate topic name."))
        elif known_id is None:
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(failed(name, NO_ID, code, errors.MESSAGES[code]))
        elif known_id in ids:
            text = "The provided topic name maps to an ID that was already supplied."
            refused.append(failed(name, known_id, errors.INVALID_REQUEST, text))
            by_both.add(known_id)
        else:
            found[known_id] = name
    for topic_id in by_both:
        found.pop(topic_id, None)
    return found, refused
