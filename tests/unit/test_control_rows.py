"""What `status` and `facts` tell of topics and connections, and who gets which lines of a trace, without a socket."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.control import facts, group_facts, status, tracing
from pykafkad.control.lines import CommandError
from pykafkad.control.tracing import ALIVE_MS, QUEUED_BYTES
from tests.unit.coordinator_kit import GroupDesk
from tests.unit.data_kit import batch, produce


def known(rows: Any, kind: str) -> list[dict[str, Any]]:
    return [row[kind] for row in rows if row is not None and kind in row]


@pytest.fixture
def desk(tmp_path: Path) -> Any:
    desk: Any = GroupDesk(tmp_path)
    desk.create("t", 3)
    desk.image.topics["t"].is_internal = False
    for index in range(3):
        desk.replicas.table["t", index].lead(0)
    return desk


# -- status


def test_a_topic_has_the_records_and_bytes_of_its_partitions(desk: Any) -> None:
    for index, count in ((0, 1), (1, 4)):
        desk.ask(produce("t", index, batch(*[b"x"] * count)), 9)
    desk.replicas.table["t", 1].delete_records(2)
    (row,) = known(status.topic(desk, "t"), "topic")
    size = sum(desk.replicas.table["t", index].log.size for index in range(3))
    assert row == {
        "name": "t",
        "partitions": 3,
        "records": 1 + 2,
        "bytes": size,
        "offline": 0,
        "internal": False,
    }
    assert size > 0


def test_partitions_that_are_not_served_are_offline(desk: Any) -> None:
    desk.ask(produce("t", 0, batch(b"x")), 9)
    desk.ask(produce("t", 2, batch(b"x", b"y")), 9)
    del desk.replicas.table["t", 1]
    desk.replicas.table["t", 2].fail(OSError(5, "failed"))
    (row,) = known(status.topic(desk, "t"), "topic")
    assert row["offline"] == 3 and row["records"] == 0, "one directory holds them all"
    assert list(status.topic(desk, "nobody's")) == []


def test_a_broker_tells_what_it_is(desk: Any) -> None:
    holds = SimpleNamespace(count=2, longest_us=7)
    desk.reactor = SimpleNamespace(frames=5, received_bytes=2048, sent_bytes=1, holds=holds)
    desk.listeners = SimpleNamespace(endpoints=[], advertised=[], counts={"a": 2, "b": 1})
    desk.cluster_id = "c"
    row = status.broker_facts(desk)
    assert (row["node_id"], row["cluster_id"], row["connections"]) == (desk.node_id, "c", 3)
    assert (row["requests"], row["received_bytes"], row["sent_bytes"]) == (5, 2048, 1)
    assert row["loop_held"] == {"times": 2, "longest_us": 7}
    assert row["directories"] == [{"path": desk.storage.online[0].path, "failure": None}]


def connection(protocol: object, *, closed: bool = False, state: Any = None) -> Any:
    return SimpleNamespace(
        peer=("10.0.0.1", 5),
        protocol=protocol,
        closed=closed,
        state=state,
        listener=SimpleNamespace(owner=SimpleNamespace(name="PLAINTEXT")),
        received_at_ms=900,
        frame_bytes=3,
        queued_bytes=4,
    )


def test_connections_of_clients_are_told_and_no_others(desk: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "broker_facts", lambda broker: {})
    kafka, other = object(), object()
    state = SimpleNamespace(software=("lib", "2"), client_id="app")
    desk.reactor = SimpleNamespace(
        protocol=kafka,
        now_ms=1000,
        connections=[
            connection(kafka, state=state),
            connection(kafka),
            connection(kafka, closed=True),
            connection(other),
        ],
    )
    desk.image.topics = {}
    told = known(status.rows(desk, None, {}), "connection")
    assert [each["client_id"] for each in told] == ["app", ""]
    assert told[0] == {
        "address": "10.0.0.1:5",
        "listener": "PLAINTEXT",
        "client_id": "app",
        "software": "lib",
        "software_version": "2",
        "idle_ms": 100,
        "unfinished_bytes": 3,
        "queued_bytes": 4,
    }


# -- facts


def test_a_group_is_about_what_its_members_read_and_what_it_has_committed() -> None:
    member = {"topics": ["a"], "assigned": {"b": [0]}}
    assert list(facts.topics_in({"member": member})) == ["a", "b"]
    assert list(facts.topics_in({"member": {"topics": None, "assigned": None}})) == []
    assert list(facts.topics_in({"committed": {"topic": "c"}})) == ["c"]
    assert list(facts.topics_in({"group": {}})) == []


def test_a_group_that_is_not_found_may_be_loading() -> None:
    def told(**shard: Any) -> list[Any]:
        machine = SimpleNamespace(by_id={})
        shards = [SimpleNamespace(machine=machine, **shard)]
        broker: Any = SimpleNamespace(group_coordinator=SimpleNamespace(shards=shards))
        return list(facts.group_rows(broker, "g"))

    assert told(is_active=False, has_failed=False) == [{"coordinator": "loading"}]
    assert told(is_active=True, has_failed=False) == []
    assert told(is_active=False, has_failed=True) == []


def test_the_size_of_what_comes_next_is_that_of_a_batch_that_may_be_read(desk: Any) -> None:
    data = batch(b"x" * 100)
    desk.ask(produce("t", 0, data), 9)
    desk.ask(produce("t", 0, data), 9)
    replica = desk.replicas.table["t", 0]
    replica.delete_records(1)
    assert [facts.next_bytes(replica, offset) for offset in (0, 1, 2)] == [0, len(data), 0]
    assert facts.next_bytes(None, 0) == 0
    replica.fail(OSError(5, "failed"))
    assert facts.next_bytes(replica, 1) == 0


def test_a_session_that_names_topics_by_id_is_told_by_name(desk: Any) -> None:
    known_id = desk.image.topics["t"].id
    who: dict[str, Any] = {}
    rows = [
        SimpleNamespace(topic=each, index=2, fetch_offset=0, max_bytes=9) for each in (known_id, bytes(16))
    ]
    given: Any = rows
    (row,) = known(facts.followed_rows(desk, {"t"}, who, given), "fetch")
    assert (row["topic"], row["partition"], row["offset"], row["max_bytes"]) == ("t", 2, 0, 9)


def test_groups_of_shards_that_do_not_serve_are_not_told() -> None:
    machine = SimpleNamespace(by_id={"g": "group"})
    shards = [SimpleNamespace(machine=machine, is_active=each) for each in (False, True, False)]
    broker: Any = SimpleNamespace(group_coordinator=SimpleNamespace(shards=shards))
    assert list(group_facts.groups(broker)) == ["group"]


def test_what_is_assigned_has_a_bound_over_all_topics() -> None:
    told = group_facts.bounded({"b": range(700), "a": range(600), "none": []})
    assert {name: len(partitions) for name, partitions in told.items()} == {"a": 600, "b": 400}


# -- trace


class Line:
    """The connection of whoever traces, and what the broker has for a trace."""

    def __init__(self, idle_ms: int = 600_000) -> None:
        self.connection = self
        self.leave: Any = None
        self.queued_bytes = 0
        self.sent: list[Any] = []
        self.watching: list[tuple[Any, bool]] = []
        self.timers: list[Any] = []
        self.config = {"connections.max.idle.ms": idle_ms}
        self.clock = SimpleNamespace(now_ms=lambda: 77)
        self.dispatcher = self.reactor = self

    def send(self, data: bytes) -> None:
        self.sent.append(json.loads(data) if data.strip() else None)

    def watch(self, sink: Any, *, bodies: bool) -> None:
        self.watching.append((sink, bodies))

    def unwatch(self, sink: Any) -> None:
        self.watching = [each for each in self.watching if each[0] != sink]

    def call_later(self, delay_ms: int, callback: Any) -> Any:
        timer = SimpleNamespace(delay_ms=delay_ms, callback=callback, cancelled=False)
        timer.cancel = lambda: setattr(timer, "cancelled", True)
        self.timers.append(timer)
        return timer


def begin(line: Line, **arguments: Any) -> Any:
    given: Any = line
    list(tracing.begin(given, given, arguments))
    return line.watching[-1][0]


def watched(**fields: Any) -> Any:
    given = {
        "api": "Fetch v13",
        "client_id": "App",
        "topics": ["t"],
        "groups": [],
        "errors": ["OK"],
        **fields,
    }
    shown = lambda *, body: {"api": given["api"], "body": body}  # noqa: E731
    return SimpleNamespace(**given, as_json=shown)


@pytest.mark.parametrize("bodies", [True, False])
def test_a_trace_sends_what_it_was_asked_for(bodies: bool) -> None:
    line = Line()
    seen = begin(line, api="fetch", client="a*", bodies=bodies)
    seen(watched())
    seen(watched(api="Produce v9"))
    seen(watched(client_id="other"))
    assert line.sent == [{"request": {"time_ms": 77, "api": "Fetch v13", "body": bodies}}]
    assert line.watching[0][1] is bodies


def test_one_trace_a_connection_until_it_is_left() -> None:
    line = Line()
    begin(line)
    with pytest.raises(CommandError, match="already"):
        begin(line)
    line.leave()
    assert line.watching == [] and [each.cancelled for each in line.timers] == [True]


def test_a_filter_that_is_not_known_is_refused() -> None:
    with pytest.raises(CommandError):
        begin(Line(), partition="1")


def test_who_does_not_read_is_told_how_much_was_left_out() -> None:
    line = Line()
    seen = begin(line)
    line.queued_bytes = QUEUED_BYTES
    seen(watched())
    seen(watched())
    assert line.sent == []
    line.queued_bytes = QUEUED_BYTES - 1
    seen(watched())
    seen(watched())
    assert [set(each) for each in line.sent] == [{"left_out"}, {"request"}, {"request"}]
    assert line.sent[0] == {"left_out": 2}


@pytest.mark.parametrize(
    ("idle_ms", "pause_ms"), [(-1, ALIVE_MS), (600_000, ALIVE_MS), (30_000, 10_000), (0, 1), (2, 1)]
)
def test_an_empty_line_keeps_a_quiet_trace_alive(idle_ms: int, pause_ms: int) -> None:
    line = Line(idle_ms)
    begin(line)
    assert line.sent == [] and [each.delay_ms for each in line.timers] == [pause_ms]
    line.timers[0].callback()
    assert line.sent == [None] and len(line.timers) == 2
    line.queued_bytes = 1  # it has something to read
    line.timers[1].callback()
    assert line.sent == [None] and len(line.timers) == 3
