"""cleaner-offset-checkpoint: where the next cleaning of a log begins, after a restart and if the checkpoint is
impossible.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from tests.cleaner_kit import Home, contents, fill


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "a")


def checkpointed(home: Home, slot: int = 0) -> dict[tuple[str, int], int]:
    return checkpoints.read_offsets(f"{home.paths[slot]}/{checkpoints.CLEANED}")


def test_a_restart_goes_on_where_the_cleaner_was(home: Home) -> None:
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    home.clean()
    assert checkpointed(home) == {("orders", 0): 2}
    home.restart(clean=False)
    partition = home.manager.partitions["orders", 0]
    assert partition.first_dirty_offset == 2
    fill(partition, [("b", "x" * 100)])
    assert home.manager.compaction.cleaner is None
    home.clean()
    assert partition.first_dirty_offset == 3
    home.restart()
    assert checkpointed(home) == {("orders", 0): 3}


def test_a_checkpoint_beyond_the_log_begins_anew(home: Home, said: io.StringIO) -> None:
    partition = home.create()
    fill(partition, [("a", "1"), ("a", "2")])
    partition.first_dirty_offset = 99
    home.clean()
    assert "clean up to 99, but it is beyond the log's end 2" in said.getvalue()
    assert contents(partition) == [(1, "a", "2")]
    assert checkpointed(home) == {("orders", 0): 2}


def test_a_checkpoint_below_the_logs_start_moves_up(home: Home, said: io.StringIO) -> None:
    partition = home.create(cleanup_policy=["compact", "delete"])
    fill(partition, [("a", "1"), ("a", "2"), ("b", "1")])
    partition.first_dirty_offset = 0
    partition.delete_records(1)
    home.clean()
    assert contents(partition) == [(1, "a", "2"), (2, "b", "1")]
    assert "it is below" not in said.getvalue(), "with retention as well that is how it always is"


def test_a_deleted_topic_leaves_no_checkpoint_to_the_next_of_its_name(home: Home) -> None:
    fill(home.create(), [("a", "1"), ("a", "2")])
    home.clean()
    home.manager.delete("orders", 0)
    assert checkpointed(home) == {}
    assert home.create().first_dirty_offset is None


def test_a_damaged_checkpoint_costs_a_cleaning(home: Home) -> None:
    fill(home.create(), [("a", "1"), ("a", "2")])
    home.clean()
    home.manager.close()
    files.write_file(f"{home.paths[0]}/{checkpoints.CLEANED}", b"rubbish")
    home.start()
    assert home.manager.partitions["orders", 0].first_dirty_offset is None
    home.clean()
    assert checkpointed(home) == {("orders", 0): 2}
