"""Produce, Fetch, ListOffsets and OffsetForLeaderEpoch through the dispatcher, on real logs."""

from __future__ import annotations

import gc
import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pykafkad import errors, messages
from pykafkad.waiting import Waiter
from tests.storage_kit import lead
from tests.unit.data_kit import NOW_MS, Connection, Desk, batch, fetch, produce, values_of

P, F = 9, 12  # versions by name, flexible; ids from 13 on


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def produced(answer: Any) -> Any:
    return answer.responses[0].partition_responses[0]


def fetched(answer: Any) -> Any:
    return answer.responses[0].partitions[0]


def put(desk: Desk, *values: bytes, topic: str = "t", index: int = 0, **fields: Any) -> Any:
    return produced(desk.ask(produce(topic, index, batch(*values, **fields)), P))


# -- produce


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_of_produce_stores_and_says_where(desk: Desk, version: int) -> None:
    topic_id = desk.create("t")
    for base in (0, 2):
        answer = produced(desk.ask(produce("t", 0, batch(b"a", b"b"), topic_id=topic_id), version))
        assert (answer.error_code, answer.base_offset) == (0, base)
    assert desk.storage.partitions["t", 0].high_watermark == 4


def test_versions_0_to_2_of_produce_are_listed_but_end_the_connection(desk: Desk) -> None:
    frame = bytearray(b"\0\0\0\x1a" + b"\0\0" + b"\0\2" + b"\0\0\0\1" + b"\0\1c" + bytes(15))
    assert desk.dispatcher.on_frame(desk.connection, frame, 4, len(frame)) is None
    assert desk.connection.closed is not None


def test_nothing_is_acknowledged_or_readable_before_the_end_of_the_pass(desk: Desk) -> None:
    desk.create("t")
    given = desk.send(produce("t", 0, batch(b"a")), P)
    assert values_of(fetched(desk.answer_of(desk.send(fetch("t", {}), F), "FetchRequest", F))) == []
    assert os.path.getsize(f"{desk.storage.partitions['t', 0].directory}/{0:020d}.log") == 0
    desk.end_pass()
    assert produced(desk.answer_of(given, "ProduceRequest", P)).base_offset == 0
    assert values_of(fetched(desk.ask(fetch("t", {}), F))) == [b"a"]


def test_a_write_that_fails_changes_the_answers_that_depend_on_it(desk: Desk, monkeypatch: Any) -> None:
    desk.create("t")
    given = [desk.send(produce("t", 0, batch(b"a")), P) for _ in range(2)]
    partition = desk.storage.partitions["t", 0]

    class Full:
        def __getattr__(self, name: str) -> Any:
            return getattr(active, name)

        def write(self) -> None:
            raise OSError(28, "No space left on device")

    active = partition.active
    partition.active = Full()  # type: ignore[assignment]
    desk.storage.on_all_failed = lambda: None
    desk.end_pass()
    for each in given:
        answer = produced(desk.answer_of(each, "ProduceRequest", P))
        assert (answer.error_code, answer.base_offset) == (errors.KAFKA_STORAGE_ERROR, -1)
    assert put(desk, b"b").error_code == errors.KAFKA_STORAGE_ERROR


