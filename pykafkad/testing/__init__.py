"""For users' tests: a broker in a process of its own, and the pytest fixture `kafka`.

Names are looked up on first use, because the pytest plugin is imported by every test run of an environment that has
pykafkad in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pykafkad.testing.broker import Broker, BrokerError
    from pykafkad.testing.client import Client

__all__ = ["Broker", "BrokerError", "Client"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pykafkad.testing import broker

    return getattr(broker, name)
