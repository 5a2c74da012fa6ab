"""What the storm knows of the broker: names that exist, names that nearly do, and what it has learned from answers.

Choices depend on the random generator alone: for an id that is not known yet a made-up one is used. So the same seed
makes the same requests, whatever the broker has answered. `symbol` and `meaning` translate the ids that a broker chose
into what they mean, and back into those of another broker, for requests that are stored in a file.
"""

from __future__ import annotations

import random
from typing import Any

NEIGHBOUR = "neighbour"  # the topic of the neighbour, which the storm never names
TOPICS = {f"storm-{number}": (1, 2, 3, 8)[number % 4] for number in range(8)}
COMPACTED = ("storm-6", "storm-7")
MADE = [f"made-{number}" for number in range(30)]  # topics that the storm itself creates and deletes
GROUPS = [
    f"group-{number}" for number in range(8)
]  # the first half classic, the others of the consumer protocol
USERS = ("alice", "bob", "client", "<default>")
NO_ID = bytes(16)
SLOTS = 4  # how many of a kind are remembered


class Names:
    def __init__(self) -> None:
        self.node_id = 1
        self.cluster_id = ""
        self.directories: list[str] = []
        self.topic_ids: dict[str, bytes] = {}
        self.members: dict[str, list[tuple[str, int]]] = {}  # of a group: member id, and generation or epoch
        self.producers: list[tuple[int, int]] = []  # id and epoch
        self.sessions: list[int] = []
        self.instances: list[tuple[bytes, int]] = []  # telemetry: client instance and subscription

    # -- drawing

    def topic(self, chance: random.Random) -> str:
        return chance.choice(
            (*TOPICS, *TOPICS, chance.choice(MADE), "__consumer_offsets", "nothing-like-it", "storm-")
        )

    def topic_id(self, chance: random.Random) -> bytes:
        return self.topic_ids.get(self.topic(chance), bytes(14) + b"\x07\x07")

    def group(self, chance: random.Random) -> str:
        return chance.choice((*GROUPS, *GROUPS, "group-9", "nobody"))

    def member(self, chance: random.Random, group: str) -> tuple[str, int]:
        return pick(chance, self.members.get(group, []), ("nobody-knows-me", 1))

    def producer(self, chance: random.Random) -> tuple[int, int]:
        return pick(chance, self.producers, (1000, 0))

    def session(self, chance: random.Random) -> int:
        return pick(chance, self.sessions, 0)

    def instance(self, chance: random.Random) -> tuple[bytes, int]:
        return pick(chance, self.instances, (b"\x11" * 16, 1))

    # -- learning

    def learn(self, request: Any, answer: Any) -> None:
        """Use what this answer gave out from now on."""
        kind = type(request).__name__
        if getattr(answer, "error_code", 0) and kind != "JoinGroupRequest":
            return
        if kind == "JoinGroupRequest" and answer.member_id:
            self._member(request.group_id, answer.member_id, answer.generation_id)
        elif kind == "ConsumerGroupHeartbeatRequest" and answer.member_id:
            self._member(request.group_id, answer.member_id, answer.member_epoch)
        elif kind == "InitProducerIdRequest":
            remember(self.producers, (answer.producer_id, answer.producer_epoch))
        elif kind == "FetchRequest" and answer.session_id:
            remember(self.sessions, answer.session_id)
        elif kind == "GetTelemetrySubscriptionsRequest":
            remember(self.instances, (answer.client_instance_id, answer.subscription_id))

    def _member(self, group: str, member: str, generation: int) -> None:
        known = self.members.setdefault(group, [])
        known[:] = [row for row in known if row[0] != member]
        remember(known, (member, generation))
        if len(self.members) > len(GROUPS) * 2:
            del self.members[next(iter(self.members))]

    # -- names for a file

    def symbol(self, value: Any) -> Any:
        """The meaning of an id that the broker chose."""
        if isinstance(value, bytes) and len(value) == 16:
            for name, topic_id in self.topic_ids.items():
                if value == topic_id:
                    return {"topic id of": name}
        if isinstance(value, str) and value:
            for group, members in self.members.items():
                for slot, (member, _) in enumerate(members):
                    if value == member:
                        return {"member of": group, "slot": slot}
            if value == self.cluster_id:
                return {"cluster id": ""}
            if value in self.directories:
                return {"directory": self.directories.index(value)}
        return None

    def meaning(self, symbol: dict[str, Any]) -> Any:
        if "topic id of" in symbol:
            return self.topic_ids.get(symbol["topic id of"], NO_ID)
        if "member of" in symbol:
            members = self.members.get(symbol["member of"], [])
            return members[symbol["slot"]][0] if symbol["slot"] < len(members) else "nobody-knows-me"
        if "directory" in symbol:
            return self.directories[symbol["directory"]]
        return self.cluster_id


def pick(chance: random.Random, known: list[Any], otherwise: Any) -> Any:
    slot = chance.randrange(SLOTS)
    return known[slot] if slot < len(known) else otherwise


def remember(known: list[Any], one: Any) -> None:
    if one in known:
        return
    known.append(one)
    if len(known) > SLOTS:
        del known[0]
