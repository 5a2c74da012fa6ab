"""Answers about topics in the forms of a controller on ZooKeeper, where they are not those of KRaft's.

Who is not the controller says so of every topic before it looks at what was asked. A controller answers in the order of
the request, each topic as often as it was named, and has fewer texts.
"""

from __future__ import annotations

from collections import Counter

from pykafkad import errors
from pykafkad.cluster import topic_names
from pykafkad.pure.authorization import DESCRIBE_CONFIGS, TOPIC
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from pykafkad.handlers.broker import Broker
    from pykafkad.handlers.permits import Permits
    from pykafkad.messages import CreateTopicsRequest, CreateTopicsResponse, DeleteTopicsResponse
    from pykafkad.slices import Work

    TopicResult = CreateTopicsResponse.CreatableTopicResult
    DeletedResult = DeleteTopicsResponse.DeletableTopicResult

TWICE_CREATED = "Found multiple entries for this topic."
TWICE_GROWN = "Duplicate topic in request."
GROWTH_DENIED = "The topic authorization is failed."


def is_another_controller(broker: Broker) -> bool:
    """Whether this is a broker on ZooKeeper, and not its controller."""
    return (
        broker.config.on_zookeeper and broker.cluster is not None and not broker.cluster.controlling.is_active
    )


def created(
    request: CreateTopicsRequest, rows: list[TopicResult], permits: Permits | None
) -> Work[list[TopicResult]]:
    """Of those that are denied the configs of a topic that was refused it is said, too."""
    by_name: dict[str, TopicResult] = {}
    for some in chunks(rows):
        by_name.update((row.name, row) for row in some)
        yield
    counts: Counter[str] = Counter()
    for topics in chunks(request.topics):
        counts.update(topic.name for topic in topics)
        yield
    completed = []
    for topic in request.topics:
        row = by_name[topic.name]
        if topic.name != topic_names.CLUSTER_METADATA:
            if counts[topic.name] > 1:
                row.error_message = TWICE_CREATED
            denied = permits is not None and not permits.show(DESCRIBE_CONFIGS, TOPIC, topic.name)
            if denied and row.error_code in (errors.INVALID_REQUEST, errors.TOPIC_AUTHORIZATION_FAILED):
                row.topic_config_error_code = errors.TOPIC_AUTHORIZATION_FAILED
        completed.append(row)
        yield
    return completed


def deleted(
    asked: Iterable[list[tuple[str | None, bytes]]], rows: list[DeletedResult]
) -> Work[list[DeletedResult]]:
    """None of the rows has a text, and who is named twice is answered twice."""
    counts: Counter[str | bytes] = Counter()
    for some in asked:
        counts.update(topic_id if name is None else name for name, topic_id in some)
        yield
    completed = []
    for row in rows:
        row.error_message = None
        named = row.name is not None and row.name in counts
        completed += [row] * max(1, counts[row.name or "" if named else row.topic_id])
        yield
    return completed
