from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator

import pytest

from pykafkad import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    logs.set_stream(stream)
    logs.set_level("info")
    yield stream
    logs.set_level("info")
    logs.set_stream(None)


def test_a_line_looks_like_kafkas(stream: io.StringIO) -> None:
    logs.logger("net").info("two words")
    assert re.fullmatch(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] INFO \[net\] two words\n", stream.getvalue()
    )


# What the modules of Testcontainers for Java (KRaft) and for Python (KRaft) wait for.
AWAITED = (r".*Transitioning from RECOVERY to RUNNING.*", r".*Kafka Server started.*")


def test_a_line_in_kafkas_format(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_as_kafka", False)
    logs.say_started(7)
    assert stream.getvalue() == ""
    logs.set_format("kafka")
    logs.logger("net").warn("two words")
    logs.say_started(7)
    lines = [line.partition("] ")[2] for line in stream.getvalue().splitlines()]
    assert lines == [
        "WARN two words (pykafkad.net)",
        "INFO [BrokerLifecycleManager id=7] The broker has been unfenced. Transitioning from RECOVERY to RUNNING"
        " (org.apache.kafka.server.BrokerLifecycleManager)",
        "INFO [KafkaRaftServer nodeId=7] Kafka Server started (kafka.server.KafkaRaftServer)",
    ]
    assert all(re.fullmatch(awaited, line) for awaited, line in zip(AWAITED, lines[1:], strict=True))


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    log = logs.logger("net")
    logs.set_level("warn")
    log.debug("d")
    log.info("i")
    log.warn("w")
    log.error("e")
    assert [line.split()[2] for line in stream.getvalue().splitlines()] == ["WARN", "ERROR"]
    logs.set_level("off")
    log.error("e")
    log.exception("e", ValueError())
    assert len(stream.getvalue().splitlines()) == 2


@pytest.mark.parametrize("count", range(6))
def test_each_level_has_its_own_lines_and_those_above(stream: io.StringIO, count: int) -> None:
    names = ["trace", "debug", "info", "warn", "error", "off"]
    logs.set_level(names[count])
    log = logs.logger("net")
    for name in names[1:5]:
        getattr(log, name)("text")
    log.exception("text", ValueError())
    written = [line.split()[2] for line in stream.getvalue().splitlines()]
    expected = [name.upper() for name in names[max(count, 1) : 5]] + (["ERROR"] if count < 5 else [])
    assert written[: len(expected)] == expected and set(written[len(expected) :]) <= {"DEBUG"}
    assert (len(written) > len(expected)) == (count < 2), "the traceback"


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="trace, debug, info, warn, error, off"):
        logs.set_level("loud")


def test_what_a_client_sent_cannot_forge_a_line(stream: io.StringIO) -> None:
    logs.logger("net").info("client a\r\n[2026-01-01 00:00:00,000] INFO [net] b")
    assert len(stream.getvalue().splitlines()) == 1


def test_an_exception_is_one_line_that_says_where(stream: io.StringIO) -> None:
    try:
        {}["key"]  # type: ignore[index]
    except KeyError as problem:
        logs.logger("x").exception("went wrong", problem)
    assert re.search(r"ERROR \[x\] went wrong: KeyError: 'key' \(test_logs.py:\d+\)\n$", stream.getvalue())
    assert len(stream.getvalue().splitlines()) == 1


def test_at_debug_level_an_exception_has_its_traceback(stream: io.StringIO) -> None:
    logs.set_level("debug")
    try:
        {}["key"]  # type: ignore[index]
    except KeyError as problem:
        logs.logger("x").exception("went wrong", problem)
    assert "Traceback" in stream.getvalue()
    assert logs.logger("x").debugs


def test_an_exception_that_was_never_raised_is_logged_too(stream: io.StringIO) -> None:
    logs.logger("x").exception("odd", ValueError("v"))
    assert stream.getvalue().endswith("odd: ValueError: v\n")


class Ascii(io.StringIO):
    def write(self, text: str) -> int:
        text.encode("ascii")
        return super().write(text)


class Gone(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_poor_or_lost_stream_does_not_stop_the_broker() -> None:
    poor = Ascii()
    logs.set_stream(poor)
    logs.logger("x").info("gr\u00fc\u00dfe")
    assert "gr\\xfc\\xdfe" in poor.getvalue()
    logs.set_stream(Gone())
    logs.logger("x").info("nobody reads this")
    logs.set_stream(None)


@pytest.fixture
def pipe() -> Iterator[int]:
    """Reads what arrives in a pipe that the lines are written to; it is not read in between."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with open(writer, "w", encoding="utf-8") as stream:
        logs.set_stream(stream)
        yield reader
        logs.set_stream(None)
        logs._polls.clear()
        logs._lost, logs._cut = 0, False
    os.close(reader)


def drained(reader: int) -> str:
    found = b""
    try:
        while data := os.read(reader, 1 << 20):
            found += data
    except BlockingIOError:
        pass
    return found.decode()


def test_a_pipe_that_nobody_reads_holds_up_nobody(pipe: int) -> None:
    log = logs.logger("x")
    for number in range(5000):
        log.info(f"line {number} " + "x" * (number % 9000))
    lines = drained(pipe).splitlines()
    assert lines[0].endswith("line 0 ") and 1 < len(lines) < 5000
    log.info("once more")
    told, said = drained(pipe).lstrip("\n").splitlines()
    whole = [line for line in lines if " line " in line]
    assert re.search(r"WARN \[logs\] \d+ lines were lost, since nobody read them", told)
    assert said.endswith("once more") and 0 <= len(whole) + int(told.split()[4]) - 5000 <= 1
    log.info("and on")
    assert drained(pipe).count("\n") == 1


def test_a_long_line_is_whole_where_it_fits(pipe: int) -> None:
    logs.logger("x").info("\u00fc" * 20_000)
    assert drained(pipe).endswith("\u00fc" * 20_000 + "\n")


def test_a_stream_that_was_never_there_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    logs.logger("x").error("nobody hears this")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here: it needs Linux")
def test_a_full_disk_is_no_trouble() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        logs.set_stream(full)
        logs.logger("x").error("nobody reads this")
        logs.set_stream(None)
    logs._polls.clear()
    logs._lost = 0
