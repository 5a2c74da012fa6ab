"""Requests about configs, quotas and features with very many elements: in slices, in time proportional to their
number."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, logs, messages
from pykafkad.clock import Clock
from pykafkad.cluster.client_quotas import ClientQuotas
from pykafkad.cluster.config_changes import ConfigChanges, altered_list, without
from pykafkad.cluster.turns import Turns
from pykafkad.slices import GO_ON, SLICE_US, Slices, is_work
from tests.unit.config_kit import (
    APPEND,
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    SET,
    SUBTRACT,
    TOPIC,
    altered,
    handler,
    look_up,
    open_configurable,
)
from tests.unit.metadata_fakes import FakeContext, creatable, create

COUNT = 20_000
A_TIME = 256  # the most elements that may lie between two looks at the clock


class Hasty(Clock):
    """A clock by which a slice is over at every look."""

    us = 0

    def monotonic_us(self) -> int:
        self.us += SLICE_US
        return self.us


class Loop:
    def __init__(self, broker: Any) -> None:
        self.broker = broker
        self.soon: list[Callable[[], None]] = []
        self.turns = 0
        broker.slices = Slices(self.soon.append, Hasty())
        broker.dispatcher.give = self.give
        broker.config_changes = ConfigChanges(broker.config, broker.controller, broker.slices.run)
        broker.client_quotas = ClientQuotas(broker.controller, look_up, broker.slices.run)

    def give(self, context: FakeContext, result: Any) -> None:
        """The same as Dispatcher.give."""
        if is_work(result):
            self.broker.slices.run(result, partial(self.give, context))
        elif result is not context:
            context.answer(result)

    def ask(self, name: str, request: Any, version: int) -> Any:
        context = FakeContext(version)
        self.give(context, handler(name).handle(self.broker, request, context))
        while self.soon:
            self.soon.pop(0)()
            self.turns += 1
        (answer,) = context.answers
        return answer


@pytest.fixture
def loop(tmp_path: Path) -> Any:
    logs.set_level("off")
    broker = open_configurable(tmp_path)
    create(broker, creatable("orders"))
    yield Loop(broker)
    logs.set_level("info")


def incremental(*resources: Any) -> tuple[str, Any, int]:
    kind = messages.IncrementalAlterConfigsRequest
    return "incremental_alter_configs", kind(resources=list(resources), validate_only=True), 1


def legacy(*resources: Any) -> tuple[str, Any, int]:
    kind = messages.AlterConfigsRequest
    made = [
        kind.AlterConfigsResource(
            resource_type=each.resource_type,
            resource_name=each.resource_name,
            configs=[kind.AlterableConfig(name=config.name, value=config.value) for config in each.configs],
        )
        for each in resources
    ]
    return "alter_configs", kind(resources=made, validate_only=True), 2


def keys(resource_type: int, name: str) -> Any:
    return altered(resource_type, name, *((f"key.{number}", SET, "1") for number in range(COUNT)))


def describe_configs(*resources: tuple[int, str]) -> tuple[str, Any, int]:
    kind = messages.DescribeConfigsRequest
    made = [
        kind.DescribeConfigsResource(resource_type=type, resource_name=name, configuration_keys=["flush.ms"])
        for type, name in resources
    ]
    return "describe_configs", kind(resources=made), 4


def quotas(*names: str) -> tuple[str, Any, int]:
    kind = messages.AlterClientQuotasRequest
    operation = kind.OpData(key="producer_byte_rate", value=5.0)
    entries = [
        kind.EntryData(entity=[kind.EntityData(entity_type="user", entity_name=name)], ops=[operation])
        for name in names
    ]
    return "alter_client_quotas", kind(entries=entries, validate_only=True), 1


def users(*names: str) -> tuple[str, Any, int]:
    kind = messages.DescribeUserScramCredentialsRequest
    return "describe_user_scram_credentials", kind(users=[kind.UserName(name=name) for name in names]), 0


def features(*names: str) -> tuple[str, Any, int]:
    kind = messages.UpdateFeaturesRequest
    made = [kind.FeatureUpdateKey(feature=name, max_version_level=1, upgrade_type=1) for name in names]
    return "update_features", kind(feature_updates=made, validate_only=True), 1


def voters(*names: str) -> tuple[str, Any, int]:
    kind = messages.AddRaftVoterRequest
    made = [kind.Listener(name=name, host="h", port=1) for name in names]
    return "add_raft_voter", kind(voter_id=2, voter_directory_id=b"1" * 16, listeners=made), 0


TOPICS = [altered(TOPIC, f"topic-{number}", ("flush.ms", SET, "1")) for number in range(COUNT)]
NAMES = [f"name-{number}" for number in range(COUNT)]

STORM = {
    "incremental: equal": incremental(*[TOPICS[0]] * COUNT),
    "incremental: topics": incremental(*TOPICS),
    **{f"incremental: keys of {kind}": incremental(keys(kind, "orders")) for kind in (TOPIC, CLIENT_METRICS, GROUP)},
    "incremental: keys of the broker": incremental(keys(BROKER, "1")),
    "incremental: keys of all brokers": incremental(keys(BROKER, "")),
    "legacy: equal": legacy(*[TOPICS[0]] * COUNT),
    "legacy: topics": legacy(*TOPICS),
    "legacy: keys": legacy(keys(TOPIC, "orders")),
    "describe: equal": describe_configs(*[(TOPIC, "orders")] * COUNT),
    "describe: unknown topics": describe_configs(*((TOPIC, name) for name in NAMES)),
    "describe: groups": describe_configs(*((GROUP, name) for name in NAMES[: COUNT // 10])),
    "describe: unknown kinds": describe_configs(*((77, name) for name in NAMES)),
    "quotas: equal": quotas(*["ann"] * COUNT),
    "quotas: users": quotas(*NAMES),
    "scram: equal": users(*["ann"] * COUNT),
    "scram: users": users(*NAMES),
    "features: equal": features(*["group.version"] * COUNT),
    "features: unknown": features(*NAMES),
    "voters: equal": voters(*["CONTROLLER"] * COUNT),
    "voters: listeners": voters(*NAMES),
}  # fmt: skip


@pytest.mark.parametrize("what", STORM)
def test_a_large_request_is_done_in_slices(loop: Loop, what: str) -> None:
    name, request, version = STORM[what]
    assert loop.ask(name, request, version) is not None
    count = COUNT // 10 if what == "describe: groups" else COUNT
    assert loop.turns >= count // A_TIME


TOO_MUCH = {
    "legacy: groups": legacy(*(altered(GROUP, name, ("consumer.session.timeout.ms", SET, "50000")) for name in NAMES)),
    "incremental: no such operation": incremental(*TOPICS, altered(TOPIC, "t", ("flush.ms", 77, "1"))),
    "quotas: equal": STORM["quotas: equal"],
    "quotas: users": STORM["quotas: users"],
}  # fmt: skip


@pytest.mark.parametrize("what", TOO_MUCH)
def test_no_turn_does_something_with_every_element(loop: Loop, what: str) -> None:
    name, request, version = TOO_MUCH[what]
    lines: dict[int, Counter[str]] = defaultdict(Counter)  # that were run in each turn

    def count(frame: Any, event: str, argument: Any) -> Any:
        if "pykafkad" not in frame.f_code.co_filename:
            return None
        lines[loop.turns][f"{frame.f_code.co_filename}:{frame.f_lineno}"] += event == "line"
        return count

    sys.settrace(count)
    try:
        assert loop.ask(name, request, version) is not None
    finally:
        sys.settrace(None)
    worst = max(lines.values(), key=Counter.total)
    assert worst.total() < COUNT // 2, worst.most_common(3)


@pytest.mark.parametrize(
    "wrong",
    [
        legacy(*(altered(BROKER, f"no number {number}", ("log.cleaner.threads", SET, "2")) for number in range(50))),
        legacy(*(altered(TOPIC, "orders", ("flush.ms", SET, f"no number {number}")) for number in range(50))),
        incremental(altered(BROKER, "1", ("log.cleaner.threads", SET, "no number"))),
    ],
    ids=["node ids", "values", "the broker's value"],
)  # fmt: skip
def test_what_is_refused_is_freed_without_the_collector(loop: Loop, wrong: Any) -> None:
    def errors_alive() -> int:
        return sum(isinstance(each, errors.KafkaError) for each in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = errors_alive()
        assert all(each.error_code for each in loop.ask(*wrong).responses)
        assert errors_alive() == before
    finally:
        gc.enable()


def test_what_there_is_is_listed_in_slices(loop: Loop) -> None:
    image = loop.broker.image
    image.topics = dict.fromkeys(NAMES, image.topics["orders"])
    assert (
        len(loop.ask("list_config_resources", messages.ListConfigResourcesRequest(), 1).config_resources)
        > COUNT
    )
    assert loop.turns >= COUNT // A_TIME
    image.client_quotas = {(("user", name),): {"producer_byte_rate": 5.0} for name in NAMES}
    before = loop.turns
    assert len(loop.ask("describe_client_quotas", messages.DescribeClientQuotasRequest(), 1).entries) == COUNT
    assert loop.turns - before >= COUNT // A_TIME


def test_what_is_asked_for_again_is_described_once(loop: Loop) -> None:
    name, request, version = describe_configs(
        (TOPIC, "orders"), (GROUP, "g"), (TOPIC, "orders"), (TOPIC, "no")
    )
    request.resources[1].configuration_keys = None
    results = loop.ask(name, request, version).results
    assert [(each.resource_name, each.error_code) for each in results] == [
        ("orders", 0),
        ("g", 0),
        ("orders", 0),
        ("no", errors.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert results[0] is results[2]
    request.resources[2].configuration_keys = ["flush.messages"]
    results = loop.ask(name, request, version).results
    assert [[each.name for each in results[at].configs] for at in (0, 2)] == [
        ["flush.ms"],
        ["flush.messages"],
    ]


def test_a_topic_that_is_deleted_meanwhile_gets_no_configs(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted between two slices, after its existence was checked."""
    controller = loop.broker.controller
    create(loop.broker, *(creatable(f"topic-{number}") for number in range(3)))
    asked: list[str] = []
    is_there = controller.exists

    def exists(name: str) -> bool:
        asked.append(name)
        if asked.count("topic-0") == 2:
            controller.delete_topics([loop.broker.image.topics["topic-0"].id], lambda error: None)
            monkeypatch.undo()
        return bool(is_there(name))

    monkeypatch.setattr(controller, "exists", exists)
    request = messages.IncrementalAlterConfigsRequest(resources=TOPICS[:3])
    answer = loop.ask("incremental_alter_configs", request, 1)
    assert [each.error_code for each in answer.responses] == [errors.UNKNOWN_TOPIC_OR_PARTITION, 0, 0]
    assert (TOPIC, "topic-0") not in loop.broker.image.configs


