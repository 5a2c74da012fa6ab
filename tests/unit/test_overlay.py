"""Overlays of copied directories: everything is shown, and nothing in the copy is changed."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pykafkad.clock import ManualClock
from pykafkad.cluster import opened as opened_metadata
from pykafkad.cluster.image import Image
from pykafkad.config import BrokerConfig
from pykafkad.errors import POLICY_VIOLATION, KafkaError, StartupError
from pykafkad.hot import records
from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.segment import Segment
from pykafkad.messages import ConfigRecord, PartitionRecord, TopicRecord
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.directories import LogDirectory
from pykafkad.storage.files import read_file
from pykafkad.storage.overlay import overlay
from pykafkad.storage.overlay.opened import OpenedLogs
from pykafkad.storage.overlay.overlay import Source
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    append,
    batch,
    broker_config,
    lead,
    log_manager,
    new_partition,
    read_all,
    state,
    topic_config,
    unpack_golden_logs,
    values,
)

GOLDEN = [
    "plain", "codecs", "transactions", "idempotent", "compacted", "deleted", "groups", "epochs",
    "unclean-before-recovery", "unclean-after-recovery",
]  # fmt: skip


@pytest.fixture(scope="module")
def logs(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_golden_logs(golden, tmp_path_factory.mktemp("golden"))


def opened(*directories: Path, target: Path, whole: tuple[str, ...] = ()) -> OpenedLogs:
    """The directories as an opened broker shows them."""
    sources = [overlay.read_source(str(path)) for path in directories]
    shown = overlay.shown(sources)
    target.mkdir()
    for number, source in enumerate(sources):
        keys = [key for key, chosen in shown.items() if chosen is source]
        overlay.build(source, str(target / str(number)), keys, whole)
        LogDirectory(str(target / str(number))).write_identity("c" * 22, 1)
    config = broker_config(*(target / str(number) for number in range(len(sources))))
    found = log_manager(config, ManualClock(NOW_MS), kind=OpenedLogs)
    assert isinstance(found, OpenedLogs)
    ids = {key: checkpoints.read_topic_id(each.partitions[key]) or bytes(16) for key, each in shown.items()}
    topic = topic_config(segment_bytes=8192, index_interval_bytes=512, segment_index_bytes=1200)
    assert found.open_all(ids, lambda name: topic) == []
    for key, partition in found.partitions.items():
        lead(partition, max(partition.epochs.latest, 0))
        assert partition.topic_id == ids[key]
    return found


@pytest.mark.parametrize("name", GOLDEN)
def test_every_golden_directory_reads_back_record_for_record_and_stays_as_it_is(
    logs: Path, name: str, tmp_path: Path
) -> None:
    source = logs / name / "data"
    before = state(source)
    shown = opened(source, target=tmp_path / "overlay", whole=("__consumer_offsets",))
    directories = [path for path in source.iterdir() if path.is_dir() and path.name != "__cluster_metadata-0"]
    assert {partition.name for partition in shown} == {path.name for path in directories}
    for partition in shown:
        files = sorted((source / partition.name).glob("*.log"))
        wanted = [record for file in files for record in records.read(read_file(str(file)))]
        assert read_all(partition) == [each for each in wanted if each.offset >= partition.log_start_offset]
    shown.close()
    assert state(source) == before


def small_log(directory: Path, count: int = 10) -> list[bytes]:
    """A partition with several segments that was not closed."""
    partition = new_partition(directory, segment_bytes=200, index_interval_bytes=1)
    sent = [b"value %d" % number for number in range(count)]
    for value in sent:
        append(partition, batch(value))
    assert len(partition.segments) > 3
    return sent


def test_a_torn_end_is_not_shown_and_not_cut(tmp_path: Path) -> None:
    sent = small_log(tmp_path / "source")
    last = max((tmp_path / "source" / "orders-0").glob("*.log"))
    last.write_bytes(last.read_bytes()[:-5])
    before = state(tmp_path / "source")
    shown = opened(tmp_path / "source", target=tmp_path / "overlay")
    assert values(read_all(shown.partitions["orders", 0])) == sent[:-1]
    shown.close()
    assert state(tmp_path / "source") == before


def test_a_damaged_batch_ends_what_is_shown_and_what_lies_behind_it_stays(tmp_path: Path) -> None:
    sent = small_log(tmp_path / "source")
    damaged = sorted((tmp_path / "source" / "orders-0").glob("*.log"))[2]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\xff")
    before = state(tmp_path / "source")
    shown = opened(tmp_path / "source", target=tmp_path / "overlay")
    found = values(read_all(shown.partitions["orders", 0]))
    assert 0 < len(found) < len(sent) and found == sent[: len(found)]
    assert all(path.is_symlink() for path in (tmp_path / "overlay").rglob("*.corrupt"))
    shown.close()
    assert state(tmp_path / "source") == before


def test_a_half_done_swap_is_finished_in_the_overlay_alone(tmp_path: Path) -> None:
    sent = small_log(tmp_path / "source")
    directory = tmp_path / "source" / "orders-0"
    first, second = sorted(directory.glob("*.log"))[:2]
    swap = first.with_name(f"{first.name}.swap")
    swap.write_bytes(first.read_bytes() + second.read_bytes())
    (directory / f"{99:020d}.log.cleaned").write_bytes(b"half")
    (directory / f"{77:020d}.log.deleted").write_bytes(b"gone")
    before = state(tmp_path / "source")
    shown = opened(tmp_path / "source", target=tmp_path / "overlay")
    partition = shown.partitions["orders", 0]
    assert values(read_all(partition)) == sent
    assert len(partition.segments) == len(list(directory.glob("*.log"))) - 1
    shown.close()
    assert state(tmp_path / "source") == before


def test_logs_are_linked_and_what_is_written_to_is_copied(tmp_path: Path) -> None:
    small_log(tmp_path / "source")
    source = overlay.read_source(str(tmp_path / "source"))
    overlay.build(source, str(tmp_path / "linked"), source.partitions, [])
    overlay.build(source, str(tmp_path / "whole"), source.partitions, ["orders"])
    linked, whole = tmp_path / "linked" / "orders-0", tmp_path / "whole" / "orders-0"
    *older, last = sorted(path.name for path in linked.glob("*.log"))
    assert all((linked / name).is_symlink() for name in [*older, last])
    assert (linked / older[0].replace(".log", ".index")).is_symlink()
    for suffix, entry_size in ((".index", 8), (".timeindex", 12)):
        index = linked / last.replace(".log", suffix)
        assert not index.is_symlink()
        assert index.stat().st_size % entry_size == 0 and index.stat().st_size < 10 * entry_size
    assert not any(path.is_symlink() for path in whole.iterdir())


@pytest.mark.parametrize(
    ("data", "kept"), [(b"", 0), (b"\0" * 4096, 0), (b"\1" * 8, 8), (b"\0\0\0\1\0\0\0\0" + b"\0" * 800, 8)]
)
def test_a_copied_index_has_no_room_for_entries_to_come(tmp_path: Path, data: bytes, kept: int) -> None:
    (tmp_path / "before").write_bytes(data)
    overlay.copy_index(str(tmp_path / "before"), str(tmp_path / "after"), 8)
    assert (tmp_path / "after").read_bytes() == data[:kept]


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for suffix in ("log", "index", "timeindex"):
        (tmp_path / f"{0:020d}.{suffix}").write_bytes(b"x" * 24)
        os.symlink(tmp_path / f"{0:020d}.{suffix}", tmp_path / "there" / f"{0:020d}.{suffix}")
    there = str(tmp_path / "there")
    offset_index, time_index = OffsetIndex(there, 0, 4096), TimeIndex(there, 0, 4096)
    segment = Segment(there, 0, offset_index, time_index, 24)
    segment.truncate(10)
    assert (segment.size, segment.bytes_at(0, 24)) == (10, b"x" * 24)
    segment.queue(b"more", 1, 1, NOW_MS)
    with pytest.raises(OSError, match="symbolic") as caught:
        segment.write()
    assert caught.value.errno == errno.ELOOP
    with pytest.raises(OSError, match="symbolic"):
        segment.reserve()
    with pytest.raises(OSError, match="symbolic"):
        offset_index.append(1 << 30, 1)
    for index in (offset_index, time_index):
        index.reset()
        assert index.entries == 0 and not os.path.islink(index.path)
    for suffix in ("log", "index", "timeindex"):
        assert (tmp_path / f"{0:020d}.{suffix}").read_bytes() == b"x" * 24


def test_clients_can_neither_append_nor_delete(tmp_path: Path) -> None:
    small_log(tmp_path / "source")
    shown = opened(tmp_path / "source", target=tmp_path / "overlay")
    partition = shown.partitions["orders", 0]
    for attempt in (
        lambda: partition.append(batch(b"x"), NOW_MS),
        lambda: partition.delete_records(3),
        lambda: shown.moves.ask("orders", 0, str(tmp_path)),
    ):
        with pytest.raises(KafkaError, match="read-only") as refused:
            attempt()
        assert refused.value.code == POLICY_VIOLATION


# -- which directories, which replicas


def test_a_directory_that_a_broker_uses_is_not_opened(tmp_path: Path) -> None:
    directory = LogDirectory(str(tmp_path))
    (tmp_path / ".lock").touch()
    overlay.read_source(str(tmp_path))
    holder = subprocess.Popen(
        [sys.executable, "-c", "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX);"
         "print(flush=True); sys.stdin.read()", f"{directory.path}/.lock"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdin is not None
    holder.stdout.readline()
    with pytest.raises(StartupError, match="is used by a running broker"):
        overlay.read_source(str(tmp_path))
    holder.stdin.close()
    holder.wait()
    holder.stdout.close()
    overlay.read_source(str(tmp_path))
    with open(tmp_path / ".lock", "w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_directory_that_is_not_there_is_a_clear_refusal(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"nowhere cannot be read: No such file"):
        overlay.read_source(str(tmp_path / "nowhere"))


@pytest.mark.parametrize(
    ("text", "node", "cluster"),
    [
        ("version=1\nnode.id=3\ncluster.id=abc\n", 3, "abc"),
        ("version=0\nbroker.id=7\ncluster.id=abc\n", 7, "abc"),
        ("version=9\n", None, None),
    ],
)
def test_whose_directory_it_is(tmp_path: Path, text: str, node: int | None, cluster: str | None) -> None:
    (tmp_path / "meta.properties").write_text(text)
    source = overlay.read_source(str(tmp_path))
    assert (source.node_id, source.cluster_id) == (node, cluster)


def test_of_two_replicas_the_further_one_is_shown(tmp_path: Path) -> None:
    short, long = small_log(tmp_path / "a", 7), small_log(tmp_path / "b", 9)
    assert short == long[:7]
    for order in (("a", "b"), ("b", "a")):
        shown = opened(*(tmp_path / name for name in order), target=tmp_path / f"overlay-{order[0]}")
        assert values(read_all(shown.partitions["orders", 0])) == long
        shown.close()
    (tmp_path / "a" / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n5 0\n")
    shown = opened(tmp_path / "b", tmp_path / "a", target=tmp_path / "overlay-epoch")
    assert values(read_all(shown.partitions["orders", 0])) == short


def test_directories_that_are_no_partitions_are_left_out(tmp_path: Path) -> None:
    small_log(tmp_path)
    for name in (
        "orders-1.0123456789abcdef0123456789abcdef-delete",
        "orders-2.0123456789abcdef0123456789abcdef-stray",
        "orders-3.0123456789abcdef0123456789abcdef-future",
        "__cluster_metadata-0",
        "lost+found",
    ):
        (tmp_path / name).mkdir()
    source = overlay.read_source(str(tmp_path))
    assert list(source.partitions) == [("orders", 0)]
    assert source.metadata == str(tmp_path / "__cluster_metadata-0")


# -- which topics


def image_of(name: str, topic_id: bytes, partitions: int, configs: dict[str, str]) -> Image:
    image = Image()
    image.apply(TopicRecord(name=name, topic_id=topic_id))
    for key, value in configs.items():
        image.apply(ConfigRecord(resource_type=2, resource_name=name, name=key, value=value))
    for index in range(partitions):
        record = PartitionRecord(
            partition_id=index, topic_id=topic_id, replicas=[2, 3], isr=[3], leader=3, leader_epoch=9
        )
        image.apply(record)
    return image


def catalogue(tmp_path: Path, image: Image, **configs: str) -> dict[str, opened_metadata.OpenedTopic]:
    shown = overlay.shown([overlay.read_source(str(tmp_path))])
    texts = {name.replace("_", "."): value for name, value in configs.items()}
    return opened_metadata.catalogue(shown, image, BrokerConfig(texts))


def make_partitions(tmp_path: Path, *names: str, topic_id: bytes | None = TOPIC_ID) -> None:
    for name in names:
        (tmp_path / name).mkdir()
        if topic_id is not None:
            checkpoints.write_topic_id(str(tmp_path / name), topic_id)


def test_topics_come_from_the_metadata(tmp_path: Path) -> None:
    make_partitions(tmp_path, "orders-1")
    (tmp_path / "orders-1" / "leader-epoch-checkpoint").write_text("0\n1\n11 0\n")
    configs = {"retention.ms": "5", "message.format.version": "2.0", "segment.bytes": "many"}
    found = catalogue(tmp_path, image_of("orders", TOPIC_ID, 3, configs))["orders"]
    assert (found.id, found.present) == (TOPIC_ID, {1})
    assert found.configs == {"retention.ms": "5"}
    assert found.partitions == [([2, 3], 9), ([2, 3], 11), ([2, 3], 9)]


def test_topics_come_from_their_directories_without_metadata(tmp_path: Path) -> None:
    make_partitions(tmp_path, "orders-0", "orders-3")
    make_partitions(tmp_path, "old-0", topic_id=None)
    found = catalogue(tmp_path, Image())
    assert (found["orders"].id, found["orders"].present) == (TOPIC_ID, {0, 3})
    assert len(found["orders"].partitions) == 4
    assert found["old"].id != bytes(16)


def test_a_partition_of_an_older_topic_of_the_name_is_not_shown(tmp_path: Path) -> None:
    make_partitions(tmp_path, "orders-0")
    make_partitions(tmp_path, "orders-1", topic_id=b"\7" * 16)
    found = catalogue(tmp_path, image_of("orders", TOPIC_ID, 2, {}))
    assert found["orders"].present == {0}
    make_partitions(tmp_path, "bills-0", topic_id=b"\7" * 16)
    assert "bills" not in catalogue(tmp_path, image_of("bills", TOPIC_ID, 1, {}))


@pytest.mark.parametrize(
    ("names", "explicit", "count"),
    [
        (["__consumer_offsets-0", "__consumer_offsets-1"], {}, 2),
        (["__consumer_offsets-1"], {}, 50),
        (["__consumer_offsets-60"], {}, 61),
        (["__consumer_offsets-0"], {"offsets_topic_num_partitions": "7"}, 7),
    ],
)
def test_how_many_partitions_the_offsets_have(
    tmp_path: Path, names: list[str], explicit: dict[str, str], count: int
) -> None:
    make_partitions(tmp_path, *names)
    assert len(catalogue(tmp_path, Image(), **explicit)["__consumer_offsets"].partitions) == count


def test_a_number_of_partitions_that_no_topic_has_is_not_believed(tmp_path: Path) -> None:
    """No list of two thousand million partitions is made because of a directory's name or a config."""
    make_partitions(tmp_path, "orders-0", "orders-2147483646", "__consumer_offsets-0")
    found = catalogue(tmp_path, Image(), offsets_topic_num_partitions="2147483647")
    assert (found["orders"].present, len(found["orders"].partitions)) == ({0}, 1)
    assert len(found["__consumer_offsets"].partitions) == 1