def test_acks_0_is_not_answered_and_a_failure_ends_the_connection(desk: Desk) -> None:
    desk.create("t")
    assert desk.send(produce("t", 0, batch(b"a"), acks=0), P) is None
    desk.end_pass()
    assert desk.connection.closed is None and desk.storage.partitions["t", 0].high_watermark == 1
    assert desk.send(produce("missing", 0, batch(b"a"), acks=0), P) is None
    assert "UNKNOWN_TOPIC_OR_PARTITION" in str(desk.connection.closed)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (produce("missing", 0, batch(b"a")), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (produce("t", 7, batch(b"a")), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (produce("t", -1, batch(b"a")), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (produce("t", 0, batch(b"a"), acks=2), errors.INVALID_REQUIRED_ACKS),
        (produce("t", 0, b""), errors.INVALID_RECORD),
        (produce("t", 0, batch(b"a") + batch(b"b")), errors.INVALID_RECORD),
        (produce("t", 0, batch(b"a")[:-1] + b"x"), errors.CORRUPT_MESSAGE),
        (produce("t", 0, batch(b"x" * 1_100_000)), errors.MESSAGE_TOO_LARGE),
        (produce("t", 0, batch(b"a", timestamp=NOW_MS + 3_700_000)), errors.INVALID_TIMESTAMP),
    ],
)
@pytest.mark.parametrize("version", [3, P])
def test_a_bad_produce_is_refused_and_stores_nothing(
    desk: Desk, request_: Any, code: int, version: int
) -> None:
    desk.create("t")
    answer = produced(desk.ask(request_, version))
    assert (answer.error_code, answer.base_offset) == (code, -1)
    was_asked = code == errors.INVALID_TIMESTAMP and version == P  # older answers have no room for it
    assert answer.log_start_offset == (0 if was_asked else -1)
    assert desk.storage.partitions["t", 0].log_end_offset == 0


@pytest.mark.parametrize(
    ("data", "code", "start"),
    [
        (batch(b"a", timestamp=NOW_MS + 3_700_000), errors.INVALID_TIMESTAMP, 2),
        (
            batch(b"a", producer_id=5, producer_epoch=0, base_sequence=7),
            errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
            2,
        ),
        (batch(b"x" * 1_100_000), errors.MESSAGE_TOO_LARGE, -1),
        (batch(b"a")[:-1] + b"x", errors.CORRUPT_MESSAGE, -1),
    ],
)
def test_a_refused_producer_is_told_where_the_log_starts(
    desk: Desk, data: bytes, code: int, start: int
) -> None:
    """If the log was asked at all, and not of every error, as in Kafka."""
    desk.create("t")
    put(desk, b"a", b"b", b"c")
    put(desk, b"a", producer_id=5, producer_epoch=0, base_sequence=0)
    desk.storage.partitions["t", 0].delete_records(2)
    answer = produced(desk.ask(produce("t", 0, data), P))
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (code, -1, start)


def test_broken_framing_of_one_partition_refuses_them_all(desk: Desk) -> None:
    desk.create("t", 2)
    request = produce("t", 0, batch(b"a"))
    broken = bytearray(batch(b"b"))
    broken[8:12] = b"\0\0\0\1"
    request.topic_data[0].partition_data.append(
        produce("t", 1, bytes(broken)).topic_data[0].partition_data[0]
    )
    answers = desk.ask(request, P).responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [errors.CORRUPT_MESSAGE] * 2
    assert desk.storage.partitions["t", 0].log_end_offset == 0


def test_an_unknown_topic_id(desk: Desk) -> None:
    desk.create("t")
    assert produced(desk.ask(produce("", 0, batch(b"a"), topic_id=b"x" * 16), 13)).error_code == 100


@pytest.mark.parametrize("indexes", [(0, 7), (7, 0), (7, 7)])
def test_with_acks_0_any_failure_ends_the_connection(desk: Desk, indexes: tuple[int, int]) -> None:
    """And what goes well is stored all the same."""
    desk.create("t")
    request = produce("t", indexes[0], batch(b"a"), acks=0)
    request.topic_data += produce("t", indexes[1], batch(b"b"), acks=0).topic_data
    assert desk.send(request, P) is None
    desk.end_pass()
    assert "UNKNOWN_TOPIC_OR_PARTITION" in str(desk.connection.closed)
    assert desk.storage.partitions["t", 0].high_watermark == indexes.count(0)


def test_too_few_replicas_in_sync_for_acks_all_only(desk: Desk) -> None:
    desk.create("t", min_insync_replicas="2")
    desk.replicas.table["t", 0].become_leader(1, (1, 2), (1,))
    assert produced(desk.ask(produce("t", 0, batch(b"a"), -1), P)).error_code == errors.NOT_ENOUGH_REPLICAS
    assert produced(desk.ask(produce("t", 0, batch(b"a"), 1), P)).error_code == 0


def held_produce(desk: Desk, acks: int = -1) -> Any:
    """The exchange of a produce to a leader whose only follower has nothing yet; both are in sync, as they have to be."""
    desk.create("t", min_insync_replicas="2")
    desk.replicas.table["t", 0].become_leader(1, (1, 2), (1, 2))
    exchange = desk.send(produce("t", 0, batch(b"a"), acks), P)
    desk.end_pass()
    return exchange


def test_acks_all_waits_for_the_followers_in_sync(desk: Desk) -> None:
    exchange = held_produce(desk)
    ticket = exchange.encode()
    assert ticket.parts is None
    desk.replicas.table["t", 0].follower_fetched(2, 1, 0)
    assert ticket.parts is None, "answers leave at the end of a pass"
    desk.end_pass()
    assert produced(desk.answer_of(ticket, "ProduceRequest", P)).error_code == 0


def test_acks_1_waits_for_the_leader_alone(desk: Desk) -> None:
    answer = desk.answer_of(held_produce(desk, 1), "ProduceRequest", P)
    assert produced(answer).error_code == 0 and desk.replicas.table["t", 0].high_watermark == 0


def test_too_few_are_left_in_sync_after_the_append(desk: Desk) -> None:
    exchange = held_produce(desk)
    replica = desk.replicas.table["t", 0]
    replica.follower_fetched(2, 1, 0)
    replica.isr_confirmed(1, (1,), 1)
    desk.end_pass()
    answer = produced(desk.answer_of(exchange, "ProduceRequest", P))
    assert (answer.error_code, answer.base_offset) == (errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 0)


def test_who_waits_for_followers_is_told_that_another_leads(desk: Desk) -> None:
    exchange = held_produce(desk)
    replica = desk.replicas.table["t", 0]
    replica.become_follower(2, 2)
    replica.become_leader(3, (1, 2), (1,))
    answer = produced(desk.answer_of(exchange, "ProduceRequest", P))
    assert answer.error_code == errors.NOT_LEADER_OR_FOLLOWER, (
        "what it appended may have been cut off meanwhile"
    )
    assert desk.promises.held_count == 0


def test_no_more_need_be_in_sync_than_there_are_replicas(desk: Desk) -> None:
    """As a 4.3.1 broker was seen to do (KAFKA-15583)."""
    desk.create("t", min_insync_replicas="2")
    assert produced(desk.ask(produce("t", 0, batch(b"a"), -1), P)).error_code == 0


def test_a_replica_that_does_not_lead_takes_no_produce(desk: Desk) -> None:
    desk.create("t")
    desk.replicas.table["t", 0].become_follower(1, 2)
    for acks in (-1, 1):
        refused = produced(desk.ask(produce("t", 0, batch(b"a"), acks), P))
        assert (refused.error_code, refused.log_start_offset) == (errors.NOT_LEADER_OR_FOLLOWER, -1)


def test_internal_topics_are_for_the_admin_client(desk: Desk) -> None:
    desk.create("__consumer_offsets")
    request = produce("__consumer_offsets", 0, batch(b"a"))
    assert produced(desk.ask(request, P)).error_code == errors.INVALID_TOPIC_EXCEPTION


def test_an_idempotent_duplicate_answers_the_first_offset(desk: Desk) -> None:
    desk.create("t")
    fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    assert put(desk, b"a", **fields, base_sequence=0).base_offset == 0
    assert put(desk, b"b", **fields, base_sequence=1).base_offset == 1
    assert put(desk, b"a", **fields, base_sequence=0).base_offset == 0
    assert put(desk, b"d", **fields, base_sequence=3).error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert desk.storage.partitions["t", 0].high_watermark == 2


# -- fetch


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch_reads(desk: Desk, version: int) -> None:
    topic_id = desk.create("t")
    put(desk, b"a", b"b")
    put(desk, b"c")
    answer = fetched(desk.ask(fetch("t", {"fetch_offset": 2}, topic_id=topic_id), version))
    assert (answer.error_code, answer.high_watermark, values_of(answer)) == (0, 3, [b"c"])


def test_a_fetch_waits_for_data_and_for_no_longer_than_asked(desk: Desk) -> None:
    desk.create("t")
    given = desk.send(fetch("t", {}, max_wait_ms=500), F)
    desk.end_pass()
    assert given.parts is None
    put(desk, b"a")
    assert values_of(fetched(desk.answer_of(given, "FetchRequest", F))) == [b"a"]
    given = desk.send(fetch("t", {"fetch_offset": 1}, max_wait_ms=500), F)
    desk.end_pass()
    desk.advance(499)
    assert given.parts is None
    desk.advance(1)
    assert values_of(fetched(desk.answer_of(given, "FetchRequest", F))) == []


def test_a_fetch_of_nothing_does_not_wait(desk: Desk) -> None:
    answer = desk.ask(fetch("t", max_wait_ms=10_000), F)
    assert (answer.error_code, answer.responses) == (errors.NONE, [])


def test_a_fetch_waits_until_there_are_min_bytes(desk: Desk) -> None:
    desk.create("t")
    size = len(batch(b"a"))
    given = desk.send(fetch("t", {}, max_wait_ms=500, min_bytes=2 * size), F)
    put(desk, b"a")
    assert given.parts is None
    put(desk, b"b")
    assert values_of(fetched(desk.answer_of(given, "FetchRequest", F))) == [b"a", b"b"]


def test_what_a_waiting_fetch_had_already_counts_once_against_its_limits(desk: Desk) -> None:
    desk.create("t", 2)
    size = len(batch(b"a"))
    put(desk, b"a")
    given = desk.send(
        fetch("t", {}, {"partition": 1}, max_wait_ms=500, min_bytes=3 * size, max_bytes=3 * size), F
    )
    put(desk, b"b")
    put(desk, b"c", index=1)
    answer = desk.answer_of(given, "FetchRequest", F)
    assert [values_of(row) for row in answer.responses[0].partitions] == [[b"a", b"b"], [b"c"]]


def test_a_fetch_that_has_waited_is_freed_without_the_cycle_collector(desk: Desk) -> None:
    """Each wait of a follower would leave it something to walk, thousands of times a second."""

    def kept() -> int:
        return sum(isinstance(each, Waiter) for each in gc.get_objects())

    desk.create("t")
    gc.collect()
    gc.disable()
    try:
        before = kept()
        given = desk.send(fetch("t", {}, max_wait_ms=500), F)
        assert kept() == before + 1
        put(desk, b"a")
        assert values_of(fetched(desk.answer_of(given, "FetchRequest", F))) == [b"a"]
        desk.timers.clear()  # a cancelled one of the loop lets go of what it was to call
        assert kept() == before and not desk.connection.state.waiters
    finally:
        gc.enable()


def test_a_closed_connection_leaves_no_waiting_fetch(desk: Desk) -> None:
    desk.create("t")
    desk.send(fetch("t", {}, max_wait_ms=500), F)
    assert desk.waiting.count == 1
    desk.forget_waiters(desk.connection)
    assert desk.waiting.count == 0 and desk.replicas.table["t", 0].waiters == {}


def test_a_waiting_fetch_that_fails_closes_its_connection_and_the_others_are_answered(
    desk: Desk, capfd: Any
) -> None:
    desk.create("t")
    ours, theirs = desk.connection, Connection()
    desk.send(fetch("t", {}, max_wait_ms=500), F)
    desk.connection = theirs
    given = desk.send(fetch("t", {}, max_wait_ms=500), F)
    failures = [KeyError("a mistake")]
    for waiter in list(desk.replicas.table["t", 0].waiters):
        waiter.attempt = partial(failing_once, waiter.attempt, failures)
    put(desk, b"a")
    assert values_of(fetched(desk.answer_of(given, "FetchRequest", F))) == [b"a"]
    assert ours.closed and not theirs.closed and desk.waiting.count == 0
    assert "a waiting request failed; its connection is closed" in capfd.readouterr().err


def failing_once(attempt: Any, failures: Any, expired: Any, moved: Any) -> Any:
    if failures:
        raise failures.pop()
    return attempt(expired, moved)


def test_a_deleted_topic_ends_the_wait(desk: Desk) -> None:
    desk.create("t")
    given = desk.send(fetch("t", {}, max_wait_ms=500), F)
    del desk.image.topics["t"]
    desk.storage.delete("t", 0)
    desk.end_pass()
    answer = fetched(desk.answer_of(given, "FetchRequest", F))
    assert answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"fetch_offset": 4}, errors.OFFSET_OUT_OF_RANGE),
        ({"fetch_offset": -1}, errors.OFFSET_OUT_OF_RANGE),
        ({"partition": 3}, errors.UNKNOWN_TOPIC_OR_PARTITION),
        ({"current_leader_epoch": 5}, errors.UNKNOWN_LEADER_EPOCH),
        ({"fetch_offset": 3}, 0),
    ],
)
def test_errors_of_fetch(desk: Desk, asked: dict[str, Any], code: int) -> None:
    desk.create("t")
    put(desk, b"a", b"b", b"c")
    answer = fetched(desk.ask(fetch("t", asked, max_wait_ms=0), F))
    assert answer.error_code == code
    assert code == 0 or answer.high_watermark == -1
    absent = code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.aborted_transactions == ([] if absent else None)


