"""OffsetCommit and OffsetFetch, version 0: offsets that consumers of before Kafka 0.8.2 keep in ZooKeeper.

Nobody coordinates their groups: each offset is a znode of its own, and nothing else is kept with it.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.handlers.permits import Permits
from pykafkad.handlers.pieces import pieces
from pykafkad.messages import OffsetCommitResponse, OffsetFetchResponse
from pykafkad.pure import java
from pykafkad.pure.authorization import DESCRIBE, GROUP, READ, TOPIC
from pykafkad.slices import Wait
from pykafkad.zookeeper import client as zk
from pykafkad.zookeeper import znodes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import OffsetCommitRequest, OffsetFetchRequest
    from pykafkad.slices import Work

    Committing = OffsetCommitRequest.OffsetCommitRequestPartition

NO_OFFSET = -1
CommittedTopic = OffsetCommitResponse.OffsetCommitResponseTopic
Committed = OffsetCommitResponse.OffsetCommitResponsePartition
FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopic
Fetched = OffsetFetchResponse.OffsetFetchResponsePartition


# -- commit


def commit(broker: Broker, request: OffsetCommitRequest, context: Context) -> Work[OffsetCommitResponse]:
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    topics = []
    for topic in request.topics:
        allowed = permits is None or permits.allow(READ, TOPIC, topic.name)
        answers: list[Committed] = []
        for some in pieces(topic.partitions):
            found = [committed(broker, request.group_id, topic.name, item, allowed=allowed) for item in some]
            codes = iter((yield from written(broker, [each for each in found if not isinstance(each, int)])))
            for item, each in zip(some, found, strict=True):
                code = each if isinstance(each, int) else next(codes)
                answers.append(Committed(partition_index=item.partition_index, error_code=code))
            yield
        topics.append(CommittedTopic(name=topic.name, partitions=answers))
    return OffsetCommitResponse(topics=topics)


def committed(broker: Broker, group: str, topic: str, item: Committing, *, allowed: bool) -> zk.SetData | int:
    """What is to be written, or why not."""
    if not allowed:
        return errors.TOPIC_AUTHORIZATION_FAILED
    try:
        path = path_of(broker, group, topic, item.partition_index)
    except KafkaError as error:
        return error.code
    if len(item.committed_metadata or "") > broker.config["offset.metadata.max.bytes"]:
        return errors.OFFSET_METADATA_TOO_LARGE
    return zk.SetData(path, b"%d" % item.committed_offset)


def written(broker: Broker, writes: list[zk.SetData]) -> Work[list[int]]:
    """The error code of each. What is not there yet is made, with all that is above it."""
    results = yield from asked(broker, writes)
    missing = [write for write, result in zip(writes, results, strict=True) if result.error == zk.NO_NODE]
    if missing:
        above = {path: None for write in missing for path in znodes.parents(write.path)[:-1]}
        yield from asked(broker, [zk.Create(path) for path in above])  # those that are there stay as they are
        # One that another has made meanwhile is written over, as in Kafka's own second try.
        yield from asked(broker, [zk.Create(write.path) for write in missing])
        again = iter((yield from asked(broker, missing)))
        results = [next(again) if result.error == zk.NO_NODE else result for result in results]
    return [errors.UNKNOWN_SERVER_ERROR if result.error else errors.NONE for result in results]


# -- fetch


def fetch(broker: Broker, request: OffsetFetchRequest, context: Context) -> Work[OffsetFetchResponse]:
    permits = None if broker.authorizer is None else Permits(broker.authorizer, context)
    group = request.group_id
    refusal = errors.NONE
    if permits is not None and not permits.allow(DESCRIBE, GROUP, group):
        refusal = errors.GROUP_AUTHORIZATION_FAILED
    topics = []
    for topic in request.topics or ():
        code = refusal
        if not code and permits is not None and not permits.allow(DESCRIBE, TOPIC, topic.name):
            code = errors.TOPIC_AUTHORIZATION_FAILED
        answers: list[Fetched] = []
        for some in pieces(topic.partition_indexes):
            if code:
                answers += [fetched(index, code) for index in some]
            else:
                answers += yield from read(broker, group, topic.name, some)
            yield
        topics.append(FetchedTopic(name=topic.name, partitions=answers))
    return OffsetFetchResponse(topics=topics)


def read(broker: Broker, group: str, topic: str, indexes: Sequence[int]) -> Work[list[Fetched]]:
    answers = {}
    paths = {}
    for index in indexes:
        try:
            paths[index] = path_of(broker, group, topic, index)
        except KafkaError as error:
            answers[index] = fetched(index, error.code)
    results = yield from asked(broker, [zk.GetData(path) for path in paths.values()])
    for index, result in zip(paths, results, strict=True):
        answers[index] = offset_in(index, result)
    return [answers[index] for index in indexes]


def offset_in(index: int, result: zk.Result) -> Fetched:
    if result.error == zk.NO_NODE or (not result.error and result.data is None):
        return fetched(index, errors.UNKNOWN_TOPIC_OR_PARTITION)
    try:
        offset = java.parse_long((result.data or b"").decode("utf-8", "replace"))
    except ValueError:  # nobody's number; or it could not be read
        return fetched(index, errors.UNKNOWN_SERVER_ERROR)
    return fetched(index, errors.NONE, offset)


def fetched(index: int, code: int, offset: int = NO_OFFSET) -> Fetched:
    return Fetched(partition_index=index, committed_offset=offset, metadata="", error_code=code)


# -- both


def path_of(broker: Broker, group: str, topic: str, index: int) -> str:
    """The znode, if the partition exists, and the group's name can be a part of a path."""
    known = broker.image.topics.get(topic)
    if known is None or not 0 <= index < len(known.partitions):
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
    if not all(part.isprintable() and part not in ("", ".", "..") for part in group.split("/")):
        raise KafkaError(errors.UNKNOWN_SERVER_ERROR)
    return znodes.consumer_offset(group, topic, index)


def asked(broker: Broker, operations: Sequence[zk.Operation]) -> Work[list[zk.Result]]:
    if not operations:
        return []
    assert broker.cluster is not None
    wait = Wait()
    broker.cluster.zookeeper.submit(operations, wait.come)
    results: list[zk.Result] = yield from wait.result()
    return results
