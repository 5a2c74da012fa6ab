"""The control socket's commands without a socket: lines to rows, what of a broker is told, and the tools' lines of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pykafkad
from pykafkad.control import commands, tracing
from pykafkad.control.lines import CommandError, check_known, flag, text
from pykafkad.slices import finish
from pykafkad.tools import explain, status, trace
from pykafkad.tools.options import Options

REQUEST: dict[str, Any] = {
    "time_ms": 1_700_000_000_123,
    "api": "Fetch v13",
    "client_id": "app",
    "address": "127.0.0.1:5000",
    "software": "x 1",
    "us": 42,
    "errors": ["OK"],
    "topics": ["t"],
    "groups": [],
}
BROKER = {
    "node_id": 1,
    "cluster_id": "c",
    "version": "0",
    "pid": 7,
    "listeners": ["PLAINTEXT://127.0.0.1:9092"],
    "advertised": [["PLAINTEXT", "127.0.0.1", 9092]],
    "directories": [{"path": "/data", "failure": None}],
    "connections": 1,
    "requests": 5,
    "received_bytes": 2048,
    "sent_bytes": 1,
    "loop_held": {"times": 0, "longest_us": 0},
}


def answered(
    line: bytes, monkeypatch: pytest.MonkeyPatch, rows: list[Any], most_bytes: int = 1000
) -> list[Any]:
    monkeypatch.setitem(commands.COMMANDS, "test", lambda broker, client, arguments: iter(rows))
    lines: list[bytes] = []
    finish(commands.perform(None, None, line, lines, most_bytes))  # type: ignore[arg-type]
    return [json.loads(each) for each in lines]


def test_rows_are_lines_and_the_last_one_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = b'{"version": 1, "command": "test"}\n'
    assert answered(ask, monkeypatch, [{"a": 1}, None, {"b": "x\ny"}]) == [
        {"a": 1},
        {"b": "x\ny"},
        {"end": True},
    ]


def test_an_answer_has_a_bound_and_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"a": "x" * 100}] * 50
    told = answered(b'{"version": 1, "command": "test"}', monkeypatch, rows)
    assert len(told) == 11 and told[-1] == {"end": True, "left_out": 40}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"5",
        b'"x"',
        b"{",
        b"\xff",
        b'{"version": true, "command": "test"}',
        b'{"version": 1, "command": "unknown"}',
        b'{"version": 1, "command": ["test"]}',
        b'{"version": 1}',
    ],
)
def test_what_is_no_request_has_an_answer_that_says_so(line: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    (end,) = answered(line, monkeypatch, [])
    assert end["end"] and end["error"]


def test_arguments_have_types() -> None:
    assert text({"a": "b"}, "a") == "b" and text({}, "a") is None
    assert flag({"a": True}, "a") and not flag({}, "a")
    for wrong in (
        lambda: text({"a": 1}, "a"),
        lambda: flag({"a": "true"}, "a"),
        lambda: check_known({"b": 1}, "a"),
    ):
        with pytest.raises(CommandError):
            wrong()


# -- the trace


class Seen:
    api, client_id, topics, groups = "Fetch v13", "App-1", ["orders", "payments"], ["g"]

    def __init__(self, *errors: str) -> None:
        self.errors = list(errors) or ["OK"]


@pytest.mark.parametrize(
    ("patterns", "wanted"),
    [
        ({}, True),
        ({"api": "fetch"}, True),
        ({"api": "Fetch*"}, True),
        ({"api": "Produce"}, False),
        ({"client": "app-*"}, True),
        ({"client": "app"}, False),
        ({"topic": "pay*", "group": "g"}, True),
        ({"topic": "pay*", "group": "h"}, False),
    ],
)
def test_filters_of_a_trace(patterns: dict[str, str], wanted: bool) -> None:
    made = tracing.Trace(None, None, patterns, only_errors=False, bodies=False)  # type: ignore[arg-type]
    assert made.wants(Seen()) is wanted  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("errors", "wanted"), [(["OK"], False), (["no answer"], False), ([], False), (["NOT_COORDINATOR"], True)]
)
def test_a_trace_of_errors(errors: list[str], wanted: bool) -> None:
    made = tracing.Trace(None, None, {}, only_errors=True, bodies=False)  # type: ignore[arg-type]
    assert made.wants(Seen(*errors)) is wanted  # type: ignore[arg-type]


def test_a_line_of_the_trace() -> None:
    line = trace.line_of({"request": REQUEST})
    assert line.endswith('.123 127.0.0.1:5000 "app" Fetch v13 topics=t OK 42 us')
    bodies = trace.line_of({"request": {**REQUEST, "request": {"a": 1}, "response": {}}})
    assert bodies.endswith('us {"request": {"a": 1}, "response": {}}')
    assert "7 requests are not shown" in trace.line_of({"left_out": 7})


@pytest.mark.parametrize("evil", ["a\nb", "\x1b[2J", "\u202e"])
def test_no_client_forges_a_line_of_the_tools(evil: str) -> None:
    assert trace.line_of({"request": {**REQUEST, "client_id": evil, "topics": [evil]}}).isprintable()
    connection = {"address": "a", "listener": "L", "client_id": evil, "software": "", "software_version": ""}
    rows = [
        {"broker": BROKER},
        {"connection": {**connection, "idle_ms": 5, "unfinished_bytes": 0, "queued_bytes": 3}},
        {
            "group": {
                "id": evil,
                "type": "classic",
                "state": "Stable",
                "members": 1,
                "generation": 1,
                "lag": 2,
            }
        },
    ]
    assert all(line.isprintable() for line in status.lines(status.gathered(rows)))


# -- status


def test_status_is_a_table_for_each_kind() -> None:
    rows: list[dict[str, Any]] = [
        {"broker": BROKER},
        {
            "topic": {
                "name": "t",
                "partitions": 2,
                "records": 3,
                "bytes": 1536,
                "offline": 1,
                "internal": False,
            }
        },
        {
            "waiting": {
                "what": "Fetch",
                "partitions": ["t-0"],
                "partition_count": 9,
                "for": "1 bytes",
                "client_id": "c",
                "address": "a",
                "max_wait_ms": 5,
            }
        },
        {"waiting": {"what": "append", "partitions": ["t-1"], "answers": 2, "for": "the disk"}},
        {"left_out": 4},
    ]
    shown = list(status.lines(status.gathered(rows)))
    assert "  so far       5 requests, 2.0 KiB received, 1 B sent" in shown
    assert "t      2           3        1.5 KiB  1 offline" in shown
    assert '  Fetch "c" (a) of t-0 and 8 more waits for 1 bytes, for 5 ms at the most' in shown
    assert "  append of t-1 waits for the disk" in shown
    assert shown[-1].endswith("4 more lines are not shown")


@pytest.mark.parametrize(
    ("ms", "said"), [(0, "0 ms"), (999, "999 ms"), (1000, "1 s"), (119_999, "119 s"), (120_000, "2 min")]
)
def test_durations(ms: int, said: str) -> None:
    assert status.duration(ms) == said


@pytest.mark.parametrize(
    ("count", "said"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 40, "5.0 TiB"), (1 << 70, "1048576.0 PiB")],
)
def test_sizes(count: int, said: str) -> None:
    assert status.size(count) == said


# -- the tools


def test_explain_wants_to_know_what_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain.main(["--data", "/nowhere"]) == 1
    assert "--group, --topic, or both" in capsys.readouterr().err


@pytest.mark.parametrize("tool", [status, trace])
def test_where_no_broker_runs_that_is_said(
    tool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tool.main(["--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"no broker runs in {tmp_path}\n"


def test_a_trace_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert trace.main(["--data", str(tmp_path), "-n", "0"]) == 1
    assert "1 or more" in capsys.readouterr().err


def test_all_three_find_brokers_the_same_way() -> None:
    for tool in (status, trace, explain):
        assert {"data", "bootstrap-server"} <= Options(tool.OPTIONS, []).known.keys()


def test_a_start_imports_nothing_of_what_it_may_be_asked() -> None:
    code = "import sys, pykafkad.server; print(*[name for name in sys.modules])"
    command = [sys.executable, "-S", "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(Path(pykafkad.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    loaded = set(done.stdout.split())
    assert "pykafkad.control.server" in loaded
    later = (
        "typing",  # and with it contextlib and re
        "contextlib",
        "re",
        "signal",
        "socket",
        "json",
        "fnmatch",
        "pykafkad.request_watch",
        "pykafkad.message_views",
        "pykafkad.control.commands",
    )
    assert not loaded.intersection(later)
