"""DeleteRecords: deleted records stay deleted, and the checkpoints have the new log start."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad import errors, messages
from pykafkad.errors import KafkaError
from pykafkad.handlers.cluster_deletions import Deletion
from pykafkad.storage.checkpoints import checkpoints
from tests.storage_kit import (
    NOW_MS,
    TOPIC_ID,
    append,
    idempotent,
    lead,
    manager,
    new_partition,
    read_all,
    topic_config,
    values,
)
from tests.storage_kit import batch as stored
from tests.unit.cluster_kit import ClusterDesk, known, state, topic_known
from tests.unit.data_kit import Desk, batch, fetch, produce, values_of

Request = messages.DeleteRecordsRequest


def delete(*parts: tuple[int, int], topic: str = "orders") -> Any:
    asked = [Request.DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in parts]
    return Request(topics=[Request.DeleteRecordsTopic(name=topic, partitions=asked)], timeout_ms=1000)


def low_watermarks(answer: Any) -> list[tuple[int, int]]:
    return [(part.error_code, part.low_watermark) for topic in answer.topics for part in topic.partitions]


def test_records_below_an_offset_are_gone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.create("orders")
    desk.ask(produce("orders", 0, batch(b"a", b"b", b"c", b"d")), 9)
    assert low_watermarks(desk.ask(delete((0, 2)), 2)) == [(0, 2)]
    assert desk.ask(fetch("orders", {"partition": 0, "fetch_offset": 1}), 12).responses[0].partitions[
        0
    ].error_code == (errors.OFFSET_OUT_OF_RANGE)
    found = desk.ask(fetch("orders", {"partition": 0, "fetch_offset": 2}), 12).responses[0].partitions[0]
    assert found.log_start_offset == 2 and values_of(found) == [
        b"a",
        b"b",
        b"c",
        b"d",
    ]  # whole batches, as ever


def test_the_start_is_checkpointed_at_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.create("orders")
    desk.ask(produce("orders", 0, batch(b"a", b"b", b"c")), 9)
    desk.ask(delete((0, -1)), 2)
    assert checkpoints.read_offsets(f"{tmp_path}/{checkpoints.LOG_STARTS}") == {("orders", 0): 3}


def test_what_is_deleted_stays_so_after_a_crash(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    topic_id = desk.create("orders")
    desk.ask(produce("orders", 0, batch(b"a", b"b", b"c")), 9)
    desk.ask(delete((0, 2)), 2)
    desk.storage.close(clean=False)
    again = manager(tmp_path)
    again.open_all({("orders", 0): topic_id}, lambda topic: topic_config())
    assert again.partitions["orders", 0].log_start_offset == 2


def test_internal_topics_are_not_for_clients(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.create("__consumer_offsets")
    answer = desk.ask(delete((0, 0), (1, 0), topic="__consumer_offsets"), 2)
    assert low_watermarks(answer) == [
        (errors.INVALID_TOPIC_EXCEPTION, -1),
        (errors.UNKNOWN_TOPIC_OR_PARTITION, -1),
    ]


def test_a_batch_that_is_not_written_yet_is_not_deleted(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, stored(b"a"))
    partition.append(stored(b"queued"), NOW_MS)
    with pytest.raises(KafkaError) as refused:
        partition.delete_records(2)
    assert refused.value.code == errors.OFFSET_OUT_OF_RANGE
    assert partition.delete_records(-1) == 1


def test_the_start_never_goes_back(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, stored(b"a", b"b", b"c"))
    assert [partition.delete_records(offset) for offset in (2, 1, 0, 3)] == [2, 2, 2, 3]


def test_leader_epochs_below_the_start_are_forgotten(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, stored(b"a"))
    lead(partition, 3)
    append(partition, stored(b"b"), stored(b"c"))
    partition.delete_records(2)
    assert list(partition.epochs.entries) == [(3, 2)]
    partition.close()
    assert checkpoints.read_epochs(partition.directory) == [(3, 2)]


def test_producers_are_remembered_beyond_their_records(tmp_path: Path) -> None:
    partition = new_partition(tmp_path)
    append(partition, idempotent(0, b"a"), idempotent(1, b"b"))
    partition.delete_records(-1)
    append(partition, idempotent(2, b"c"))
    assert values(read_all(partition)) == [b"c"]
    assert partition.append(idempotent(2, b"c"), NOW_MS).duplicate


def test_one_writing_of_a_checkpoint_at_a_time(tmp_path: Path) -> None:
    """Two at once would overwrite each other's temporary file; a change in the meantime is written afterwards."""
    logs = manager(tmp_path)
    logs.open_all({}, lambda topic: topic_config())
    partition = logs.create("orders", 0, TOPIC_ID, topic_config(), 0)
    append(partition, stored(b"a", b"b", b"c", b"d"))
    work: list[Any] = []
    logs.submit = lambda job, done: work.append((job, done))
    told: list[int] = []
    for offset in (1, 2, 3):
        partition.delete_records(offset)
        logs.checkpointing.write(checkpoints.LOG_STARTS, lambda offset=offset: told.append(offset))  # type: ignore[misc]
    path = f"{tmp_path}/{checkpoints.LOG_STARTS}"
    seen = []
    while work:
        assert len(work) == 1
        job, done = work.pop()
        done(job())
        seen.append((checkpoints.read_offsets(path)["orders", 0], list(told)))
    assert seen == [(1, [1]), (3, [1, 2, 3])]


