"""What is noted in the log: what was asked for and denied, and not what is only left out of an answer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad.denials import Denials
from pykafkad.handlers.permits import Permits
from pykafkad.logs import logger
from pykafkad.pure.acl_rules import Rules
from pykafkad.pure.acls import Acl
from pykafkad.pure.authorization import (
    ALTER,
    ANONYMOUS,
    CLUSTER,
    CLUSTER_ACTION,
    DESCRIBE,
    IDEMPOTENT_WRITE,
    READ,
    THE_CLUSTER,
    TOPIC,
    WRITE,
    Need,
)
from pykafkad.quiet import Quiet
from pykafkad.slices import finish

Noted = tuple[int, int, str]


class Desk:
    def __init__(self) -> None:
        self.noted: list[Noted] = []
        self.rules = Rules(note_denied=lambda principal, host, *asked: self.noted.append(asked))
        context = SimpleNamespace(principal=ANONYMOUS, connection=SimpleNamespace(peer=("10.0.0.7", 1)))
        self.permits = Permits(self.rules, cast("Any", context))

    def allow(self, name: str, operation: int, resource: int = TOPIC) -> None:
        self.rules.add(Acl(resource, name, 3, "User:*", "*", operation, 3))


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_what_is_asked_for_and_denied_is_noted(desk: Desk) -> None:
    desk.allow("t", READ)
    assert desk.permits.allow(READ, TOPIC, "t") and not desk.permits.allow(WRITE, TOPIC, "t")
    split = finish(desk.permits.split(READ, TOPIC, ["t", "u"], str))
    assert split == (["t"], ["u"])
    assert desk.noted == [(WRITE, TOPIC, "t"), (READ, TOPIC, "u")]


def test_what_is_left_out_of_an_answer_is_not(desk: Desk) -> None:
    desk.allow("t", READ)
    assert finish(desk.permits.only(READ, TOPIC, ["t", "u"], str)) == ["t"]
    assert desk.permits.operations(TOPIC, "t") == 1 << READ | 1 << DESCRIBE
    assert desk.permits.cluster_operations() == 0 and not desk.permits.show(READ, TOPIC, "v")
    assert desk.noted == []


def test_what_something_else_suffices_for_is_not_either(desk: Desk) -> None:
    some = Need(IDEMPOTENT_WRITE, CLUSTER, or_on_some_topic=WRITE)
    other = Need(ALTER, CLUSTER, or_on_cluster=CLUSTER_ACTION)
    assert not desk.permits.satisfy(some, THE_CLUSTER) and not desk.permits.satisfy(other, THE_CLUSTER)
    assert desk.noted == [(IDEMPOTENT_WRITE, CLUSTER, THE_CLUSTER), (ALTER, CLUSTER, THE_CLUSTER)]
    again = Desk()
    again.allow("t", WRITE)
    again.allow(THE_CLUSTER, CLUSTER_ACTION, CLUSTER)
    assert again.permits.satisfy(some, THE_CLUSTER) and again.permits.satisfy(other, THE_CLUSTER)
    assert again.noted == []


def test_a_line_says_who_what_and_where_from(capsys: pytest.CaptureFixture[str]) -> None:
    note = Denials(Quiet(lambda: 0, lambda *later: None).allows).note
    note(ANONYMOUS, "10.0.0.7", READ, TOPIC, "t\n[forged]")
    note(ANONYMOUS, "10.0.0.7", READ, TOPIC, "again")
    note(ANONYMOUS, "10.0.0.8", ALTER, CLUSTER, THE_CLUSTER)
    note(ANONYMOUS, "10.0.0.9", READ, TOPIC, "x" * 1000)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" INFO [authorizer] ")[2] for line in lines[:2]] == [
        "User:ANONYMOUS from 10.0.0.7 is denied READ of topic t\\n[forged]",
        "User:ANONYMOUS from 10.0.0.8 is denied ALTER of cluster kafka-cluster",
    ]
    assert len(lines) == 3 and len(lines[2]) < 400
    assert not logger("authorizer").debugs
