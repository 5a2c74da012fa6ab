"""The differences that are meant, by name. Everything that is not here must be equal.

LATER      what is not served yet: tests leave it out, and must include it when it is APIS_LATER the APIs among it,
which Kafka advertises RULES      a field whose values may differ, and of what kind both must still be UNORDERED  lists
that Kafka returns in the order of a hash map, and how they are sorted for comparison LEFT_OUT   list entries that only
one of the two has, and why DIFFERENT  requests that the two answer differently, why, and what each answers the rest
what tests of files, batches and records leave out of the comparison
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from pykafkad import errors
from pykafkad.cluster.features import NOT_SERVED
from pykafkad.hot import records

if TYPE_CHECKING:
    from compat_tests.differential.pair import Pair, Side

NO_UUID = bytes(16)
CLOSE_MS = 60_000
# Where the fields of a batch's header begin.
LENGTH, LENGTH_END, CRC, ATTRIBUTES, TIMES, PRODUCER_ID, BATCH_HEADER_BYTES = 8, 12, 17, 21, 27, 43, 61
CONTROL = 0x20  # in the second byte of the attributes
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
    """Both are zero, or the ids of the topic with the same name, or ids that neither broker knows."""
    return pair.ours.topic_name(ours) == pair.theirs.topic_name(theirs)


def is_new_topic(pair: Pair, ours: Any, theirs: Any) -> bool:
    return bool((ours == NO_UUID) == (theirs == NO_UUID))


def is_same_time(pair: Pair, ours: Any, theirs: Any) -> bool:
    now_ms = time.time() * 1000
    return bool(ours == theirs or (abs(ours - now_ms) < CLOSE_MS and abs(theirs - now_ms) < CLOSE_MS))


def is_identifier(pair: Pair, ours: Any, theirs: Any) -> bool:
    """Both are ids (0 or more), or the same number that means none."""
    return bool(ours == theirs or (ours >= 0 and theirs >= 0))


def is_session(pair: Pair, ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs or (ours > 0 and theirs > 0))


def is_same_member(pair: Pair, ours: Any, theirs: Any) -> bool:
    same = ours == theirs or pair.ours.member_name(ours) == pair.theirs.member_name(theirs)
    return bool(same or is_made_id(pair, ours, theirs))


def is_made_id(pair: Pair, ours: Any, theirs: Any) -> bool:
    """Kafka's own form of UUIDs, which the member ids of consumer groups have."""
    return bool(ours and theirs and len(ours) == len(theirs) == 22)


def is_hash(pair: Pair, ours: Any, theirs: Any) -> bool:
    """Whether it is the right one is tested where the ids are known: test_consumer_group_records."""
    return bool((ours == 0) == (theirs == 0))


def is_path(pair: Pair, ours: Any, theirs: Any) -> bool:
    return bool(ours == theirs or (ours.startswith("/") and theirs.startswith("/")))


def is_documentation(pair: Pair, ours: Any, theirs: Any) -> bool:
    """Both have a documentation of the key, each in its own words; or neither has."""
    return bool(ours) == bool(theirs) and (bool(ours) or ours == theirs)


def without_times_of_markers(data: bytes) -> bytes:
    """Batches as they are fetched, but of the end markers of transactions without their times, and the checksums of
    these."""
    kept = bytearray(data)
    at = 0
    while at + BATCH_HEADER_BYTES <= len(kept):
        if kept[at + ATTRIBUTES + 1] & CONTROL:
            kept[at + CRC : at + ATTRIBUTES] = bytes(4)
            kept[at + TIMES : at + PRODUCER_ID] = bytes(16)
        at += LENGTH_END + int.from_bytes(kept[at + LENGTH : at + LENGTH_END], "big")
    return bytes(kept)


def is_same_but_for_markers(pair: Pair, ours: Any, theirs: Any) -> bool:
    if not ours or not theirs:
        return bool(ours == theirs)
    return without_times_of_markers(ours) == without_times_of_markers(theirs)


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
    "FetchResponse.responses[].partitions[].records": Rule(
        "end markers have the broker's time", is_same_but_for_markers
    ),
    "DescribeProducersResponse.topics[].partitions[].active_producers[].last_timestamp": APPEND_TIME,
    "FetchResponse.node_endpoints[].host": HOST,
    "FetchResponse.node_endpoints[].port": PORT,
    "InitProducerIdResponse.producer_id": PRODUCER,
    "EndTxnResponse.producer_id": PRODUCER,
    "DescribeTransactionsResponse.transaction_states[].producer_id": PRODUCER,
    "DescribeTransactionsResponse.transaction_states[].transaction_start_time_ms": APPEND_TIME,
    "ListTransactionsResponse.transaction_states[].producer_id": PRODUCER,
    "DescribeConfigsResponse.results[].configs[].documentation": Rule(
        "what a config is for is said in our own words", is_documentation
    ),
    "ListOffsetsResponse.topics[].partitions[].timestamp": APPEND_TIME,
    "ApiVersionsResponse.finalized_features_epoch": Rule(
        "the offset of the metadata log that the features were read at", is_identifier
    ),
}


