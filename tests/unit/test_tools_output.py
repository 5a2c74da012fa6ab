"""What the tools write, and when: the progress line is only for a terminal, and gone before anything else is there."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pykafkad.tools import output

ERASED = "\r\x1b[K"


class Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def terminal_for(monkeypatch: pytest.MonkeyPatch) -> Stream:
    """Standard output and standard error, as one terminal shows them."""
    stream = Stream(terminal=True)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


@pytest.mark.parametrize("write", [output.line, output.error])
def test_progress_is_gone_before_results_and_messages(
    monkeypatch: pytest.MonkeyPatch, write: Callable[[str], None]
) -> None:
    terminal = terminal_for(monkeypatch)
    progress = output.Progress()
    progress.show("5 of 9")
    write("result")
    output.flush()
    assert terminal.getvalue() == f"{ERASED}5 of 9{ERASED}result\n"
    output.line("another")
    output.flush()
    assert terminal.getvalue().count(ERASED) == 2, "there was nothing left to erase"


def test_it_comes_back_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = terminal_for(monkeypatch)
    progress = output.Progress()
    progress.show("5 of 9")
    output.error("odd")
    progress.show("6 of 9")
    progress.clear()
    assert terminal.getvalue() == f"{ERASED}5 of 9{ERASED}odd\n{ERASED}6 of 9{ERASED}"


def test_without_a_terminal_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Stream(terminal=False)
    monkeypatch.setattr(sys, "stderr", stream)
    progress = output.Progress()
    progress.show("5 of 9")
    assert not progress.due and not stream.getvalue()


def into(descriptor: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard output is this descriptor, as it is in a process of its own."""
    monkeypatch.setattr(output, "STDOUT", descriptor)
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)


def test_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    into(writer, monkeypatch)
    output.check_read()
    output.line("read")
    output.flush()
    os.close(reader)
    with pytest.raises(output.Unread):
        output.check_read()
    output.line("not read")
    with pytest.raises(output.Unread):
        output.flush()
    os.close(writer)


def test_what_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    descriptor = os.open(tmp_path / "file", os.O_RDONLY)
    into(descriptor, monkeypatch)
    output.line("lost")
    with pytest.raises(output.Unwritable, match="standard output: Bad file descriptor"):
        output.flush()
    os.close(descriptor)