@pytest.mark.parametrize("count", [2, 150])
@pytest.mark.parametrize("version", [4, 6, 7, 12, 13])
def test_a_fetch_of_which_no_sense_can_be_made_fails_as_a_whole(desk: Desk, version: int, count: int) -> None:
    id = desk.create("large", count)
    code = errors.UNKNOWN_SERVER_ERROR
    asked = [{"partition": index, "fetch_offset": 0} for index in range(count)]
    request = fetch("large", *asked, topic_id=id, isolation_level=2)
    given = desk.send(request, version)
    desk.advance(0)  # a large one is answered in slices
    desk.end_pass()
    answer = desk.answer_of(given, "FetchRequest", version)
    assert answer.error_code == (code if version >= 7 else errors.NONE)
    told = [
        (topic.topic, row.partition_index, row.error_code, row.high_watermark)
        for topic in answer.responses
        for row in topic.partitions
    ]
    assert told == ([("large", index, code, -1) for index in range(count)] if version < 13 else [])


def test_a_partition_that_may_give_nothing_gives_its_first_batch_if_nothing_else_does(desk: Desk) -> None:
    """So that a consumer always goes on (KIP-74)."""
    desk.create("t", 2)
    for index in (0, 1):
        put(desk, b"a", index=index)
        put(desk, b"b", index=index)
    asked = [{"partition": index, "partition_max_bytes": 0} for index in (0, 1)]
    parts = desk.ask(fetch("t", *asked), F).responses[0].partitions
    assert [(part.error_code, values_of(part)) for part in parts] == [(0, [b"a"]), (0, [])]
    asked[0]["partition_max_bytes"] = -1
    parts = desk.ask(fetch("t", *asked), F).responses[0].partitions
    assert [(part.error_code, values_of(part)) for part in parts] == [
        (errors.UNKNOWN_SERVER_ERROR, []),
        (0, [b"a"]),
    ]


