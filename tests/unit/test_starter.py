"""A broker ends with whoever holds the other end of its standard input, and only then removes what was left to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.errors import StartupError
from pykafkad.net import starter
from pykafkad.net.starter import Starter


class Input:
    """Standard input, by a pipe, and a loop that looks at it."""

    def __init__(self, directory: Path | None) -> None:
        self.reader, self.writer = os.pipe()
        self.starter = Starter(None if directory is None else str(directory))
        self.called: Callable[[], None] | None = None
        self.stopped: list[str] = []

    def watch(self, fd: int, callback: Callable[[], None]) -> Any:
        assert fd == self.reader
        self.called = callback
        return SimpleNamespace(close=self._close)

    def _close(self) -> None:
        self.called = None

    def begin(self) -> None:
        self.starter.watch(self, self.stopped.append)  # type: ignore[arg-type]

    def ends(self) -> None:
        os.close(self.writer)
        self.writer = -1

    def shut(self) -> None:
        os.close(self.reader)
        if self.writer >= 0:
            os.close(self.writer)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Input]:
    (tmp_path / "left" / "data").mkdir(parents=True)
    made = Input(tmp_path / "left")
    monkeypatch.setattr(starter, "STDIN", made.reader)
    monkeypatch.setattr(sys, "stdin", sys.__stdin__ or object())
    yield made
    made.shut()


def test_what_is_written_means_nothing_and_the_end_is_the_end(given: Input, tmp_path: Path) -> None:
    given.begin()
    os.write(given.writer, b"anything")
    assert given.called is not None
    given.called()
    assert not given.stopped and not given.starter.is_gone
    given.ends()
    given.called()
    assert given.stopped == ["standard input ended"] and given.starter.is_gone
    assert given.called is None, "it is looked at no more"
    given.starter.clean_up()
    assert not (tmp_path / "left").exists()


def test_a_terminal_that_was_cut_off_has_ended(given: Input, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(fd: int, most: int) -> bytes:
        raise OSError("hung up")

    given.begin()
    monkeypatch.setattr(os, "read", fails)
    assert given.called is not None
    given.called()
    assert given.stopped == ["standard input ended"]


@pytest.mark.parametrize("written", [b"", b"x" * 10_000])
def test_what_ended_while_nobody_looked_is_found_at_the_end(
    given: Input, tmp_path: Path, written: bytes
) -> None:
    given.begin()
    os.write(given.writer, written)
    given.ends()
    given.starter.clean_up()
    assert not (tmp_path / "left").exists() and not given.stopped


def test_while_the_starter_lives_or_is_nobodys_business_its_directory_stays(
    given: Input, tmp_path: Path
) -> None:
    os.write(given.writer, b"still here")
    given.begin()
    given.starter.clean_up()
    assert (tmp_path / "left" / "data").is_dir() and not given.starter.is_gone
    given.ends()
    other = Starter(str(tmp_path / "left"))
    other.clean_up()
    assert (tmp_path / "left").is_dir() and not other.is_gone, "it was never to be looked at"
    alone = Starter()
    alone.watch(given, given.stopped.append)  # type: ignore[arg-type]
    alone.clean_up()
    assert alone.is_gone and (tmp_path / "left").is_dir()


def test_an_input_that_has_no_other_end_is_refused(given: Input, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(fd: int, callback: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(given, "watch", refuse)
    with pytest.raises(
        StartupError, match="has to be a pipe, a socket or a terminal: Operation not permitted"
    ):
        given.begin()
    given.ends()
    given.starter.clean_up()
    assert not given.starter.is_gone
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(StartupError, match="standard input is closed"):
        given.begin()
