"""Members of a classic group on both brokers, each with its own connections: a play that both brokers see.

`cast = Cast(pair)` is a new group. `cast.join("one")` sends a request and waits for the answer. `cast.send(...)` sends
one whose answer has to wait for others, and `cast.hear("one")` receives it later. Each compares the answers of the two
brokers. Member ids differ between the brokers: a test uses names, and every answer to JoinGroup shows whose id is
whose.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compat_tests.differential.offset_requests import group
from compat_tests.differential.pair import NoAnswer, Pair, Side
from compat_tests.differential.tree import differences
from compat_tests.raw import Closed, RawClient, decode_answer
from pykafkad.messages import (
    ConsumerProtocolSubscription,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)

TIMEOUT_SECONDS = 40.0  # on a busy machine Kafka's first answer of a partition may take long
# How long to wait after a request without an answer, since its arrival cannot be seen.
ARRIVE_SECONDS = 0.05
SETTLE_SECONDS = 20.0
REBALANCING = ("PreparingRebalance", "CompletingRebalance")
MEMBER_ID_REQUIRED = 79
NEWEST = {"join": 9, "sync": 5, "heartbeat": 4, "leave": 5, "describe": 6}
Built = Callable[[Side], Any]
Protocols = Iterable[tuple[str, bytes]]


def metadata(user_data: bytes = b"", *topics: str) -> bytes:
    """As consumers send it. Kafka does not always survive malformed metadata: the group then hangs."""
    data = ConsumerProtocolSubscription(topics=list(topics), user_data=user_data)
    return b"\0\0" + bytes(data.encode(0))


RANGE = (("range", metadata(b"some", "topic")),)


# What is wrong with a request of somebody who is not a member, or of another generation.
STRANGERS: list[dict[str, Any]] = [
    {"group_id": ""},
    {"group_id": "no such group"},
    {"member_id": ""},
    {"member_id": "nobody"},
    {"generation_id": 0},
    {"generation_id": -1},
    {"generation_id": 99},
    {"member_id": "nobody", "generation_id": 99},
]
STATIC_STRANGERS: list[dict[str, Any]] = [
    {"group_instance_id": "desk"},
    {"group_instance_id": ""},
    {"group_instance_id": "desk", "member_id": ""},
]


class Cast:
    def __init__(self, pair: Pair, stem: str = "cast") -> None:
        self.pair = pair
        self.group_id = group(pair, stem)
        self._clients: dict[tuple[str, str], RawClient] = {}
        self._asked: dict[str, tuple[Any, int]] = {}
        self.ids: dict[str, dict[str, str]] = {side.name: {} for side in pair.sides}

    def close(self) -> None:
        for client in self._clients.values():
            client.close()

    # -- requests

    def client(self, side: Side, name: str) -> RawClient:
        key = (side.name, name)
        if key not in self._clients:
            self._clients[key] = RawClient(side.port, client_id=f"client of {name}")
            self._clients[key].socket.settimeout(TIMEOUT_SECONDS)
        return self._clients[key]

    def ask(self, name: str, build: Built, version: int) -> Any:
        """Kafka's answer, which is also ours."""
        self._send(name, build, version)
        return self.hear(name)

    def send(self, name: str, build: Built, version: int) -> None:
        self._send(name, build, version)
        time.sleep(ARRIVE_SECONDS)

    def _send(self, name: str, build: Built, version: int) -> None:
        assert name not in self._asked
        for side in self.pair.sides:
            request = build(side)
            client = self.client(side, name)
            client.send(client.frame(request, version))
            self._asked[name] = (request, version)

    def hear(self, name: str) -> Any:
        request, version = self._asked.pop(name)
        answers = []
        for side in self.pair.sides:
            try:
                answer = decode_answer(request, version, self.client(side, name).receive())
            except TimeoutError:
                answer = NoAnswer()
            except Closed:
                answer = None
            if isinstance(answer, JoinGroupResponse) and answer.member_id:
                self.learn(side, name, answer.member_id)
            answers.append(answer)
        self.pair.report(request, version, differences(self.pair, *answers))
        return answers[1]

    def learn(self, side: Side, name: str, member_id: str) -> None:
        side.member_names[member_id] = name
        self.ids[side.name][name] = member_id

    def id_of(self, side: Side, name: str) -> str:
        """The id of a name. For an unknown one the name itself, as an id that nobody gave out."""
        return self.ids[side.name].get(name, name)

    # -- requests of members

    def joining(self, name: str, *, protocols: Protocols = RANGE, **fields: Any) -> Built:
        kind = JoinGroupRequest
        named = [kind.JoinGroupRequestProtocol(name=each, metadata=data) for each, data in protocols]

        def build(side: Side) -> Any:
            given = {
                "group_id": self.group_id,
                "session_timeout_ms": 60_000,
                "rebalance_timeout_ms": 60_000,
                "member_id": self.ids[side.name].get(name, ""),
                "protocol_type": "consumer",
                "protocols": named,
            }
            return kind(**{**given, **fields})

        return build

    def join(self, name: str, version: int = NEWEST["join"], **fields: Any) -> Any:
        return self.ask(name, self.joining(name, **fields), version)

    def send_join(self, name: str, version: int = NEWEST["join"], **fields: Any) -> None:
        """A JoinGroup that triggers a rebalance, or takes part in it."""
        self.send(name, self.joining(name, **fields), version)
        self._wait(lambda state: state in REBALANCING)

    def _wait(self, until: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + SETTLE_SECONDS
        for side in self.pair.sides:
            while not until(self._state(side)):
                assert time.monotonic() < deadline, f"{side.name}: {self._state(side)}"
                time.sleep(ARRIVE_SECONDS)

    def _state(self, side: Side) -> str:
        answer = side.demand(DescribeGroupsRequest(groups=[self.group_id]), NEWEST["describe"])
        return str(answer.groups[0].group_state)

    def knock(self, name: str, version: int = NEWEST["join"], **fields: Any) -> None:
        """A dynamic member gets its id."""
        if version >= 4 and "group_instance_id" not in fields:
            assert self.join(name, version, **fields).error_code == MEMBER_ID_REQUIRED
            self._wait(lambda state: state != "Dead")  # Kafka answers before it stores the group

    def syncing(
        self, name: str, generation: int, given: Mapping[str, bytes] | None = None, **fields: Any
    ) -> Built:
        kind = SyncGroupRequest

        def build(side: Side) -> Any:
            named = {"protocol_type": "consumer", "protocol_name": "range"}
            assignments = [
                kind.SyncGroupRequestAssignment(member_id=self.id_of(side, each), assignment=data)
                for each, data in (given or {}).items()
            ]
            return kind(
                **{
                    "group_id": self.group_id,
                    "generation_id": generation,
                    "member_id": self.id_of(side, name),
                    "assignments": assignments,
                    **named,
                    **fields,
                }
            )

        return build

    def sync(
        self,
        name: str,
        generation: int,
        given: Mapping[str, bytes] | None = None,
        version: int = NEWEST["sync"],
        **fields: Any,
    ) -> Any:
        return self.ask(name, self.syncing(name, generation, given, **fields), version)

    def send_sync(self, name: str, generation: int, version: int = NEWEST["sync"], **fields: Any) -> None:
        self.send(name, self.syncing(name, generation, **fields), version)

    def heartbeat(self, name: str, generation: int, version: int = NEWEST["heartbeat"], **fields: Any) -> int:
        def build(side: Side) -> Any:
            given = {"group_id": self.group_id, "generation_id": generation}
            return HeartbeatRequest(**{**given, "member_id": self.id_of(side, name), **fields})

        code = self.ask("a heart", build, version).error_code
        assert isinstance(code, int)
        return code

    def leave(
        self, *leaving: str | tuple[str, str | None], version: int = NEWEST["leave"], **fields: Any
    ) -> Any:
        """Each is a name, or (name, instance id); "" is an unknown member id."""
        kind = LeaveGroupRequest

        def identity(side: Side, who: str | tuple[str, str | None]) -> Any:
            name, instance = (who, None) if isinstance(who, str) else who
            return kind.MemberIdentity(
                member_id=self.id_of(side, name) if name else "", group_instance_id=instance, **fields
            )

        def build(side: Side) -> Any:
            if version < 3:
                (name,) = leaving
                assert isinstance(name, str)
                return kind(group_id=self.group_id, member_id=self.id_of(side, name))
            return kind(group_id=self.group_id, members=[identity(side, who) for who in leaving])

        return self.ask("a hand", build, version)

    def describe(self, *group_ids: str, version: int = NEWEST["describe"], **fields: Any) -> Any:
        wanted = list(group_ids) or [self.group_id]
        return self.ask("an eye", lambda side: DescribeGroupsRequest(groups=wanted, **fields), version).groups

    # -- common sequences

    def found(self, *names: str, version: int = NEWEST["join"], **fields: Any) -> int:
        """A stable group of these members, the first of which leads; returns its generation."""
        instances = fields.pop("instances", {})
        generation = 0
        for place, name in enumerate(names):
            how = {**fields, **({"group_instance_id": instances[name]} if name in instances else {})}
            self.knock(name, version, **how)
            self.send_join(name, version, **how)
            generation = self.rejoin(*names[:place], version=version, instances=instances, **fields)
            answer = self.hear(name)
            assert answer.error_code == 0, answer
            generation = answer.generation_id
            self.settle(generation, *names[: place + 1], instances=instances)
        return generation

    def rejoin(self, *names: str, version: int = NEWEST["join"], **fields: Any) -> int:
        """Members of the group join again; returns when all have."""
        instances = fields.pop("instances", {})
        for name in names:
            how = {**fields, **({"group_instance_id": instances[name]} if name in instances else {})}
            self.send_join(name, version, **how)
        return max((self.hear(name).generation_id for name in names), default=0)

    def settle(self, generation: int, *names: str, instances: Mapping[str, str] | None = None) -> None:
        """All members sync, the leader (the first) last."""
        given = {name: f"share of {name}".encode() for name in names}
        for name in reversed(names):
            how: dict[str, Any] = {}
            if instances and name in instances:
                how["group_instance_id"] = instances[name]
            if name == names[0]:
                self.send(name, self.syncing(name, generation, given, **how), NEWEST["sync"])
            else:
                self.send_sync(name, generation, **how)
        for name in names:
            assert self.hear(name).error_code == 0