@pytest.mark.parametrize("version", range(4, 18))
def test_of_a_partition_that_is_named_again_and_again_the_last_entry_counts(desk: Desk, version: int) -> None:
    topic_id = desk.create("t")
    put(desk, b"a")
    put(desk, b"b")
    asked = [{"partition": 0, "fetch_offset": offset} for offset in (*[0] * 200, 1)]
    (topic,) = desk.ask(fetch("t", *asked, topic_id=topic_id), version).responses
    assert topic.topic_id == topic_id if version >= 13 else topic.topic == "t"
    (row,) = topic.partitions
    assert (row.error_code, values_of(row)) == (errors.NONE, [b"b"])


def test_a_fetch_by_an_id_that_is_none_fails_as_a_whole(desk: Desk) -> None:
    answer = desk.ask(fetch("", {"partition": 0, "fetch_offset": 0}), 13)
    assert answer.error_code == errors.UNKNOWN_SERVER_ERROR and answer.responses == []


def test_what_is_not_there_comes_last_and_of_it_the_ids_that_are_none_first(desk: Desk) -> None:
    """As Kafka puts its answers together."""
    topic_id, none = desk.create("t"), b"n" * 16
    request = fetch("t", {"partition": 7}, {"partition": 0}, topic_id=topic_id)
    request.topics += fetch("n", {"partition": 0}, topic_id=none).topics
    answer = desk.ask(request, 13)
    assert [
        (topic.topic_id, [(row.partition_index, row.error_code) for row in topic.partitions])
        for topic in answer.responses
    ] == [
        (topic_id, [(0, errors.NONE)]),
        (none, [(0, errors.UNKNOWN_TOPIC_ID)]),
        (topic_id, [(7, errors.UNKNOWN_TOPIC_OR_PARTITION)]),
    ]


