"""Looks up the addresses of host names, which clients send in quotas and configs.

Owns the one thread that asks the system's resolver, and the time that a request waits for it. The resolver may take a
minute for a name, and any client can send names, so they are looked up apart from everything else, in the order in which
they came. A name that is not resolved within DEADLINE_MS counts as unknown. What is an address already is not looked up.
"""

from __future__ import annotations

import _socket

from pykafkad.logs import logger
from pykafkad.workers import Workers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from pykafkad.clock import Clock

    Found = Mapping[str, str]  # host -> its address; without those that nobody knows
    LookUp = Callable[[Iterable[str], Callable[[Found], None]], None]

DEADLINE_MS = 5_000
WAITING_MAX = 1_000  # names that wait or are being looked up
NAME_MAX = 255  # characters

log = logger("net")


class Resolver:
    def __init__(self, post: Callable[..., None], call_later: Callable[..., Any], clock: Clock) -> None:
        self._submit = Workers(post, limit=1).submit
        self._call_later = call_later
        self._clock = clock
        self._waiting = 0

    def look_up(self, hosts: Iterable[str], done: Callable[[Found], None]) -> None:
        """`done` is called with what was found in time: at once where there are only addresses."""
        asked = set(hosts)
        names = [host for host in asked if is_a_name(host)]
        found = {host: host for host in asked.difference(names)}
        if not names:
            done(found)
        elif self._waiting + len(names) > WAITING_MAX:
            log.warn(f"{len(names)} host names are not looked up: {self._waiting} others wait already")
            done(found)
        else:
            self._ask(names, found, done)

    def _ask(self, names: list[str], found: dict[str, str], done: Callable[[Found], None]) -> None:
        deadline_ms = self._clock.monotonic_ms() + DEADLINE_MS
        is_told = False
        self._waiting += len(names)

        def tell() -> None:
            nonlocal is_told
            if not is_told:
                is_told = True
                done(dict(found))

        def back(_: object) -> None:
            self._waiting -= len(names)
            timer.cancel()
            tell()

        def work() -> None:
            for name in names:
                if self._clock.monotonic_ms() >= deadline_ms:
                    return
                address = address_of(name)
                if address is not None:
                    found[name] = address

        timer = self._call_later(DEADLINE_MS, tell)
        self._submit(work, back)


def is_a_name(host: str | None) -> bool:
    """Whether it must be looked up: an address is what it says."""
    if not host:
        return False
    for family in (_socket.AF_INET, _socket.AF_INET6):
        try:
            _socket.inet_pton(family, host)
            return False
        except (OSError, ValueError, UnicodeError):
            continue
    return True


def packed_address(address: str) -> bytes:
    """Its bytes, 4 or 16; that an IPv4 address is written as an IPv6 one, a socket says that takes both."""
    if ":" in address:
        packed = _socket.inet_pton(_socket.AF_INET6, address.partition("%")[0])
        return packed[12:] if packed[:12] == bytes(10) + b"\xff\xff" else packed
    return _socket.inet_pton(_socket.AF_INET, address)


def address_of(host: str) -> str | None:
    """None where nobody knows it. Asks the resolver, which can take long: for a thread."""
    import socket

    if len(host) > NAME_MAX:
        return None
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, ValueError, UnicodeError):
        return None
