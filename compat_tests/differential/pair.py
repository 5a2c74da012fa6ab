"""Two brokers that are asked the same: `pair.same(request, version)`.

Owns: one connection to each broker (opened again after one closed it), the ids of the topics made on both. What both
brokers were told must be the same at all times, so every request goes through here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from compat_tests.differential.meant import NO_UUID
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
    """What a broker gives that neither answers nor hangs up."""

    def __repr__(self) -> str:
        return f"no answer in {TIMEOUT_SECONDS:g} s"


class Outcome:
    """What came of a request: its answers, and whether the connection still stands."""

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
        self.member_names: dict[str, str] = {}  # member id -> whose it is in the test
        self._client: RawClient | None = None

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
        """The name of a topic made through the pair; else the id itself, as text."""
        if topic_id == NO_UUID:
            return "no topic"
        names = [name for name, known in self.topic_ids.items() if known == topic_id]
        return names[0] if names else topic_id.hex()

    def member_name(self, member_id: str) -> str:
        """Whose it is, or the id with its random part left out."""
        return self.member_names.get(member_id) or UUID.sub("<uuid>", member_id)

    def ask(self, request: Any, version: int) -> Any:
        """The answer, or None where the broker hung up."""
        try:
            return self.client.ask(request, version)
        except Closed:
            self.hang_up()
            return None
        except TimeoutError:
            self.hang_up()
            return NoAnswer()

    def demand(self, request: Any, version: int) -> Any:
        """The answer, without which the test cannot go on."""
        answer = self.ask(request, version)
        assert answer is not None and not isinstance(answer, NoAnswer), (
            f"{self.name} does not answer {request}"
        )
        return answer

    def outcome(self, data: bytes) -> Outcome:
        """All that comes back for these bytes up to the answer to a probe sent behind them."""
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
        """Asks both; fails where their answers differ in a way that is not meant. Gives Kafka's answer."""
        return self.same_of_each(request, version)[1]

    def same_of_each(self, request: Any | Each, version: int) -> tuple[Any, Any]:
        """The same, and gives both answers: (ours, Kafka's); None for a connection closed."""
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

    def same_outcome(
        self, data: bytes | Callable[[Side], bytes], request: Any = None, version: int = 0
    ) -> Outcome:
        """Sends bytes to both; compares the answers (as answers to `request`, if given) and who hung up."""
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
        """A new topic on both, that both serve."""
        name = self.new_name(stem)
        for side in self.sides:
            self._create(side, name, partitions, configs or {})
        for side in self.sides:
            self._wait_for_leaders(side, name, partitions)
        return name

    def learn_topics(self) -> None:
        """Reads the ids of all topics of both, after tests made or deleted some by requests of their own."""
        for side in self.sides:
            for topic in side.demand(MetadataRequest(topics=None), 12).topics:
                side.topic_ids[topic.name] = topic.topic_id

    def _create(self, side: Side, name: str, partitions: int, configs: dict[str, str]) -> None:
        kind = CreateTopicsRequest
        topic = kind.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
        configs = {"retention.ms": "-1", **configs}  # tests write records of other years
        topic.configs = [kind.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
        answer = side.demand(kind(topics=[topic], timeout_ms=30_000), 7).topics[0]
        assert answer.error_code == 0, f"{side.name} does not create {name}: {answer}"
        side.topic_ids[name] = answer.topic_id

    def _wait_for_leaders(self, side: Side, name: str, partitions: int) -> None:
        """A leader that Metadata names may still be opening its log: asks until each partition answers."""
        kind = ListOffsetsRequest
        parts = [kind.ListOffsetsPartition(partition_index=i, timestamp=-1) for i in range(partitions)]
        request = kind(topics=[kind.ListOffsetsTopic(name=name, partitions=parts)])
        deadline = time.monotonic() + READY_SECONDS
        while any(part.error_code for part in side.demand(request, 7).topics[0].partitions):
            assert time.monotonic() < deadline, f"{side.name} has no leaders for {name}"
            time.sleep(0.005)


def describe(answer: Any) -> str:
    return "closed" if answer is None else shown(answer)