def test_an_older_leader_epoch_is_fenced(desk: Desk) -> None:
    desk.create("t")
    lead(desk.storage.partitions["t", 0], 2)
    answer = fetched(desk.ask(fetch("t", {"current_leader_epoch": 1}), F))
    assert answer.error_code == errors.FENCED_LEADER_EPOCH


def test_a_history_that_parts_is_told(desk: Desk) -> None:
    desk.create("t")
    put(desk, b"a")
    lead(desk.storage.partitions["t", 0], 3)
    put(desk, b"b")
    answer = fetched(desk.ask(fetch("t", {"fetch_offset": 2, "last_fetched_epoch": 2}), F))
    assert (answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset) == (0, 1)
    assert values_of(answer) == []


def test_the_first_batch_comes_whole_and_the_answer_keeps_to_its_limit(desk: Desk) -> None:
    desk.create("t", 2)
    for index in (0, 1):
        put(desk, b"x" * 500, index=index)
        put(desk, b"y" * 500, index=index)
    size = len(batch(b"x" * 500))
    answer = desk.ask(fetch("t", {"partition_max_bytes": 1}, {"partition": 1, "partition_max_bytes": 1}), F)
    sizes = [len(each.records) for each in answer.responses[0].partitions]
    assert sizes == [size, 0]
    answer = desk.ask(fetch("t", {}, {"partition": 1}, max_bytes=3 * size + 5), F)
    sizes = [len(each.records) for each in answer.responses[0].partitions]
    assert sizes[0] == 2 * size and size <= sizes[1] <= size + 5


