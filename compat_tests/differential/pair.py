"""Two brokers that get the same requests: `pair.same(request, version)`.

Owns: one connection to each broker (opened again after one was closed), the ids of the topics created on both. Both
brokers must get the same requests at all times, so every request goes through here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.differential.meant import DIFFERENT, NO_ANSWER, NO_UUID
from compat_tests.differential.tree import Difference, differences, shown
from compat_tests.raw import Closed, RawClient, decode_answer
from pykafkad.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    ListOffsetsRequest,
    MetadataRequest,
)

TIMEOUT_SECONDS = 10.0
READY_SECONDS = 30.0
REQUEST_CHARACTERS = 600
PROBE_CORRELATION_ID = 0x7FFFFFFF
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Each = Callable[["Side"], Any]


class NoAnswer:
    """Returned for a broker that neither answers nor closes the connection."""

    def __repr__(self) -> str:
        return f"no answer in {TIMEOUT_SECONDS:g} s"


class Outcome:
    """What happened to a request: its answers, and whether the connection is still open."""

    def __init__(self, answers: list[Any], closed: bool) -> None:
        self.answers = answers
        self.closed = closed

    def __repr__(self) -> str:
        end = "closed" if self.closed else "open"
        return f"{len(self.answers)} answers, then {end}"


class Side:
    def __init__(self, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self.topic_ids: dict[str, bytes] = {}
        self.member_names: dict[str, str] = {}  # member id -> its name in the test
        self._client: RawClient | None = None

    @property
    def is_pykafkad(self) -> bool:
        return self.name == "pykafkad"

    @property
    def client(self) -> RawClient:
        if self._client is None:
            self._client = RawClient(self.port)
            self._client.socket.settimeout(TIMEOUT_SECONDS)
        return self._client

    def hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def topic_name(self, topic_id: bytes) -> str:
        """The name of a topic created through the pair; otherwise the id itself, as text."""
        if topic_id == NO_UUID:
            return "no topic"
        names = [name for name, known in self.topic_ids.items() if known == topic_id]
        return names[0] if names else topic_id.hex()

    def member_name(self, member_id: str) -> str:
        """The member's name, or the id without its random part."""
        return self.member_names.get(member_id) or UUID.sub("<uuid>", member_id)

    def ask(self, request: Any, version: int) -> Any:
        """The answer, or None if the broker closed the connection."""
        try:
            return self.client.ask(request, version)
        except Closed:
            self.hang_up()
            return None
        except TimeoutError:
            self.hang_up()
            return NoAnswer()

    def demand(self, request: Any, version: int) -> Any:
        """The answer; without one the test fails."""
        answer = self.ask(request, version)
        assert answer is not None and not isinstance(answer, NoAnswer), (
            f"{self.name} does not answer {request}"
        )
        return answer

    def outcome(self, data: bytes) -> Outcome:
        """All answers to these bytes, up to the answer to a probe that is sent behind them."""
        probe = self.client.frame(ApiVersionsRequest(), 0)
        probe = probe[:8] + PROBE_CORRELATION_ID.to_bytes(4, "big") + probe[12:]
        answers: list[bytes] = []
        try:
            self.client.send(data + probe)
            while True:
                answer = self.client.receive()
                if int.from_bytes(answer[:4], "big") == PROBE_CORRELATION_ID:
                    return Outcome(answers, False)
                answers.append(answer)
        except Closed:
            self.hang_up()
            return Outcome(answers, True)
        except TimeoutError:
            self.hang_up()
            return Outcome([*answers, NoAnswer()], False)


