"""Which replica a consumer should read from (KIP-392): one in its own rack, if that has what it asks for."""

from __future__ import annotations

from typing import NamedTuple


class Candidate(NamedTuple):
    """A replica that is alive, and has the offset that is asked for."""

    rack: str | None
    end_offset: int
    caught_up_ms: int  # when it last had everything
    node_id: int


def by_rack(rack: str, leader: Candidate, followers: list[Candidate]) -> int:
    """As Kafka's RackAwareReplicaSelector: the leader, unless it is elsewhere and others are in the rack; of those the
    one with the most, then the one that caught up last, then the highest id."""
    near = [each for each in (leader, *followers) if each.rack == rack]
    if not rack or not near or leader in near:
        return leader.node_id
    return max(near, key=lambda each: (each.end_offset, each.caught_up_ms, each.node_id)).node_id
