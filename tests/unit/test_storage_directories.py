"""Log directories: locks and identities."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from pykafkad import uuids
from pykafkad.errors import StartupError
from pykafkad.storage.files import parse_partition_directory, partition_directory
from pykafkad.storage.manager import LogManager
from tests.storage_kit import TOPIC_ID, manager, topic_config


def start(*paths: Path) -> LogManager:
    started = manager(*paths)
    started.open_all({}, lambda topic: topic_config())
    return started


def test_a_new_directory_is_locked_and_identified(tmp_path: Path) -> None:
    logs = start(tmp_path / "deep" / "data")
    lines = (tmp_path / "deep" / "data" / "meta.properties").read_text().splitlines()
    assert lines[0] == "#" and lines[1].startswith("#")
    fields = dict(line.split("=", 1) for line in lines[2:])
    assert fields["version"] == "1" and fields["node.id"] == "1"
    assert fields["cluster.id"] == logs.cluster_id
    assert uuids.from_text(fields["directory.id"]) == logs.directories[0].directory_id
    assert (tmp_path / "deep" / "data" / ".lock").exists()
    logs.close()
    assert not (tmp_path / "deep" / "data" / ".lock").exists()


def test_identity_is_kept(tmp_path: Path) -> None:
    first = start(tmp_path)
    first.close()
    second = start(tmp_path)
    assert second.cluster_id == first.cluster_id
    assert second.directories[0].directory_id == first.directories[0].directory_id
    second.close()


def test_a_new_directory_joins_the_cluster_of_the_others(tmp_path: Path) -> None:
    first = start(tmp_path / "a")
    first.close()
    both = start(tmp_path / "a", tmp_path / "b")
    assert [each.cluster_id for each in both.directories] == [first.cluster_id] * 2
    assert both.directories[0].directory_id != both.directories[1].directory_id
    both.close()


def edit(path: Path, key: str, value: str) -> None:
    lines = (path / "meta.properties").read_text().splitlines()
    kept = [f"{key}={value}" if line.startswith(key) else line for line in lines]
    (path / "meta.properties").write_text("\n".join(kept))


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("node.id", "7", "Stored node id 7 doesn't match configured node id 1"),
        ("cluster.id", "AAAAAAAAAAAAAAAAAAAAAA", "belongs to cluster"),
        ("version", "2", "version 2 is not 1"),
        ("node.id", "seven", "missing or damaged"),
        ("directory.id", None, "same directory.id"),
    ],
)
def test_directories_that_do_not_belong_are_refused(
    tmp_path: Path, key: str, value: str | None, said: str
) -> None:
    both = start(tmp_path / "a", tmp_path / "b")
    both.close()
    edit(tmp_path / "b", key, value or uuids.to_text(both.directories[0].directory_id))
    with pytest.raises(StartupError, match=said):
        manager(tmp_path / "a", tmp_path / "b")
    edit(tmp_path / "b", "node.id", "1")  # and the refusal left no lock behind
    manager(tmp_path / "a").close(clean=False)


def test_a_directory_named_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with pytest.raises(StartupError, match="Duplicate log directory"):
        manager(tmp_path / "data", tmp_path / "link")


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    logs = start(tmp_path)
    program = (
        "import fcntl, os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR)\n"
        "fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / ".lock")], capture_output=True, check=False
    )
    assert b"BlockingIOError" in run.stderr
    logs.close()


def test_a_second_manager_in_this_process_is_kept_out(tmp_path: Path) -> None:
    logs = start(tmp_path)
    with pytest.raises(StartupError, match="Failed to acquire lock"):
        manager(tmp_path)
    logs.close()
    manager(tmp_path).close(clean=False)


def test_a_lock_that_is_held_is_said_in_one_line(tmp_path: Path) -> None:
    program = (
        "import fcntl, os, sys\n"
        "fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.lockf(fd, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(StartupError, match="Failed to acquire lock"):
            manager(tmp_path)
        holder.communicate()


def test_without_any_usable_directory_there_is_no_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    with pytest.raises(StartupError, match="No log directory can be used"):
        manager(tmp_path / "file" / "data")


def test_one_bad_directory_of_two_is_offline(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    logs = start(tmp_path / "good", tmp_path / "file" / "data")
    assert [directory.is_online for directory in logs.directories] == [True, False]
    assert logs.create("orders", 0, TOPIC_ID, topic_config(), 0).log_directory is logs.directories[0]
    logs.close()


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("t-0", ("t", 0)),
        ("a-b-12", ("a-b", 12)),
        (f"t-{2**31 - 1}", ("t", 2**31 - 1)),
        (f"t-{2**31}", None),
        ("t-01", None),
        ("t-", None),
        ("-0", None),
        ("t0", None),
        ("t-\u0661", None),
        ("t-\u00b2", None),
    ],
)
def test_names_of_partitions(name: str, key: tuple[str, int] | None) -> None:
    assert parse_partition_directory(name) == key
    assert key is None or partition_directory(*key) == name


def test_a_directory_that_fails_at_the_start_is_not_kept_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: str) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    start(tmp_path).close()
    monkeypatch.setattr("pykafkad.storage.files.read_file", broken)
    with pytest.raises(StartupError, match=r"No log directory can be used: .*Input/output error"):
        manager(tmp_path)
    monkeypatch.undo()
    manager(tmp_path).close(clean=False)
