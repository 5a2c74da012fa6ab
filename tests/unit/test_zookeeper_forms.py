"""Answers about topics in the forms of a controller on ZooKeeper."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad import errors, messages
from pykafkad.cluster.topic_names import CLUSTER_METADATA
from pykafkad.handlers import zookeeper_forms
from pykafkad.slices import finish
from pykafkad.tools import topics as topics_tool
from tests.unit.cluster_kit import ClusterDesk

Create = messages.CreateTopicsRequest
Created = messages.CreateTopicsResponse.CreatableTopicResult
Deleted = messages.DeleteTopicsResponse.DeletableTopicResult


class Permits:
    """Configs of one topic alone may be seen."""

    def show(self, operation: int, resource: int, name: str) -> bool:
        return name == "shown"


def row(name: str, code: int) -> Any:
    return Created(name=name, error_code=code)


def test_created_topics_are_in_the_order_of_the_request_and_as_often_as_there() -> None:
    names = ["hidden", "twice", CLUSTER_METADATA, "twice", "shown", "made"]
    request = Create(topics=[Create.CreatableTopic(name=name) for name in names])
    rows = [
        row("made", errors.NONE),
        row("shown", errors.TOPIC_AUTHORIZATION_FAILED),
        row("twice", errors.INVALID_REQUEST),
        row("hidden", errors.TOPIC_AUTHORIZATION_FAILED),
        row(CLUSTER_METADATA, errors.INVALID_REQUEST),
    ]
    found = finish(zookeeper_forms.created(request, rows, cast(Any, Permits())))
    assert [each.name for each in found] == names
    denied = errors.TOPIC_AUTHORIZATION_FAILED
    assert [each.topic_config_error_code for each in found] == [denied, denied, 0, denied, 0, 0]
    assert found[1].error_message == found[3].error_message == zookeeper_forms.TWICE_CREATED


def test_deleted_topics_have_no_texts_and_are_there_as_often_as_asked_for() -> None:
    some_id, other_id = b"1" * 16, b"2" * 16
    asked: list[list[tuple[str | None, bytes]]] = [
        [("a", bytes(16)), ("a", bytes(16))],
        [(None, some_id), (None, other_id), (None, other_id)],
    ]
    rows = [
        Deleted(name="known", topic_id=some_id, error_message="x"),
        Deleted(name="a", topic_id=some_id, error_message="x"),
        Deleted(name=None, topic_id=other_id, error_message="x"),
    ]
    found = finish(zookeeper_forms.deleted(asked, rows))
    assert [each.name for each in found] == ["known", "a", "a", None, None]
    assert {each.error_message for each in found} == {None}


@pytest.mark.parametrize("is_active", [True, False])
def test_who_is_not_the_controller_says_so_before_anything_else(tmp_path: Path, is_active: bool) -> None:
    desk = ClusterDesk(tmp_path, zookeeper_connect="localhost:1")
    cast(Any, desk.parts).controlling = SimpleNamespace(is_active=is_active)
    topics = [messages.CreatePartitionsRequest.CreatePartitionsTopic(name="t", count=3)] * 2
    answer = desk.ask(messages.CreatePartitionsRequest(topics=topics, timeout_ms=1000), 3)
    code, text = (errors.INVALID_REQUEST, zookeeper_forms.TWICE_GROWN) if is_active else (41, None)
    assert [(each.name, each.error_code, each.error_message) for each in answer.results] == [
        ("t", code, text)
    ]
    if not is_active:
        request = Create(topics=[Create.CreatableTopic(name=CLUSTER_METADATA)] * 2, timeout_ms=1000)
        assert [each.error_code for each in desk.ask(request, 5).topics] == [41, 41]
        deletion = messages.DeleteTopicsRequest(topic_names=["t", "t"], timeout_ms=1000)
        assert [each.error_code for each in desk.ask(deletion, 4).responses] == [41, 41]


@pytest.mark.parametrize(
    ("key", "text", "is_good"),
    [
        ("retention.ms", "5", True),
        ("message.downconversion.enable", "false", True),
        ("segment.bytes", "14", True),
        ("message.downconversion.enable", "maybe", False),
        ("nope", "1", False),
    ],
)
def test_the_tool_refuses_what_no_broker_takes(key: str, text: str, is_good: bool) -> None:
    from pykafkad.config import ConfigError

    if is_good:
        topics_tool._check_config(key, text)
    else:
        with pytest.raises(ConfigError):
            topics_tool._check_config(key, text)
