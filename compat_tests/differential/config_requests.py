"""Requests about configs and quotas in a short form, and waiting until Kafka has applied a change."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from compat_tests.differential.pair import NoAnswer, Pair
from compat_tests.differential.tree import differences
from pykafkad.messages import (
    AlterClientQuotasRequest,
    AlterConfigsRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
SETTLE_SECONDS = 5.0

Operation = tuple[str, int, str | None]


def described(resource_type: int, name: str, keys: Sequence[str] | None = None) -> Any:
    kind = DescribeConfigsRequest.DescribeConfigsResource
    given = None if keys is None else list(keys)
    return kind(resource_type=resource_type, resource_name=name, configuration_keys=given)


def describe(*resources: Any, synonyms: bool = True, documentation: bool = False) -> Any:
    return DescribeConfigsRequest(
        resources=list(resources), include_synonyms=synonyms, include_documentation=documentation
    )


def describe_one(resource_type: int, name: str, keys: Sequence[str] | None = None) -> Any:
    return describe(described(resource_type, name, keys))


def altered(resource_type: int, name: str, *operations: Operation) -> Any:
    kind = IncrementalAlterConfigsRequest
    configs = [
        kind.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in operations
    ]
    return kind.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=configs)


def alter(*resources: Any, validate_only: bool = False) -> Any:
    return IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)


def alter_one(resource_type: int, name: str, *operations: Operation, validate_only: bool = False) -> Any:
    return alter(altered(resource_type, name, *operations), validate_only=validate_only)


def replaced(resource_type: int, name: str, *configs: tuple[str, str | None]) -> Any:
    kind = AlterConfigsRequest
    entries = [kind.AlterableConfig(name=key, value=value) for key, value in configs]
    return kind.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=entries)


def replace(*resources: Any, validate_only: bool = False) -> Any:
    return AlterConfigsRequest(resources=list(resources), validate_only=validate_only)


Entity = dict[str, str | None]


def quota(entity: Entity | list[tuple[str, str | None]], *operations: tuple[str, float | None]) -> Any:
    """None removes a quota."""
    kind = AlterClientQuotasRequest
    parts = list(entity.items()) if isinstance(entity, dict) else entity
    return kind.EntryData(
        entity=[kind.EntityData(entity_type=type, entity_name=name) for type, name in parts],
        ops=[kind.OpData(key=key, value=value or 0.0, remove=value is None) for key, value in operations],
    )


def alter_quotas(*entries: Any, validate_only: bool = False) -> Any:
    return AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)


def describe_quotas(*components: tuple[str, int, str | None], strict: bool = False) -> Any:
    kind = DescribeClientQuotasRequest
    entries = [
        kind.ComponentData(entity_type=type, match_type=match_type, match=match)
        for type, match_type, match in components
    ]
    return kind(components=entries, strict=strict)


def settled(pair: Pair, request: Any, version: int) -> Any:
    """The same answer of both, once Kafka's broker has applied what its controller has written, which takes a moment."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        ours, theirs = (side.ask(request, version) for side in pair.sides)
        told = not any(answer is None or isinstance(answer, NoAnswer) for answer in (ours, theirs))
        if told and not differences(pair, ours, theirs):
            return theirs
        if time.monotonic() > deadline:
            return pair.same(request, version)
        time.sleep(0.02)
