"""A full disk gives an error: the process neither dies of a mapped page without space nor serves half a write.

RLIMIT_FSIZE stands for the full disk: writes beyond it fail.
"""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.storage.files import StorageError
from tests.storage_kit import NOW_MS, append, batch, new_partition

PAGE_BYTES = 4096


@contextlib.contextmanager
def files_up_to(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_index_page_that_has_no_room_is_an_error_and_no_end_of_the_process(tmp_path: Path) -> None:
    index = OffsetIndex(str(tmp_path), 0, 10 << 20, fresh=True)
    for slot in range(PAGE_BYTES // 8):
        index.append(slot, slot)
    with files_up_to(PAGE_BYTES), pytest.raises(OSError, match=index.path):
        index.append(5000, 5000)
    assert index.entries == PAGE_BYTES // 8
    index.append(5001, 5001)
    index.trim()
    assert OffsetIndex(str(tmp_path), 0).last_offset == 5001


@pytest.mark.parametrize("entries", [0, 1, 340, 341, 342, 1023, 1024, 1025])
def test_an_index_that_is_opened_again_keeps_its_entries_and_its_length(tmp_path: Path, entries: int) -> None:
    index = TimeIndex(str(tmp_path), 0, 3 * PAGE_BYTES + 100, fresh=True)
    for slot in range(min(entries, index.capacity)):
        assert index.maybe_append(slot, slot)
    index.trim()
    index.close()
    again = TimeIndex(str(tmp_path), 0, 3 * PAGE_BYTES + 100)
    kept = [again.entry(slot) for slot in range(again.entries)]
    if kept[-1:] != [(again.capacity - 1,) * 2]:
        again.maybe_append(5000, 5000)
        kept.append((5000, 5000))
    size = (3 * PAGE_BYTES + 100) // 12 * 12
    assert Path(again.path).stat().st_size <= size
    again.trim()
    found = TimeIndex(str(tmp_path), 0)
    assert [found.entry(slot) for slot in range(found.entries)] == kept


def test_what_did_not_fit_is_refused_and_not_there(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, batch(b"a" * 1000))
    size = partition.active.size
    with files_up_to(size + 500):
        partition.append(batch(b"b" * 1000), NOW_MS)
        with pytest.raises(StorageError):
            partition.commit()
    assert (partition.high_watermark, partition.active.size) == (1, size)
    assert not partition.log_directory.is_online


def test_a_roll_that_finds_no_room_is_a_storage_error(tmp_path: Path) -> None:
    partition = new_partition(
        tmp_path, segment_bytes=1500, index_interval_bytes=1, segment_index_bytes=1 << 20
    )
    append(partition, batch(b"a" * 1000))
    with files_up_to(10), pytest.raises(KafkaError) as caught:
        partition.append(batch(b"b" * 1000), NOW_MS)
    assert caught.value.code == errors.KAFKA_STORAGE_ERROR
    assert not partition.log_directory.is_online and partition.high_watermark == 1
