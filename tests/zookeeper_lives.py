"""What random lives of brokers on one ZooKeeper share: a seed, answers that come late and in any order between brokers,
and an end at which all of them are connected and nothing is under way.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

from tests.zookeeper_kit import MemoryClient, MemoryZooKeeper

QUIET_STEPS = 200_000


class Connected(Protocol):
    """A broker, of which only this is known here."""

    @property
    def zookeeper(self) -> MemoryClient: ...


B = TypeVar("B", bound=Connected)


class ZooKeeperLife(ABC, Generic[B]):
    """A test's own kind makes its `brokers`, lives and checks."""

    brokers: list[B]

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.under_way: list[Callable[[], None]] = []
        self.time = 0
        self.ms = 1_000_000
        self.server = MemoryZooKeeper(self.soon, self.now_ms)

    def soon(self, call: Callable[[], None]) -> None:
        self.under_way.append(call)

    def now_ms(self) -> int:
        return self.ms

    def monotonic_us(self) -> int:
        return 0

    def move(self) -> None:
        """Something that is under way comes to its end; each client's own order is kept by the client."""
        if self.under_way:
            self.under_way.pop(self.chance.randrange(len(self.under_way)))()
            self.time += 1

    @abstractmethod
    def live(self) -> None: ...

    @abstractmethod
    def check(self) -> None: ...

    def settle(self) -> None:
        """Nothing more happens to the brokers."""
        for broker in self.brokers:
            if not broker.zookeeper.is_connected and broker.zookeeper.session_id:
                broker.zookeeper.reconnect()
        for _ in range(QUIET_STEPS):
            if not self.under_way:
                return
            self.move()
        raise AssertionError("it never becomes quiet")


def live_through(seeds: Iterable[int], kind: type[ZooKeeperLife[Any]]) -> None:
    for seed in seeds:
        try:
            life = kind(seed)
            life.live()
            life.settle()
            life.check()
        except Exception as error:
            raise AssertionError(f"SEED={seed} fails") from error
