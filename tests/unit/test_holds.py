from __future__ import annotations

import io
import runpy
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pykafkad import holds, messages
from pykafkad.clock import Clock
from pykafkad.hot import wire
from pykafkad.hot.reactor import Reactor
from pykafkad.net import plain_holds, plain_loop
from pykafkad.slices import Slices


class FakeConnection:
    peer = ("127.0.0.1", 4711)


def frame_head() -> bytes:
    request = messages.DeleteTopicsRequest(topic_names=["a"], timeout_ms=1)
    return bytes(wire.request(request, 3, 7, "the client"))[4:]  # type: ignore[arg-type]


def test_a_line_names_the_request(said: io.StringIO) -> None:
    holds.on_hold("on_frame", 123_456, (FakeConnection(), frame_head(), 720_113))
    line = "DeleteTopics v3 from 127.0.0.1:4711 (client 'the client', 720113 bytes) held the loop for 123 ms of CPU"
    assert line in said.getvalue()


def test_short_holds_are_only_counted(said: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYKAFKAD_HOLD_MS", raising=False)
    holds.on_hold("timer", 99_000, (frame_head, ()))
    assert not said.getvalue()
    monkeypatch.setenv("PYKAFKAD_HOLD_MS", "50")
    holds.on_hold("timer", 99_000, (frame_head, ()))
    assert "timer frame_head of test_holds.py held the loop for 99 ms of CPU" in said.getvalue()


def test_a_line_names_what_a_thread_has_done(said: io.StringIO) -> None:
    def then(result: Any) -> None: ...

    holds.on_hold("post", 200_000, (frame_head, (then, 7)))
    name = "test_a_line_names_what_a_thread_has_done.<locals>.then of test_holds.py"
    assert f"post frame_head of test_holds.py with {name} held the loop for 200 ms" in said.getvalue()


def test_a_run_of_tests_fails_of_holds_that_are_no_accident() -> None:
    root = runpy.run_path(str(Path(__file__).parents[2] / "conftest.py"))
    is_no_accident = root["is_no_accident"]
    once = "post a of b.py held the loop for 60 ms of CPU"
    other = "timer c of d.py held the loop for 60 ms of CPU"
    assert not is_no_accident([]) and not is_no_accident([once, other, other, once])
    assert is_no_accident([once, other, once, once])
    assert is_no_accident(["post a of b.py held the loop for 200 ms of CPU"])


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the holds of these tests out of those of the whole run."""
    monkeypatch.delenv("PYKAFKAD_HOLD_LOG", raising=False)


def test_a_run_of_tests_has_a_file_of_the_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYKAFKAD_HOLD_LOG", str(tmp_path / "holds"))
    for _ in range(2):
        holds.on_hold("timer", 200_000, (frame_head, ()))
    assert (
        tmp_path / "holds"
    ).read_text() == "timer frame_head of test_holds.py held the loop for 200 ms of CPU\n" * 2


@pytest.mark.parametrize("head", [b"", b"\0", b"\x7f\xff\0\1\0\0\0\0\0\5ab", frame_head()[:11]])
def test_any_first_bytes_have_a_line(said: io.StringIO, head: bytes) -> None:
    holds.on_hold("on_frame", 1_000_000, (FakeConnection(), head, len(head)))
    assert "held the loop for 1000 ms" in said.getvalue()


def test_work_in_slices_is_named_by_itself() -> None:
    slices = Slices(lambda turn: None, Clock())

    def a_long_story() -> Any:
        yield

    slices.run(a_long_story(), lambda result: None)
    assert "a_long_story of test_holds.py" in holds.named("call_soon", (slices._turn, ()))
    assert "a_long_story of test_holds.py" in holds.named("call_soon", (partial(a_long_story), ()))


def test_a_callback_names_the_request_it_is_for_wherever_that_stands_in_it() -> None:
    reader = wire.RequestReader(lambda key: wire.Route(messages.DeleteTopicsRequest, (1, 6), None))
    head = frame_head()
    exchange, _ = reader.read(None, head, 0, len(head))
    told = ", for DeleteTopics v3 (client 'the client'),"
    for parts in ((exchange,), (1, exchange), (partial(print, exchange),), (partial(print, 1), exchange)):
        assert holds.for_whom(parts) == told
    assert holds.for_whom((partial(print, 1), 2)) == ""


@pytest.mark.parametrize("make", [Reactor, plain_loop.Reactor])
def test_the_loop_tells_of_callbacks_by_their_cpu_time(make: Any) -> None:
    told: list[tuple[str, int, Any]] = []
    reactor = make(lambda *_: None, on_hold=lambda *arguments: told.append(arguments))

    def busy() -> None:
        end = time.thread_time() + 0.03
        while time.thread_time() < end:
            pass

    reactor.call_soon(time.sleep, 0.03)  # holds the loop without using CPU, as on a busy machine
    reactor.run_pass(0)
    assert reactor.holds.count == 0
    reactor.call_soon(busy)
    reactor.run_pass(0)
    assert [(where, detail) for where, _, detail in told] == [("call_soon", (busy, ()))]
    assert reactor.holds.count == 1 and 30_000 <= told[0][1] == reactor.holds.longest_us
    reactor.close()


def test_what_a_thread_gave_back_is_named_by_its_request() -> None:
    reader = wire.RequestReader({20: wire.Route(messages.DeleteTopicsRequest, (0, 6), None)}.get)
    head = frame_head()
    context, _ = reader.read(None, head, 0, len(head))
    named = holds.named("post", (frame_head, (partial(frame_head, context), None)))  # type: ignore[call-arg]
    given = "post frame_head of test_holds.py with frame_head of test_holds.py"
    assert named == f"{given}, for DeleteTopics v3 (client 'the client'),"


class Time:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_us = 5_000_000
        monkeypatch.setattr(time, "thread_time_ns", lambda: self.now_us * 1000 + 999)


def test_the_plain_loop_counts_what_held_it_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told = Time(monkeypatch), []
    holds = plain_holds.Holds(lambda *said: told.append(said))
    assert (holds.count, holds.longest_us, holds.mark_us) == (0, 0, 0)
    holds.begin()
    assert holds.mark_us == clock.now_us
    for place, held_us in enumerate((19_999, 20_000, 50_000, 30_000)):
        clock.now_us += held_us
        holds.end("timer", place)
        assert holds.mark_us == clock.now_us
    assert told == [("timer", 20_000, 1), ("timer", 50_000, 2), ("timer", 30_000, 3)]
    assert (holds.count, holds.longest_us) == (3, 50_000)


def test_a_hold_counts_if_nobody_is_told_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Time(monkeypatch)
    holds = plain_holds.Holds(None)
    holds.begin()
    clock.now_us += 20_000
    holds.end("timer", None)
    assert (holds.count, holds.longest_us) == (1, 20_000)
