"""Random histories of committed offsets, with restarts and crashes, against a model of what must be there.

Groups commit, are deleted, lose offsets and topics and time passes, several things in a pass of the loop; a crash
loses the pass that was not finished and nothing else. After every pass each group has exactly what the model says:
offsets never go back, vanish or appear by themselves. SEED=n replays one run, RUNS=n makes more of them; a failure
prints its seed.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from tests.unit.coordinator_kit import GroupDesk, commit_request

RUNS = int(os.environ.get("RUNS", "500"))
SEEDS = [int(os.environ["SEED"])] if "SEED" in os.environ else [20_261_118 + run for run in range(RUNS)]
PASSES = 15
GROUPS = ["g", "h", "a group with spaces", "é"]
TOPICS = ["orders", "other"]
PARTITIONS = 3
RETENTION_MS = 120_000

Offsets = dict[tuple[str, int], tuple[int, int]]  # (topic, partition) -> offset, when it was committed


class History:
    def __init__(self, seed: int, directory: Path) -> None:
        self.chance = random.Random(seed)
        self.desk = GroupDesk(
            directory,
            partitions=self.chance.choice((1, 1, 3)),
            offsets_retention_minutes="2",
            offsets_load_buffer_size=str(self.chance.choice((200, 1000, 5_000_000))),
        )
        self.desk.add("other", PARTITIONS)
        self.model: dict[str, Offsets] = {}
        self.ahead: dict[str, Offsets] = {}  # the model, with the changes of this pass
        self.given: list[tuple[Any, Callable[[Any], None]]] = []
        self.number = 0

    # -- what clients do

    def commit(self) -> None:
        group_id = self.chance.choice(GROUPS)
        topic = self.chance.choice(TOPICS)
        rows = []
        for index in self.chance.sample(range(PARTITIONS), self.chance.randint(1, PARTITIONS)):
            self.number += 1
            rows.append((index, self.number, self.chance.choice(("", "note", "é" * 200))))
        for index, offset, _ in rows:
            self.ahead.setdefault(group_id, {})[topic, index] = offset, self.desk.clock.now_ms()
        self.ask(commit_request(group_id, *rows, topic=topic), 8, check_commit)

    def delete_offsets(self) -> None:
        group_id, topic = self.chance.choice(GROUPS), self.chance.choice(TOPICS)
        index = self.chance.randrange(PARTITIONS)
        kind = messages.OffsetDeleteRequest
        rows = [kind.OffsetDeleteRequestPartition(partition_index=index)]
        topics = [kind.OffsetDeleteRequestTopic(name=topic, partitions=rows)]
        self.ahead.get(group_id, {}).pop((topic, index), None)
        self.ask(kind(group_id=group_id, topics=topics), 0, lambda answer: None)

    def delete_group(self) -> None:
        group_id = self.chance.choice(GROUPS)
        self.ahead.pop(group_id, None)
        self.ask(messages.DeleteGroupsRequest(groups_names=[group_id]), 2, lambda answer: None)

    def ask(self, request: Any, version: int, check: Callable[[Any], None]) -> None:
        ticket = self.desk.send(request, version)
        name = type(request).__name__
        self.given.append((lambda: self.desk.answer_of(ticket, name, version), check))

    # -- other events

    def delete_topic(self) -> None:
        topic = self.desk.image.topics["other"]
        for offsets in self.ahead.values():
            for index in range(PARTITIONS):
                offsets.pop(("other", index), None)
        self.desk.group_coordinator.topic_deleted(topic)

    def expire(self) -> None:
        self.end_pass()
        self.desk.advance(self.chance.choice((1, 1_000, 60_000, RETENTION_MS)))
        self.desk.group_coordinator.expire()
        now_ms = self.desk.clock.now_ms()
        for group_id, offsets in list(self.ahead.items()):
            kept = {where: row for where, row in offsets.items() if now_ms - row[1] < RETENTION_MS}
            self.ahead[group_id] = kept
            if not kept:
                del self.ahead[group_id]

    def stop(self) -> None:
        self.end_pass()
        self.desk = self.desk.restarted(clean=True)
        self.desk.settle()

    def crash(self) -> None:
        """The present pass is lost, with its answers."""
        self.given.clear()
        self.ahead = copied(self.model)
        self.desk = self.desk.restarted(clean=False)
        self.desk.settle()

    # -- passes

    def one_pass(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            self.chance.choices(
                (self.commit, self.delete_offsets, self.delete_group, self.delete_topic, self.expire),
                (20, 3, 2, 1, 2),
            )[0]()
        self.chance.choices((self.end_pass, self.stop, self.crash), (10, 1, 2))[0]()
        self.check()

    def end_pass(self) -> None:
        self.desk.end_pass()
        given, self.given = self.given, []
        for answer, check in given:
            check(answer())
        self.desk.settle()
        self.model = copied(self.ahead)

    def check(self) -> None:
        for group_id in GROUPS:
            expected = {where: offset for where, (offset, _) in self.model.get(group_id, {}).items()}
            assert self.desk.committed(group_id) == expected
        listed = set(self.desk.listed())
        with_offsets = {group_id for group_id, offsets in self.model.items() if offsets}
        assert with_offsets <= listed


def check_commit(answer: Any) -> None:
    assert all(row.error_code == 0 for topic in answer.topics for row in topic.partitions)


def copied(model: dict[str, Offsets]) -> dict[str, Offsets]:
    return {group_id: dict(offsets) for group_id, offsets in model.items()}


@pytest.mark.parametrize("seed", SEEDS)
def test_offsets_are_what_was_committed(seed: int, tmp_path: Path) -> None:
    history = History(seed, tmp_path)
    try:
        for _ in range(PASSES):
            history.one_pass()
    except BaseException as error:
        error.add_note(f"SEED={seed} replays it")
        raise
    history.desk.storage.close(clean=False)
    shutil.rmtree(tmp_path)
