"""Quotas for replication (KIP-73): how much the partitions that are said to be throttled may take of a broker, as leader
and as follower.

The rate is a dynamic config of the broker ((leader|follower).replication.throttled.rate), the replicas are named in their
topic's ((leader|follower).replication.throttled.replicas: `*`, or partition:broker). Both are read in the image when they
are asked for, so that a change counts at once. Only a follower that is not in sync is held back.
"""

from __future__ import annotations

from functools import lru_cache

from pykafkad.cluster.image import ALL_BROKERS, BROKER_RESOURCE
from pykafkad.pure.rates import Rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pykafkad.clock import Clock
    from pykafkad.cluster.image import Image

LEADER, FOLLOWER = "leader", "follower"
EVERYTHING = "*"


class ReplicationQuota:
    def __init__(self, side: str, config: Any, clock: Clock, image: Image) -> None:
        self._clock, self._image = clock, image
        self._node_id: int = config["node.id"]
        self._resources = (BROKER_RESOURCE, str(self._node_id)), (BROKER_RESOURCE, ALL_BROKERS)
        self._rate_key = f"{side}.replication.throttled.rate"
        self._replicas_key = f"{side}.replication.throttled.replicas"
        self._rate = Rate(
            config["replication.quota.window.num"], config["replication.quota.window.size.seconds"] * 1000
        )

    @property
    def limit(self) -> int | None:
        """Bytes a second; None: no limit."""
        configs = self._image.configs  # asked for each fetch: no call for each of the two
        for resource in self._resources:
            if resource in configs and self._rate_key in configs[resource]:
                return int(configs[resource][self._rate_key])
        return None

    @property
    def is_exceeded(self) -> bool:
        limit = self.limit
        return limit is not None and self._rate.per_second(self._clock.monotonic_ms()) > limit

    def covers(self, topic: str, index: int) -> bool:
        known = self._image.topics.get(topic)
        text = known.configs.get(self._replicas_key) if known is not None else None
        if not text:
            return False
        return text.strip() == EVERYTHING or index in throttled(text, self._node_id)

    def record(self, topic: str, index: int, size: int) -> None:
        """So much went over the wire for that partition."""
        if size and self.limit is not None and self.covers(topic, index):
            self._rate.record(size, self._clock.monotonic_ms())


@lru_cache(maxsize=1_000)
def throttled(text: str, node_id: int) -> frozenset[int]:
    """The partitions of which that broker's replica is named in partition:broker,…"""
    pairs = (each.strip().partition(":") for each in text.split(","))
    return frozenset(int(index) for index, _, broker in pairs if broker == str(node_id))
