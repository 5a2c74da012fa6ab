"""Everything gone: topics, groups with their offsets, configs that were changed, quotas.

Done by what any client may ask of any broker, in an order that leaves nothing behind: what is there is asked for at
once, groups that have members lose them first (each of them leaves, in the words of its protocol), and topics go last.
`__consumer_offsets` stays: making its partitions anew takes longer than everything else.
"""

from __future__ import annotations

import time

from pykafkad import errors
from pykafkad.messages import (
    AlterClientQuotasRequest,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DeleteTopicsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    IncrementalAlterConfigsRequest,
    LeaveGroupRequest,
    ListConfigResourcesRequest,
    ListGroupsRequest,
)
from pykafkad.testing.errors import BrokerTimeout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from pykafkad.net.client import Cluster

    Resource = tuple[int, str]

BROKER, CLIENT_METRICS, GROUP = 4, 16, 32  # types of config resources
# Where a config of a resource comes from that was set for this very resource, and not taken over from another.
OWN_SOURCES = {BROKER: 2, CLIENT_METRICS: 7, GROUP: 8}
ALL_BROKERS_SOURCE = 3
SET, DELETE = 0, 1
DELETE_MS = 30_000
ALL_BROKERS = ""
LEAVES = -1  # the epoch of a member of a consumer group that goes
# Kafka's cluster-wide config that every cluster has from its start.
ALWAYS_THERE = "min.insync.replicas"


def reset(cluster: Cluster, always_there: str, deadline: float) -> None:
    """`always_there` is the value of the one dynamic config that stays."""
    topics = cluster.metadata(None)
    node_id = str(topics.brokers[0].node_id)
    ask = Pipeline(cluster)
    groups, resources, quotas, configs = ask(
        ListGroupsRequest(),
        ListConfigResourcesRequest(resource_types=[CLIENT_METRICS, GROUP]),
        DescribeClientQuotasRequest(),
        configs_of([(BROKER, node_id), (BROKER, ALL_BROKERS)]),
    )
    remove_groups(ask, {row.group_id: row.group_type for row in groups.groups}, deadline)
    named = [(row.resource_type, row.resource_name) for row in resources.config_resources]
    found = [*configs.results, *(ask(configs_of(named))[0].results if named else ())]
    requests = [
        *restored(found, always_there),
        *without_quotas(quotas.entries or []),
        *without_topics([row.name for row in topics.topics if not row.is_internal]),
    ]
    for answer in ask(*requests):
        rows: list[Any] = answer.entries if hasattr(answer, "entries") else answer.responses
        for row in rows:
            if row.error_code not in (errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION):
                raise errors.KafkaError(row.error_code, row.error_message)


class Pipeline:
    """Several requests at once on one connection; their answers in order."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._connection = cluster.any_broker()

    def __call__(self, *requests: Any) -> list[Any]:
        deadline = self._cluster.request_deadline()
        for request in requests:
            self._connection.send(request, deadline)
        return [self._connection.receive(deadline) for _ in requests]


# -- groups


def remove_groups(ask: Pipeline, types: dict[str, str], deadline: float) -> None:
    """The groups, and their members before them."""
    names = list(types)
    while names:
        for name in names:
            ask(*departures(ask, name, types[name]))
        (answer,) = ask(DeleteGroupsRequest(groups_names=names))
        names = [row.group_id for row in answer.results if row.error_code == errors.NON_EMPTY_GROUP]
        if names and time.monotonic() > deadline:
            raise BrokerTimeout(f"members came back again and again to {', '.join(names)}")


def departures(ask: Pipeline, name: str, kind: str) -> list[Any]:
    """What the members would say who leave."""
    if kind == "consumer":
        (group,) = ask(ConsumerGroupDescribeRequest(group_ids=[name]))[0].groups
        return [
            ConsumerGroupHeartbeatRequest(group_id=name, member_id=each.member_id, member_epoch=LEAVES)
            for each in group.members
        ]
    (group,) = ask(DescribeGroupsRequest(groups=[name]))[0].groups
    members = [
        LeaveGroupRequest.MemberIdentity(member_id=each.member_id, group_instance_id=each.group_instance_id)
        for each in group.members
    ]
    return [LeaveGroupRequest(group_id=name, members=members)] if members else []


# -- configs, quotas, topics


def configs_of(resources: Iterable[Resource]) -> Any:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=None
            )
            for kind, name in resources
        ]
    )


def restored(results: Iterable[Any], always_there: str) -> Iterator[Any]:
    """Requests that delete what was set, and set what always is."""
    kind = IncrementalAlterConfigsRequest
    for result in results:
        is_for_all = (result.resource_type, result.resource_name) == (BROKER, ALL_BROKERS)
        own = ALL_BROKERS_SOURCE if is_for_all else OWN_SOURCES[result.resource_type]
        rows = [row for row in result.configs if row.config_source == own]
        changes = [
            kind.AlterableConfig(name=row.name, config_operation=DELETE)
            for row in rows
            if not (is_for_all and row.name == ALWAYS_THERE)
        ]
        if is_for_all:
            values = {row.name: row.value for row in rows}
            if values.get(ALWAYS_THERE) != always_there:
                changes.append(
                    kind.AlterableConfig(name=ALWAYS_THERE, config_operation=SET, value=always_there)
                )
        if changes:
            resource = kind.AlterConfigsResource(
                resource_type=result.resource_type, resource_name=result.resource_name, configs=changes
            )
            yield kind(resources=[resource])


def without_quotas(entries: Iterable[Any]) -> Iterator[Any]:
    kind = AlterClientQuotasRequest
    rows = [
        kind.EntryData(
            entity=[
                kind.EntityData(entity_type=each.entity_type, entity_name=each.entity_name)
                for each in entry.entity
            ],
            ops=[kind.OpData(key=each.key, value=0.0, remove=True) for each in entry.values],
        )
        for entry in entries
    ]
    if rows:
        yield kind(entries=rows)


def without_topics(names: Iterable[str]) -> Iterator[Any]:
    rows = [DeleteTopicsRequest.DeleteTopicState(name=name) for name in names]
    if rows:
        yield DeleteTopicsRequest(topics=rows, timeout_ms=DELETE_MS)
