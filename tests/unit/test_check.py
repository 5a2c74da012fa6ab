"""`pykafkad check`: whole directories are found whole, each damage is named, a start does what was foreseen, and
nothing is written.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import tools, uuids
from pykafkad.hot import records
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.manager import LogManager
from pykafkad.tools import check, check_partition
from pykafkad.tools.check_report import Report
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    append,
    idempotent,
    manager,
    marker,
    topic_config,
    unpack_golden_logs,
)
from tests.torture import verify
from tests.torture.ledger import Fault

COUNT = 20
KNOWN = {("orders", 0): TOPIC_ID}
CONFIG = topic_config(segment_bytes=600, index_interval_bytes=150)


def run(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> tuple[int, str]:
    capsys.readouterr()
    code = tools.main("check", [str(each) for each in arguments])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


def tree(path: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below: time of change, mode, bytes."""
    found = {}
    for each in [path, *sorted(path.rglob("*"))]:
        stat = each.stat()
        found[str(each)] = (stat.st_mtime_ns, stat.st_mode, each.read_bytes() if each.is_file() else b"")
    return found


def load(path: Path) -> LogManager:
    found = manager(path)
    found.open_all(KNOWN, lambda topic: CONFIG)
    return found


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """Twenty batches of one producer in segments of about eight, without a clean stop."""
    home = tmp_path / "data"
    found = manager(home)
    found.open_all({}, lambda topic: CONFIG)
    partition = found.create("orders", 0, TOPIC_ID, CONFIG, 0)
    for sequence in range(COUNT):
        append(partition, idempotent(sequence, b"v%02d" % sequence), now_ms=NOW_MS + sequence)
    found.close(clean=False)
    return home


@pytest.fixture
def stopped(killed: Path) -> Path:
    load(killed).close()
    return killed


def inspect(home: Path) -> Report:
    """The partition's report as the tool makes it."""
    from pykafkad.tools import check, check_directory

    directory = check_directory.inspect(str(home))
    return check.inspect("orders-0", str(home / "orders-0"), directory.hints(("orders", 0)))


