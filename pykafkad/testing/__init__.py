"""For users' tests: a broker in a process of its own, and the pytest fixture `kafka`.

Names are looked up on first use, because the pytest plugin is imported by every test run of an environment that has
pykafkad in it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pykafkad.testing.aio import AsyncBroker
    from pykafkad.testing.broker import Broker
    from pykafkad.testing.client import Client
    from pykafkad.testing.cluster import Cluster
    from pykafkad.testing.errors import BrokerError, BrokerTimeout
    from pykafkad.testing.groups import Group, Member
    from pykafkad.testing.record import Record

HOMES = {
    "AsyncBroker": "aio",
    "Broker": "broker",
    "Client": "client",
    "Cluster": "cluster",
    "BrokerError": "errors",
    "BrokerTimeout": "errors",
    "Group": "groups",
    "Member": "groups",
    "Record": "record",
}

__all__ = [
    "AsyncBroker",
    "Broker",
    "BrokerError",
    "BrokerTimeout",
    "Client",
    "Cluster",
    "Group",
    "Member",
    "Record",
]


def __getattr__(name: str) -> object:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{HOMES[name]}"), name)
