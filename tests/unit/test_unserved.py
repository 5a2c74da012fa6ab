"""What is refused because it is not built or not configured: one line for each client and thing."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import logs, messages, unserved
from pykafkad.quiet import Quiet
from tests.unit.data_kit import Desk
from tests.unit.metadata_fakes import FakeContext, handled, open_broker


@pytest.fixture
def said() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.set_stream(stream)
    yield stream
    logs.set_stream(None)


def quiet() -> Quiet:
    return Quiet(lambda: 0, lambda delay_ms, callback: None)


def frame(api_key: int, version: int, client: bytes) -> bytearray:
    header = api_key.to_bytes(2) + version.to_bytes(2) + (1).to_bytes(4) + len(client).to_bytes(2) + client
    return bytearray(header + b"\0")


@pytest.mark.parametrize(
    ("api_key", "version", "line"),
    [
        (0, 2, "version 2 of Produce is not served; versions 3 to 13 are"),
        (1, 99, "version 99 of Fetch is not served; versions 4 to 18 are"),
    ],
)
def test_an_api_or_a_version(
    tmp_path: Path, said: io.StringIO, api_key: int, version: int, line: str
) -> None:
    desk = Desk(tmp_path)
    desk.quiet = quiet()
    for client in (b"billing", b"billing", b"search"):
        data = frame(api_key, version, client)
        assert desk.dispatcher.on_frame(desk.connection, data, 0, len(data)) is None
        assert desk.connection.closed is not None
    lines = [each.partition("] ")[2] for each in said.getvalue().splitlines()]
    assert lines == [
        f"WARN [unserved] client {name} at 127.0.0.1:1: {line}" for name in ("billing", "search")
    ]


@pytest.mark.parametrize(("api_key", "name"), [(17, "SaslHandshake (API key 17)"), (999, "API key 999")])
def test_an_api_that_is_not_built(tmp_path: Path, said: io.StringIO, api_key: int, name: str) -> None:
    desk = Desk(tmp_path)
    desk.quiet = quiet()
    desk.state_of(desk.connection).software = ("librdkafka", "2.16.1")
    for _ in range(2):
        data = frame(api_key, 0, b"billing")
        assert desk.dispatcher.on_frame(desk.connection, data, 0, len(data)) is None
        assert desk.connection.closed is not None
    (line,) = said.getvalue().splitlines()
    assert line.endswith(f"a client (librdkafka 2.16.1) at 127.0.0.1:1: {name} is not served")


def test_a_client_that_said_what_it_is_is_named_in_full() -> None:
    context: Any = FakeContext(0)
    context.connection.state = type("State", (), {"software": ("librdkafka", "2.16.1")})()
    assert unserved.client_of(context) == "client test (librdkafka 2.16.1) at 127.0.0.1:1"
    context.client_id = "x" * 30_000
    assert len(unserved.client_of(context)) < 200


def test_what_a_config_forbids(tmp_path: Path, said: io.StringIO) -> None:
    from pykafkad.handlers import delete_topics

    broker = open_broker(tmp_path, delete_topic_enable="false")
    broker.quiet = quiet()
    for _ in range(2):
        handled(broker, delete_topics, messages.DeleteTopicsRequest(topic_names=["a"]), FakeContext(4))
    assert said.getvalue().count("\n") == 1
    assert (
        "client test at 127.0.0.1:1: topics cannot be deleted: delete.topic.enable is false"
        in said.getvalue()
    )


def test_coordinators_that_there_are_not(tmp_path: Path, said: io.StringIO) -> None:
    from pykafkad.handlers import find_coordinator

    broker = open_broker(tmp_path)
    broker.quiet = quiet()
    for key_type in (2, 2):
        request = messages.FindCoordinatorRequest(key_type=key_type, coordinator_keys=["t"])
        handled(broker, find_coordinator, request, FakeContext(4))
    assert ["share groups" in line for line in said.getvalue().splitlines()] == [True]
