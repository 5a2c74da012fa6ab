"""Fetch (key 1), versions 4 to 18, in a cluster on ZooKeeper from 0 on (old_fetches.py): sessions (KIP-227), leader
epochs and divergence (KIP-320, 595), topic ids (KIP-516).

Records are not read here: an answer names file ranges, which the loop sends from the page cache. A fetch that finds
less than min_bytes waits, without polling, until one of its partitions advances, and is then read again. Fetches of
followers, and what else there is in a cluster alone, are in cluster_fetching.py. Missing: remote replicas.
"""

from __future__ import annotations

from functools import cache
from types import GeneratorType

from pykafkad import errors
from pykafkad.handlers.fetching import (
    FEW,
    READ_COMMITTED,
    TOPIC_IDS_SINCE,
    Fetch,
    FollowersFetch,
    failure,
)
from pykafkad.messages import FetchResponse
from pykafkad.pure import fetch_session
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, READ, TOPIC, Need
from pykafkad.pure.fetch_session import Followed
from pykafkad.slices import begun, chunks, finish
from pykafkad.uuids import ZERO as NO_TOPIC_ID

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import FetchRequest
    from pykafkad.pure.fetch_session import Decision, Key, Session
    from pykafkad.slices import OrWork

    Answer = FetchResponse | Context
    Reading = Generator[None, None, Answer]

ERROR_SINCE = 7
REPLICA_STATE_SINCE = 15
ISOLATION_LEVELS = (0, READ_COMMITTED)

SESSION_ERRORS = {
    fetch_session.NOT_FOUND: errors.FETCH_SESSION_ID_NOT_FOUND,
    fetch_session.WRONG_EPOCH: errors.INVALID_FETCH_SESSION_EPOCH,
    fetch_session.TOPIC_ID_MISMATCH: errors.FETCH_SESSION_TOPIC_ID_ERROR,
}

TopicResponse = FetchResponse.FetchableTopicResponse


def is_follower(request: FetchRequest) -> bool:
    """A broker says so, by its id: up to version 14 in one place, then in another."""
    return request.replica_id >= 0 or request.replica_state.replica_id >= 0


needs = (
    Need(CLUSTER_ACTION, CLUSTER, by_handler=True),
    Need(READ, TOPIC, by_handler=True),  # of all that the session has
)


def handle(broker: Broker, request: FetchRequest, context: Context) -> OrWork[Answer]:
    if broker.cluster is not None:
        return in_cluster(broker, request, context)
    if is_large(request):
        return in_slices(broker, request, context)
    return small(broker, request, context)


def handle_guarded(broker: Broker, request: FetchRequest, context: Context) -> OrWork[Answer]:
    """Where there is an authorizer."""
    from pykafkad.handlers.fetching_guarded import guarded_kind

    kind: Any = FollowersFetch if is_follower(request) else Fetch
    if broker.cluster is not None:
        kind = kinds_in_cluster()(request, context.version)
    way = in_slices if is_large(request) else small
    result: Any = way(broker, request, context, guarded_kind(kind))
    answer: OrWork[Answer] = begun(result) if type(result) is GeneratorType else result
    return answer


def small(
    broker: Broker, request: FetchRequest, context: Context, kind: type[Fetch] | None = None
) -> OrWork[Answer]:
    uses_topic_ids = context.version >= TOPIC_IDS_SINCE
    if makes_no_sense(request, request.topics, uses_topic_ids):
        return finish(failed_as_a_whole(request, context.version))
    asked: dict[Key, Followed] = {}
    for topic in request.topics:
        name = topic.topic_id if uses_topic_ids else topic.topic
        note(asked, name, topic.partitions)
    decision = broker.fetch_sessions.decide(
        request.session_id, request.session_epoch, uses_topic_ids=uses_topic_ids
    )
    session = decision.session
    if session is not None:
        for each in asked.values():
            session.follow(each)
        if request.forgotten_topics_data:
            finish(forget(session, request, uses_topic_ids))
    return decided(broker, request, context, asked, decision, kind)


@cache
def kinds_in_cluster() -> Callable[[FetchRequest, int], type[Fetch]]:
    """A single node does not load them, and a follower's fetch is too short for an import."""
    from pykafkad.handlers.cluster_fetching import kind_of

    return kind_of


def is_large(request: FetchRequest) -> bool:
    topics, forgotten = request.topics, request.forgotten_topics_data
    if len(topics) + len(forgotten) > FEW:
        return True
    for topic in topics:
        if len(topic.partitions) > FEW:
            return True
    return any(len(topic.partitions) > FEW for topic in forgotten) if forgotten else False


