"""The follower's fetcher: what it asks next, and what follows from answers."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad import errors
from pykafkad.messages import FetchResponse, ListOffsetsResponse, OffsetForLeaderEpochResponse
from pykafkad.pure.following.fetcher import (
    NEVER_MS,
    Append,
    AskEpochs,
    AskOffsets,
    Cut,
    CutAt,
    Fetcher,
    Following,
    Refused,
    StartAnew,
)
from pykafkad.pure.following.session import Named

BACKOFF_MS = 1000
ID = b"i" * 16


class Log:
    def __init__(self, end: int = 0, epoch: int = -1, mark: int = 0) -> None:
        self.next_fetch = end, epoch
        self.log_start_offset = 0
        self.high_watermark = mark
        self.is_ready = True


class Quota:
    is_exceeded = True

    def covers(self, topic: str, index: int) -> bool:
        return index == 0


class Story:
    """A fetcher with its leader, which the test plays."""

    def __init__(self, **options: Any) -> None:
        self.fetcher = Fetcher(backoff_ms=BACKOFF_MS, **options)
        self.now_ms = 5_000

    def follow(self, index: int = 0, log: Log | None = None, epoch: int = 3, topic_id: bytes = ID) -> Log:
        log = log or Log(10, 2)
        self.act = self.fetcher.follow(Following("t", index, topic_id, epoch, log))
        return log

    def asks(self) -> Named:
        request = self.fetcher.next(self.now_ms)
        assert isinstance(request, Named)
        return request

    def asks_nothing(self) -> bool:
        return self.fetcher.next(self.now_ms) is None

    def told(
        self, *rows: Any, session: int = 7, error: int = 0, topic_id: bytes = ID, topic: str = ""
    ) -> list[Any]:
        response = FetchResponse(
            error_code=error,
            session_id=session,
            responses=[
                FetchResponse.FetchableTopicResponse(topic=topic, topic_id=topic_id, partitions=list(rows))
            ],
        )
        return [tuple(each)[1:] if not isinstance(each, Refused) else each[1:] for each in self.raw(response)]

    def raw(self, response: Any) -> list[Any]:
        self.acts = self.fetcher.fetched(response, self.now_ms)
        return self.acts

    def offsets(self, timestamp: int, offset: int, error: int = 0) -> list[Any]:
        request = self.fetcher.next(self.now_ms)
        assert isinstance(request, AskOffsets) and request.timestamp == timestamp
        Topic = ListOffsetsResponse.ListOffsetsTopicResponse
        row = ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=0, offset=offset, error_code=error
        )
        response = ListOffsetsResponse(topics=[Topic(name="t", partitions=[row])])
        return self.fetcher.offsets_told(request, response, self.now_ms)

    def epochs(self, epoch: int, end: int, error: int = 0) -> list[Any]:
        request = self.fetcher.next(self.now_ms)
        assert isinstance(request, AskEpochs)
        Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
        row = OffsetForLeaderEpochResponse.EpochEndOffset(
            partition=0, leader_epoch=epoch, end_offset=end, error_code=error
        )
        response = OffsetForLeaderEpochResponse(topics=[Topic(topic="t", partitions=[row])])
        return self.fetcher.epochs_told(request, response, self.now_ms)


def row(index: int = 0, data: bytes = b"", mark: int = 0, **fields: Any) -> Any:
    return FetchResponse.PartitionData(
        partition_index=index, records=data, high_watermark=mark, log_start_offset=1, **fields
    )


def offsets_of(request: Named) -> list[tuple[int, int]]:
    return [(each.partition, each.offset) for each in request.wanted]


def test_the_first_fetch_names_all_and_the_next_what_changed() -> None:
    story = Story()
    log = story.follow()
    story.follow(1)
    first = story.asks()
    assert (first.session_id, first.session_epoch) == (0, 0)
    wanted = first.wanted[0]
    assert wanted == ("t", 0, ID, 3, 10, 2, 0) and offsets_of(first) == [(0, 10), (1, 10)]
    assert story.told(row(0, b"batch", mark=9), row(1)) == [(b"batch", 9, 1), (b"", 0, 1)]
    log.next_fetch = 12, 3
    second = story.asks()
    assert (second.session_id, second.session_epoch, second.forgotten) == (7, 1, [])
    assert offsets_of(second) == [(0, 12)] and second.wanted[0].last_epoch == 3
    story.told(row(0))
    third = story.asks()
    assert (third.session_epoch, third.wanted, third.forgotten) == (2, [], []), "it asks for all as before"


@pytest.mark.parametrize(
    ("error", "session", "expected"),
    [
        (0, 0, (0, 0)),  # the leader has no room for a session
        (errors.FETCH_SESSION_ID_NOT_FOUND, 0, (0, 0)),
        (errors.INVALID_FETCH_SESSION_EPOCH, 0, (7, 0)),  # which closes what there is
    ],
)
def test_a_session_that_ends_begins_anew_with_all(
    error: int, session: int, expected: tuple[int, int]
) -> None:
    story = Story()
    story.follow()
    story.asks()
    story.told(row(0))
    story.asks()
    story.told(session=session, error=error)
    again = story.asks()
    assert (again.session_id, again.session_epoch) == expected and offsets_of(again) == [(0, 10)]


def test_an_answer_that_makes_no_sense_is_as_good_as_none() -> None:
    story = Story()
    story.follow()
    story.asks()
    assert story.told(error=errors.UNKNOWN_SERVER_ERROR) == [] and story.asks_nothing()
    assert story.fetcher.next_ms == story.now_ms + BACKOFF_MS
    story.now_ms += BACKOFF_MS
    assert offsets_of(story.asks()) == [(0, 10)]


def test_after_a_lost_connection_all_wait_and_are_named_anew() -> None:
    story = Story()
    story.follow()
    story.asks()
    story.told(row(0))
    story.asks()
    story.fetcher.lost(story.now_ms)
    assert story.asks_nothing()
    story.now_ms += BACKOFF_MS
    again = story.asks()
    assert (again.session_id, again.session_epoch) == (7, 0) and offsets_of(again) == [(0, 10)]


@pytest.mark.parametrize(
    "code",
    [
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.UNKNOWN_LEADER_EPOCH,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.UNKNOWN_TOPIC_ID,
        errors.INCONSISTENT_TOPIC_ID,
        errors.KAFKA_STORAGE_ERROR,
        errors.UNKNOWN_SERVER_ERROR,
    ],
)
def test_what_may_pass_is_asked_again_after_a_while(code: int) -> None:
    story = Story()
    story.follow()
    story.follow(1)
    story.asks()
    assert story.told(row(0, error_code=code), row(1)) == [(code, False), (b"", 0, 1)]
    request = story.asks()
    assert request.wanted == [] and request.forgotten == [("t", 0, ID)], "the leader need not answer for it"
    story.told()
    story.now_ms += BACKOFF_MS
    assert offsets_of(story.asks()) == [(0, 10)]


def test_who_is_fenced_waits_for_the_controller() -> None:
    story = Story()
    story.follow()
    story.asks()
    assert story.told(row(0, error_code=errors.FENCED_LEADER_EPOCH)) == [(errors.FENCED_LEADER_EPOCH, True)]
    assert story.asks().forgotten == [("t", 0, ID)], "a session is left without partitions, which ends it"
    story.told(session=0)
    story.now_ms += 10 * BACKOFF_MS
    assert story.asks_nothing() and story.fetcher.next_ms == NEVER_MS
    story.follow(epoch=4)
    assert story.asks().wanted[0].leader_epoch == 4


def test_an_answer_of_another_epoch_or_offset_says_nothing() -> None:
    story = Story()
    log = story.follow()
    story.asks()
    story.follow(epoch=4, log=log)
    assert story.told(row(0, b"batch")) == []
    assert story.told(row(0, error_code=errors.FENCED_LEADER_EPOCH)) == []
    assert story.asks().wanted[0].leader_epoch == 4
    log.next_fetch = 5, 1  # it was cut
    assert story.told(row(0, b"batch")) == []
    assert offsets_of(story.asks()) == [(0, 5)]
    log.is_ready = False
    assert story.told(row(0, b"batch")) == []
    story.fetcher.stop(("t", 0))
    assert story.told(row(0, b"batch")) == []


def test_a_topic_made_anew_is_another_partition_of_the_session() -> None:
    story = Story()
    story.follow()
    story.asks()
    story.told(row(0))
    story.fetcher.stop(("t", 0))
    story.follow(topic_id=b"n" * 16)
    request = story.asks()
    assert request.forgotten == [("t", 0, ID)] and request.wanted[0].topic_id == b"n" * 16
    assert story.told(row(0, b"batch")) == [], "of the old one"
    assert story.told(row(0, b"batch"), topic_id=b"n" * 16) == [(b"batch", 0, 1)]


def test_a_topic_without_id_is_asked_for_by_name_and_all_with_it() -> None:
    story = Story()
    story.follow()
    assert story.asks().uses_topic_ids
    story.told(row(0))
    story.follow(1, topic_id=bytes(16))
    request = story.asks()
    assert not request.uses_topic_ids and request.session_epoch == 0 and len(request.wanted) == 2
    assert story.told(row(0, b"batch"), topic="t") == [(b"batch", 0, 1)]


def test_a_diverging_log_is_cut_and_goes_on_from_there() -> None:
    story = Story()
    log = story.follow()
    story.asks()
    diverging = FetchResponse.EpochEndOffset(epoch=1, end_offset=4)
    story.told(row(0, diverging_epoch=diverging))
    assert story.acts == [Cut(story.fetcher.partitions["t", 0], 1, 4)]
    log.is_ready = False
    assert story.asks_nothing()
    log.is_ready, log.next_fetch = True, (4, 1)
    story.fetcher.touch(("t", 0))
    again = story.asks()
    assert offsets_of(again) == [(0, 4)]
    assert (again.session_id, again.session_epoch) == (7, 0), (
        "or the leader would not tell its high watermark again"
    )


def test_out_of_range_beyond_the_leaders_end_is_cut_there() -> None:
    story = Story()
    story.follow()
    story.asks()
    story.told(row(0, error_code=errors.OFFSET_OUT_OF_RANGE))
    partition = story.fetcher.partitions["t", 0]
    assert story.offsets(-1, 6) == [CutAt(partition, 6)]


def test_out_of_range_before_the_leaders_start_begins_anew() -> None:
    story = Story()
    log = story.follow()
    story.asks()
    story.told(row(0, error_code=errors.OFFSET_OUT_OF_RANGE))
    partition = story.fetcher.partitions["t", 0]
    assert story.offsets(-1, 90) == []
    assert story.offsets(-2, 60) == [StartAnew(partition, 60)]
    log.next_fetch = 60, -1
    again = story.asks()
    assert offsets_of(again) == [(0, 60)] and again.wanted[0].last_epoch == -1


def test_out_of_range_that_was_in_range_after_all_is_not_asked_in_a_circle() -> None:
    story = Story()
    story.follow()
    story.asks()
    story.told(row(0, error_code=errors.OFFSET_OUT_OF_RANGE), session=0)
    assert story.offsets(-1, 90) == [] and story.offsets(-2, 5) == []
    assert story.asks_nothing() and story.fetcher.next_ms == story.now_ms + BACKOFF_MS


def test_a_leader_that_does_not_say_where_it_ends_is_asked_again() -> None:
    story = Story()
    story.follow()
    story.asks()
    story.told(row(0, error_code=errors.OFFSET_OUT_OF_RANGE), session=0)
    (refused,) = story.offsets(-1, -1, error=errors.NOT_LEADER_OR_FOLLOWER)
    assert refused.error_code == errors.NOT_LEADER_OR_FOLLOWER and story.asks_nothing()
    story.now_ms += BACKOFF_MS
    assert offsets_of(story.asks()) == [(0, 10)]


def test_records_from_before_epochs_are_kept_up_to_the_high_watermark() -> None:
    story = Story()
    story.follow(log=Log(10, -1, mark=4))
    assert story.act == CutAt(story.fetcher.partitions["t", 0], 4)
    story.follow(log=Log(0, -1))
    assert story.act is None


def test_an_older_protocol_asks_for_the_epoch_before_it_fetches() -> None:
    story = Story(truncates_on_fetch=False)
    log = story.follow()
    partition = story.fetcher.partitions["t", 0]
    assert story.epochs(1, 7) == [Cut(partition, 1, 7)]
    log.next_fetch = 7, 1
    assert story.epochs(1, 8) == []
    assert story.asks().wanted[0].last_epoch == -1, "that protocol knows no divergence in a fetch"


def test_an_older_protocol_cuts_at_the_high_watermark_where_no_epoch_is_shared() -> None:
    story = Story(truncates_on_fetch=False)
    story.follow()
    partition = story.fetcher.partitions["t", 0]
    assert story.epochs(-1, -1) == [Cut(partition, -1, -1)]
    assert offsets_of(story.asks()) == [(0, 10)], "and does not ask again"


def test_an_older_protocol_asks_again_after_an_error() -> None:
    story = Story(truncates_on_fetch=False)
    story.follow()
    assert len(story.epochs(-1, -1, error=errors.UNKNOWN_LEADER_EPOCH)) == 1 and story.asks_nothing()
    story.now_ms += BACKOFF_MS
    assert story.epochs(2, 10) == [] and offsets_of(story.asks()) == [(0, 10)]


def asking_where_the_leader_ends() -> tuple[Story, AskOffsets]:
    """The leader has nothing at the end of our log."""
    ends = Story()
    ends.follow()
    ends.asks()
    ends.told(row(0, error_code=errors.OFFSET_OUT_OF_RANGE))
    request = ends.fetcher.next(ends.now_ms)
    assert isinstance(request, AskOffsets)
    return ends, request


def test_what_the_leader_does_not_say_of_a_partition_is_asked_again_after_a_while() -> None:
    """Whether it is asked where its log ends or where an epoch does."""
    ends, request = asking_where_the_leader_ends()
    assert ends.fetcher.offsets_told(request, ListOffsetsResponse(topics=[]), ends.now_ms) == []
    epochs = Story(truncates_on_fetch=False)
    epochs.follow()
    asked = epochs.fetcher.next(epochs.now_ms)
    assert isinstance(asked, AskEpochs)
    assert epochs.fetcher.epochs_told(asked, OffsetForLeaderEpochResponse(topics=[]), epochs.now_ms) == []
    for story, kind in ((ends, AskOffsets), (epochs, AskEpochs)):
        assert not isinstance(story.fetcher.next(story.now_ms), kind)
        story.now_ms += BACKOFF_MS
        assert isinstance(story.fetcher.next(story.now_ms), kind)


def test_an_answer_says_nothing_to_who_does_not_follow_any_more() -> None:
    ends, request = asking_where_the_leader_ends()
    Topic, Row = (
        ListOffsetsResponse.ListOffsetsTopicResponse,
        ListOffsetsResponse.ListOffsetsPartitionResponse,
    )
    answer = ListOffsetsResponse(topics=[Topic(name="t", partitions=[Row(partition_index=0, offset=4)])])
    ends.follow(epoch=4)
    assert ends.fetcher.offsets_told(request, answer, ends.now_ms) == []
    assert [each.leader_epoch for each in ends.asks().wanted] == [4], "it is another one, which fetches"


def test_who_follows_in_a_new_epoch_is_followed_once() -> None:
    story = Story(truncates_on_fetch=False)
    story.follow()
    assert isinstance(story.fetcher.next(story.now_ms), AskEpochs)
    story.follow(epoch=4)
    asked = story.fetcher.next(story.now_ms)
    assert isinstance(asked, AskEpochs) and len(asked.partitions) == 1
    story.fetcher.stop(("t", 0))
    assert story.asks_nothing() and not story.fetcher.partitions
    named = Story()
    named.follow(topic_id=bytes(16))
    named.follow(epoch=4, topic_id=ID)
    assert named.asks().uses_topic_ids, "the one without an id is followed no more"


def test_a_quota_that_is_exceeded_holds_back_who_is_not_in_sync() -> None:
    quota = Quota()
    story = Story(throttle=quota)
    quota.is_exceeded = False
    log = story.follow()
    story.follow(1)
    assert len(story.asks().wanted) == 2
    story.told(row(0, mark=50), row(1, mark=50))
    quota.is_exceeded = True
    assert story.asks().forgotten == [("t", 0, ID)], "the other is not covered by it"
    story.told()
    story.now_ms += BACKOFF_MS
    assert story.asks().wanted == []
    story.told()
    log.next_fetch = 50, 2
    story.now_ms += BACKOFF_MS
    assert offsets_of(story.asks()) == [(0, 50)], "it has what the leader's consumers may read"


def test_a_partition_that_is_late_does_not_hold_up_the_others() -> None:
    story = Story()
    story.follow()
    log = story.follow(1)
    story.fetcher.delay(story.fetcher.partitions["t", 0], story.now_ms)
    assert offsets_of(story.asks()) == [(1, 10)]
    assert story.raw(FetchResponse(session_id=7, responses=[])) == []
    log.next_fetch = 11, 2
    story.fetcher.touch_all()
    assert offsets_of(story.asks()) == [(1, 11)]


def test_an_append_is_told_as_it_came() -> None:
    story = Story()
    story.follow()
    story.asks()
    story.told(row(0, b"bytes", mark=3))
    (append,) = story.acts
    assert isinstance(append, Append) and append.data == b"bytes" and append.high_watermark == 3