def patch(path: Path, position: int, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.seek(position)
        file.write(data)


# -- whole directories


def test_kafkas_directories_are_sound(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = unpack_golden_logs(golden, tmp_path)
    for home in sorted(logs.glob("*/data")):
        code, text = run(capsys, home)
        assert code == 0, text
        assert text.splitlines()[-1].endswith(": nothing is wrong")


def test_a_stopped_broker_leaves_nothing_to_say(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, stopped)
    size = sum(path.stat().st_size for path in stopped.rglob("*.log"))
    assert (code, text.splitlines()) == (
        0,
        [
            f"{stopped}: stopped cleanly",
            f"orders-0: 3 segment(s), {size} bytes, 20 batches, offsets 0 to 20",
            f"1 partition(s), {size} bytes: nothing is wrong",
        ],
    )


def test_a_killed_one_is_walked_by_the_next_start_and_nothing_is_wrong(
    killed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run(capsys, killed)
    size = sum(path.stat().st_size for path in killed.rglob("*.log"))
    assert code == 0
    assert "note: the last stop was not a clean one" in text
    assert f"a start would walk 3 of 3 segment(s), {size} bytes, from offset 0" in text


def test_transactions_are_compared_with_their_index(tmp_path: Path) -> None:
    found = manager(tmp_path)
    found.open_all({}, lambda topic: CONFIG)
    partition = found.create("orders", 0, TOPIC_ID, CONFIG, 0)
    for turn in range(3):
        partition.append(idempotent(turn, b"v", transactional=True), NOW_MS, verified=True)
        partition.append_built(marker(7, 0, commit=turn == 1), NOW_MS)
        partition.commit()
    found.close()
    assert not inspect(tmp_path).problems
    index = tmp_path / "orders-0" / f"{0:020d}.txnindex"
    index.write_bytes(index.read_bytes()[:34])
    (problem,) = inspect(tmp_path).problems
    assert str(problem) == (
        f"{0:020d}.txnindex: the transaction that producer 7 aborted at offset 5 is not listed"
    )


def test_a_running_broker_is_named(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    child = os.fork()
    if child == 0:  # another process, since the system does not report a process its own locks
        load(stopped)
        os.kill(os.getpid(), 19)
        os._exit(0)
    try:
        os.waitpid(child, os.WUNTRACED)
        _, text = run(capsys, stopped)
        assert f"a broker is running here (process {child})" in text
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


# -- damage, after a clean stop

Damage = Callable[[Path], object]
PARTITION_DAMAGE: dict[str, tuple[Damage, str]] = {
    "value": (
        lambda at: patch(at / f"{0:020d}.log", 70, b"\xff"),
        f"{0:020d}.log: a checksum that does not match at",
    ),
    "torn": (
        lambda at: os.truncate(at / f"{16:020d}.log", 250),
        f"{16:020d}.log: the file ends inside a batch at",
    ),
    "overlap": (
        lambda at: (at / f"{8:020d}.log").rename(at / f"{6:020d}.log"),
        "ends at offset 7, and the next segment begins with 6",
    ),
    "index gone": (lambda at: (at / f"{0:020d}.index").unlink(), f"{0:020d}.index: is missing"),
    "time index gone": (lambda at: (at / f"{0:020d}.timeindex").unlink(), f"{0:020d}.timeindex: is missing"),
    "index position": (lambda at: patch(at / f"{0:020d}.index", 7, b"\x01"), "entries do not fit the log"),
    "index offset": (lambda at: patch(at / f"{0:020d}.index", 3, b"\x00"), "entries do not fit the log"),
    "index cut": (lambda at: os.truncate(at / f"{0:020d}.index", 13), "13 bytes are no whole entries"),
    "time index time": (
        lambda at: patch(at / f"{0:020d}.timeindex", 7, b"\x01"),
        "entries do not fit the log",
    ),
    "time index offset": (
        lambda at: patch(at / f"{0:020d}.timeindex", 11, b"\x09"),
        "entries do not fit the log",
    ),
    "transaction index": (
        lambda at: (at / f"{0:020d}.txnindex").write_bytes(b"x" * 35),
        "35 bytes are no whole",
    ),
    "snapshot": (
        lambda at: patch(at / f"{COUNT:020d}.snapshot", 20, b"\xff"),
        "a checksum that does not match",
    ),
    "no epochs": (
        lambda at: (at / "leader-epoch-checkpoint").write_text("0\n0\n"),
        "the batches have leader epochs",
    ),
    "epoch": (lambda at: (at / "leader-epoch-checkpoint").write_text("0\n1\n5 0\n"), "is of epoch 0, not 5"),
    "late epoch": (
        lambda at: (at / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n5 99\n"),
        "behind the log's end",
    ),
    "epochs": (lambda at: (at / "leader-epoch-checkpoint").write_bytes(b"\xff"), "is not text"),
    "topic id": (
        lambda at: (at / "partition.metadata").write_bytes(b""),
        "partition.metadata: holds no topic id",
    ),
}


@pytest.mark.parametrize(("damage", "said"), PARTITION_DAMAGE.values(), ids=PARTITION_DAMAGE)
def test_damage_is_named(
    stopped: Path, damage: Damage, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(stopped / "orders-0")
    before = tree(stopped)
    code, text = run(capsys, stopped)
    assert code == 1
    assert any(said in line for line in text.splitlines() if line.startswith("  problem: ")), text
    assert tree(stopped) == before, "nothing is written"


def test_a_lost_segment_is_noticed(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (stopped / "orders-0").glob(f"{8:020d}.*"):
        path.unlink()
    code, text = run(capsys, stopped)
    assert code == 0
    assert (
        "note: the offsets 8 to 15 are in no segment: one may be lost, if the topic was never compacted"
        in text
    )


DIRECTORY_DAMAGE: dict[str, tuple[Damage, str]] = {
    "version": (lambda at: (at / "meta.properties").write_text("version=7\n"), "version 7 is not known"),
    "no cluster": (
        lambda at: (at / "meta.properties").write_text("version=1\nnode.id=1\n"),
        "cluster.id is missing",
    ),
    "node": (
        lambda at: (at / "meta.properties").write_text("version=1\nnode.id=x\ncluster.id=c\n"),
        "node.id is x, which is no number",
    ),
    "directory id": (
        lambda at: (at / "meta.properties").write_text(
            "version=1\nnode.id=1\ncluster.id=c\ndirectory.id=?\n"
        ),
        "directory.id is ?, which is no id",
    ),
    "recovery points": (
        lambda at: (at / "recovery-point-offset-checkpoint").write_text("garbage\n"),
        "recovery-point-offset-checkpoint: does not begin with a version and a count",
    ),
    "high watermarks": (
        lambda at: (at / "replication-offset-checkpoint").write_text("0\n2\norders 0 1\n"),
        "replication-offset-checkpoint: announces 2 entries and has 1",
    ),
    "log starts": (
        lambda at: (at / "log-start-offset-checkpoint").write_text("0\n1\norders 0 x\n"),
        "log-start-offset-checkpoint: has a line that is not topic, partition, offset",
    ),
    "cleaner": (
        lambda at: (at / "cleaner-offset-checkpoint").write_text("1\n0\n"),
        "cleaner-offset-checkpoint: has version 1, known is 0",
    ),
    "recovery point": (
        lambda at: (at / "recovery-point-offset-checkpoint").write_text("0\n1\norders 0 99\n"),
        "recovery-point-offset-checkpoint: orders-0 is at 99, and the log ends at 20",
    ),
    "high watermark": (
        lambda at: (at / "replication-offset-checkpoint").write_text("0\n1\norders 0 99\n"),
        "replication-offset-checkpoint: orders-0 is at 99, and the log ends at 20",
    ),
    "log start": (
        lambda at: (at / "log-start-offset-checkpoint").write_text("0\n1\norders 0 99\n"),
        "log-start-offset-checkpoint: orders-0 is at 99, and the log ends at 20",
    ),
}


@pytest.mark.parametrize(("damage", "said"), DIRECTORY_DAMAGE.values(), ids=DIRECTORY_DAMAGE)
def test_damage_beside_the_partitions_is_named(
    stopped: Path, damage: Damage, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(stopped)
    code, text = run(capsys, stopped)
    assert code == 1
    assert any(said in line for line in text.splitlines() if line.startswith("  problem: ")), text


def test_what_is_no_partition_is_told_and_not_wrong(
    stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = "0" * 32
    for name in (f"gone-0.{mark}-delete", f"orders-0.{mark}-future", f"old-0.{mark}-stray", "notes"):
        (stopped / name).mkdir()
    code, text = run(capsys, stopped)
    assert code == 0
    assert f"a start would remove gone-0.{mark}-delete" in text
    assert f"a start would copy anew what orders-0.{mark}-future was to be" in text
    assert f"old-0.{mark}-stray was set aside by an earlier start" in text
    assert "notes is no partition's directory" in text


def test_directories_of_two_brokers_are_told_apart(
    stopped: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    manager(other).close()
    code, text = run(capsys, stopped, other)
    assert code == 1
    assert "meta.properties: cluster.id is " in text
    shutil.copy(stopped / "meta.properties", other)
    shutil.copytree(stopped / "orders-0", other / "orders-0")
    code, text = run(capsys, stopped, other)
    assert "another directory has the same directory.id" in text
    assert f"orders-0: the partition lies in {stopped} as well" in text


# -- with a metadata log


@pytest.fixture
def golden_home(golden: Path, tmp_path: Path) -> Path:
    return unpack_golden_logs(golden, tmp_path) / "plain" / "data"


def test_the_metadata_says_what_should_be_there(
    golden_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.rename(golden_home / "empty-0", golden_home / "other-0")
    (golden_home / "one-record-0" / "partition.metadata").unlink()
    (golden_home / "append-time-0" / "partition.metadata").write_text(
        f"version: 0\ntopic_id: {uuids.to_text(TOPIC_ID)}"
    )
    code, text = run(capsys, golden_home)
    assert code == 1
    for said in (
        "the partition empty-0 of the metadata is in none of the directories",
        "other-0: the metadata knows no such partition here",
        "a start would set other-0 aside as stray",
        "partition.metadata: is missing",
        "a start would write partition.metadata with the topic id of the cluster's metadata",
        f"partition.metadata: topic id {uuids.to_text(TOPIC_ID)}, and in the cluster's metadata it is ",
        "a start would set the directory aside as stray",
    ):
        assert said in text


def test_after_a_crash_the_metadata_may_be_ahead(
    golden_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (golden_home / ".kafka_cleanshutdown").unlink(missing_ok=True)
    os.rename(golden_home / "empty-0", golden_home / "other-0")
    code, text = run(capsys, golden_home)
    assert code == 0, text
    assert "a start would create empty-0, which the metadata names" in text
    assert "a start would set other-0 aside as stray" in text


@pytest.mark.parametrize("name", ["plain", "dynamic", "trimmed", "snapshots"])
def test_kafkas_metadata_is_sound(
    name: str, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(golden / "metadata" / name, tmp_path / "__cluster_metadata-0")
    shutil.copy(golden / "metadata" / "bootstrap.checkpoint", tmp_path)
    code, text = run(capsys, tmp_path)
    assert code == 0, text


METADATA_DAMAGE: dict[str, tuple[Damage, str]] = {
    "snapshot": (
        lambda at: patch(at / "__cluster_metadata-0" / f"{277:020d}-{1:010d}.checkpoint", 200, b"\xff"),
        f"__cluster_metadata-0/{277:020d}-{1:010d}.checkpoint: ",
    ),
    "older snapshot": (
        lambda at: patch(at / "__cluster_metadata-0" / f"{94:020d}-{1:010d}.checkpoint", 200, b"\xff"),
        f"__cluster_metadata-0/{94:020d}-{1:010d}.checkpoint: a checksum that does not match at byte",
    ),
    "bootstrap": (
        lambda at: patch(at / "bootstrap.checkpoint", 80, b"\xff"),
        "bootstrap.checkpoint: a checksum that does not match at byte",
    ),
    "quorum state": (
        lambda at: (at / "__cluster_metadata-0" / "quorum-state").write_text('{"leaderId"'),
        "__cluster_metadata-0/quorum-state: is no JSON",
    ),
}


@pytest.mark.parametrize(("damage", "said"), METADATA_DAMAGE.values(), ids=METADATA_DAMAGE)
def test_damage_in_the_metadata_directory_is_named(
    damage: Damage, said: str, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(golden / "metadata" / "snapshots", tmp_path / "__cluster_metadata-0")
    shutil.copy(golden / "metadata" / "bootstrap.checkpoint", tmp_path)
    damage(tmp_path)
    code, text = run(capsys, tmp_path)
    assert code == 1 and said in text, text


@pytest.mark.parametrize("at", [0.5, -1], ids=["in the middle", "at the end"])
def test_damaged_metadata_is_named(golden_home: Path, at: float, capsys: pytest.CaptureFixture[str]) -> None:
    path = golden_home / "__cluster_metadata-0" / f"{0:020d}.log"
    batches = records.scan(path.read_bytes())
    batch = batches[-1] if at < 0 else batches[len(batches) // 2]
    patch(path, batch.position + 70, b"\xff")
    code, text = run(capsys, golden_home)
    assert code == 1
    if at < 0:
        assert f"a start would cut __cluster_metadata-0/{path.name} at byte {batch.position}" in text
    else:
        assert "a start would stop: the metadata cannot be read" in text


# -- what a start would do


def outcome(home: Path) -> tuple[int, int]:
    """Log start and end offset after a start."""
    found = load(home)
    partition = found.partitions["orders", 0]
    offsets = partition.log_start_offset, partition.log_end_offset
    found.close(clean=False)
    return offsets


@pytest.mark.parametrize("clean", [False, True], ids=["killed", "stopped"])
@pytest.mark.parametrize("seed", range(40))
def test_it_says_what_a_start_does(killed: Path, clean: bool, seed: int) -> None:
    """One to three damages anywhere: changed bytes, and files that are cut, lengthened or missing."""
    if clean:
        load(killed).close()
    chance = random.Random(seed)
    if chance.random() < 0.3:
        points = {("orders", 0): chance.randrange(COUNT + 1)}
        checkpoints.write_offsets(str(killed / checkpoints.RECOVERY_POINTS), points)
    ways = set()
    for _ in range(chance.randint(1, 3)):
        files = sorted(path for path in (killed / "orders-0").iterdir() if path.name != "partition.metadata")
        ways.add(spoil(chance, chance.choice(files)))
    before = tree(killed)
    report = inspect(killed)
    assert tree(killed) == before
    start, end = outcome(killed)
    assert (report.log_start_offset_after, report.log_end_offset_after) == (start, end), report.fields()
    if end < COUNT and not ways & {"cut", "remove"}:  # one that may have no effect
        assert report.problems, "what is lost must have been named"


def spoil(chance: random.Random, path: Path) -> str:
    """Damage a file; returns how it was done."""
    data = bytearray(path.read_bytes())
    way = chance.choice(("change", "change", "change", "cut", "lengthen", "remove"))
    if way == "remove":
        path.unlink()
        return way
    if way == "change" and data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif way == "cut":
        del data[chance.randrange(len(data) + 1) :]
    else:
        data += chance.choice((bytes(100), chance.randbytes(100), bytes(data[-72:])))
    path.write_bytes(data)
    return way


# -- the command line


def test_as_json(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    patch(stopped / "orders-0" / f"{0:020d}.log", 70, b"\xff")
    code, text = run(capsys, stopped, "--json")
    found: dict[str, Any] = json.loads(text)
    assert (code, found["problems"], found["node_id"]) == (1, 1, "1")
    (partition,) = found["partitions"]
    assert partition["problems"] == [
        {
            "file": f"{0:020d}.log",
            "what": "a checksum that does not match",
            "position": 0,
            "offsets": [0, 0],
        }
    ]
    assert (partition["log_end_offset"], partition["records"]) == (20, 19)
    shape = json.loads(check.JSON_EXAMPLE)
    assert found.keys() == shape.keys()
    for rows in ("directories", "partitions"):
        assert found[rows][0].keys() == shape[rows][0].keys()


def test_only_some_topics(stopped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(stopped / "orders-0", stopped / "bills-0")
    patch(stopped / "orders-0" / f"{0:020d}.log", 70, b"\xff")
    assert run(capsys, stopped, "--topic", "bills")[0] == 0
    code, text = run(capsys, stopped, "--topic=orders", "--threads=1")
    assert code == 1 and "bills" not in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which directory?"),
        (["/does/not/exist"], "/does/not/exist is no directory"),
        (["--nonsense"], "unknown option --nonsense"),
        (["--topic"], "--topic needs a value"),
        (["--threads=0"], "--threads 0: a number from 1 to 1024 is allowed"),
    ],
)
def test_a_wrong_command_line_is_2(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = run(capsys, *arguments)
    assert code == 2 and said in text


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "--help")
    assert code == 0 and text.startswith("usage: pykafkad check DIR")


def test_a_partition_that_cannot_be_read_is_a_finding(
    stopped: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stopped / "orders-0" / f"{8:020d}.log"
    path.unlink()
    path.mkdir()
    code, text = run(capsys, stopped)
    assert code == 1 and "problem: " in text


def test_many_faults_of_a_segment_are_not_told_one_by_one(stopped: Path) -> None:
    path = stopped / "orders-0" / f"{0:020d}.log"
    patch(path, 6, b"\x00\x63")
    assert 1 <= len(inspect(stopped).problems) <= check_partition.FAULTS_A_SEGMENT + 1


def test_what_is_no_kafka_directory_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("nothing of Kafka's")
    assert tools.main("check", [str(tmp_path)]) == 2
    assert f"{tmp_path} is no Kafka data directory" in capsys.readouterr().err


@pytest.mark.parametrize("mistake", [["/no/such/directory"], ["--no-such-option"], [], ["--threads", "x"]])
def test_a_wrong_command_line_is_json_too(mistake: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert tools.main("check", [*mistake, "--json"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert found["error"]["name"] == "USAGE" and found["error"]["message"]


def test_torture_checks_its_directories_so(stopped: Path) -> None:
    verify.check_directories([str(stopped)])
    patch(stopped / "orders-0" / f"{0:020d}.log", 70, b"\xff")
    with pytest.raises(Fault, match="pykafkad check finds"):
        verify.check_directories([str(stopped)])