class Pair:
    def __init__(self, ours: Side, theirs: Side) -> None:
        self.ours = ours
        self.theirs = theirs
        self._numbers: dict[str, int] = {}

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.ours, self.theirs

    def same(self, request: Any | Each, version: int) -> Any:
        """Ask both; fails if their answers differ in a way that is not meant. Returns Kafka's answer."""
        return self.same_of_each(request, version)[1]

    def same_of_each(self, request: Any | Each, version: int) -> tuple[Any, Any]:
        """The same, and returns both answers: (ours, Kafka's); None for a closed connection."""
        mine = request(self.ours) if callable(request) else request
        other = request(self.theirs) if callable(request) else request
        ours, theirs = self.ours.ask(mine, version), self.theirs.ask(other, version)
        if ours is None or theirs is None:
            if ours is not None or theirs is not None:
                closed = [Difference("connection", describe(ours), describe(theirs))]
                self.report(mine, version, closed)
        else:
            self.report(mine, version, differences(self, ours, theirs))
        return ours, theirs

    def differ(self, name: str, request: Any | Each, version: int) -> None:
        """Ask both; each must answer what meant.DIFFERENT has under this name."""
        meant = DIFFERENT[name]
        for side in self.sides:
            answer = side.ask(request(side) if callable(request) else request, version)
            given = NO_ANSWER if isinstance(answer, NoAnswer) else answer
            expected = meant.ours if side.is_pykafkad else meant.theirs
            assert given is not None and expected(given), (
                f"{side.name}: {describe(answer)}, though {meant.why}"
            )

    def same_outcome(
        self, data: bytes | Callable[[Side], bytes], request: Any = None, version: int = 0
    ) -> Outcome:
        """Send bytes to both; compare the answers (as answers to `request`, if given) and whether the connections were
        closed."""
        mine = self.ours.outcome(data(self.ours) if callable(data) else data)
        sent = data(self.theirs) if callable(data) else data
        other = self.theirs.outcome(sent)
        found = []
        if mine.closed != other.closed or len(mine.answers) != len(other.answers):
            found = [Difference("outcome", mine, other)]
        elif request is None:
            pairs = zip(mine.answers, other.answers, strict=True)
            found = [Difference("answer", ours, theirs) for ours, theirs in pairs if ours != theirs]
        else:
            for ours, theirs in zip(mine.answers, other.answers, strict=True):
                decoded = [decode_answer(request, version, answer) for answer in (ours, theirs)]
                found += differences(self, decoded[0], decoded[1])
        self.report(request or sent, version, found)
        return other

    def report(self, request: Any, version: int, found: list[Difference]) -> None:
        if found:
            asked = repr(request)[:REQUEST_CHARACTERS]
            lines = "\n  ".join(str(difference) for difference in found)
            pytest.fail(f"v{version} {asked}\n  {lines}", pytrace=False)

    def new_name(self, stem: str) -> str:
        number = self._numbers[stem] = self._numbers.get(stem, 0) + 1
        return f"{stem}-{number}"

    def topic(self, stem: str = "topic", partitions: int = 1, configs: dict[str, str] | None = None) -> str:
        """A new topic on both, which both serve."""
        name = self.new_name(stem)
        for side in self.sides:
            self._create(side, name, partitions, configs or {})
        for side in self.sides:
            self._wait_for_leaders(side, name, partitions)
        return name

    def settle(self) -> None:
        """Wait until both brokers have applied every change that they answered.

        Kafka answers a change of configs when its controller has written it, and its broker applies it later, in the
        order of writing: once a new topic is served, everything written before it is applied. Two topics, since within
        one step of the broker topics come before configs.
        """
        for _ in range(2):
            self.topic("settled")

    def learn_topics(self) -> None:
        """Read the ids of all topics on both, after tests created or deleted some by requests of their own."""
        for side in self.sides:
            for topic in side.demand(MetadataRequest(topics=None), 12).topics:
                side.topic_ids[topic.name] = topic.topic_id

    def _create(self, side: Side, name: str, partitions: int, configs: dict[str, str]) -> None:
        kind = CreateTopicsRequest
        topic = kind.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        configs = {"retention.ms": "-1", **configs}  # tests write records with timestamps of other years
        topic.configs = [kind.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
        answer = side.demand(kind(topics=[topic], timeout_ms=30_000), 7).topics[0]
        assert answer.error_code == 0, f"{side.name} does not create {name}: {answer}"
        side.topic_ids[name] = answer.topic_id

    def _wait_for_leaders(self, side: Side, name: str, partitions: int) -> None:
        """A leader in Metadata may still be opening its log: ask until each partition answers."""
        kind = ListOffsetsRequest
        parts = [kind.ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(partitions)]
        request = kind(topics=[kind.ListOffsetsTopic(name=name, partitions=parts)])
        deadline = time.monotonic() + READY_SECONDS
        while any(part.error_code for part in side.demand(request, 7).topics[0].partitions):
            assert time.monotonic() < deadline, f"{side.name} has no leaders for {name}"
            time.sleep(0.005)


def describe(answer: Any) -> str:
    return "closed" if answer is None else shown(answer)
