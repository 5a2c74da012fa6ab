"""Host names that configs and quotas name: are they addresses, and does anybody know them?"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def is_a_name(host: str | None) -> bool:
    """Whether it must be looked up: an address is what it says."""
    if not host:
        return False
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
            return False
        except (OSError, ValueError, UnicodeError):
            continue
    return True


def unresolvable(hosts: Iterable[str]) -> frozenset[str]:
    """Those that no address is known of. Asks the resolver, which can take long: for a thread."""
    found = set()
    for host in hosts:
        try:
            socket.getaddrinfo(host, None)
        except (OSError, ValueError, UnicodeError):
            found.add(host)
    return frozenset(found)
