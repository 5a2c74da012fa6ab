"""Brokers for tests to take in turn: each is as good as new, and none is started where one can be used again.

A broker that a test is done with waits for the next test with the same config, which gets it without topics, groups
and whatever else (Broker.reset). It is thrown away instead if it does not run, or if clients of the last test are still
connected: these would go on with what they did, and are nothing that another test should meet. Owns the brokers until
close(). Invariant: no broker is given to two tests at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from pykafkad.messages import MetadataRequest
from pykafkad.testing.broker import Broker
from pykafkad.testing.errors import BrokerError

LOG_LEVEL = "debug"  # the report of a failed test shows the requests
RESET_S = 5.0
CLOSING_S = 0.05
PASSES = 10
METADATA_VERSION = 12

Key = tuple[tuple[str, str], ...]


class Pool:
    def __init__(self) -> None:
        self._idle: dict[Key, list[Broker]] = {}
        self._sockets: dict[Broker, int | None] = {}  # of each broker when nobody was connected

    def take(self, config: Mapping[str, object]) -> Broker:
        """A broker with this config and nothing in it."""
        idle = self._idle.get(key_of(config), [])
        while idle:
            broker = idle.pop()
            if self._is_fit(broker):
                os.truncate(broker.log_path, 0)
                return broker
            self._throw_away(broker)
        broker = Broker(config=config, log_level=LOG_LEVEL)
        self._sockets[broker] = sockets_of(broker)
        return broker

    def give(self, broker: Broker, config: Mapping[str, object]) -> None:
        """The test is done with it."""
        self._idle.setdefault(key_of(config), []).append(broker)

    def _is_fit(self, broker: Broker) -> bool:
        if not broker.running or broker.paused:
            return False
        try:
            broker.reset(timeout=RESET_S)
            return self._is_left_alone(broker)
        except (BrokerError, OSError):
            return False

    def _is_left_alone(self, broker: Broker) -> bool:
        """Whether nobody is connected but we. Who has closed its connections may not be seen at once: the broker gets
        some passes of its loop for that, and some time for clients that close while we look."""
        alone = self._sockets[broker]
        if alone is None:
            return True
        deadline, passes = time.monotonic() + CLOSING_S, 0
        with broker.client() as client:
            while passes < PASSES or time.monotonic() < deadline:
                client.call(MetadataRequest(topics=[]), METADATA_VERSION)
                if sockets_of(broker) == alone + 1:
                    return True
                passes += 1
        return False

    def _throw_away(self, broker: Broker) -> None:
        del self._sockets[broker]
        broker.close()

    def close(self) -> None:
        for broker in list(self._sockets):
            self._throw_away(broker)
        self._idle.clear()


def key_of(config: Mapping[str, object]) -> Key:
    return tuple(sorted((key, repr(value)) for key, value in config.items()))


def sockets_of(broker: Broker) -> int | None:
    """How many sockets the process has; None where the system does not say."""
    directory = f"/proc/{broker.pid}/fd"
    found = 0
    try:
        for name in os.listdir(directory):
            try:
                found += os.readlink(f"{directory}/{name}").startswith("socket:")
            except FileNotFoundError:
                pass  # closed meanwhile
    except OSError:
        return None
    return found
