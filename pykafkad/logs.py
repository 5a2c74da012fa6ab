"""Log lines: `[2026-11-18 11:23:27,123] INFO [net] text` on standard error; with --log-format kafka, as Kafka's images
write them, `[2026-11-18 11:23:27,123] INFO text (pykafkad.net)`.

Owns the levels and the stream. A logger has the root's level unless it was given its own (KIP-412). The standard
library's logging is not used: it costs milliseconds at start, and a line here is one write. Users never see a traceback
unless the level is debug. If standard error is a pipe that nobody reads, lines that do not fit into it are counted and
dropped, so that the broker never waits for it. Whoever does something else at another level, rather than ask for each
line, follows the levels.
"""

from __future__ import annotations

import os
import stat
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TextIO

TRACE, DEBUG, INFO, WARN, ERROR, FATAL, OFF = 5, 10, 20, 30, 40, 50, 100
LEVELS = {"trace": TRACE, "debug": DEBUG, "info": INFO, "warn": WARN, "error": ERROR, "off": OFF}
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
FORMATS = ("pykafkad", KAFKAS := "kafka")
ROOT = "root"
PIPE_BYTES = 4096  # Linux' PIPE_BUF

_level = INFO  # of the root logger
_as_kafka = False  # the format
_stream: TextIO | None = None  # None: whatever sys.stderr is when the line is written
_loggers: dict[str, Logger] = {}
_followers: list[Callable[[], object]] = []
_lost = 0  # lines dropped since the last one that could be written
_cut = False  # the last line was written only in part
# By descriptor: what polls it, or None for a file, which always accepts lines.
_polls: dict[int, Any] = {}
_second = (-1, "")  # the last second that was formatted: most lines share it


def set_level(name: str) -> None:
    """trace, debug, info, warn, error or off; ValueError names what is allowed."""
    if name.lower() not in LEVELS:
        raise ValueError(f"unknown log level {name}: one of {', '.join(LEVELS)}")
    _set_root(LEVELS[name.lower()])


def _set_root(level: int) -> None:
    global _level
    _level = level
    for each in _loggers.values():
        if each.own is None:
            each.level = level
    _tell_followers()


def follow(changed: Callable[[], object]) -> None:
    """`changed` is called now, and whenever levels change."""
    _followers.append(changed)
    changed()


def unfollow(changed: Callable[[], object]) -> None:
    if changed in _followers:
        _followers.remove(changed)


def _tell_followers() -> None:
    for changed in _followers:
        changed()


def levels() -> dict[str, str]:
    """All loggers, the root first, with their levels by Kafka's names."""
    return {ROOT: _NAMES[_level]} | {name: _NAMES[each.level] for name, each in sorted(_loggers.items())}


def set_logger_level(name: str, level: str | None) -> None:
    """Give one of `levels()` a level by Kafka's name, or (None) that of the root again."""
    if name == ROOT:
        assert level is not None, "there is no level above the root's"
        _set_root(_NUMBERS[level])
        return
    found = _loggers[name]
    found.own = None if level is None else _NUMBERS[level]
    found.level = _level if found.own is None else found.own
    _tell_followers()


def set_format(name: str) -> None:
    """One of FORMATS."""
    global _as_kafka
    assert name in FORMATS, name
    _as_kafka = name == KAFKAS


def say_started(node_id: int) -> None:
    """In Kafka's format, the two lines by which Testcontainers and others see that a broker serves; Kafka writes them
    when it does."""
    if _as_kafka:
        lifecycle = logger("org.apache.kafka.server.BrokerLifecycleManager")
        unfenced = "The broker has been unfenced. Transitioning from RECOVERY to RUNNING"
        lifecycle.info(f"[BrokerLifecycleManager id={node_id}] {unfenced}")
        logger("kafka.server.KafkaRaftServer").info(
            f"[KafkaRaftServer nodeId={node_id}] Kafka Server started"
        )


def set_stream(stream: TextIO | None) -> None:
    """Write the lines to another stream (tests); None is standard error again."""
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
    line = f"[{_timestamp()}] {_NAMES[level]} {_named(name, escaped(text))}\n"
    stream = _stream or sys.stderr
    if stream is not None:  # it was closed when the process began
        put(stream, line)


def escaped(text: str) -> str:
    """Texts may contain what a client sent, which must forge no further lines and send nothing to a terminal."""
    if text.isprintable():
        return text
    return "".join([each if each.isprintable() else each.encode("unicode_escape").decode() for each in text])


def _named(name: str, text: str) -> str:
    if not _as_kafka:
        return f"[{name}] {text}"
    return f"{text} ({name if '.' in name else f'pykafkad.{name}'})"


def put(stream: TextIO, text: str) -> None:
    """Write the lines, unless that would block, since the reader of a pipe may never read again. No error stops the
    broker: not a reader that went away, not a full disk."""
    global _lost, _cut
    try:
        fd = stream.fileno()
    except (OSError, ValueError):  # no descriptor: a test's stream
        return _put_text(stream, text)
    data = text.encode(stream.encoding or "utf-8", "backslashreplace")
    if _lost:
        said = _named("logs", f"{_lost} lines were lost, since nobody read them")
        data = f"[{_timestamp()}] WARN {said}\n".encode() + data
    if _cut:
        data = b"\n" + data
    try:
        left = _put_bytes(fd, data)
    except OSError:
        left = len(data)
    _lost, _cut = (_lost + 1, _cut or left < len(data)) if left else (0, False)


def _put_bytes(fd: int, data: bytes) -> int:
    """Returns how many bytes were left when the pipe was full. A pipe that can be written to accepts PIPE_BYTES."""
    at = 0
    while at < len(data) and _takes(fd):
        at += os.write(fd, data[at : at + PIPE_BYTES])
    return len(data) - at


def _takes(fd: int) -> bool:
    if fd not in _polls:
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
        _polls[fd] = None if is_file else _poll(fd)
    poll = _polls[fd]
    return poll is None or bool(poll.poll(0))


def _poll(fd: int) -> Any:
    import select

    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return poll


def _put_text(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except UnicodeEncodeError:  # a lone surrogate, or a stream without UTF-8
        stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))
        stream.flush()
    except (OSError, ValueError):
        pass


class Logger:
    """The lines of one part of the broker."""

    __slots__ = ("level", "name", "own")

    def __init__(self, name: str) -> None:
        self.name = name
        self.own: int | None = None
        self.level = _level

    def trace(self, text: str) -> None:
        if self.level <= TRACE:
            _write(TRACE, self.name, text)

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
        """An error line with the exception, and where it was raised; the whole traceback only at debug level."""
        if self.level > ERROR:
            return
        _write(ERROR, self.name, f"{text}: {type(problem).__name__}: {problem}{where(problem)}")
        if self.level <= DEBUG:
            from traceback import format_exception

            for line in "".join(format_exception(problem)).splitlines():
                _write(DEBUG, self.name, line)

    @property
    def debugs(self) -> bool:
        """Whether debug lines are written; ask this before building an expensive one."""
        return self.level <= DEBUG


def where(problem: BaseException) -> str:
    """The file and line that raised it, in brackets."""
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