def test_the_brokers_fetch_max_bytes_bounds_every_answer(tmp_path: Path) -> None:
    desk = Desk(tmp_path, fetch_max_bytes="1024")
    desk.create("t")
    for _ in range(5):
        put(desk, b"x" * 900)
    answer = fetched(desk.ask(fetch("t", {}), F))
    assert len(answer.records) <= 1024


def test_a_session_tells_only_news(desk: Desk) -> None:
    desk.create("t", 3)
    first = desk.ask(fetch("t", {}, {"partition": 1}, {"partition": 2}, session_epoch=0), F)
    assert first.session_id != 0 and len(first.responses[0].partitions) == 3
    put(desk, b"a", index=1)
    second = desk.ask(fetch("t", session_id=first.session_id, session_epoch=1), F)
    assert [each.partition_index for each in second.responses[0].partitions] == [1]
    third = desk.ask(fetch("t", session_id=first.session_id, session_epoch=1), F)
    assert third.error_code == errors.INVALID_FETCH_SESSION_EPOCH
    unknown = desk.ask(fetch("t", session_id=99, session_epoch=1), F)
    assert unknown.error_code == errors.FETCH_SESSION_ID_NOT_FOUND


def test_in_a_session_whoever_was_served_is_served_last(desk: Desk) -> None:
    desk.create("t", 3)
    first = desk.ask(fetch("t", {}, {"partition": 1}, {"partition": 2}, session_epoch=0), F)
    for index in (1, 2):
        for _ in range(4):
            put(desk, b"a" * 500, index=index)
    served = []
    for epoch in range(1, 5):
        request = fetch("t", session_id=first.session_id, session_epoch=epoch, max_bytes=600)
        answer = desk.ask(request, F).responses[0]
        served.append([each.partition_index for each in answer.partitions if each.records])
    assert served == [[1], [2], [1], [2]]


