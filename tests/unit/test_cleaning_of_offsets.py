"""`__consumer_offsets` is compacted like any other topic, and groups are the same afterwards."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.pure.groups.records import decode
from pykafkad.storage.cleaning.cleaner import LogCleaner
from tests.storage_kit import read_all
from tests.unit.coordinator_kit import OFFSETS, GroupDesk

DAY_MS = 86_400_000


def roll(desk: GroupDesk) -> None:
    desk.storage.partitions[OFFSETS, 0].roll(desk.clock.now_ms())


def cleaned(desk: GroupDesk) -> LogCleaner:
    """Compact all closed segments."""
    desk.storage.compaction.turn()
    cleaner = desk.storage.compaction.cleaner
    assert cleaner is not None
    assert not cleaner.uncleanable
    return cleaner


@pytest.mark.parametrize("clean", [True, False])
def test_groups_load_the_same_from_a_compacted_log(tmp_path: Path, clean: bool) -> None:
    desk = GroupDesk(tmp_path)
    chance = Random(1)
    groups = [f"group-{number}" for number in range(6)]
    for turn in range(40):
        desk.commit(chance.choice(groups), (chance.randrange(3), turn, f"turn {turn}"))
        if turn % 10 == 9:
            roll(desk)
    desk.ask(messages.DeleteGroupsRequest(groups_names=[groups[0]]), 2)
    roll(desk)
    before = {group: desk.committed(group) for group in groups}, desk.listed()
    records = len(whole_log(desk))
    cleaned(desk)
    assert len(whole_log(desk)) < records
    assert ({group: desk.committed(group) for group in groups}, desk.listed()) == before
    again = desk.restarted(clean)
    again.settle()
    assert ({group: again.committed(group) for group in groups}, again.listed()) == before
    assert groups[0] not in before[1]


def test_tombstones_of_old_groups_go_in_the_end(tmp_path: Path) -> None:
    desk = GroupDesk(tmp_path)
    desk.commit("old", (0, 1))
    desk.ask(messages.DeleteGroupsRequest(groups_names=["old"]), 2)
    for turn in range(3):
        desk.commit("new", (0, turn, "x" * 2000))
        roll(desk)
        cleaned(desk)
        desk.advance(DAY_MS + 1)
    left = [key for key, _ in whole_log(desk)]
    assert [key.group for key in left if key.group == "old"] == []
    again = desk.restarted()
    again.settle()
    assert again.committed("new") == {("orders", 0): 2}


def whole_log(desk: GroupDesk) -> list[tuple[Any, Any]]:
    partition = desk.storage.partitions[OFFSETS, 0]
    return [decode(row.key, row.value) for row in read_all(partition)]
