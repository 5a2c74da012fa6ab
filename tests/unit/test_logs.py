from __future__ import annotations

import io
import re
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


def test_an_unknown_level_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="debug, info, warn, error, off"):
        logs.set_level("loud")


def test_what_a_client_sent_cannot_forge_a_line(stream: io.StringIO) -> None:
    logs.logger("net").info("client a\r\n[2026-01-01 00:00:00,000] INFO [net] b")
    assert len(stream.getvalue().splitlines()) == 1


def test_an_exception_is_one_line_that_says_where(stream: io.StringIO) -> None:
    try:
        {}["key"]
    except KeyError as problem:
        logs.logger("x").exception("went wrong", problem)
    assert re.search(r"ERROR \[x\] went wrong: KeyError: 'key' \(test_logs.py:\d+\)\n$", stream.getvalue())
    assert len(stream.getvalue().splitlines()) == 1


def test_at_debug_level_an_exception_has_its_traceback(stream: io.StringIO) -> None:
    logs.set_level("debug")
    try:
        {}["key"]
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
