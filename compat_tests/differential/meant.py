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


def is_same_member(pair: Pair, ours: Any, theirs: Any) -> bool:
    same = ours == theirs or pair.ours.member_name(ours) == pair.theirs.member_name(theirs)
    return bool(same or is_made_id(pair, ours, theirs))


def is_made_id(pair: Pair, ours: Any, theirs: Any) -> bool:
    """Kafka's own form of UUIDs, which ids of consumer groups' members have."""
    return bool(ours and theirs and len(ours) == len(theirs) == 22)


def is_hash(pair: Pair, ours: Any, theirs: Any) -> bool:
    """That it is the right one is shown where the ids are known: test_consumer_group_records."""
    return (ours == 0) == (theirs == 0)


def is_path(pair: Pair, ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs or (ours.startswith("/") and theirs.startswith("/")))


def is_documentation(pair: Pair, ours: Any, theirs: Any) -> bool:
    """Both say what a key is for, each in its own words; or neither does."""
    return bool(ours) == bool(theirs) and (bool(ours) or ours == theirs)


HOST = Rule("where it listens", is_host)
PORT = Rule("where it listens", is_port)
CLUSTER = Rule("each cluster has its own id", is_cluster_id)
TOPIC = Rule("topic ids are random; they must mean the same topic", is_same_topic)
APPEND_TIME = Rule("the broker's clock", is_same_time)
PRODUCER = Rule("producer ids are handed out in blocks", is_identifier)
SESSION = Rule("session ids are random", is_session)
MEMBER = Rule("member ids end in a random UUID; they must be the same member's", is_same_member)

ROOM = Rule("what their disks have", is_identifier)
QUORUM = Rule("how far their metadata logs are", is_identifier)

RULES: dict[str, Rule] = {
    "DescribeLogDirsResponse.results[].log_dir": Rule("where their data lies", is_path),
    "DescribeLogDirsResponse.results[].total_bytes": ROOM,
    "DescribeLogDirsResponse.results[].usable_bytes": ROOM,
    "DescribeQuorumResponse.topics[].partitions[].leader_epoch": QUORUM,
    "DescribeQuorumResponse.topics[].partitions[].high_watermark": QUORUM,
    "DescribeQuorumResponse.topics[].partitions[].current_voters[].log_end_offset": QUORUM,
    "DescribeQuorumResponse.topics[].partitions[].current_voters[].last_fetch_timestamp": APPEND_TIME,
    "DescribeQuorumResponse.topics[].partitions[].current_voters[].last_caught_up_timestamp": APPEND_TIME,
    "DescribeQuorumResponse.nodes[].listeners[].name": Rule(
        "pykafkad has no listener for controllers and shows those it has",
        lambda _, ours, theirs: bool(ours and theirs),
    ),
    "DescribeQuorumResponse.nodes[].listeners[].host": HOST,
    "DescribeQuorumResponse.nodes[].listeners[].port": PORT,
    "JoinGroupResponse.member_id": MEMBER,
    "JoinGroupResponse.leader": MEMBER,
    "JoinGroupResponse.members[].member_id": MEMBER,
    "LeaveGroupResponse.members[].member_id": MEMBER,
    "DescribeGroupsResponse.groups[].members[].member_id": MEMBER,
    "GroupMetadataValue.leader": MEMBER,
    "GroupMetadataValue.members[].member_id": MEMBER,
    "GroupMetadataValue.current_state_timestamp": APPEND_TIME,
    "ConsumerGroupHeartbeatResponse.member_id": MEMBER,
    "ConsumerGroupDescribeResponse.groups[].members[].member_id": MEMBER,
    "ConsumerGroupMemberMetadataKey.member_id": MEMBER,
    "ConsumerGroupCurrentMemberAssignmentKey.member_id": MEMBER,
    "ConsumerGroupTargetAssignmentMemberKey.member_id": MEMBER,
    "ConsumerGroupHeartbeatResponse.assignment.topic_partitions[].topic_id": TOPIC,
    "ConsumerGroupDescribeResponse.groups[].members[].assignment.topic_partitions[].topic_id": TOPIC,
    "ConsumerGroupDescribeResponse.groups[].members[].target_assignment.topic_partitions[].topic_id": TOPIC,
    "ConsumerGroupMetadataValue.metadata_hash": Rule("a hash of topic ids, which are random", is_hash),
    "ConsumerGroupTargetAssignmentMetadataValue.assignment_timestamp": APPEND_TIME,
    "ConsumerGroupTargetAssignmentMemberValue.topic_partitions[].topic_id": TOPIC,
    "ConsumerGroupCurrentMemberAssignmentValue.assigned_partitions[].topic_id": TOPIC,
    "ConsumerGroupCurrentMemberAssignmentValue.partitions_pending_revocation[].topic_id": TOPIC,
    "ConsumerGroupRegularExpressionValue.version": Rule("how far their metadata logs are", is_identifier),
    "ConsumerGroupRegularExpressionValue.timestamp": APPEND_TIME,
    "OffsetCommitResponse.topics[].topic_id": TOPIC,
    "OffsetFetchResponse.groups[].topics[].topic_id": TOPIC,
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
    "DescribeConfigsResponse.results[].configs[].documentation": Rule(
        "what a config is for is said in our own words", is_documentation
    ),
    "ListOffsetsResponse.topics[].partitions[].timestamp": APPEND_TIME,
    "ApiVersionsResponse.finalized_features_epoch": Rule(
        "the offset of the metadata log that the features were read at", is_identifier
    ),
}


