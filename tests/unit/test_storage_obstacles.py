"""Unexpected files in a log directory: no start fails because of them, no directory goes offline, nothing is deleted
through a link, and everything else continues.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from pykafkad import logs as log_lines
from pykafkad.clock import ManualClock
from pykafkad.errors import KAFKA_STORAGE_ERROR, KafkaError
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.log.log import Log
from pykafkad.storage.manager import LogManager, StorageOffline
from pykafkad.storage.recovery import recovery
from pykafkad.workers import submit_inline
from tests.storage_kit import NOW_MS, TOPIC_ID, append, batch, lead, manager, read_all, topic_config

CONFIG = topic_config(file_delete_delay_ms=0, segment_bytes=300)
KNOWN = {("orders", 0): TOPIC_ID, ("other", 0): TOPIC_ID}
COUNT = 9
LOG, INDEX, TIME_INDEX = f"{0:020d}.log", f"{0:020d}.index", f"{0:020d}.timeindex"

Make = Callable[[Path], None]


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> StringIO:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # there are hundreds, and no power failures here
    stream = StringIO()
    monkeypatch.setattr(log_lines, "_stream", stream)
    return stream


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory elsewhere, with a file in it."""
    path = tmp_path / "outside"
    path.mkdir()
    (path / "precious").write_bytes(b"mine")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A log directory with two partitions, stopped cleanly."""
    path = tmp_path / "home"
    logs = manager(path)
    logs.open_all({}, lambda topic: CONFIG)
    for topic, _ in KNOWN:
        partition = logs.create(topic, 0, TOPIC_ID, CONFIG, 0)
        for number in range(COUNT):
            append(partition, batch(b"%d" % number))
    logs.close()
    return path


@pytest.fixture
def start(home: Path) -> Iterator[Callable[[], LogManager]]:
    started: list[LogManager] = []

    def begin() -> LogManager:
        logs = manager(home, clock=ManualClock())
        started.append(logs)
        logs.open_all(KNOWN, lambda topic: CONFIG)
        for partition in logs:
            lead(partition, 1)
        return logs

    yield begin
    for logs in started:
        logs.close(clean=False)


def socket_at(path: Path) -> None:
    """Bound by a short name, since the path of a test is too long for its address."""
    here = os.getcwd()
    os.chdir(path.parent)
    try:
        socket.socket(socket.AF_UNIX).bind("s")
        os.rename("s", path.name)
    finally:
        os.chdir(here)


def tree_at(path: Path) -> None:
    (path / "deep" / "deeper").mkdir(parents=True)
    (path / "deep" / "deeper" / "file").write_bytes(b"x")


def link_to(target: str) -> Make:
    return lambda path: path.symlink_to(target)


def link_outside(path: Path) -> None:
    home = next(each for each in path.parents if each.name == "home")
    path.symlink_to(home.parent / "outside")


OBSTACLES: dict[str, Make] = {
    "directory": lambda path: path.mkdir(),
    "tree": tree_at,
    "fifo": lambda path: os.mkfifo(path),
    "socket": socket_at,
    "dangling link": link_to("nowhere"),
    "loop": lambda path: path.symlink_to(path),
    "link to a directory": link_outside,
}
EACH = pytest.mark.parametrize("obstacle", OBSTACLES)


def lies_untouched(outside: Path) -> bool:
    return (outside / "precious").read_bytes() == b"mine"


def is_well(logs: LogManager) -> bool:
    """All records are there, and more can be written."""
    for partition in logs:
        assert len(read_all(partition)) == COUNT
        append(partition, batch(b"more"))
    return all(directory.is_online for directory in logs.directories) and len(logs.partitions) == len(KNOWN)


# -- a partition that is deleted


@EACH
def test_a_partition_is_deleted_with_whatever_lies_in_it(
    obstacle: str, home: Path, start: Callable[[], LogManager], outside: Path
) -> None:
    logs = start()
    OBSTACLES[obstacle](home / "orders-0" / "left-here")
    OBSTACLES[obstacle](home / "orders-0" / f"{7:020d}.log")
    logs.delete("orders", 0)
    logs.deletions.unlink_due()
    assert logs.directories[0].is_online and lies_untouched(outside)
    assert not [name for name in os.listdir(home) if name.startswith("orders")]


@EACH
def test_what_a_crash_left_of_a_deletion_goes_with_the_start(
    obstacle: str, home: Path, start: Callable[[], LogManager], outside: Path
) -> None:
    gone = home / files.marked_directory("gone-0", "delete")
    gone.mkdir()
    OBSTACLES[obstacle](gone / "left-here")
    OBSTACLES[obstacle](home / files.marked_directory("gone-1", "delete"))
    logs = start()
    logs.deletions.unlink_due()
    assert is_well(logs) and lies_untouched(outside)
    assert not [name for name in os.listdir(home) if name.startswith("gone")]


def test_a_partition_whose_directory_is_a_link_is_deleted_and_what_it_leads_to_is_not(
    home: Path, start: Callable[[], LogManager], outside: Path
) -> None:
    os.rename(home / "orders-0", outside / "orders")
    (home / "orders-0").symlink_to(outside / "orders")
    logs = start()
    assert is_well(logs)
    logs.delete("orders", 0)
    logs.deletions.unlink_due()
    assert logs.directories[0].is_online and (outside / "orders" / LOG).exists()
    assert not [name for name in os.listdir(home) if name.startswith("orders")]


def test_what_cannot_be_removed_is_told_once_and_nothing_else_is_kept(
    home: Path, start: Callable[[], LogManager], lines: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = start()
    tree_at(home / "orders-0" / "locked")
    unlink = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == "file":
            raise PermissionError(1, "Operation not permitted")
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    logs.delete("orders", 0)
    logs.delete("other", 0)
    logs.deletions.unlink_due()
    monkeypatch.undo()
    assert logs.directories[0].is_online
    (left,) = (name for name in os.listdir(home) if name.endswith("-delete"))
    assert left.startswith("orders") and os.listdir(home / left) == ["locked"]


@pytest.mark.parametrize("number", [2, 13, 16, 39, 26], ids=lambda number: os.strerror(number))
def test_a_deletion_that_the_names_refuse_is_no_failure_of_the_disk(
    number: int, home: Path, start: Callable[[], LogManager], lines: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def refuse(source: str, target: str) -> None:
        if target.endswith("-delete"):
            raise OSError(number, os.strerror(number))
        rename(source, target)

    logs = start()
    monkeypatch.setattr(os, "rename", refuse)
    logs.delete("orders", 0)
    assert logs.directories[0].is_online and logs.get("other", 0) is not None
    assert lines.getvalue().count("cannot be renamed") == 1


def test_a_deletion_that_the_disk_refuses_is(
    start: Callable[[], LogManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, target: str) -> None:
        raise OSError(5, os.strerror(5))

    logs = start()
    monkeypatch.setattr(os, "rename", refuse)
    logs.delete("orders", 0)
    assert not logs.directories[0].is_online


def test_a_partition_whose_directory_went_can_be_deleted(home: Path, start: Callable[[], LogManager]) -> None:
    logs = start()
    os.rename(home / "orders-0", home.parent / "away")
    logs.delete("orders", 0)
    assert logs.directories[0].is_online and logs.get("orders", 0) is None


# -- a start

NAMES = {
    "foreign": "left-here",
    "log": f"{5:020d}.log",
    "index": INDEX,
    "time index": TIME_INDEX,
    "aborted": f"{0:020d}.txnindex",
    "snapshot": f"{COUNT:020d}.snapshot",
    "deleted": f"{0:020d}.log.deleted",
    "cleaned": f"{0:020d}.log.cleaned",
    "swap": f"{0:020d}.log.swap",
    "epochs": "leader-epoch-checkpoint",
    "epochs' half": "leader-epoch-checkpoint.tmp",
    "topic id": "partition.metadata",
    "foreign swap": "foo.swap",
    "foreign cleaned": "foo.cleaned",
}


@EACH
@pytest.mark.parametrize("what", NAMES)
@pytest.mark.parametrize("clean", [True, False], ids=["clean", "unclean"])
def test_a_start_goes_on_whatever_lies_in_a_partitions_directory(
    what: str, obstacle: str, clean: bool, home: Path, start: Callable[[], LogManager], outside: Path
) -> None:
    path = home / "orders-0" / NAMES[what]
    if path.exists():
        path.unlink()
    OBSTACLES[obstacle](path)
    if not clean:
        (home / ".kafka_cleanshutdown").unlink()
    logs = start()
    assert is_well(logs) and lies_untouched(outside)
    for partition in logs:
        append(partition, *(batch(b"x") for _ in range(5)))  # rolls: every kind of file is written
        partition.flush()
    logs.close()
    assert logs.directories[0].is_online


AT_THE_TOP = [
    checkpoints.RECOVERY_POINTS,
    checkpoints.LOG_STARTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.CLEANED,
    f"{checkpoints.RECOVERY_POINTS}.tmp",
    ".kafka_cleanshutdown.tmp",
    "lost+found",
    "-",
    "-0",
    "orders-",
    "orders-00",
    "orders-0.x-delete",
    "orders-99999999999",
    "orders-٠",
    "gone-0",
    "ö" * 126 + "-0",
    "x" * 253 + "-0",
]


@EACH
@pytest.mark.parametrize("name", AT_THE_TOP, ids=lambda name: name[:30])
def test_a_start_goes_on_whatever_lies_in_a_log_directory(
    name: str, obstacle: str, home: Path, start: Callable[[], LogManager], outside: Path
) -> None:
    path = home / name
    if path.exists():
        path.unlink()
    OBSTACLES[obstacle](path)
    logs = start()
    assert is_well(logs) and lies_untouched(outside)
    logs.checkpoint_recovery_points()
    logs.checkpoint_high_watermarks()
    logs.close()
    assert logs.directories[0].is_online and (home / ".kafka_cleanshutdown").is_file()
    assert (home / checkpoints.RECOVERY_POINTS).is_file()


@pytest.mark.parametrize("kind", ["file", "directory"])
@pytest.mark.parametrize("where", [".", "orders-0"])
def test_a_name_that_is_no_text(
    where: str, kind: str, home: Path, start: Callable[[], LogManager], lines: StringIO
) -> None:
    path = os.fsencode(home / where) + b"/\xff\xfe-0"
    if kind == "file":
        os.close(os.open(path, os.O_CREAT))
    else:
        os.mkdir(path)
    logs = start()
    assert is_well(logs)
    logs.delete("orders", 0)
    logs.deletions.unlink_due()
    assert logs.directories[0].is_online and not [
        name for name in os.listdir(home) if name.startswith("orders-0.")
    ]


@pytest.mark.parametrize(
    "name",
    [
        "foo.log",
        "9" * 20 + ".log",
        "٠" * 20 + ".log",
        "-" + "0" * 19 + ".log",
        "9" * 20 + ".snapshot",
        "9" * 20 + ".log.swap",
        "9" * 20 + ".log.cleaned",
        "foo.log.swap",
        "x" * 250 + ".log",
        ".log",
    ],
    ids=lambda name: name[:30],
)
def test_a_file_with_a_name_that_is_nearly_one_of_ours(
    name: str, home: Path, start: Callable[[], LogManager]
) -> None:
    (home / "orders-0" / name).write_bytes(b"x" * 100)
    assert is_well(start())


def test_a_file_that_goes_while_it_is_looked_at(
    home: Path, start: Callable[[], LogManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is removed in the middle of a start."""
    extra = home / "orders-0" / f"{COUNT:020d}.snapshot"
    read = files.read_file
    reads: list[Any] = []

    def vanishing(path: str) -> bytes:
        if path == str(extra) and not reads:
            reads.append(path)
            extra.unlink()
        return read(path)

    monkeypatch.setattr("pykafkad.storage.log.snapshots.read_file", vanishing)
    assert is_well(start()) and reads


