"""A coordinator for the pure group machines without a log, a loop or a clock: tests move time and read the log.

`Room` does what a shard does with Effects: records are encoded, kept and replayed, timers wait for `advance`, replies
go to the callers. `reload()` is a restart: a new machine from the records that were written.
"""

from __future__ import annotations

from itertools import count
from typing import Any

from pykafkad import errors, messages
from pykafkad.errors import KafkaError
from pykafkad.pure.effects import Caller, Effects, TimerKey, Work
from pykafkad.pure.groups import records
from pykafkad.pure.groups.registry import Groups
from pykafkad.pure.groups.settings import GroupSettings

NOW_MS = 1_700_000_000_000
GROUP = "group"


class Asked(Caller):
    """A request in progress, and its answer."""

    def __init__(self, version: int, client_id: str = "client") -> None:
        super().__init__(version, client_id, "/127.0.0.1")
        self.answers: list[Any] = []

    @property
    def waits(self) -> bool:
        return not self.answers

    @property
    def answer(self) -> Any:
        assert len(self.answers) == 1, f"{len(self.answers)} answers"
        return self.answers[0]

    @property
    def code(self) -> int:
        code = self.answer.error_code
        assert isinstance(code, int)
        return code


class Room:
    def __init__(self, **settings: Any) -> None:
        numbers = count(1)
        self.lines: list[str] = []
        self.settings = GroupSettings(lambda: f"id{next(numbers)}", log=self.lines.append)
        for name, value in settings.items():
            assert hasattr(self.settings, name), name
            setattr(self.settings, name, value)
        self.now_ms = NOW_MS
        self.refuse_with: int | None = None  # records cannot be written
        self.log: list[tuple[bytes, bytes | None]] = []
        self.timers: dict[TimerKey, int] = {}
        self.work: list[Work] = []
        self.work_steps = 0  # pieces that work was done in
        self.works_at_once = True  # else with work_on() and finish_work()
        self.groups = Groups(self.settings)
        self.begin()

    # -- as a shard does

    def do(self, effects: Effects) -> None:
        if effects.records:
            effects = self.append(effects)
        for key, delay_ms in effects.timers:
            if delay_ms is None:
                self.timers.pop(key, None)
            else:
                assert delay_ms >= 0
                self.timers[key] = self.now_ms + delay_ms
        for caller, response in effects.replies:
            assert isinstance(caller, Asked)
            assert caller.waits, f"answered twice: {caller.answers}, {response}"
            response.encode(caller.version)  # an answer that this version cannot encode is a bug
            caller.answers.append(response)
        if effects.work is not None:
            self.work.append(effects.work)

    def append(self, effects: Effects) -> Effects:
        if self.refuse_with is not None:
            if effects.on_refused is None:
                raise KafkaError(self.refuse_with)
            return effects.on_refused(self.refuse_with)
        for key, value in effects.records:
            self.log.append(records.encode(key, value))
            self.groups.replay(key, value)
        return effects

    def reload(self) -> None:
        """As after a restart: all that is known is in the log."""
        self.timers.clear()
        self.work.clear()
        self.do(self.groups.on_unloaded())
        self.groups = Groups(self.settings)
        for key, value in self.log:
            self.groups.replay(*records.decode(key, value))
        self.begin()

    def begin(self) -> None:
        """Begin to use the groups that were loaded."""
        self.groups.is_loading = False
        for group_id in list(self.groups.by_id):
            for effects in self.groups.on_loaded(group_id, self.now_ms):
                self.do(effects)

    def advance(self, delta_ms: int) -> None:
        """Let time pass; each timer expires at its own time."""
        end_ms = self.now_ms + delta_ms
        while self.timers:
            key = min(self.timers, key=self.timers.__getitem__)
            due_ms = self.timers[key]
            if due_ms > end_ms:
                break
            del self.timers[key]
            self.now_ms = max(self.now_ms, due_ms)
            self.do(self.groups.on_timer(key, self.now_ms))
            if self.works_at_once:
                self.finish_work()
        self.now_ms = end_ms

    def finish_work(self) -> None:
        while self.work:
            self.work_on()

    def work_on(self) -> None:
        """One piece."""
        try:
            next(self.work[0].steps)
            self.work_steps += 1
        except StopIteration as end:
            self.do(self.work.pop(0).then(end.value, self.now_ms))

    def ask(self, operation: Any, request: Any, version: int, client_id: str = "client") -> Asked:
        asked = Asked(version, client_id)
        try:
            self.do(operation(request, asked, self.now_ms))
        except KafkaError as error:
            response = getattr(messages, type(request).__name__.replace("Request", "Response"))
            asked.answers.append(response(error_code=error.code))
        return asked

    # -- the classic APIs

    def join(
        self,
        member_id: str = "",
        *,
        version: int = 9,
        group: str = GROUP,
        protocols: Any = (("range", b"r"),),
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        instance: str | None = None,
        reason: str | None = None,
        client_id: str = "client",
    ) -> Asked:
        Request = messages.JoinGroupRequest
        request = Request(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                Request.JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols
            ],
            reason=reason,
        )
        return self.ask(self.groups.join, request, version, client_id)

    def enter(self, **how: Any) -> tuple[str, Asked]:
        """A new dynamic member joins, with both requests to the coordinator: its id, and the second JoinGroup."""
        asked = self.join(**how)
        assert asked.code == errors.MEMBER_ID_REQUIRED
        member_id = asked.answer.member_id
        return member_id, self.join(member_id, **how)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        version: int = 5,
        group: str = GROUP,
        instance: str | None = None,
        protocol_type: str | None = "consumer",
        protocol: str | None = "range",
    ) -> Asked:
        Request = messages.SyncGroupRequest
        given = assignments or {}
        request = Request(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol,
            assignments=[
                Request.SyncGroupRequestAssignment(member_id=id, assignment=data)
                for id, data in given.items()
            ],
        )
        return self.ask(self.groups.sync, request, version)

    def heartbeat(
        self, member_id: str, generation: int, *, instance: str | None = None, group: str = GROUP
    ) -> int:
        request = messages.HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        return self.ask(self.groups.heartbeat, request, 4).code

    def leave(
        self,
        *members: tuple[str, str | None],
        group: str = GROUP,
        version: int = 5,
        reason: str | None = None,
    ) -> Any:
        """Each member is (member id, instance id); returns the answer."""
        Request = messages.LeaveGroupRequest
        identities = [
            Request.MemberIdentity(member_id=id, group_instance_id=instance, reason=reason)
            for id, instance in members
        ]
        request = Request(group_id=group, members=identities)
        return self.ask(self.groups.leave, request, version).answer

    def group(self, group_id: str = GROUP) -> Any:
        return self.groups.by_id[group_id]

    def written(self) -> list[tuple[Any, Any]]:
        return [records.decode(key, value) for key, value in self.log]


def stable(room: Room, size: int = 2, **how: Any) -> list[str]:
    """A stable group of dynamic members, the leader first. The assignment of each is its position."""
    entered = [room.enter(**how) for _ in range(size)]
    room.advance(room.settings.initial_rebalance_delay_ms * 2)
    answers = [asked.answer for _, asked in entered]
    assert [each.error_code for each in answers] == [0] * size
    ids = sorted((member_id for member_id, _ in entered), key=lambda id: id != answers[0].leader)
    settle(room, ids, answers[0].generation_id, **({"group": how["group"]} if "group" in how else {}))
    return ids


def settle(room: Room, ids: list[str], generation: int, **how: Any) -> list[Asked]:
    """All members sync, the leader (first) last."""
    given = {member_id: b"%d" % place for place, member_id in enumerate(ids)}
    asked = [room.sync(member_id, generation, **how) for member_id in ids[1:]]
    asked.append(room.sync(ids[0], generation, given, **how))
    assert [each.code for each in asked] == [0] * len(ids)
    return asked
