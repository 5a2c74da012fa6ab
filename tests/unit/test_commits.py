"""Group commit: what shares a batch of the metadata log, and when nothing is under way."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors
from pykafkad.clock import ManualClock
from pykafkad.cluster import commits as module
from pykafkad.cluster.commits import Commits
from pykafkad.cluster.metadata_log import MetadataLog
from pykafkad.cluster.metadata_records import encode_all
from pykafkad.cluster.publishing import Publishers
from pykafkad.errors import KafkaError
from pykafkad.messages import NoOpRecord
from tests.unit.metadata_fakes import Later

SIZE = len(encode_all([(NoOpRecord(), 0)])[0])


class Room:
    """A metadata log whose batches are written when a test lets them."""

    def __init__(self, directory: Path) -> None:
        self.log = MetadataLog(str(directory), ManualClock())
        self.log.open()
        self.log.begin_epoch(1)
        self.later = Later()
        self.commits = Commits(self.log, Publishers(), self.later.submit, self.later.soon)
        self.batches: list[int] = []  # how many records each had
        self.told: list[tuple[str, int]] = []
        framed = self.log.framed
        self.log.framed = lambda values: self.batches.append(len(values)) or framed(values)  # type: ignore

    def add(self, name: str, count: int = 1, **how: Any) -> None:
        self.commits.add([(NoOpRecord(), 0)] * count, partial(self.tell, name), **how)

    def tell(self, name: str, error: KafkaError | None) -> None:
        self.told.append((name, error.code if error else errors.NONE))


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def test_it_is_idle_when_nothing_is_queued_and_nothing_written(room: Room) -> None:
    assert room.commits.idle
    room.add("a")
    assert not room.commits.idle, "it is queued"
    room.later.step()
    assert not room.commits.idle, "it is written"
    room.later.all()
    assert room.commits.idle and room.told == [("a", 0)]


@pytest.mark.parametrize(
    ("counts", "batches"),
    [((2, 2), [4]), ((2, 2, 1), [4, 1]), ((3, 2, 2), [3, 4]), ((4, 1), [4, 1])],
)
def test_a_batch_has_no_more_records_than_kafkas(
    counts: tuple[int, ...], batches: list[int], room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_RECORDS_IN_BATCH", 4)
    for count in counts:
        room.add("a", count)
    room.later.all()
    assert room.batches == batches and room.told == [("a", 0)] * len(counts)


def test_a_batch_has_no_more_bytes_than_it_may(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BATCH_BYTES", 4 * SIZE)
    for name, count in (("a", 2), ("b", 2), ("c", 4), ("d", 5), ("e", 1)):
        room.add(name, count)
    room.later.all()
    assert room.batches == [4, 4, 1]
    assert sorted(room.told) == [("a", 0), ("b", 0), ("c", 0), ("d", errors.UNKNOWN_SERVER_ERROR), ("e", 0)]


def test_a_large_change_has_a_batch_of_its_own(room: Room) -> None:
    for count in (1, module.LARGE, 1, module.LARGE + 1, 1):
        room.add("a", count)
    room.later.all()
    assert room.batches == [module.LARGE + 2, module.LARGE + 1, 1]


def test_a_batch_that_cannot_be_submitted_takes_what_is_queued_with_it(room: Room) -> None:
    asked: list[Any] = []

    def refuse(*work: Any) -> None:
        asked.append(work)
        raise RuntimeError("no threads")

    room.commits._submit = refuse
    room.add("a", ends_batch=True)
    room.add("b")
    room.later.all()
    assert room.told == [("a", errors.UNKNOWN_SERVER_ERROR), ("b", errors.UNKNOWN_SERVER_ERROR)]
    assert len(asked) == 1 and room.commits.idle
    with pytest.raises(KafkaError):
        room.commits.check(0)


def test_a_failed_write_is_told_though_nobody_listens(room: Room, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(data: bytes) -> None:
        raise OSError("no room")

    room.log.write = fail  # type: ignore[method-assign, assignment]
    room.add("a")
    room.later.all()
    assert room.told == [("a", errors.KAFKA_STORAGE_ERROR)] and room.commits.has_failed
    assert "the metadata log could not be written: no room" in capfd.readouterr().err


def test_what_is_not_on_the_disk_at_the_start_is_a_failure(room: Room) -> None:
    told: list[int] = []
    room.commits.on_failed = lambda: told.append(1)
    room.commits.settled(None)
    assert not room.commits.has_failed and not told
    room.commits.settled(OSError("no room"))
    assert room.commits.has_failed and told == [1]


def test_an_answer_that_breaks_is_logged_and_the_next_one_given(
    room: Room, capfd: pytest.CaptureFixture[str]
) -> None:
    def breaks(error: KafkaError | None) -> None:
        raise RuntimeError("a bug of ours")

    room.commits.add([(NoOpRecord(), 0)], breaks)
    room.add("b")
    room.later.all()
    assert room.told == [("b", 0)]
    assert "a change of the metadata could not be answered" in capfd.readouterr().err