def test_two_large_changes_of_one_resource_see_each_other(loop: Loop) -> None:
    contexts = [FakeContext(1), FakeContext(1)]
    for context, value in zip(contexts, ("compact", "delete"), strict=True):
        how = APPEND if value == "compact" else SUBTRACT
        resource = altered(TOPIC, "orders", ("cleanup.policy", how, value))
        request = messages.IncrementalAlterConfigsRequest(resources=[resource, *TOPICS[:100]])
        loop.give(context, handler("incremental_alter_configs").handle(loop.broker, request, context))
    while loop.soon:
        loop.soon.pop(0)()
    assert [context.answers[0].responses[0].error_code for context in contexts] == [0, 0]
    assert loop.broker.image.topics["orders"].configs == {"cleanup.policy": "compact"}


def cpu_seconds(work: Callable[[], object]) -> float:
    best = 1e9
    for _ in range(3):
        began = time.thread_time()
        work()
        best = min(best, time.thread_time() - began)
    return best


@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_long_lists_cost_as_much_as_they_are_long(operation: int) -> None:
    def change(count: int) -> str:
        old = ",".join(map(str, range(count)))
        new = ",".join(map(str, range(count // 2, count * 2)))
        return altered_list("log.cleanup.policy", operation, old, new)

    assert cpu_seconds(lambda: change(8_000)) < 10 * cpu_seconds(lambda: change(2_000))


def test_each_given_one_takes_its_first_like_away() -> None:
    assert without(["a", "b", "a", "c", "a"], ["a", "a", "x", "c"]) == ["b", "a"]


# -- one after the other


def test_work_of_turns_goes_one_after_the_other_whatever_becomes_of_it() -> None:
    soon: list[Any] = []
    told: list[Any] = []
    steps: list[str] = []
    turns = Turns(Slices(soon.append, Hasty()).run)

    def work(name: str, problem: Exception | None = None) -> Any:
        for _ in range(3):
            steps.append(name)
            yield GO_ON
        if problem is not None:
            raise problem
        return name

    def fail(result: Any) -> None:
        told.append(result)
        raise RuntimeError("whoever is told may fail")

    problem = ValueError("a")
    turns.run(work("a", problem), told.append)
    turns.run(work("b"), fail)
    turns.run(work("c"), told.append)
    while soon:
        try:
            soon.pop(0)()
        except RuntimeError as error:
            steps.append(str(error)[:7])
    assert "".join(steps) == "aaabbbwhoeverccc"
    assert told == [problem, "b", "c"]


def test_very_many_small_works_need_no_deep_stack() -> None:
    told: list[int] = []
    soon: list[Any] = []
    turns = Turns(Slices(soon.append, Clock()).run)

    def work(number: int) -> Any:
        yield GO_ON
        if number == 0:
            for other in range(1, 5_000):
                turns.run(work(other), told.append)
        return number

    turns.run(work(0), told.append)
    while soon:
        soon.pop(0)()
    assert told == list(range(5_000))


def test_deletes_of_keys_that_are_not_there_are_taken(loop: Loop) -> None:
    operations = [(f"key.{number}", DELETE, None) for number in range(COUNT)]
    name, request, version = incremental(altered(TOPIC, "orders", *operations))
    assert loop.ask(name, request, version).responses[0].error_code == 0


@pytest.mark.parametrize(
    "resource",
    [
        altered(TOPIC, "orders", ("retention.ms", SET, "y" * 32_767)),
        altered(TOPIC, "orders", *((f"{'a' * 30_000}{number}", SET, None) for number in range(3))),
        altered(BROKER, "1" * 32_760, ("log.retention.ms", SET, "1")),
    ],
)
def test_a_text_that_no_answer_can_carry_fails_the_request_as_in_kafka(loop: Loop, resource: Any) -> None:
    name, request, version = incremental(resource, TOPICS[0])
    answer = loop.ask(name, request, version)
    assert [(each.error_code, each.error_message) for each in answer.responses] == [(-1, None)] * 2
    answer.encode(version)
