"""Log lines, the way Kafka's look: `[2026-11-18 11:23:27,123] INFO [net] text` on standard error.

Owns the level and the stream. The standard library's logging is not used: it costs milliseconds at start,
and a line here is one write. A user never sees a traceback unless the level is debug.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

DEBUG, INFO, WARN, ERROR, OFF = 10, 20, 30, 40, 100
LEVELS = {"debug": DEBUG, "info": INFO, "warn": WARN, "error": ERROR, "off": OFF}
_NAMES = {DEBUG: "DEBUG", INFO: "INFO", WARN: "WARN", ERROR: "ERROR"}

_level = INFO
_stream: TextIO | None = None  # None: whatever sys.stderr is when the line is written
_loggers: dict[str, Logger] = {}
_second = (-1, "")  # the last second formatted: most lines share it


def set_level(name: str) -> None:
    """debug, info, warn, error or off; ValueError names what is allowed."""
    global _level
    if name.lower() not in LEVELS:
        raise ValueError(f"unknown log level {name}: one of {', '.join(LEVELS)}")
    _level = LEVELS[name.lower()]


def set_stream(stream: TextIO | None) -> None:
    """Send the lines elsewhere (tests); None is standard error again."""
    global _stream
    _stream = stream


def _timestamp() -> str:
    global _second
    now_ms = time.time_ns() // 1_000_000
    second, millisecond = divmod(now_ms, 1000)
    if _second[0] != second:
        _second = (second, time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(second)))
    return f"{_second[1]},{millisecond:03d}"


def _write(level: int, name: str, text: str) -> None:
    # A line is a line: what a client sent may stand in the text, and may not forge further lines.
    text = text.replace("\r", "\\r").replace("\n", "\\n")
    line = f"[{_timestamp()}] {_NAMES[level]} [{name}] {text}\n"
    stream = _stream or sys.stderr
    try:
        stream.write(line)
        stream.flush()
    except UnicodeEncodeError:  # a lone surrogate, or a terminal that knows no UTF-8
        stream.write(line.encode("ascii", "backslashreplace").decode("ascii"))
        stream.flush()
    except (OSError, ValueError):  # the reader went away, the disk is full: serving goes on
        pass


class Logger:
    """Lines of one part of the broker."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def debug(self, text: str) -> None:
        if _level <= DEBUG:
            _write(DEBUG, self.name, text)

    def info(self, text: str) -> None:
        if _level <= INFO:
            _write(INFO, self.name, text)

    def warn(self, text: str) -> None:
        if _level <= WARN:
            _write(WARN, self.name, text)

    def error(self, text: str) -> None:
        if _level <= ERROR:
            _write(ERROR, self.name, text)

    def exception(self, text: str, problem: BaseException) -> None:
        """An error line with what was raised, and where; the whole traceback only at debug level."""
        if _level > ERROR:
            return
        _write(ERROR, self.name, f"{text}: {type(problem).__name__}: {problem}{_where(problem)}")
        if _level <= DEBUG:
            from traceback import format_exception

            for line in "".join(format_exception(problem)).splitlines():
                _write(DEBUG, self.name, line)

    @property
    def debugs(self) -> bool:
        """Whether debug lines are written: ask before building an expensive one."""
        return _level <= DEBUG


def _where(problem: BaseException) -> str:
    frame = problem.__traceback__
    if frame is None:
        return ""
    while frame.tb_next is not None:
        frame = frame.tb_next
    file = frame.tb_frame.f_code.co_filename.rpartition("/")[2]
    return f" ({file}:{frame.tb_lineno})"


def logger(name: str) -> Logger:
    """The logger of one part of the broker, e.g. logger("net")."""
    found = _loggers.get(name)
    if found is None:
        found = _loggers[name] = Logger(name)
    return found