def test_a_damaged_metadata_log_is_no_reason_not_to_open(
    logs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(logs / "plain" / "data", tmp_path / "data")
    source: Source = overlay.read_source(str(tmp_path / "data"))
    good = opened_metadata.read_images([source])
    assert "plain" in good.topics
    log = next((tmp_path / "data" / "__cluster_metadata-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[300] ^= 0xFF
    log.write_bytes(data)
    assert opened_metadata.read_images([source]).topics == {}
    assert "topics are shown as the directories say" in capfd.readouterr().err


def test_of_several_replicas_the_one_that_is_furthest_is_shown(tmp_path: Path) -> None:
    """By its last leader epoch, then by its last segment, then by what is in that."""
    for name, epoch, count in (("old", 3, 9), ("short", 5, 2), ("long", 5, 3), ("rolled", 5, 3)):
        log = new_partition(tmp_path / name, leader_epoch=epoch)
        append(log, *(batch(b"v") for _ in range(count)))
        if name == "rolled":
            log.roll(NOW_MS)
        log.close()
    (tmp_path / "damaged" / "orders-0").mkdir(parents=True)
    shutil.copytree(tmp_path / "rolled" / "orders-0", tmp_path / "damaged" / "orders-0", dirs_exist_ok=True)
    (tmp_path / "damaged" / "orders-0" / "leader-epoch-checkpoint").write_bytes(b"damaged")
    (tmp_path / "empty" / "orders-0").mkdir(parents=True)
    ranked = ["empty", "damaged", "old", "short", "long", "rolled"]
    sources = {name: overlay.read_source(str(tmp_path / name)) for name in ranked}
    for behind, ahead in itertools.pairwise(ranked):
        for order in ((behind, ahead), (ahead, behind)):
            chosen = overlay.shown(sources[name] for name in order)
            assert chosen == {("orders", 0): sources[ahead]}
    one = sources["old"]
    assert (one.node_id, one.cluster_id, one.metadata) == (None, None, None), "nothing says whose they were"
