"""A broker (see metadata_fakes) whose configs, quotas and telemetry can be described and altered."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pykafkad import handlers, messages
from pykafkad.clock import ManualClock
from pykafkad.cluster.client_quotas import ClientQuotas
from pykafkad.cluster.config_changes import ConfigChanges
from pykafkad.cluster.publishing import TELEMETRY
from pykafkad.cluster.telemetry import follow, from_image
from pykafkad.net.hosts import is_a_name
from pykafkad.slices import Slices
from tests.unit.metadata_fakes import FakeContext, FakeStorage, Later, call, open_broker

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)

Operation = tuple[str, int, str | None]


def look_up(hosts: Iterable[str], done: Any) -> None:
    """Resolve addresses only."""
    done({host: host for host in hosts if not is_a_name(host)})


def open_configurable(
    directory: Path,
    later: Later | None = None,
    slices: Slices | None = None,
    storage: FakeStorage | None = None,
    **properties: str,
) -> Any:
    broker = open_broker(directory, later, slices, storage, **properties)
    broker.config_changes = ConfigChanges(broker.config, broker.controller, broker.slices.run)
    broker.client_quotas = ClientQuotas(broker.controller, look_up, broker.slices.run)
    broker.clock = ManualClock()
    broker.telemetry = from_image(broker.config, broker.image)
    broker.controller.publishers.add(TELEMETRY, partial(follow, broker.telemetry, broker.image))
    return broker


def handler(name: str) -> Any:
    return __import__(f"{handlers.__name__}.{name}", fromlist=["handle"])


def altered(resource_type: int, name: str, *operations: Operation) -> Any:
    kind = messages.IncrementalAlterConfigsRequest
    return kind.AlterConfigsResource(
        resource_type=resource_type,
        resource_name=name,
        configs=[
            kind.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in operations
        ],
    )


def alter_all(broker: Any, *resources: Any, validate_only: bool = False) -> list[tuple[int, str | None]]:
    """The (code, message) of each resource, in order."""
    answer = call(
        broker,
        handler("incremental_alter_configs"),
        1,
        resources=list(resources),
        validate_only=validate_only,
    )
    return [(each.error_code, each.error_message) for each in answer.responses]


def alter(broker: Any, resource_type: int, name: str, *operations: Operation) -> tuple[int, str | None]:
    return alter_all(broker, altered(resource_type, name, *operations))[0]


def replace(
    broker: Any, resource_type: int, name: str, configs: dict[str, str | None], times: int = 1
) -> list[tuple[int, str | None]]:
    kind = messages.AlterConfigsRequest
    entries = [kind.AlterableConfig(name=key, value=value) for key, value in configs.items()]
    resource = kind.AlterConfigsResource(resource_type=resource_type, resource_name=name, configs=entries)
    answer = call(broker, handler("alter_configs"), 2, resources=[resource] * times)
    return [(each.error_code, each.error_message) for each in answer.responses]


def describe(
    broker: Any, resource_type: int, name: str, *keys: str, version: int = 4, documentation: bool = False
) -> dict[str, Any]:
    """The configs of one resource by name, when it can be described."""
    kind = messages.DescribeConfigsRequest.DescribeConfigsResource
    resource = kind(resource_type=resource_type, resource_name=name, configuration_keys=list(keys) or None)
    answer = call(
        broker,
        handler("describe_configs"),
        version,
        resources=[resource],
        include_synonyms=True,
        include_documentation=documentation,
    )
    (result,) = answer.results
    assert result.error_code == 0, result
    return {each.name: each for each in result.configs}


def values(entries: dict[str, Any]) -> dict[str, str | None]:
    return {name: entry.value for name, entry in entries.items()}


def synonyms(entry: Any) -> list[tuple[str, str | None, int]]:
    return [(each.name, each.value, each.source) for each in entry.synonyms]


class Connection(SimpleNamespace):
    """The part of a connection that telemetry uses; it can be the key of a dictionary."""

    __hash__ = object.__hash__  # type: ignore[assignment]


def context_of(software: str = "java", port: int = 1) -> FakeContext:
    context = FakeContext(0)
    context.connection = Connection(
        state=SimpleNamespace(software=(software, "4.3")), peer=("127.0.0.1", port)
    )
    return context