# -- in a cluster: answered when the logs of all live replicas start there

TIMED_OUT = errors.REQUEST_TIMED_OUT


class Leader:
    """Broker 0 leads two partitions with three replicas, of which both others have the four records."""

    def __init__(self, directory: Path) -> None:
        self.desk = ClusterDesk(directory)
        self.desk.live(0, 1, 2, topic_states=[topic_known(known(), known(1))])
        assert self.desk.lead_and_follow(state(), state(1)) == {0: 0, 1: 0}
        for index in (0, 1):
            self.desk.ask(produce("orders", index, batch(b"a", b"b", b"c", b"d"), acks=1), 9)
            for broker in (1, 2):
                self.starts(broker, 0, index)

    def starts(self, broker: int, offset: int, index: int = 0) -> None:
        """The follower says with a fetch where its log starts."""
        self.desk.replicas.table["orders", index].follower_fetched(broker, 4, offset)
        self.desk.end_pass()

    def send(self, *parts: tuple[int, int], timeout_ms: int = 1000) -> Any:
        request = delete(*parts)
        request.timeout_ms = timeout_ms
        given = self.desk.send(request, 2)
        self.desk.end_pass()
        return given

    def told(self, given: Any) -> list[tuple[int, int]] | None:
        answer = self.desk.answer_of(given, "DeleteRecordsRequest", 2)
        return None if answer is None else low_watermarks(answer)


@pytest.fixture
def leader(tmp_path: Path) -> Leader:
    return Leader(tmp_path)


def test_it_is_answered_when_the_last_follower_has_deleted(leader: Leader) -> None:
    given = leader.send((0, 2), (1, 1), (7, 1))
    leader.starts(1, 2)
    leader.starts(2, 2)
    leader.starts(1, 1, index=1)
    assert leader.told(given) is None, "the other partition's last follower has not"
    leader.starts(2, 3, index=1)
    assert leader.told(given) == [(0, 2), (0, 1), (errors.UNKNOWN_TOPIC_OR_PARTITION, -1)]


def test_what_has_not_come_in_time_is_said_and_where_it_stands(leader: Leader) -> None:
    given = leader.send((0, 2), (1, 3))
    leader.starts(1, 3, index=1)
    leader.starts(2, 3, index=1)
    leader.starts(1, 2)
    leader.desk.advance(999)
    assert leader.told(given) is None
    leader.desk.advance(1)
    leader.desk.end_pass()
    assert leader.told(given) == [(TIMED_OUT, 0), (0, 3)]
    assert leader.desk.replicas.table["orders", 0].log_start_offset == 2, "deleted all the same"


def test_a_millisecond_is_some_time(leader: Leader) -> None:
    given = leader.send((0, 2), timeout_ms=1)
    assert leader.told(given) is None
    leader.desk.advance(1)
    leader.desk.end_pass()
    assert leader.told(given) == [(TIMED_OUT, 0)]


def test_who_was_answered_waits_no_more(leader: Leader) -> None:
    given = leader.send((0, 2))
    for offset in (2, 3):
        for broker in (1, 2):
            leader.starts(broker, offset)
    leader.desk.advance(1_000)
    leader.desk.end_pass()
    assert leader.told(given) == [(0, 2)] and leader.desk.connection.closed is None


def test_what_comes_while_a_large_request_is_worked_off_counts(leader: Leader) -> None:
    response = messages.DeleteRecordsResponse
    parts = [
        response.DeleteRecordsPartitionResult(partition_index=index, low_watermark=2) for index in (0, 7)
    ]
    topics = [response.DeleteRecordsTopicResult(name="orders", partitions=parts)]
    answer, context = response(topics=topics), SimpleNamespace(connection=leader.desk.connection)
    leader.desk.replicas.table["orders", 0].delete_records(2)
    deletion: Any = Deletion(cast(Any, leader.desk), cast(Any, context), answer)
    for part in parts:
        deletion.add("orders", part)
    assert low_watermarks(answer) == [(TIMED_OUT, 0), (errors.UNKNOWN_TOPIC_OR_PARTITION, -1)]
    for broker in (1, 2):
        leader.starts(broker, 2)
    assert deletion.answer_or_wait(1_000) is answer
    assert low_watermarks(answer)[0] == (0, 2)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_who_has_no_time_is_answered_at_once(leader: Leader, timeout_ms: int) -> None:
    for broker in (1, 2):
        leader.starts(broker, 1)
    assert leader.told(leader.send((0, 2), (1, 0), timeout_ms=timeout_ms)) == [(TIMED_OUT, 1), (0, 0)]


def test_followers_that_do_not_live_are_not_waited_for(leader: Leader) -> None:
    leader.starts(1, 3)
    assert leader.desk.live(0, 1).error_code == errors.NONE
    assert leader.told(leader.send((0, 3))) == [(0, 3)]


def test_nothing_is_waited_for_that_was_deleted_before(leader: Leader) -> None:
    for broker in (1, 2):
        leader.starts(broker, 2)
    assert leader.told(leader.send((0, 2))) == [(0, 2)]


def test_a_leader_that_is_one_no_more_says_so(leader: Leader) -> None:
    given = leader.send((0, 2), (1, 0))
    assert leader.desk.lead_and_follow(state(leader=1, epoch=1, is_new=False)) == {0: 0}
    leader.desk.end_pass()
    assert leader.told(given) == [(errors.NOT_LEADER_OR_FOLLOWER, -1), (0, 0)]
