"""Requests are told of as they are answered: in the log at the levels debug and trace, and to whoever watches."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pykafkad import logs, messages, request_watch
from pykafkad.handlers import list_offsets
from pykafkad.message_views import CHARACTERS, ELEMENTS, HIDDEN, LOOKED_AT, NODES, error_codes, names, view
from pykafkad.messages import (
    ApiVersionsRequest,
    DeleteGroupsRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceResponse,
)
from tests.unit.data_kit import Desk, batch, fetch, produce

Topic: Any = ListOffsetsRequest.ListOffsetsTopic
Partition: Any = ListOffsetsRequest.ListOffsetsPartition


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    desk.create("orders")
    yield desk
    desk.dispatcher.unfollow_levels()
    logs.set_level("info")


def offsets_of(topic: str) -> ListOffsetsRequest:
    return ListOffsetsRequest(replica_id=-1, topics=[Topic(name=topic, partitions=[Partition(timestamp=-1)])])


def lines_of(said: io.StringIO) -> list[str]:
    return [line.partition("[requests] ")[2] for line in said.getvalue().splitlines() if "[requests]" in line]


def test_at_debug_each_request_is_a_line(desk: Desk, said: io.StringIO) -> None:
    logs.set_level("debug")
    desk.dispatcher.follow_levels()
    desk.ask(offsets_of("orders"), 5, client_id="mine")
    desk.ask(offsets_of("nothing"), 5)
    desk.ask(produce("orders", 0, batch(b"a")), 9)
    first, second, third = lines_of(said)
    assert first.startswith('127.0.0.1:1 "mine" ListOffsets v5 topics=[orders] OK ') and first.endswith(" us")
    assert "topics=[nothing] UNKNOWN_TOPIC_OR_PARTITION " in second
    assert '"test" Produce v9 topics=[orders] OK ' in third


def test_at_info_nothing_is_watched_and_the_reader_is_the_same(desk: Desk, said: io.StringIO) -> None:
    desk.dispatcher.follow_levels()
    before = desk.dispatcher._read
    logs.set_level("warn")
    desk.ask(offsets_of("orders"), 5)
    assert not lines_of(said) and desk.dispatcher._read is before and desk.dispatcher._watch is None


def test_levels_may_change_while_it_runs(desk: Desk, said: io.StringIO) -> None:
    desk.dispatcher.follow_levels()
    desk.ask(offsets_of("orders"), 5)
    logs.set_logger_level("requests", "DEBUG")
    desk.ask(offsets_of("orders"), 5)
    logs.set_logger_level("requests", None)
    desk.ask(offsets_of("orders"), 5)
    assert len(lines_of(said)) == 1


def test_at_trace_a_line_has_what_is_in_the_messages(desk: Desk, said: io.StringIO) -> None:
    logs.set_level("trace")
    desk.dispatcher.follow_levels()
    desk.ask(produce("orders", 0, batch(b"a")), 9)
    (line,) = lines_of(said)
    body = json.loads(line[line.index("{") :])
    sent = body["request"]["topic_data"][0]["partition_data"][0]["records"]
    assert sent == f"<{len(batch(b'a'))} bytes>"
    assert body["response"]["responses"][0]["partition_responses"][0]["base_offset"] == 0


def test_an_answer_that_comes_later_is_told_then_with_what_it_took(desk: Desk) -> None:
    seen: list[Any] = []
    desk.dispatcher.watch(seen.append)
    topic_id = desk.create("later")
    given = desk.send(fetch("later", {}, topic_id=topic_id, max_wait_ms=700), 13)
    desk.end_pass()
    assert desk.answer_of(given, "FetchRequest", 13) is None and not seen
    desk.advance(700)
    assert desk.answer_of(given, "FetchRequest", 13) is not None
    (told,) = seen
    assert (told.api, told.topics, told.errors) == ("Fetch v13", ["later"], ["OK"])
    assert told.us >= 700_000


def test_what_has_no_answer_and_what_fails_is_told_too(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, said: object
) -> None:
    def fail(*given: Any) -> None:
        raise ValueError("a mistake of ours")

    seen: list[Any] = []
    desk.dispatcher.watch(seen.append)
    desk.ask(produce("orders", 0, batch(b"a"), acks=0), 9)
    assert seen[-1].errors == ["no answer"]
    monkeypatch.setattr(list_offsets, "handle", fail)
    desk.send(offsets_of("orders"), 5)
    assert seen[-1].errors == ["ValueError: a mistake of ours"]


def test_a_fetch_of_a_session_that_names_no_topic_is_about_those_of_its_session(desk: Desk) -> None:
    seen: list[Any] = []
    desk.dispatcher.watch(seen.append)
    session = desk.ask(fetch("orders", {}, session_epoch=0), 12).session_id
    desk.ask(fetch("", session_id=session, session_epoch=1), 12)
    assert [each.topics for each in seen] == [["orders"], ["orders"]]


def test_a_mistake_of_the_watch_costs_no_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, said: io.StringIO
) -> None:
    def fail(*given: Any) -> None:
        raise ValueError("ours")

    def failing_sink(seen: Any) -> None:
        raise ValueError("a sink's")

    desk.dispatcher.watch(failing_sink)
    assert desk.ask(offsets_of("orders"), 5) is not None
    assert desk.ask(produce("orders", 0, batch(b"a"), acks=0), 9) is None
    monkeypatch.setattr(request_watch, "names", fail)
    assert desk.ask(offsets_of("orders"), 5) is not None
    text = said.getvalue()
    assert "an answer could not be shown: ValueError: a sink's" in text
    assert text.count("a request could not be shown: ValueError") == 2


def test_whoever_stops_watching_is_told_no_more(desk: Desk) -> None:
    one: list[Any] = []
    two: list[Any] = []
    desk.dispatcher.watch(one.append)
    desk.dispatcher.watch(two.append, bodies=True)
    desk.ask(offsets_of("orders"), 5)
    desk.dispatcher.unwatch(two.append)
    desk.ask(offsets_of("orders"), 5)
    assert (len(one), len(two)) == (2, 1)
    assert "request" in two[0].as_json(body=True) and "request" not in two[0].as_json(body=False)


def test_a_client_that_introduces_itself_is_named(desk: Desk, said: io.StringIO) -> None:
    logs.set_level("debug")
    desk.dispatcher.follow_levels()
    desk.image.finalized_features = {}  # type: ignore[misc]
    hello = ApiVersionsRequest(client_software_name="librdkafka", client_software_version="2.3.0")
    desk.send(hello, 3, "mine").encode()
    desk.ask(offsets_of("orders"), 5)
    assert 'the client of 127.0.0.1:1 is librdkafka 2.3.0, client id "mine"' in said.getvalue()


@pytest.mark.parametrize(
    "evil", ["a\nb", "\x1b[2Ja", "\x9b31m", "a\u2028b", "\u202eabc", "\r", "\x00", "\x7f"]
)
def test_no_client_forges_a_line_or_speaks_to_the_terminal(evil: str, desk: Desk, said: io.StringIO) -> None:
    logs.set_level("trace")
    desk.dispatcher.follow_levels()
    desk.ask(offsets_of(evil), 5, client_id=evil)
    text = said.getvalue()
    assert text.endswith("\n") and text[:-1].isprintable()


# -- views


def test_views_are_bounded_whatever_is_sent() -> None:
    many: Any = [MetadataRequest.MetadataRequestTopic(name="x" * 3000) for _ in range(100_000)]
    shown = view(MetadataRequest(topics=many), 9)
    assert len(shown["topics"]) == ELEMENTS + 1
    assert shown["topics"][-1] == f"… {100_000 - ELEMENTS} more"
    assert len(shown["topics"][0]["name"]) < CHARACTERS + 20
    deleted = DeleteGroupsRequest(groups_names=[f"g{number}" for number in range(100_000)])
    assert len(names(deleted)[1]) == LOOKED_AT
    deep = ProduceResponse(
        responses=[
            ProduceResponse.TopicProduceResponse(
                partition_responses=[
                    ProduceResponse.PartitionProduceResponse(
                        record_errors=[ProduceResponse.BatchIndexAndErrorMessage() for _ in range(8)]
                    )
                    for _ in range(8)
                ]
            )
            for _ in range(8)
        ]
    )
    assert len(json.dumps(view(deep, 9))) < NODES * 60


def test_a_view_has_what_its_version_has() -> None:
    assert "isolation_level" in view(ListOffsetsRequest(), 2)
    assert "isolation_level" not in view(ListOffsetsRequest(), 1)


def test_secrets_are_not_shown() -> None:
    resource: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    config: Any = IncrementalAlterConfigsRequest.AlterableConfig
    configs = [config(name="ssl.key.password", value="hunter2"), config(name="max.connections", value="9")]
    shown = view(IncrementalAlterConfigsRequest(resources=[resource(configs=configs)]), 1)
    assert [each["value"] for each in shown["resources"][0]["configs"]] == [HIDDEN, "9"]


def test_errors_are_found_wherever_they_are() -> None:
    partition: Any = ProduceResponse.PartitionProduceResponse
    topic: Any = ProduceResponse.TopicProduceResponse
    parts = [partition(index=0), partition(index=1, error_code=6), partition(index=2, error_code=6)]
    assert error_codes(ProduceResponse(responses=[topic(partition_responses=parts)])) == [6]
    assert error_codes(ProduceResponse(responses=[topic(partition_responses=parts[:1])])) == [0]


def test_topics_and_groups_are_found_by_what_the_schemas_say() -> None:
    group: Any = messages.OffsetFetchRequest.OffsetFetchRequestGroup
    topics: Any = messages.OffsetFetchRequest.OffsetFetchRequestTopics
    request = messages.OffsetFetchRequest(groups=[group(group_id="g", topics=[topics(name="t")])])
    assert names(request) == (["t"], ["g"])
    assert names(messages.DeleteGroupsRequest(groups_names=["a", "b"])) == ([], ["a", "b"])