# -- offsets


def list_offsets(desk: Desk, timestamp: int, version: int = 7, index: int = 0, **fields: Any) -> Any:
    Request = messages.ListOffsetsRequest
    item = Request.ListOffsetsPartition(partition_index=index, timestamp=timestamp)
    topics = [Request.ListOffsetsTopic(name="t", partitions=[item])]
    return desk.ask(Request(replica_id=-1, topics=topics, **fields), version).topics[0].partitions[0]


def test_offsets_by_time_and_by_name(desk: Desk) -> None:
    desk.create("t")
    for second in (1, 3, 2):
        put(desk, b"a", timestamp=NOW_MS + second)
    for timestamp, offset in ((-1, 3), (-2, 0), (-4, 0)):
        found = list_offsets(desk, timestamp, 8)
        assert (found.offset, found.timestamp, found.leader_epoch) == (offset, -1, 0)
    nothing = list_offsets(desk, NOW_MS + 9)
    assert (nothing.offset, nothing.timestamp, nothing.leader_epoch) == (-1, -1, -1)
    found = list_offsets(desk, -3)
    assert (found.offset, found.timestamp) == (1, NOW_MS + 3)
    found = list_offsets(desk, NOW_MS + 2)
    assert (found.offset, found.timestamp) == (1, NOW_MS + 3)
    assert list_offsets(desk, NOW_MS + 4).offset == -1
    assert list_offsets(desk, -4, 8).offset == 0
    assert list_offsets(desk, -5, 9).offset == -1


@pytest.mark.parametrize(
    ("timestamp", "since", "offset"),
    [(-2, 1, 0), (-3, 7, 0), (-4, 8, 0), (-5, 9, -1), (-6, 11, -1), (-7, 12, None)],
)
def test_offsets_have_names_since_some_version(
    desk: Desk, timestamp: int, since: int, offset: int | None
) -> None:
    """Without tiered storage nothing is there nor waits to be taken there."""
    desk.create("t")
    put(desk, b"a")
    for version in range(1, 12):
        found = list_offsets(desk, timestamp, version)
        expected = (0, offset) if version >= since else (errors.UNSUPPORTED_VERSION, -1)
        assert (found.error_code, found.offset) == expected


def test_a_partition_is_asked_for_once(desk: Desk) -> None:
    desk.create("t", 2)
    Request = messages.ListOffsetsRequest
    rows = [Request.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in (0, 1, 0)]
    (topic,) = desk.ask(Request(topics=[Request.ListOffsetsTopic(name="t", partitions=rows)]), 7).topics
    codes = {row.partition_index: row.error_code for row in topic.partitions}
    assert codes == {0: errors.INVALID_REQUEST, 1: errors.NONE} and len(topic.partitions) == 2


def test_offsets_that_cannot_be_asked_for(desk: Desk) -> None:
    desk.create("t")
    assert list_offsets(desk, -3, 6).error_code == errors.UNSUPPORTED_VERSION
    Request = messages.ListOffsetsRequest
    asked = Request.ListOffsetsTopic(name="t", partitions=[Request.ListOffsetsPartition(timestamp=-1)])
    for level, code in ((1, errors.NONE), (2, errors.UNKNOWN_SERVER_ERROR)):
        answer = desk.ask(Request(topics=[asked], isolation_level=level), 6)
        assert answer.topics[0].partitions[0].error_code == code
    assert list_offsets(desk, -1, index=9).error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_where_an_epoch_ended(desk: Desk) -> None:
    desk.create("t")
    put(desk, b"a")
    lead(desk.storage.partitions["t", 0], 4)
    put(desk, b"b")
    Request = messages.OffsetForLeaderEpochRequest
    answers = []
    for epoch in (0, 3, 4, 9):
        item = Request.OffsetForLeaderPartition(partition=0, leader_epoch=epoch)
        topics = [Request.OffsetForLeaderTopic(topic="t", partitions=[item])]
        answer = desk.ask(Request(replica_id=-1, topics=topics), 4).topics[0].partitions[0]
        answers.append((answer.leader_epoch, answer.end_offset))
    assert answers == [(0, 1), (0, 1), (4, 2), (-1, -1)]


