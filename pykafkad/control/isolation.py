"""`isolate` and `heal`: a broker of a cluster is cut off from the others and from ZooKeeper, and joined again."""

from __future__ import annotations

from pykafkad.control.lines import CommandError, check_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from pykafkad.cluster.zookeeper.isolation import Isolation
    from pykafkad.serving import ServingBroker

    Row = dict[str, Any]


def isolate(broker: ServingBroker, client: object, arguments: Row) -> Iterator[Row | None]:
    check_known(arguments)
    of(broker).begin()
    yield {"isolated": True}


def heal(broker: ServingBroker, client: object, arguments: Row) -> Iterator[Row | None]:
    check_known(arguments)
    of(broker).end()
    yield {"isolated": False}


def of(broker: ServingBroker) -> Isolation:
    if broker.cluster is None:
        raise CommandError("this broker is a cluster of its own: there is nobody to be cut off from")
    return broker.cluster.isolation