def whose(_: Side, acl: Any) -> Any:
    return (acl.principal, acl.host, acl.operation, acl.permission_type)


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
    "DescribeUserScramCredentialsResponse.results[].credential_infos": lambda _, one: one.mechanism,
    "JoinGroupResponse.members": lambda side, member: side.member_name(member.member_id),
    "ConsumerGroupHeartbeatResponse.assignment.topic_partitions": by_topic,
    "ConsumerGroupHeartbeatResponse.assignment.topic_partitions[].partitions": by_itself,
    "ConsumerGroupDescribeResponse.groups": lambda _, group: group.group_id,
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
    "WriteTxnMarkersResponse.markers": lambda _, each: each.producer_id,
    "WriteTxnMarkersResponse.markers[].topics": lambda _, topic: topic.name,
    "WriteTxnMarkersResponse.markers[].topics[].partitions": lambda _, part: part.partition_index,
    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below": lambda _, topic: topic.name,
    "AddPartitionsToTxnResponse.results_by_topic_v3_and_below[].results_by_partition": lambda _, part: (
        part.partition_index
    ),
    "AddPartitionsToTxnResponse.results_by_transaction": lambda _, one: one.transactional_id,
    "AddPartitionsToTxnResponse.results_by_transaction[].topic_results": lambda _, topic: topic.name,
    "AddPartitionsToTxnResponse.results_by_transaction[].topic_results[].results_by_partition": lambda _, part: (
        part.partition_index
    ),
    "DescribeTransactionsResponse.transaction_states[].topics": lambda _, topic: topic.topic,
    "DescribeTransactionsResponse.transaction_states[].topics[].partitions": by_itself,
    "ListTransactionsResponse.transaction_states": lambda _, one: one.transactional_id,
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
    "DescribeAclsResponse.resources": lambda _, one: (one.resource_type, one.pattern_type, one.resource_name),
    "DescribeAclsResponse.resources[].acls": whose,
    "DeleteAclsResponse.filter_results[].matching_acls": lambda side, one: (
        (one.resource_type, one.pattern_type, one.resource_name),
        whose(side, one),
    ),
    "DeleteGroupsResponse.results": lambda _, group: group.group_id,
    "OffsetFetchResponse.topics": lambda _, topic: topic.name,
    "OffsetFetchResponse.topics[].partitions": lambda _, part: part.partition_index,
    "OffsetFetchResponse.groups[].topics[].partitions": lambda _, part: part.partition_index,
    "OffsetFetchResponse.groups[].topics": lambda side, topic: topic.name or side.topic_name(topic.topic_id),
    "DeleteTopicsResponse.responses": lambda side, topic: (
        topic.name or "",
        topic.error_code,
        side.topic_name(topic.topic_id),
    ),
    "ApiVersionsResponse.supported_features": lambda _, feature: feature.name,
    "ApiVersionsResponse.finalized_features": lambda _, feature: feature.name,
}

LATER = {
    "share groups": "no coordinator for share partitions: FindCoordinator says so in words of its own",
}

SECURITY = "no authentication yet"
SHARE_GROUPS = LATER["share groups"]
STREAMS_GROUPS = "no groups of the streams protocol: Kafka Streams uses classic groups"
APIS_LATER = {
    17: SECURITY,  # SaslHandshake
    36: SECURITY,  # SaslAuthenticate
    **dict.fromkeys((38, 39, 40, 41), SECURITY),  # delegation tokens
    51: SECURITY,  # AlterUserScramCredentials
    **dict.fromkeys((76, 77, 78, 79), SHARE_GROUPS),  # ShareGroupHeartbeat to ShareAcknowledge
    **dict.fromkeys((83, 84, 85, 86, 87), SHARE_GROUPS),  # their state
    **dict.fromkeys((88, 89), STREAMS_GROUPS),  # StreamsGroupHeartbeat, StreamsGroupDescribe
    **dict.fromkeys((90, 91, 92), SHARE_GROUPS),  # their offsets
}