# -- frames


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0\1\0",
        b"\x03\xe7\0\0\0\0\0\1\0\1c",
        b"\0\1\0\x63\0\0\0\1\0\1c\0",
        b"\0\1\0\4\0\0\0\1\xff\xff\0",
    ],
)
def test_what_cannot_be_read_ends_its_connection(desk: Desk, frame: bytes) -> None:
    assert desk.dispatcher.on_frame(desk.connection, bytearray(frame), 0, len(frame)) is None
    assert desk.connection.closed is not None


def test_an_unsupported_version_of_api_versions_is_answered_as_version_0(desk: Desk) -> None:
    frame = bytearray(b"\0\x12\0\x63\0\0\0\7\0\1c\0\0")
    answer = desk.dispatcher.on_frame(desk.connection, frame, 0, len(frame))
    decoded = messages.ApiVersionsResponse.decode(answer, 0, 8)
    assert decoded.error_code == errors.UNSUPPORTED_VERSION
    assert [(each.api_key, each.min_version) for each in decoded.api_keys] == [(18, 0)]


@pytest.mark.parametrize("follower", [0, 2])
def test_who_says_to_be_a_follower_is_refused_in_a_session_too(desk: Desk, follower: int) -> None:
    desk.create("t", 2)
    both = [{"partition": index, "fetch_offset": 0} for index in (0, 1)]
    first = fetch("t", *both, replica_id=follower)
    first.session_epoch = 0
    session_id = desk.ask(first, 12).session_id
    again = fetch(
        "t", {"partition": 0, "fetch_offset": 0}, replica_id=follower, session_id=session_id, session_epoch=1
    )
    (topic,) = desk.ask(again, 12).responses
    assert {row.error_code for row in topic.partitions} == {errors.NOT_LEADER_OR_FOLLOWER}
    assert desk.connection.closed is None


@pytest.mark.parametrize("version", [14, 15])
@pytest.mark.parametrize(("follower", "code"), [(2, errors.NOT_LEADER_OR_FOLLOWER), (-1, errors.NONE)])
def test_since_version_15_a_follower_says_so_elsewhere(
    desk: Desk, version: int, follower: int, code: int
) -> None:
    topic_id = desk.create("t")
    said = (
        {"replica_id": follower}
        if version < 15
        else {"replica_state": messages.FetchRequest.ReplicaState(replica_id=follower)}
    )
    answer = desk.ask(fetch("t", {"partition": 0}, topic_id=topic_id, **said), version)
    assert fetched(answer).error_code == code


# -- directories


def test_a_partition_on_its_way_is_shown_in_both_directories(tmp_path: Path) -> None:
    desk = Desk(tmp_path, log_dirs=f"{tmp_path}/a,{tmp_path}/b")
    desk.create("t", 2)
    size = len(batch(b"a"))
    put(desk, b"a")
    work: list[Any] = []
    desk.storage.submit = lambda job, done: work.append((job, done))
    here = desk.storage.partitions["t", 0].log_directory
    (there,) = (each for each in desk.storage.directories if each is not here)
    kind = messages.AlterReplicaLogDirsRequest
    topics = [kind.AlterReplicaLogDirTopic(name="t", partitions=[0])]
    desk.ask(kind(dirs=[kind.AlterReplicaLogDir(path=str(there.path), topics=topics)]), 2)

    def shown() -> dict[str, list[tuple[int, int, int, bool]]]:
        answer = desk.ask(messages.DescribeLogDirsRequest(topics=None), 4)
        return {
            directory.log_dir: [
                (part.partition_index, part.partition_size, part.offset_lag, part.is_future_key)
                for topic in directory.topics
                for part in topic.partitions
                if part.partition_index == 0
            ]
            for directory in answer.results
        }

    assert shown() == {here.path: [(0, size, 0, False)], there.path: [(0, 0, 1, True)]}
    while work:
        job, done = work.pop()
        done(job())
    assert shown() == {here.path: [], there.path: [(0, size, 0, False)]}
