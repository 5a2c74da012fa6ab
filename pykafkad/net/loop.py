"""Which loop serves here: ext/reactor, or net/plain_loop.py where there is no epoll, or where PYKAFKAD_LOOP=plain asks
for it. Both have one face, pykafkad/hot/reactor.pyi, and pass the same tests.
"""

from __future__ import annotations

import os
import sys

from pykafkad.clock import Clock as MachineClock
from pykafkad.config_def import ConfigError
from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from pykafkad.hot.reactor import Clock, Reactor


VARIABLE, PLAIN = "PYKAFKAD_LOOP", "plain"

log = logger("net")


def make_reactor(*arguments: Any, clock: Clock | None = None, **options: Any) -> Reactor:
    """A loop; the arguments are those of hot.reactor.Reactor."""
    if type(clock) is MachineClock:
        clock = None  # the loop asks the same clock itself, without a call to Python
    reactor: Reactor = reactor_module().Reactor(*arguments, clock=clock, **options)
    return reactor


def reactor_module() -> ModuleType:
    """The module of the loop that serves here."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", PLAIN):
        raise ConfigError(VARIABLE, wanted, f"{VARIABLE}={wanted}: there is no such loop", PLAIN)
    if wanted == PLAIN:
        log.info(f"{VARIABLE}={PLAIN}: the loop in plain Python serves")
        return plain()
    try:
        from pykafkad.hot import reactor
    except ImportError:
        return plain()
    return reactor


def plain() -> ModuleType:
    from pykafkad.net import plain_loop

    return plain_loop


def module_of(reactor: Reactor) -> ModuleType:
    """The module of that loop, with what else its connections are made of: Protocol, KAFKA_ANSWERS."""
    return sys.modules[type(reactor).__module__]
