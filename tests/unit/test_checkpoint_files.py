"""Kafka's checkpoint files and partition.metadata: what is read of them, and what is not believed."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pykafkad import uuids
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.checkpoints.checkpoints import CheckpointError
from pykafkad.storage.files import OFFSET_MAX

ID = bytes(range(16))
LONG, INT = 1 << 63, 1 << 31


@pytest.fixture
def offsets(tmp_path: Path) -> Path:
    return tmp_path / checkpoints.RECOVERY_POINTS


@pytest.fixture
def epochs(tmp_path: Path) -> Path:
    return tmp_path / "leader-epoch-checkpoint"


def test_what_is_written_is_as_kafka_writes_it_and_is_read_again(tmp_path: Path, offsets: Path) -> None:
    known = {("orders", 0): 12, ("orders", 1): 0, ("a.b-c", 7): OFFSET_MAX}
    checkpoints.write_offsets(str(offsets), known)
    assert offsets.read_bytes() == b"0\n3\norders 0 12\norders 1 0\na.b-c 7 %d\n" % OFFSET_MAX
    assert checkpoints.read_offsets(str(offsets)) == known
    for offset in (17, 18):  # a new file, and one in the place of another
        checkpoints.write_epochs(str(tmp_path), [(0, 0), (3, offset)])
        assert checkpoints.read_epochs(str(tmp_path)) == [(0, 0), (3, offset)]


def test_a_file_that_is_missing_or_empty_has_no_entries(tmp_path: Path, offsets: Path, epochs: Path) -> None:
    assert checkpoints.read_offsets(str(offsets)) == {} and checkpoints.read_epochs(str(tmp_path)) == []
    for path in (offsets, epochs):
        path.write_bytes(b"")
    assert checkpoints.read_offsets(str(offsets)) == {} and checkpoints.read_epochs(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0", "does not begin with a version and a count"),
        ("zero\n0\n", "does not begin with a version and a count"),
        ("0\nnone\n", "does not begin with a version and a count"),
        ("1\n0\n", "has version 1, known is 0"),
        ("0\n1\n", "announces 1 entries and has 0"),
        ("0\n0\norders 0 1\n", "announces 0 entries and has 1"),
        ("0\n1\norders 0\n", "has a line that has not 3 fields"),
        ("0\n2\norders 0 1\norders 0 1 2\n", "has a line that has not 3 fields"),
        ("0\n1\norders x 1\n", "has a line that is not topic, partition, offset"),
        (f"0\n1\norders 0 {OFFSET_MAX + 1}\n", "has a line that is not topic, partition, offset"),
        (f"0\n1\norders 0 {-LONG - 1}\n", "has a line that is not topic, partition, offset"),
    ],
)
def test_offsets_that_are_not_believed(offsets: Path, text: str, why: str) -> None:
    offsets.write_text(text)
    with pytest.raises(CheckpointError) as refused:
        checkpoints.read_offsets(str(offsets))
    assert str(refused.value) == f"{offsets} {why}"


@pytest.mark.parametrize("row", [f"{INT} 0", f"{-INT - 1} 0", f"0 {OFFSET_MAX + 1}", f"0 {-LONG - 1}", "x 0"])
def test_epochs_that_are_not_believed(tmp_path: Path, epochs: Path, row: str) -> None:
    epochs.write_text(f"0\n1\n{row}\n")
    with pytest.raises(CheckpointError) as refused:
        checkpoints.read_epochs(str(tmp_path))
    assert str(refused.value) == f"{epochs} has a line that is not epoch, offset"


def test_the_smallest_and_largest_numbers_are_read(tmp_path: Path, offsets: Path, epochs: Path) -> None:
    offsets.write_text(f"0\n2\nt 0 {-LONG}\nt 1 {OFFSET_MAX}\n")
    assert checkpoints.read_offsets(str(offsets)) == {("t", 0): -LONG, ("t", 1): OFFSET_MAX}
    epochs.write_text(f"0\n2\n{-INT} 1\n{INT - 1} 2\n")
    assert checkpoints.read_epochs(str(tmp_path)) == [(-INT, 1), (INT - 1, 2)]


def test_the_disk_is_not_taken_for_a_file_that_is_not_there(
    tmp_path: Path, offsets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(checkpoints, "read_file", broken)
    for read in (
        lambda: checkpoints.read_offsets(str(offsets)),
        lambda: checkpoints.read_epochs(str(tmp_path)),
        lambda: checkpoints.read_topic_id(str(tmp_path)),
    ):
        with pytest.raises(OSError, match="Input/output error"):
            read()


def test_a_file_is_replaced_in_an_order_that_a_power_failure_may_interrupt(
    offsets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[tuple[str, bytes]] = []
    sync = files.fsync_path
    monkeypatch.setattr(
        files, "fsync_path", lambda path: (steps.append((path, offsets.read_bytes())), sync(path))[1]
    )
    files.write_file(str(offsets), b"old")
    files.replace_file(str(offsets), b"new")
    assert steps == [(f"{offsets}.tmp", b"old"), (str(offsets.parent), b"new")]
    files.replace_file(str(offsets), b"newer", sync=False)
    assert offsets.read_bytes() == b"newer" and len(steps) == 2


def test_files_that_are_written_are_closed(offsets: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        files.write_file(str(offsets), b"new")
        files.replace_file(str(offsets), b"newer")
        files.last_bytes(str(offsets), 3)
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_cannot_be_renamed_takes_nothings_place(tmp_path: Path) -> None:
    (tmp_path / "there").write_bytes(b"there")
    with pytest.raises(FileNotFoundError):
        files.rename(f"{tmp_path}/nothing", f"{tmp_path}/there")
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_a_file_that_is_no_text_or_no_file_is_not_believed(offsets: Path) -> None:
    offsets.write_bytes(b"0\n1\n\xff 0 1\n")
    with pytest.raises(CheckpointError, match="is not text"):
        checkpoints.read_offsets(str(offsets))
    offsets.unlink()
    offsets.mkdir()
    with pytest.raises(CheckpointError, match="cannot be read: Is a directory"):
        checkpoints.read_offsets(str(offsets))


def test_the_topic_id_is_found_among_other_lines(tmp_path: Path) -> None:
    checkpoints.write_topic_id(str(tmp_path), ID)
    path = tmp_path / "partition.metadata"
    assert path.read_text() == f"version: 0\ntopic_id: {uuids.to_text(ID)}"
    assert checkpoints.read_topic_id(str(tmp_path)) == ID
    path.write_text(f"a: line: of a later version\nnone\n{path.read_text()} \n")
    assert checkpoints.read_topic_id(str(tmp_path)) == ID


@pytest.mark.parametrize(
    "text", ["", "version: 0\n", "topic_id: x", f"topic_id: {uuids.to_text(uuids.ZERO)}"]
)
def test_without_a_topic_id_there_is_none(tmp_path: Path, text: str) -> None:
    assert checkpoints.read_topic_id(str(tmp_path)) is None
    (tmp_path / "partition.metadata").write_text(text)
    assert checkpoints.read_topic_id(str(tmp_path)) is None
