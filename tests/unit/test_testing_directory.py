"""Which directories of the test kit are left behind by a run that was cut off, and removed by the next."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from pykafkad.testing import directory


@pytest.fixture
def parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(directory, "_swept", set())
    return tmp_path


def make(path: Path) -> Path:
    (path / "data").mkdir(parents=True)
    (path / "lock").touch()
    return path


def test_what_nobody_has_locked_is_removed(parent: Path) -> None:
    left, other = make(parent / "pykafkad-test-1"), make(parent / "somebody-elses")
    directory.sweep(str(parent))
    assert not left.exists() and (other / "lock").exists()


def test_what_is_locked_stays(parent: Path) -> None:
    used = make(parent / "pykafkad-test-1")
    lock = os.open(used / "lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_SH)
    directory.sweep(str(parent))
    os.close(lock)
    assert (used / "data").exists() and (used / "lock").exists()


def test_links_lead_nowhere(parent: Path) -> None:
    elsewhere = make(parent / "elsewhere")
    (parent / "pykafkad-test-1").symlink_to(elsewhere)
    inside = make(parent / "pykafkad-test-2")
    (inside / "lock").unlink()
    (inside / "lock").symlink_to(elsewhere / "lock")
    directory.sweep(str(parent))
    assert (elsewhere / "lock").exists() and (elsewhere / "data").exists() and (inside / "data").exists()
