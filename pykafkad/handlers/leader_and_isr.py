"""LeaderAndIsr (key 4), versions 0 to 7: the controller says which partitions this broker leads and follows.

Only in a cluster on ZooKeeper. The answer is sent when all of it is done, and requests of the controller are done one
after the other. Missing: requests of a KRaft controller during a migration (KIP-866).
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.cluster.zookeeper.roles import refused
from pykafkad.messages import LeaderAndIsrResponse
from pykafkad.pure.authorization import CLUSTER, CLUSTER_ACTION, Need
from pykafkad.slices import chunks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.cluster.zookeeper.roles import Codes
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.messages import LeaderAndIsrRequest
    from pykafkad.slices import Work

TOPICS_SINCE = 5

PartitionError = LeaderAndIsrResponse.LeaderAndIsrPartitionError
TopicError = LeaderAndIsrResponse.LeaderAndIsrTopicError

needs = (Need(CLUSTER_ACTION, CLUSTER),)


def handle(broker: Broker, request: LeaderAndIsrRequest, context: Context) -> Context:
    assert broker.cluster is not None
    context.defer()
    broker.cluster.control.obey(
        work(broker, request, context.version), lambda answer: broker.dispatcher.give(context, answer)
    )
    return context


def work(broker: Broker, request: LeaderAndIsrRequest, version: int) -> Work[LeaderAndIsrResponse]:
    assert broker.cluster is not None
    control = broker.cluster.control
    code = control.admit(request)
    if code == errors.NONE:
        codes = yield from control.roles.take(request)
    else:
        codes = refused(request, code)
    return (yield from answer(request, code, codes, version))


def unauthorized(request: LeaderAndIsrRequest, version: int, code: int) -> Work[LeaderAndIsrResponse]:
    return answer(request, code, refused(request, code), version)


def answer(request: LeaderAndIsrRequest, code: int, codes: Codes, version: int) -> Work[LeaderAndIsrResponse]:
    """Up to version 4 the partitions have the names of their topics, then they are below the topics' ids."""
    response = LeaderAndIsrResponse(error_code=code)
    topics: dict[str, TopicError] = {}
    ids = {topic.topic_name: topic.topic_id for topic in request.topic_states}
    for some in chunks(list(codes.items())):
        for (name, index), each in some:
            error = PartitionError(topic_name=name, partition_index=index, error_code=each)
            if version < TOPICS_SINCE:
                response.partition_errors.append(error)
            else:
                topic = topics.setdefault(name, TopicError(topic_id=ids[name]))
                topic.partition_errors.append(error)
        yield
    response.topics = list(topics.values())
    return response
