"""Which loop serves here: ext/reactor, or net/plain_loop.py where there is no epoll. Both have one face,
pykafkad/hot/reactor.pyi, and pass the same tests.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pykafkad.clock import Clock as MachineClock

if TYPE_CHECKING:
    from types import ModuleType

    from pykafkad.hot.reactor import Clock, Reactor


def make_reactor(*arguments: Any, clock: Clock | None = None, **options: Any) -> Reactor:
    """A loop; the arguments are those of hot.reactor.Reactor."""
    if type(clock) is MachineClock:
        clock = None  # the loop asks the same clock itself, without a call to Python
    reactor: Reactor = reactor_module().Reactor(*arguments, clock=clock, **options)
    return reactor


def reactor_module() -> ModuleType:
    """The module of the loop that serves here."""
    try:
        from pykafkad.hot import reactor
    except ImportError:
        from pykafkad.net import plain_loop

        return plain_loop
    return reactor


def module_of(reactor: Reactor) -> ModuleType:
    """The module of that loop, with what else its connections are made of: Protocol, KAFKA_ANSWERS."""
    return sys.modules[type(reactor).__module__]
