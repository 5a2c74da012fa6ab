"""Log lines, the way Kafka's look: `[2026-11-18 11:23:27,123] INFO [net] text` on standard error.

Owns the levels and the stream. A logger has the root's level unless it was given one of its own (KIP-412). The
standard library's logging is not used: it costs milliseconds at start, and a line here is one write. A user never sees
a traceback unless the level is debug.
"""

from __future__ import annotations

import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

TRACE, DEBUG, INFO, WARN, ERROR, FATAL, OFF = 5, 10, 20, 30, 40, 50, 100
LEVELS = {"debug": DEBUG, "info": INFO, "warn": WARN, "error": ERROR, "off": OFF}
_NAMES = {
    TRACE: "TRACE",
    DEBUG: "DEBUG",
    INFO: "INFO",
    WARN: "WARN",
    ERROR: "ERROR",
    FATAL: "FATAL",
    OFF: "OFF",
}
_NUMBERS = {name: level for level, name in _NAMES.items()}
ROOT = "root"

_level = INFO  # of the root
_stream: TextIO | None = None  # None: whatever sys.stderr is when the line is written
_loggers: dict[str, Logger] = {}
_second = (-1, "")  # the last second formatted: most lines share it


def set_level(name: str) -> None:
    """debug, info, warn, error or off; ValueError names what is allowed."""
    if name.lower() not in LEVELS:
        raise ValueError(f"unknown log level {name}: one of {', '.join(LEVELS)}")
    _set_root(LEVELS[name.lower()])


def _set_root(level: int) -> None:
    global _level
    _level = level
    for each in _loggers.values():
        if each.own is None:
            each.level = level


def levels() -> dict[str, str]:
    """The loggers there are, the root first, with Kafka's words for their levels."""
    return {ROOT: _NAMES[_level]} | {name: _NAMES[each.level] for name, each in sorted(_loggers.items())}


def set_logger_level(name: str, level: str | None) -> None:
    """Give one of `levels()` a level by Kafka's word, or (None) the root's again."""
    if name == ROOT:
        assert level is not None, "there is no level above the root's"
        _set_root(_NUMBERS[level])
        return
    found = _loggers[name]
    found.own = None if level is None else _NUMBERS[level]
    found.level = _level if found.own is None else found.own


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

    __slots__ = ("level", "name", "own")

    def __init__(self, name: str) -> None:
        self.name = name
        self.own: int | None = None
        self.level = _level

    def debug(self, text: str) -> None:
        if self.level <= DEBUG:
            _write(DEBUG, self.name, text)

    def info(self, text: str) -> None:
        if self.level <= INFO:
            _write(INFO, self.name, text)

    def warn(self, text: str) -> None:
        if self.level <= WARN:
            _write(WARN, self.name, text)

    def error(self, text: str) -> None:
        if self.level <= ERROR:
            _write(ERROR, self.name, text)

    def exception(self, text: str, problem: BaseException) -> None:
        """An error line with what was raised, and where; the whole traceback only at debug level."""
        if self.level > ERROR:
            return
        _write(ERROR, self.name, f"{text}: {type(problem).__name__}: {problem}{_where(problem)}")
        if self.level <= DEBUG:
            from traceback import format_exception

            for line in "".join(format_exception(problem)).splitlines():
                _write(DEBUG, self.name, line)

    @property
    def debugs(self) -> bool:
        """Whether debug lines are written: ask before building an expensive one."""
        return self.level <= DEBUG


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