def by_topic(side: Side, entry: Any) -> str:
    return side.topic_name(entry.topic_id)


def by_itself(side: Side, entry: Any) -> Any:
    return entry


def entity_name(entry: Any) -> str:
    return str(sorted((part.entity_type, str(part.entity_name)) for part in entry.entity))


UNORDERED: dict[str, Callable[[Side, Any], Any]] = {
    "CreatePartitionsResponse.results": lambda _, topic: topic.name,
    "DeleteRecordsResponse.topics": lambda _, topic: topic.name,
    "DeleteRecordsResponse.topics[].partitions": lambda _, part: part.partition_index,
    "DescribeLogDirsResponse.results[].topics": lambda _, topic: topic.name,
    "DescribeLogDirsResponse.results[].topics[].partitions": lambda _, part: part.partition_index,
    "AlterReplicaLogDirsResponse.results": lambda _, topic: topic.topic_name,
    "AlterReplicaLogDirsResponse.results[].partitions": lambda _, part: part.partition_index,
    "ElectLeadersResponse.replica_election_results": lambda _, topic: topic.topic,
    "DescribeProducersResponse.topics[].partitions[].active_producers": lambda _, one: one.producer_id,
    "DescribeUserScramCredentialsResponse.results": lambda _, result: result.user,
    "JoinGroupResponse.members": lambda side, member: side.member_name(member.member_id),
    "ConsumerGroupHeartbeatResponse.assignment.topic_partitions": by_topic,
    "ConsumerGroupHeartbeatResponse.assignment.topic_partitions[].partitions": by_itself,
    "ConsumerGroupDescribeResponse.groups[].members": lambda side, member: side.member_name(member.member_id),
    "ConsumerGroupDescribeResponse.groups[].members[].subscribed_topic_names": lambda _, name: name,
    "ConsumerGroupDescribeResponse.groups[].members[].assignment.topic_partitions": by_topic,
    "ConsumerGroupDescribeResponse.groups[].members[].assignment.topic_partitions[].partitions": by_itself,
    "ConsumerGroupDescribeResponse.groups[].members[].target_assignment.topic_partitions": by_topic,
    "ConsumerGroupTargetAssignmentMemberValue.topic_partitions": by_topic,
    "ConsumerGroupTargetAssignmentMemberValue.topic_partitions[].partitions": by_itself,
    "ConsumerGroupCurrentMemberAssignmentValue.assigned_partitions": by_topic,
    "ConsumerGroupCurrentMemberAssignmentValue.partitions_pending_revocation": by_topic,
    "DescribeGroupsResponse.groups": lambda _, group: group.group_id,
    "DescribeGroupsResponse.groups[].members": lambda side, member: side.member_name(member.member_id),
    "GroupMetadataValue.members": lambda side, member: side.member_name(member.member_id),
    "ProduceResponse.responses": lambda side, topic: (topic.name, side.topic_name(topic.topic_id)),
    "ProduceResponse.responses[].partition_responses": lambda _, part: (part.index, part.error_code),
    "ListOffsetsResponse.topics": lambda _, topic: topic.name,
    "ListOffsetsResponse.topics[].partitions": lambda _, part: part.partition_index,
    "MetadataResponse.topics": lambda _, topic: (topic.name or "", topic.error_code),
    "CreateTopicsResponse.topics": lambda _, topic: topic.name,
    "DescribeConfigsResponse.results[].configs": lambda _, config: config.name,
    "ListConfigResourcesResponse.config_resources": lambda _, each: (each.resource_type, each.resource_name),
    "AlterClientQuotasResponse.entries": lambda _, entry: entity_name(entry),
    "AlterClientQuotasResponse.entries[].entity": lambda _, part: part.entity_type,
    "DescribeClientQuotasResponse.entries": lambda _, entry: entity_name(entry),
    "DescribeClientQuotasResponse.entries[].entity": lambda _, part: part.entity_type,
    "DescribeClientQuotasResponse.entries[].values": lambda _, value: value.key,
    "GetTelemetrySubscriptionsResponse.requested_metrics": lambda _, name: name,
    "ListGroupsResponse.groups": lambda _, group: group.group_id,
    "DeleteGroupsResponse.results": lambda _, group: group.group_id,
    "OffsetFetchResponse.topics": lambda _, topic: topic.name,
    "OffsetFetchResponse.topics[].partitions": lambda _, part: part.partition_index,
    "OffsetFetchResponse.groups[].topics[].partitions": lambda _, part: part.partition_index,
    "OffsetFetchResponse.groups[].topics": lambda side, topic: topic.name or side.topic_name(topic.topic_id),
    "DeleteTopicsResponse.responses": lambda _, topic: (topic.name or "", topic.error_code),
    "ApiVersionsResponse.supported_features": lambda _, feature: feature.name,
    "ApiVersionsResponse.finalized_features": lambda _, feature: feature.name,
}

LATER = {
    "transactions": "no coordinator for transactional ids: InitProducerId and FindCoordinator refuse them",
    "share groups": "no coordinator for share partitions: FindCoordinator says so in words of its own",
}

SERVED = frozenset(
    {
        0,
        1,
        2,
        3,
        10,
        11,
        12,
        13,
        14,
        15,
        18,
        19,
        20,
        22,
        23,
        60,
        68,
        69,
        75,
        21,
        34,
        35,
        37,
        43,
        45,
        46,
        55,
        57,
        61,
        64,
        80,
        81,
    }
)


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
