"""What consumers that read committed records see: up to the last stable offset, with what was aborted, in time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pykafkad import messages
from tests.storage_kit import lead
from tests.unit.coordinator_kit import RestartedDesk
from tests.unit.data_kit import batch, fetch, produce, values_of
from tests.unit.transaction_kit import TransactionDesk

COMMITTED, UNCOMMITTED = 1, 0
VERSION = 12


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk = TransactionDesk(tmp_path)
    yield desk
    desk.storage.close()


def write(desk: TransactionDesk, *values: bytes, sequence: int = 0, producer_id: int = 7) -> None:
    data = batch(
        *values, producer_id=producer_id, producer_epoch=0, base_sequence=sequence, transactional=True
    )
    desk.replicas.table["t", 0].log.append(data, desk.clock.now_ms(), verified=True)
    desk.end_pass()


def read(desk: TransactionDesk, offset: int = 0, isolation: int = COMMITTED) -> Any:
    request = fetch("t", {"partition": 0, "fetch_offset": offset}, isolation_level=isolation)
    return desk.ask(request, VERSION).responses[0].partitions[0]


def end_offset(desk: TransactionDesk, isolation: int) -> int:
    kind = messages.ListOffsetsRequest
    topic = kind.ListOffsetsTopic(
        name="t", partitions=[kind.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    )
    answer = desk.ask(kind(topics=[topic], isolation_level=isolation), 7)
    offset: int = answer.topics[0].partitions[0].offset
    return offset


def begin_fetch(desk: TransactionDesk, partitions: int = 1, **fields: Any) -> Any:
    """A fetch of what is committed that may wait."""
    asked = [{"partition": index, "fetch_offset": 0} for index in range(partitions)]
    topic = "t" if partitions <= 3 else "wide"
    given = {"max_wait_ms": 5_000, "min_bytes": 1, "isolation_level": COMMITTED, **fields}
    sent = desk.send(fetch(topic, *asked, **given), VERSION)
    desk.end_pass()
    desk.settle()
    return sent


def answer(desk: TransactionDesk, sent: Any) -> Any:
    return desk.answer_of(sent, "FetchRequest", VERSION)


def test_an_open_transaction_hides_what_follows(desk: TransactionDesk) -> None:
    desk.ask(produce("t", 0, batch(b"before")), 9)
    write(desk, b"open")
    desk.ask(produce("t", 0, batch(b"after")), 9)
    row = read(desk)
    assert (values_of(row), row.high_watermark, row.last_stable_offset) == ([b"before"], 3, 1)
    assert values_of(read(desk, isolation=UNCOMMITTED)) == [b"before", b"open", b"after"]
    assert (end_offset(desk, COMMITTED), end_offset(desk, UNCOMMITTED)) == (1, 3)


@pytest.mark.parametrize("committed", [True, False])
def test_its_end_shows_it(desk: TransactionDesk, committed: bool) -> None:
    write(desk, b"a", b"b")
    desk.end("t", 0, committed=committed)
    row = read(desk)
    assert (row.last_stable_offset, end_offset(desk, COMMITTED)) == (3, 3)
    expected = [] if committed else [(7, 0)]
    assert [(each.producer_id, each.first_offset) for each in row.aborted_transactions] == expected
    assert read(desk, isolation=UNCOMMITTED).aborted_transactions is None


def test_a_fetch_waits_for_the_transaction_to_end(desk: TransactionDesk) -> None:
    write(desk, b"open")
    sent = begin_fetch(desk)
    write(desk, b"more", sequence=1)
    desk.ask(produce("t", 0, batch(b"after")), 9)
    assert answer(desk, sent) is None, "nothing of it is committed"
    desk.end("t", 0, committed=True)
    row = answer(desk, sent).responses[0].partitions[0]
    assert values_of(row)[:3] == [b"open", b"more", b"after"]


def test_a_fetch_of_more_than_is_committed_waits_on(desk: TransactionDesk) -> None:
    write(desk, b"one")
    sent = begin_fetch(desk, min_bytes=300)
    desk.end("t", 0, committed=True)
    assert answer(desk, sent) is None
    desk.ask(produce("t", 0, batch(b"x" * 200)), 9)
    assert len(values_of(answer(desk, sent).responses[0].partitions[0])) == 3


def test_a_large_fetch_waits_for_the_transaction_to_end(desk: TransactionDesk) -> None:
    desk.create("wide", 80)
    data = batch(b"open", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    desk.replicas.table["wide", 70].log.append(data, desk.clock.now_ms(), verified=True)
    desk.end_pass()
    sent = begin_fetch(desk, partitions=80)
    desk.ask(produce("wide", 70, batch(b"after")), 9)
    assert answer(desk, sent) is None
    desk.end("wide", 70, committed=False)
    rows = {row.partition_index: row for row in answer(desk, sent).responses[0].partitions}
    assert values_of(rows[70])[:2] == [b"open", b"after"]
    assert [each.first_offset for each in rows[70].aborted_transactions] == [0]


@pytest.mark.parametrize("clean", [True, False])
def test_an_open_transaction_is_open_after_a_restart(desk: TransactionDesk, clean: bool) -> None:
    desk.ask(produce("t", 0, batch(b"before")), 9)
    write(desk, b"open")
    write(desk, b"other", producer_id=8)
    again = desk.restarted(clean=clean)
    assert values_of(read(again)) == [b"before"]  # type: ignore[arg-type]
    assert [each.transaction_start for each in again.replicas.table["t", 0].producers] == [1, 2]
    TransactionDesk.end(again, "t", 0, committed=False)  # type: ignore[arg-type]
    row = read(again)  # type: ignore[arg-type]
    assert (row.last_stable_offset, len(values_of(row))) == (2, 2)
    assert [each.first_offset for each in row.aborted_transactions] == [1]
    again = again.restarted(clean=clean)
    row = read(again)  # type: ignore[arg-type]
    assert (row.last_stable_offset, [each.first_offset for each in row.aborted_transactions]) == (2, [1])
    again.storage.close()


def test_an_open_transaction_is_open_where_its_snapshot_is_damaged(desk: TransactionDesk) -> None:
    write(desk, b"open")
    directory = Path(desk.storage.partitions["t", 0].directory)
    desk.group_coordinator.stop()
    desk.storage.close()
    (snapshot,) = directory.glob("*.snapshot")
    snapshot.write_bytes(b"noise")
    again = RestartedDesk(desk)
    assert again.replicas.table["t", 0].producers.ongoing == {0: 7}
    assert again.replicas.table["t", 0].last_stable_offset == 0
    again.storage.close()


def test_a_transaction_that_is_cut_off_is_open_no_more(desk: TransactionDesk) -> None:
    desk.ask(produce("t", 0, batch(b"before")), 9)
    write(desk, b"open")
    replica = desk.replicas.table["t", 0]
    replica.become_follower(5, 9)
    replica.cut_at(1, lambda error: None)
    desk.settle()
    lead(replica.log, 6)
    assert (replica.log_end_offset, replica.last_stable_offset, replica.producers.ongoing) == (1, 1, {})


def test_a_marker_that_is_cut_off_leaves_the_transaction_open(desk: TransactionDesk) -> None:
    write(desk, b"open")
    desk.end("t", 0, committed=False)
    replica = desk.replicas.table["t", 0]
    replica.become_follower(5, 9)
    replica.cut_at(1, lambda error: None)
    desk.settle()
    lead(replica.log, 6)
    assert (replica.log_end_offset, replica.last_stable_offset, replica.producers.ongoing) == (1, 0, {0: 7})
    desk.end("t", 0, committed=True)
    row = read(desk)
    assert (row.last_stable_offset, row.aborted_transactions) == (2, [])


def test_records_that_are_deleted_take_the_beginning_of_a_transaction_along(desk: TransactionDesk) -> None:
    write(desk, b"a")
    write(desk, b"b", sequence=1)
    replica = desk.replicas.table["t", 0]
    replica.delete_records(1)
    assert replica.last_stable_offset == 1
    desk.end("t", 0, committed=False)
    row = read(desk, 1)
    assert (row.last_stable_offset, [each.first_offset for each in row.aborted_transactions]) == (3, [0])


def test_what_is_open_does_not_expire(desk: TransactionDesk) -> None:
    write(desk, b"open")
    producers = desk.replicas.table["t", 0].producers
    assert producers.remove_expired(1 << 62, 1) == 0
    desk.end("t", 0)
    assert producers.remove_expired(1 << 62, 1) == 1


def test_an_open_transaction_is_described(desk: TransactionDesk) -> None:
    kind = messages.DescribeProducersRequest
    asked = kind(topics=[kind.TopicRequest(name="t", partition_indexes=[0])])
    desk.ask(produce("t", 0, batch(b"before")), 9)
    write(desk, b"open")
    (row,) = desk.ask(asked, 0).topics[0].partitions[0].active_producers
    assert (row.producer_id, row.current_txn_start_offset, row.coordinator_epoch) == (7, 1, -1)
    desk.end("t", 0)
    (row,) = desk.ask(asked, 0).topics[0].partitions[0].active_producers
    assert (row.current_txn_start_offset, row.coordinator_epoch) == (-1, 0)
