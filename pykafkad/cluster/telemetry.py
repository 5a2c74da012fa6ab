"""Clients' telemetry in the broker: the CLIENT_METRICS resources of the image as subscriptions, and what a
connection says of its client."""

from __future__ import annotations

from pykafkad import uuids
from pykafkad.cluster.config_rules import CLIENT_METRICS, client_metrics_values
from pykafkad.config import ConfigError
from pykafkad.hot.records import crc32c
from pykafkad.logs import logger
from pykafkad.pure import telemetry
from pykafkad.pure.telemetry import Match, MatchError, Subscription, Telemetry
from pykafkad.slices import GO_ON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from pykafkad.cluster.delta import Delta
    from pykafkad.cluster.image import Image
    from pykafkad.config import BrokerConfig
    from pykafkad.context import Context
    from pykafkad.handlers.broker import Broker
    from pykafkad.pure.telemetry import Evaluated
    from pykafkad.slices import OrWork, Work

    T = TypeVar("T")

UNKNOWN_SOFTWARE = ("unknown", "unknown")

log = logger("telemetry")


def from_image(config: BrokerConfig, image: Image) -> Telemetry:
    made = Telemetry(config["telemetry.max.bytes"], crc32c)
    for (resource_type, name), configs in image.configs.items():
        subscribe(made, resource_type, name, configs)
    return made


def follow(machine: Telemetry, image: Image, delta: Delta) -> Work:
    """As a publisher: the subscriptions that have changed."""
    for resource_type, name in delta.configs:
        subscribe(machine, resource_type, name, image.configs.get((resource_type, name), {}))
        yield GO_ON


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


def answered(
    broker: Broker, instance_id: bytes, context: Context, answer: Callable[[Evaluated | None], T]
) -> OrWork[T]:
    """What `answer` gives; in slices where it is to be worked out first which subscriptions the client matches."""
    if broker.telemetry.knows(instance_id, broker.clock.now_ms()):
        return answer(None)
    return _evaluated(broker.telemetry, instance_id, context, answer)


def _evaluated(
    machine: Telemetry, instance_id: bytes, context: Context, answer: Callable[[Evaluated | None], T]
) -> Work[T]:
    values = attributes(instance_id, context.client_id, context.connection)
    evaluated = yield from machine.evaluate(instance_id, values)
    return answer(evaluated)


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
