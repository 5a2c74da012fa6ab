"""Clients' telemetry in the broker: the CLIENT_METRICS resources of the image as subscriptions, and what a
connection says of its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykafkad import uuids
from pykafkad.cluster.config_rules import CLIENT_METRICS, client_metrics_values
from pykafkad.config import ConfigError
from pykafkad.hot.records import crc32c
from pykafkad.logs import logger
from pykafkad.pure import telemetry
from pykafkad.pure.telemetry import Match, MatchError, Subscription, Telemetry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pykafkad.cluster.image import Image
    from pykafkad.config import BrokerConfig

UNKNOWN_SOFTWARE = ("unknown", "unknown")

log = logger("telemetry")


def from_image(config: BrokerConfig, image: Image) -> Telemetry:
    made = Telemetry(config["telemetry.max.bytes"], crc32c)
    for (resource_type, name), configs in image.configs.items():
        subscribe(made, resource_type, name, configs)
    return made


def subscribe(machine: Telemetry, resource_type: int, name: str, configs: Mapping[str, str]) -> None:
    """A resource has these configs now; one without any is no subscription. Other kinds are not ours."""
    if resource_type != CLIENT_METRICS:
        return
    if not configs:
        machine.subscribe(name, None)
        return
    try:
        values: dict[str, Any] = client_metrics_values(configs)
        match = Match(values["match"])
    except (ConfigError, MatchError) as error:  # another broker took it
        log.error(f"client metrics subscription {name} is ignored: {error}")
        return
    machine.subscribe(name, Subscription(values["metrics"], values["interval.ms"], match))


def attributes(instance_id: bytes, client_id: str | None, connection: Any) -> dict[str, str | None]:
    """What subscriptions may look at of a client."""
    software = connection.state.software if connection.state is not None else None
    name, version = software or UNKNOWN_SOFTWARE
    host, port = connection.peer[:2]
    return {
        telemetry.CLIENT_INSTANCE_ID: uuids.to_text(instance_id),
        "client_id": client_id or "",
        "client_software_name": name,
        "client_software_version": version,
        "client_source_address": host,
        "client_source_port": str(port),
    }
