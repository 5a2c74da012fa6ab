"""What three Apache Kafka 3.9.2 brokers were sent by their controllers, sent to ours: the answers are the same.

tests/golden/cluster/control-requests.jsonl.gz has every LeaderAndIsr, StopReplica and UpdateMetadata of some 20 scenarios
on one cluster, in the order of time: topics made and deleted, brokers and controllers stopped, killed and frozen,
reassignments, probes with wrong epochs, foreign controllers, at last a cluster whose inter.broker.protocol.version is
2.6. `broker_epoch` is the receiver's own. The response is null where there was none, or where it is about a topic that
was made while nobody recorded.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from pykafkad.net.answers import read_answer
from tests.unit.cluster_kit import ClusterDesk

GOLDEN = Path(__file__).parents[1] / "golden" / "cluster" / "control-requests.jsonl.gz"
ROWS = [json.loads(line) for line in gzip.decompress(GOLDEN.read_bytes()).splitlines()]
# Where a new epoch is one of a new session of the same process: that was frozen for longer than its session.
NEW_SESSIONS = {(1, 792), (2, 171)}
PASSES_MAX = 100


class Replayed:
    """One of our brokers, in the place of one of theirs."""

    def __init__(self, directory: Path, broker_id: int) -> None:
        self.directory, self.broker_id = directory, broker_id
        self.epoch = -1
        self.desk = ClusterDesk(directory, broker_id)

    def has_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            if self.epoch >= 0 and (self.broker_id, epoch) not in NEW_SESSIONS:
                self.desk.storage.close()
                self.desk = ClusterDesk(self.directory, self.broker_id)
            self.desk.parts.broker_epoch = self.epoch = epoch

    def answer(self, row: dict[str, Any]) -> Any:
        desk = self.desk
        frame = bytearray(4) + bytes.fromhex(row["request"])
        given = desk.dispatcher.on_frame(desk.connection, frame, 4, len(frame))
        for _ in range(PASSES_MAX):
            desk.end_pass()
            answer = desk.answer_of(given, f"{row['name']}Request", row["version"])
            if answer is not None:
                return answer
            desk.advance(0)
        raise AssertionError(f"{row['name']} is not answered")


def theirs(row: dict[str, Any]) -> Any:
    frame = bytes.fromhex(row["response"])
    kind = getattr(messages, f"{row['name']}Response")
    return read_answer(kind, row["version"], int.from_bytes(frame[:4], "big"), frame)


def codes(answer: Any) -> Iterator[tuple[Any, int]]:
    """All that such an answer says, in an order of its own."""
    yield "all", answer.error_code
    for each in getattr(answer, "partition_errors", ()):
        yield (each.topic_name, each.partition_index), each.error_code
    for topic in getattr(answer, "topics", ()):
        for each in topic.partition_errors:
            yield (topic.topic_id, each.partition_index), each.error_code


@pytest.mark.parametrize("broker_id", [0, 1, 2])
def test_what_kafkas_brokers_answered_ours_answers(broker_id: int, tmp_path: Path) -> None:
    replayed = Replayed(tmp_path, broker_id)
    compared = 0
    for number, row in enumerate(row for row in ROWS if row["to"] == broker_id):
        replayed.has_epoch(row["broker_epoch"])
        answer = replayed.answer(row)
        if row["response"] is not None:
            where = f"request {number}, {row['name']} of {row['scenario']}"
            assert dict(codes(answer)) == dict(codes(theirs(row))), where
            compared += 1
    replayed.desk.storage.close()
    assert compared > 200
