"""What a broker beside controllers of Apache Kafka does not answer itself: which APIs, and how the answer comes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad import errors, handlers, messages
from pykafkad.cluster.config_changes import Alteration
from pykafkad.errors import KafkaError
from pykafkad.handlers import forwarded, kraft_apis, kraft_configs, kraft_security
from pykafkad.slices import finish

TOPIC = 2
BY_CONTROLLERS = {
    "create_topics", "delete_topics", "create_acls", "delete_acls", "create_partitions", "elect_leaders",
    "alter_partition_reassignments", "list_partition_reassignments", "alter_client_quotas", "describe_quorum",
    "update_features", "unregister_broker", "add_raft_voter", "remove_raft_voter", "alter_user_scram_credentials",
}  # fmt: skip


def test_the_controllers_answer_what_changes_or_describes_the_cluster() -> None:
    found = {api.module for api in kraft_apis.APIS.values() if api.load() is forwarded}
    assert found == BY_CONTROLLERS
    assert list(kraft_apis.APIS) == sorted(kraft_apis.APIS)


def test_configs_are_looked_at_first_and_tokens_are_refused() -> None:
    apis = kraft_apis.APIS
    assert {key for key, api in apis.items() if api.load() is kraft_configs} == {33, 44}
    assert {key for key, api in apis.items() if api.load() is kraft_security} == {38, 39, 40, 41}
    assert [apis[key].versions for key in (38, 39, 40, 41, 51)] == [(1, 3), (1, 2), (1, 2), (1, 3), (0, 0)]


def test_the_others_are_a_single_nodes_in_the_same_versions() -> None:
    for key, api in handlers.APIS.items():
        mine = kraft_apis.APIS[key]
        assert (mine.key, mine.module, mine.versions, mine.is_advertised) == (
            key,
            api.module,
            api.versions,
            api.is_advertised,
        )
        if api.module not in BY_CONTROLLERS and key not in (33, 44):
            assert mine is api


class Context:
    def __init__(self, api_key: int) -> None:
        self.api_key = api_key
        self.is_deferred = False

    def defer(self) -> Context:
        self.is_deferred = True
        return self


class Room:
    """A broker whose controllers answer when the test says so."""

    def __init__(self, settled: tuple[str, ...] = ()) -> None:
        self.asked: list[tuple[Any, Any]] = []
        self.given: list[tuple[Any, Any]] = []
        self.looked: list[tuple[list[Alteration], bool]] = []
        self.settled = settled
        self.cluster = SimpleNamespace(forwarding=self)
        self.dispatcher = SimpleNamespace(give=lambda context, answer: self.given.append((context, answer)))
        self.config_changes = self
        self.authorizer = None

    def forward(self, request: Any, context: Any, done: Any) -> None:
        self.asked.append((request, done))

    def look(self, wanted: list[Alteration], validate_only: bool, denial: Any) -> Any:
        self.looked.append((wanted, validate_only))
        for each in wanted:
            if each.resource[1] in self.settled:
                each.refuse(KafkaError(errors.INVALID_CONFIG, "not this one"))
        yield


def test_the_answer_of_the_controller_is_the_clients() -> None:
    room: Any = Room()
    context: Any = Context(19)
    request = messages.CreateTopicsRequest()
    assert forwarded.handle(room, request, context) is context and context.is_deferred
    ((asked, done),) = room.asked
    assert asked is request and not room.given
    done("the answer")
    assert room.given == [(context, "the answer")]


def ask_configs(api_key: int, *names: str) -> Any:
    kind: Any = messages.IncrementalAlterConfigsRequest if api_key == 44 else messages.AlterConfigsRequest
    part = kind.AlterConfigsResource
    return kind(resources=[part(resource_type=TOPIC, resource_name=name, configs=[]) for name in names])


def answer_configs(api_key: int, *names: str) -> Any:
    kind: Any = messages.IncrementalAlterConfigsResponse if api_key == 44 else messages.AlterConfigsResponse
    part = kind.AlterConfigsResourceResponse
    return kind(
        responses=[
            part(resource_type=TOPIC, resource_name=name, error_message="of the controller") for name in names
        ]
    )


def rows(answer: Any) -> list[tuple[int, str, int, str | None]]:
    return [
        (row.resource_type, row.resource_name, row.error_code, row.error_message) for row in answer.responses
    ]


@pytest.mark.parametrize("api_key", [33, 44])
def test_of_configs_what_is_wrong_here_is_told_and_the_rest_is_forwarded(api_key: int) -> None:
    room: Any = Room(settled=("b",))
    work = kraft_configs.handle(room, ask_configs(api_key, "a", "b", "c"), Context(api_key))  # type: ignore[arg-type]
    while not room.asked:
        next(work)
    ((asked, done),) = room.asked
    assert [each.resource_name for each in asked.resources] == ["a", "c"]
    done(answer_configs(api_key, "c", "a"))
    answer = finish(work)
    assert rows(answer) == [
        (TOPIC, "a", errors.NONE, "of the controller"),
        (TOPIC, "b", errors.INVALID_CONFIG, "not this one"),
        (TOPIC, "c", errors.NONE, "of the controller"),
    ]
    assert type(answer) is type(answer_configs(api_key))
    ((wanted, validate_only),) = room.looked
    assert not validate_only and {each.is_legacy for each in wanted} == {api_key == 33}


@pytest.mark.parametrize("api_key", [33, 44])
def test_where_nothing_is_left_no_controller_is_asked(api_key: int) -> None:
    room: Any = Room(settled=("a",))
    answer = finish(kraft_configs.handle(room, ask_configs(api_key, "a"), Context(api_key)))  # type: ignore[arg-type]
    assert rows(answer) == [(TOPIC, "a", errors.INVALID_CONFIG, "not this one")] and not room.asked


def test_a_controller_that_cannot_be_asked_fails_the_request() -> None:
    room: Any = Room()
    work = kraft_configs.handle(room, ask_configs(44, "a"), Context(44))  # type: ignore[arg-type]
    while not room.asked:
        next(work)
    room.asked[0][1](ConnectionError("gone"))
    with pytest.raises(ConnectionError, match="gone"):
        finish(work)
