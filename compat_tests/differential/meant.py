"""The differences that are meant, by name. Everything that is not here must be equal.

LATER      what is not served yet: tests leave it out, and must take it in when it is
RULES      a field whose values may differ, and of what kind both must still be
UNORDERED  lists that Kafka gives in the order of a hash map, and what they are sorted by for comparison
LEFT_OUT   list entries that only one of the two has, and why
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from compat_tests.differential.pair import Pair, Side

NO_UUID = bytes(16)
CLOSE_MS = 60_000
LONG_NUMBER = re.compile(r"(-?\d{12,})")


class Rule(NamedTuple):
    why: str
    accepts: Callable[[Pair, Any, Any], bool]


def is_host(pair: Pair, ours: Any, theirs: Any) -> bool:
    return all(isinstance(host, str) and (host != "") == (theirs != "") for host in (ours, theirs))


def is_port(pair: Pair, ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs or (0 < ours < 65536 and 0 < theirs < 65536))


def is_cluster_id(pair: Pair, ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs if not theirs else isinstance(ours, str) and len(ours) == len(theirs))


def is_same_topic(pair: Pair, ours: Any, theirs: Any) -> bool:
    """Both zero, or both the id of the topic with one name, or both an id that neither knows."""
    return pair.ours.topic_name(ours) == pair.theirs.topic_name(theirs)


def is_new_topic(pair: Pair, ours: Any, theirs: Any) -> bool:
    return bool((ours == NO_UUID) == (theirs == NO_UUID))


def is_same_time(pair: Pair, ours: Any, theirs: Any) -> bool:
    now_ms = time.time() * 1000
    return bool(ours == theirs or (abs(ours - now_ms) < CLOSE_MS and abs(theirs - now_ms) < CLOSE_MS))


def is_identifier(pair: Pair, ours: Any, theirs: Any) -> bool:
    """Both an id (0 or more), or both the same number that stands for none."""
    return bool(ours == theirs or (ours >= 0 and theirs >= 0))


def is_session(pair: Pair, ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs or (ours > 0 and theirs > 0))


HOST = Rule("where it listens", is_host)
PORT = Rule("where it listens", is_port)
CLUSTER = Rule("each cluster has its own id", is_cluster_id)
TOPIC = Rule("topic ids are random; they must mean the same topic", is_same_topic)
APPEND_TIME = Rule("the broker's clock", is_same_time)
PRODUCER = Rule("producer ids are handed out in blocks", is_identifier)
SESSION = Rule("session ids are random", is_session)

RULES: dict[str, Rule] = {
    "MetadataResponse.brokers[].host": HOST,
    "MetadataResponse.brokers[].port": PORT,
    "MetadataResponse.cluster_id": CLUSTER,
    "MetadataResponse.topics[].topic_id": TOPIC,
    "DescribeClusterResponse.brokers[].host": HOST,
    "DescribeClusterResponse.brokers[].port": PORT,
    "DescribeClusterResponse.cluster_id": CLUSTER,
    "DescribeTopicPartitionsResponse.topics[].topic_id": TOPIC,
    "FindCoordinatorResponse.host": HOST,
    "FindCoordinatorResponse.port": PORT,
    "FindCoordinatorResponse.coordinators[].host": HOST,
    "FindCoordinatorResponse.coordinators[].port": PORT,
    "CreateTopicsResponse.topics[].topic_id": Rule("topic ids are random", is_new_topic),
    "DeleteTopicsResponse.responses[].topic_id": TOPIC,
    "ProduceResponse.responses[].topic_id": TOPIC,
    "ProduceResponse.responses[].partition_responses[].log_append_time_ms": APPEND_TIME,
    "ProduceResponse.node_endpoints[].host": HOST,
    "ProduceResponse.node_endpoints[].port": PORT,
    "FetchResponse.responses[].topic_id": TOPIC,
    "FetchResponse.session_id": SESSION,
    "FetchResponse.node_endpoints[].host": HOST,
    "FetchResponse.node_endpoints[].port": PORT,
    "InitProducerIdResponse.producer_id": PRODUCER,
    "ListOffsetsResponse.topics[].partitions[].timestamp": APPEND_TIME,
    "ApiVersionsResponse.finalized_features_epoch": Rule(
        "the offset of the metadata log that the features were read at", is_identifier
    ),
}

UNORDERED: dict[str, Callable[[Side, Any], Any]] = {
    "ProduceResponse.responses": lambda side, topic: (topic.name, side.topic_name(topic.topic_id)),
    "ProduceResponse.responses[].partition_responses": lambda _, part: (part.index, part.error_code),
    "ListOffsetsResponse.topics": lambda _, topic: topic.name,
    "ListOffsetsResponse.topics[].partitions": lambda _, part: part.partition_index,
    "MetadataResponse.topics": lambda _, topic: (topic.name or "", topic.error_code),
    "CreateTopicsResponse.topics": lambda _, topic: topic.name,
    "DeleteTopicsResponse.responses": lambda _, topic: (topic.name or "", topic.error_code),
    "ApiVersionsResponse.supported_features": lambda _, feature: feature.name,
    "ApiVersionsResponse.finalized_features": lambda _, feature: feature.name,
}

LATER = {
    "transactions": "no coordinator for transactional ids: InitProducerId and FindCoordinator refuse them",
    "share groups": "no coordinator for share partitions: FindCoordinator says so in words of its own",
}

SERVED = frozenset({0, 1, 2, 3, 10, 18, 19, 20, 22, 23, 60, 75})


def apis_served(ours: list[Any], theirs: list[Any]) -> tuple[list[Any], list[Any]]:
    """APIs that come with later issues are not advertised; each that is must have Kafka's versions."""
    mine = {row.api_key for row in ours}
    return ours, [row for row in theirs if row.api_key in mine | SERVED]


LEFT_OUT: dict[str, Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]] = {
    "ApiVersionsResponse.api_keys": apis_served,
}


def same_text(ours: str, theirs: str) -> bool:
    """Texts may have the broker's clock in them: long numbers may differ by as much as the clocks do."""
    mine, other = LONG_NUMBER.split(ours), LONG_NUMBER.split(theirs)
    if len(mine) != len(other) or mine[::2] != other[::2]:
        return False
    numbers = zip(map(int, mine[1::2]), map(int, other[1::2]), strict=True)
    return all(abs(one - two) < CLOSE_MS for one, two in numbers)