def in_cluster(broker: Broker, request: FetchRequest, context: Context) -> OrWork[Answer]:
    """Sessions of followers are long, and what they ask is short: some steps are taken at once."""
    way = in_slices if is_large(request) else small
    result: Any = way(broker, request, context, kinds_in_cluster()(request, context.version))
    answer: OrWork[Answer] = begun(result) if type(result) is GeneratorType else result
    return answer


def in_slices(
    broker: Broker, request: FetchRequest, context: Context, kind: type[Fetch] | None = None
) -> Reading:
    """The same as `handle` for a request with many topics or partitions, a piece at a time."""
    uses_topic_ids = context.version >= TOPIC_IDS_SINCE
    asked: dict[Key, Followed] = {}
    for start in range(0, len(request.topics), FEW):
        topics = request.topics[start : start + FEW]
        if makes_no_sense(request, topics, uses_topic_ids):
            return (yield from failed_as_a_whole(request, context.version))
        for topic in topics:
            name = topic.topic_id if uses_topic_ids else topic.topic
            for first in range(0, len(topic.partitions), FEW):
                note(asked, name, topic.partitions[first : first + FEW])
                yield
        yield
    sessions = broker.fetch_sessions
    decision = sessions.decide(request.session_id, request.session_epoch, uses_topic_ids=uses_topic_ids)
    if decision.session is not None:
        yield from update(decision.session, request, asked, uses_topic_ids)
    result: Any = decided(broker, request, context, asked, decision, kind)
    answer: Answer = (yield from result) if type(result) is GeneratorType else result
    return answer


def decided(
    broker: Broker,
    request: FetchRequest,
    context: Context,
    asked: dict[Key, Followed],
    decision: Decision,
    kind: type[Fetch] | None = None,
) -> OrWork[Answer]:
    """The answer, or the context if it will be answered later, or a generator that returns one of these."""
    if decision.kind in SESSION_ERRORS:
        return FetchResponse(error_code=SESSION_ERRORS[decision.kind])
    followed = broker.fetch_sessions.settle(decision, asked, broker.clock.monotonic_ms())
    if kind is None:
        replica = request.replica_state if context.version >= REPLICA_STATE_SINCE else request
        kind = FollowersFetch if replica.replica_id >= 0 else Fetch
    fetch = kind(broker, request, context, decision, asked, followed)
    return fetch.at_once() if len(followed) <= FEW else fetch.in_slices()


def makes_no_sense(
    request: FetchRequest, topics: list[FetchRequest.FetchTopic], uses_topic_ids: bool
) -> bool:
    if request.isolation_level not in ISOLATION_LEVELS:
        return True
    if uses_topic_ids:
        for topic in topics:
            if topic.topic_id == NO_TOPIC_ID:
                return True
    return False


def note(asked: dict[Key, Followed], name: object, items: list[FetchRequest.FetchPartition]) -> None:
    """Note the partitions that are asked for. If one is named twice, its last entry counts."""
    for item in items:
        asked[name, item.partition] = Followed(
            name,
            item.partition,
            item.fetch_offset,
            item.partition_max_bytes,
            max(item.current_leader_epoch, -1),
            item.last_fetched_epoch,
            item.log_start_offset,
        )


def update(
    session: Session, request: FetchRequest, asked: dict[Key, Followed], uses_topic_ids: bool
) -> Generator[None, None, None]:
    """Apply the request's changes to the partitions that the session follows."""
    for steps, each in enumerate(asked.values(), 1):
        session.follow(each)
        if not steps % FEW:
            yield
    yield from forget(session, request, uses_topic_ids)


def forget(session: Session, request: FetchRequest, uses_topic_ids: bool) -> Generator[None, None, None]:
    for topic in request.forgotten_topics_data:
        name = topic.topic_id if uses_topic_ids else topic.topic
        for steps, index in enumerate(topic.partitions):
            session.forget((name, index))
            if not steps % FEW:
                yield
        yield


def failed_as_a_whole(request: FetchRequest, version: int) -> Generator[None, None, FetchResponse]:
    """What Kafka answers to a request that it cannot make sense of."""
    code = errors.UNKNOWN_SERVER_ERROR
    if version >= TOPIC_IDS_SINCE:
        return FetchResponse(error_code=code)
    response = FetchResponse(error_code=code if version >= ERROR_SINCE else errors.NONE)
    for topic in request.topics:
        rows: list[FetchResponse.PartitionData] = []
        for some in chunks(topic.partitions):
            rows += [failure(item.partition, code) for item in some]
            yield
        response.responses.append(TopicResponse(topic=topic.topic, partitions=rows))
        yield
    return response