def test_a_log_that_goes_while_it_is_looked_at(
    home: Path, start: Callable[[], LogManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = home / "orders-0" / f"{99:020d}.log"
    stray.write_bytes(b"")
    open_segments = recovery.Loader.open_segments

    def vanishing(loader: recovery.Loader, names: list[str]) -> None:
        stray.unlink(missing_ok=True)
        open_segments(loader, names)

    monkeypatch.setattr(recovery.Loader, "open_segments", vanishing)
    assert is_well(start())


def unreadable(path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """As for a user who may not read the file; root always may."""
    if os.geteuid():
        path.chmod(0)
        return
    access, load = os.access, recovery.load

    def loading(partition: Log, hints: recovery.Hints) -> None:
        if path.exists() and partition.directory == str(path.parent):
            raise PermissionError(13, "Permission denied", str(path))
        load(partition, hints)

    monkeypatch.setattr(os, "access", lambda name, mode: name != str(path) and access(name, mode))
    monkeypatch.setattr(recovery, "load", loading)


@pytest.mark.parametrize("name", [INDEX, TIME_INDEX, f"{COUNT:020d}.snapshot", "leader-epoch-checkpoint"])
def test_a_file_that_we_may_not_touch_is_made_anew(
    name: str, home: Path, start: Callable[[], LogManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable(home / "orders-0" / name, monkeypatch, home)
    assert is_well(start())


def test_a_partition_that_cannot_even_be_looked_at_is_not_served(
    home: Path, start: Callable[[], LogManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str, topic_id: bytes) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    (home / "orders-0" / "partition.metadata").unlink()
    monkeypatch.setattr("pykafkad.storage.checkpoints.checkpoints.write_topic_id", refused)
    logs = start()
    assert logs.online and logs.get("orders", 0) is None
    with pytest.raises(OSError, match="the log of orders-0 could not be loaded"):
        logs.create("orders", 0, KNOWN["orders", 0], CONFIG, 0)


def test_a_log_that_we_may_not_touch_costs_its_partition(
    home: Path, start: Callable[[], LogManager], lines: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "orders-0" / LOG
    before = path.read_bytes()
    unreadable(path, monkeypatch, home)
    logs = start()
    assert list(logs.partitions) == [("other", 0)] and logs.directories[0].is_online
    assert lines.getvalue().count("cannot be loaded and is not served") == 1
    with pytest.raises(StorageOffline):  # and no other log takes its place
        logs.create("orders", 0, TOPIC_ID, CONFIG, 1)
    logs.close()
    monkeypatch.undo()
    path.chmod(0o644)
    assert path.read_bytes() == before and is_well(start())


# -- while it runs


@pytest.mark.parametrize("number", [2, 13, 23, 24, 12], ids=lambda number: os.strerror(number))
def test_a_segment_that_cannot_be_opened_now_is_its_readers_misfortune(
    number: int, home: Path, start: Callable[[], LogManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file was removed, or there are no descriptors left."""
    logs = start()
    partition = logs.partitions["orders", 0]
    partition.segments[0].release()
    real = os.open

    def refuse(path: str, flags: int, mode: int = 0o777, **options: int) -> int:
        if str(path) == partition.segments[0].path:
            raise OSError(number, os.strerror(number), path)
        return real(path, flags, mode, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(KafkaError) as refused:
        read_all(partition)
    assert refused.value.code == KAFKA_STORAGE_ERROR
    monkeypatch.undo()
    assert is_well(logs)


@pytest.mark.parametrize("number", [23, 24, 12], ids=lambda number: os.strerror(number))
def test_a_flush_without_descriptors_or_memory_is_tried_again(
    number: int, home: Path, start: Callable[[], LogManager], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, later = start(), []
    logs.call_later = lambda delay_ms, action: later.append(action)
    partition = logs.create("new", 0, TOPIC_ID, topic_config(flush_messages=1), 0)

    def refuse(path: str) -> None:
        raise OSError(number, os.strerror(number), path)

    with monkeypatch.context() as patch:
        patch.setattr(files, "fsync_path", refuse)
        patch.setattr(files, "PAUSE_S", 0)
        patch.setattr(logs, "submit", answered)
        partition.append(batch(b"a"), NOW_MS)
        logs.commit()
    assert logs.directories[0].is_online and partition.high_watermark == 0 and len(later) == 1
    later.pop()()
    while partition.is_dirty:
        logs.commit()
    assert partition.high_watermark == 1


def answered(work: Callable[[], None], done: Callable[[object], None]) -> None:
    """As when a thread's work returns: an exception on the loop is logged there."""
    try:
        submit_inline(work, done)
    except OSError:
        pass


@EACH
def test_a_partition_is_made_where_something_lies(
    obstacle: str, home: Path, start: Callable[[], LogManager], outside: Path
) -> None:
    logs = start()
    OBSTACLES[obstacle](home / "new-0")
    append(logs.create("new", 0, TOPIC_ID, CONFIG, 0), batch(b"a"))
    assert logs.directories[0].is_online and lies_untouched(outside)
    assert [name for name in os.listdir(home) if name.startswith("new-0.") and name.endswith("-stray")]


@EACH
def test_a_segment_rolls_and_goes_where_something_lies(
    obstacle: str, home: Path, start: Callable[[], LogManager], outside: Path
) -> None:
    logs = start()
    partition = logs.partitions["orders", 0]
    OBSTACLES[obstacle](home / "orders-0" / (LOG + files.DELETED))
    OBSTACLES[obstacle](home / "orders-0" / f"{partition.log_end_offset:020d}.log")
    OBSTACLES[obstacle](home / "orders-0" / f"{partition.log_end_offset:020d}.index")
    partition.roll(0)
    append(partition, batch(b"a"))
    partition.delete_records(-1)
    logs.check_retention()
    logs.deletions.unlink_due()
    assert logs.directories[0].is_online and lies_untouched(outside)
    assert len(partition.bases) == 1 or partition.log_start_offset == COUNT + 1


# -- names and links


def test_a_link_that_cannot_be_removed_is_not_followed(
    tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is one that becomes a link between two looks at it."""
    link = tmp_path / "link"
    link.symlink_to(outside)
    unlink = os.unlink

    def refuse(path: str, *, dir_fd: int | None = None) -> None:
        if path == str(link):
            raise PermissionError(1, "Operation not permitted", path)
        unlink(path, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.raises(OSError, match=r"not permitted|symbolic|Not a directory"):
        files.remove(str(link))
    assert lies_untouched(outside)


@pytest.mark.parametrize("name", ["orders-0", "x" * 249 + "-0", "ö" * 126 + "-0", "\udcff" * 250 + "-0"])
@pytest.mark.parametrize("mark", ["stray", "delete"])
def test_a_mark_fits_the_name_of_a_file(name: str, mark: str) -> None:
    marked = files.marked_directory(name, mark)
    assert len(os.fsencode(marked)) <= 255 and files.is_marked(marked, mark)
    assert marked[0] == name[0]
