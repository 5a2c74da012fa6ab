"""Requests whose handlers fail: the connection is closed, and one line a minute is logged."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from pykafkad.handlers import list_offsets
from pykafkad.messages import ListOffsetsRequest, ListOffsetsResponse
from tests.unit.data_kit import Desk, Ticket


def test_requests_that_fail_again_and_again_are_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: io.StringIO
) -> None:
    def fail(*given: Any) -> None:
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(list_offsets, "handle", fail)
    desk = Desk(tmp_path)
    for _ in range(5):
        desk.connection.closed = None
        assert desk.send(ListOffsetsRequest(replica_id=-1), 1) is None
        assert desk.connection.closed is not None
    text = said.getvalue()
    assert text.count("a request failed; its connection is closed") == 1
    assert "ValueError: a mistake of ours" in text
    desk.advance(60_000)
    assert "4 more from" in said.getvalue()


def test_work_that_fails_leaves_its_place_to_what_was_answered_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_later(*given: Any) -> Any:
        yield
        raise ValueError("a mistake of ours")

    monkeypatch.setattr(list_offsets, "handle", fail_later)
    desk, answers = Desk(tmp_path), []
    monkeypatch.setattr(Ticket, "answer", lambda ticket, parts: answers.append(parts))
    assert desk.send(ListOffsetsRequest(replica_id=-1), 1) is not None
    desk.advance(0)
    assert answers == [None] and desk.connection.closed is not None


@pytest.mark.parametrize("version", [1, 11])
def test_a_throttled_client_is_told_and_made_to_wait(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several quotas the one that takes longest counts; the answer leaves at once."""

    def exceed(broker: Any, request: Any, context: Any) -> Any:
        for delay_ms in (40, 70, 50):
            context.throttle(delay_ms)
        return ListOffsetsResponse()

    monkeypatch.setattr(list_offsets, "handle", exceed)
    desk = Desk(tmp_path)
    answer = desk.ask(ListOffsetsRequest(replica_id=-1), version)
    assert answer.throttle_time_ms == (0 if version < 2 else 70)  # version 1 has no place for it
    assert desk.connection.muted == [40, 70]