def apis_served(ours: list[Any], theirs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Exactly those APIs are not advertised that are listed as later ones."""
    return ours, [row for row in theirs if row.api_key not in APIS_LATER]


def features_served(ours: list[Any], theirs: list[Any]) -> tuple[list[Any], list[Any]]:
    """Levels of features that are not served (share and streams groups) are stored, and not advertised."""
    return ours, [row for row in theirs if row.name not in NOT_SERVED]


def controllers_listeners(ours: list[Any], theirs: list[Any]) -> tuple[list[Any], list[Any]]:
    """pykafkad has none, since it is its own controller and opens no port for that."""
    return ours, []


LEFT_OUT: dict[str, Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]] = {
    "DescribeQuorumResponse.nodes[].listeners": controllers_listeners,
    "ApiVersionsResponse.supported_features": features_served,
    "ApiVersionsResponse.finalized_features": features_served,
    "ApiVersionsResponse.api_keys": apis_served,
}


NO_ANSWER = "no answer"  # used for the answer of a broker that neither answers nor closes the connection


class Difference(NamedTuple):
    why: str
    ours: Callable[[Any], bool]
    theirs: Callable[[Any], bool]


DIFFERENT: dict[str, Difference] = {
    "records that are null": Difference(
        "Kafka fails on them within, and neither answers nor hangs up",
        ours=lambda answer: answer.responses[0].partition_responses[0].error_code == errors.INVALID_RECORD,
        theirs=lambda answer: answer == NO_ANSWER,
    ),
    "a topic that is created on first use": Difference(
        "the first answer of pykafkad waits for it; that of Kafka costs every client a sleep before it asks again",
        ours=lambda answer: (
            answer.topics[0].error_code == errors.NONE and len(answer.topics[0].partitions) > 0
        ),
        theirs=lambda answer: answer.topics[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION,
    ),
    "a quorum that is made dynamic": Difference(
        "Kafka can do so; pykafkad has no listener for a quorum",
        ours=lambda answer: (
            answer.error_code == errors.INVALID_UPDATE_VERSION
            and "has no listener that other controllers could reach it at" in answer.error_message
        ),
        theirs=lambda answer: answer.error_code == errors.NONE,
    ),
}


def lasting_files(names: list[str]) -> list[str]:
    """The files of a partition with offsets in their names. The indexes of the newest segment are left out, since Kafka
    creates them when it first needs them."""
    names = [name for name in names if name[:20].isdecimal()]
    active = max(name[:20] for name in names if name.endswith(".log"))
    return sorted(name for name in names if name[:20] != active or not name.endswith("index"))


def records_alone(data: Any) -> list[Any]:
    """The records of batches that the brokers compressed themselves, as a consumer sees them: compression depends on
    the libraries, timestamps on the brokers' clocks."""
    return [
        (record.offset, record.key, record.value, record.headers)
        for record in records.read(bytes(data or b""))
    ]


def sort_partitions(value: Any) -> None:
    """For a member's assignment, which Kafka writes in the order of a hash map, with the epochs of the partitions."""
    for topic in [
        *getattr(value, "assigned_partitions", ()),
        *getattr(value, "partitions_pending_revocation", ()),
    ]:
        if topic.assignment_epochs is not None:
            pairs = sorted(zip(topic.partitions, topic.assignment_epochs, strict=True))
            topic.partitions, topic.assignment_epochs = (
                [each for each, _ in pairs],
                [each for _, each in pairs],
            )


def record_order(key: Any) -> tuple[Any, ...]:
    """Within a request Kafka writes the records of several members in the order of a hash map."""
    return type(key).__name__, getattr(key, "member_id", ""), getattr(key, "regular_expression", "")


def same_text(ours: str, theirs: str) -> bool:
    """Texts may contain the broker's time: long numbers may differ by as much as the clocks do."""
    if ours == theirs:
        return True
    mine, other = LONG_NUMBER.split(ours), LONG_NUMBER.split(theirs)
    if len(mine) != len(other) or mine[::2] != other[::2]:
        return False
    numbers = zip(map(int, mine[1::2]), map(int, other[1::2]), strict=True)
    return all(abs(one - two) < CLOSE_MS for one, two in numbers)
