"""Plans cut into stages: rows spread over buckets, each with a state of its own, give what a plain loop gives."""

from __future__ import annotations

import pickle
from collections import deque
from decimal import Decimal
from typing import Any

import pytest

from pykafkad.pipelines.hosts.spark import PICKLED, CircularQueries, LaneRun, packed, unpacked
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.stages import OUT, Bucket, Moving, Stages
from pykafkad.pipelines.plan.topology import Plan, States
from pykafkad.pipelines.testing import prepared, run_case
from tests.unit.pipeline_kit import INPUTS, PIPELINES, SOURCES, by_key


def entered(stages: Stages, record: Record) -> list[Moving]:
    """What follows from a record until it must move."""
    bucket = Bucket({})
    for source, push in stages.begin(record.topic):
        push(source.row(record), bucket)
    return bucket.moving


def arrived(stages: Stages, moved: Moving, states: States) -> list[Moving]:
    """What follows from a row in the bucket that it moved to."""
    bucket = Bucket(states)
    stages.arriving[moved.step, moved.port](moved.row, bucket)
    return bucket.moving


class Spread:
    """A plan over buckets: every row that moves and every state is pickled, as a host of many processes does."""

    def __init__(self, plan: Plan, buckets: int) -> None:
        self.stages, self.buckets = Stages(pickle.loads(pickle.dumps(plan))), buckets
        self.states: dict[tuple[int, int], bytes] = {}
        self.used: set[tuple[int, int]] = set()

    def feed(self, record: Record) -> list[Record]:
        assert self.stages.plan.sink is not None
        found, moving = [], deque(entered(self.stages, record))
        while moving:
            one = moving.popleft()
            if one.step == OUT:
                found.append(self.stages.plan.sink.record(one.row))
            else:
                moving.extendleft(reversed(self.arrived(pickle.loads(pickle.dumps(one)))))
        return found

    def arrived(self, moved: Moving) -> list[Moving]:
        place = self.stages.entered[moved.step], self.stages.bucket(moved, self.buckets)
        self.used.add(place)
        states = pickle.loads(self.states.get(place, pickle.dumps({})))
        follows = arrived(self.stages, moved, states)
        self.states[place] = pickle.dumps(states)
        return follows


@pytest.mark.parametrize("buckets", [1, 5])
@pytest.mark.parametrize("name", PIPELINES)
def test_buckets_give_what_the_plain_loop_gives(name: str, buckets: int) -> None:
    statements, inputs = PIPELINES[name]
    case = prepared(statements, inputs)
    spread = [Spread(plan, buckets) for plan in case.plans]
    written, offsets = [], dict[str, int]()
    for record in case.records:
        waiting = deque([record])
        while waiting:
            taken = waiting.popleft()
            offset = offsets[taken.topic] = offsets.get(taken.topic, -1) + 1
            for plan in spread:
                found = (
                    plan.feed(taken._replace(offset=offset))
                    if taken.topic in plan.stages.plan.topics()
                    else []
                )
                written += found
                waiting += found
    assert by_key(case.plain(written)) == by_key(run_case(statements, inputs, host="local"))
    assert written


def stages_of(query: str) -> Stages:
    return Stages(prepared([*SOURCES, query], INPUTS).plans[0])


def test_what_has_no_state_needs_one_stage() -> None:
    assert stages_of("CREATE STREAM o AS SELECT * FROM clicks WHERE ms > 1 PARTITION BY page;").count == 1


def test_a_stage_begins_where_rows_get_another_key() -> None:
    assert stages_of("CREATE TABLE o AS SELECT page, COUNT(*) FROM clicks GROUP BY page;").count == 2
    join = "CREATE TABLE o AS SELECT town, COUNT(*) FROM clicks JOIN people ON who = id GROUP BY town;"
    assert (
        stages_of(join).count
        > stages_of("CREATE STREAM o AS SELECT who, age FROM clicks JOIN people ON who = id;").count
    )


def test_keys_are_spread() -> None:
    case = prepared([*SOURCES, "CREATE TABLE o AS SELECT ms, COUNT(*) FROM clicks GROUP BY ms;"], INPUTS)
    spread = Spread(case.plans[0], 4)
    for record in case.records:
        spread.feed(record)
    assert len(spread.used) == 4


TOTAL = "CREATE TABLE o AS SELECT page, COUNT(*) AS n FROM clicks {window} GROUP BY page {having};"


def gathered(
    query: str, clicks: list[tuple[str, int]], states: States | None = None
) -> list[tuple[Row, bytes]]:
    """What a batch of clicks says of a total's keys, and what each followed from."""
    stages = stages_of(query)
    bucket, found = Bucket({} if states is None else states, {}), []
    for number, (page, time) in enumerate(clicks):
        value = b'{"PAGE": "%s"}' % page.encode()
        (moving,) = entered(stages, Record("clicks", None, value, time))
        bucket.seq, bucket.moving = b"%d" % number, []
        stages.arriving[moving.step, moving.port](moving.row, bucket)
        assert bucket.moving == []
    for one in stages.flush(1, bucket):
        found.append((one.row, bucket.seq))
    return found


def test_the_last_change_of_a_key_in_a_batch_says_what_was_before_the_batch() -> None:
    found = gathered(TOTAL.format(window="", having=""), [("a", 1), ("b", 2), ("a", 3)])
    assert [(row.key, row.columns, row.old, seq) for row, seq in found] == [
        (("b",), (1,), None, b"1"),
        (("a",), (2,), None, b"2"),
    ]


def test_a_key_that_had_nothing_and_has_nothing_has_not_changed() -> None:
    assert gathered(TOTAL.format(window="", having="HAVING COUNT(*) = 2"), [("a", 1)] * 3) == []
    sessions = TOTAL.format(window="WINDOW SESSION (1 SECONDS)", having="")
    found = gathered(sessions, [("a", 1_000), ("a", 3_000), ("a", 2_000)])  # the third makes one of two
    assert [(row.window, row.columns) for row, _ in found] == [((1_000, 3_000), (3,))]


def test_what_was_before_the_batch_is_undone_by_whoever_asks() -> None:
    having, states = TOTAL.format(window="", having="HAVING COUNT(*) < 3"), dict[int, Any]()
    batches = [gathered(having, [("a", time)] * 2, states) for time in range(3)]
    assert [[row.columns for row, _ in batch] for batch in batches] == [[(2,)], [None], []]


def test_each_window_of_a_key_is_one_of_its_own_and_final_ones_are_told_as_they_close() -> None:
    window = "WINDOW TUMBLING (SIZE 1 SECONDS)"
    found = gathered(TOTAL.format(window=window, having=""), [("a", 1), ("a", 1_001), ("a", 2)])
    assert [(row.window, row.columns) for row, _ in found] == [((1_000, 2_000), (1,)), ((0, 1_000), (2,))]


def test_every_change_of_a_total_is_told_where_none_are_gathered() -> None:
    stages = stages_of(TOTAL.format(window="", having=""))
    states: dict[int, Any] = {}
    told = [arrived(stages, Moving(1, 0, Row(("a",), (), n)), states) for n in range(3)]
    assert [one.row.columns for (one,) in told] == [(1,), (2,), (3,)]


def test_properties_say_whether_a_batch_tells_of_every_change() -> None:
    def plan(properties: dict[str, str]) -> Plan:
        return prepared([*SOURCES, TOTAL.format(window="", having="")], INPUTS, properties).plans[0]

    assert not plan({}).every_change
    assert plan({"cache.max.bytes.buffering": "0"}).every_change


def test_a_batch_in_spark_runs_each_plan_when_what_it_reads_is_written() -> None:
    case = prepared(*PIPELINES["one query after another"])
    run = LaneRun(case.plans, case.records)
    order = []
    while run.left:
        for number, plan in run.ready():
            order.append(number)
            run.done(plan, [])
    assert order == [0, 1]


def test_a_batch_in_spark_refuses_queries_that_write_what_they_read() -> None:
    case = prepared([*SOURCES, "INSERT INTO views SELECT page, n FROM views WHERE n < 3;"], INPUTS)
    with pytest.raises(CircularQueries, match="views"):
        LaneRun(case.plans, case.records).ready()


NESTED = {"a": [1, None, True], "b": {"c": float("inf")}}


@pytest.mark.parametrize(
    ("value", "pickles"), [(NESTED, False), ("\ud83d", False), (Decimal("1.50"), True), (OUT, False)]
)
def test_rows_that_move_arrive_as_they_were(value: Any, pickles: bool) -> None:
    """Whatever their columns have, also what marshal does not know."""
    placed = [(b"place", OUT, 0, (("key",), (value, b"\x80", 2**63), 7, None, (0, 1), (("name", None),)))] * 3
    data = packed(placed)
    assert unpacked(data) == unpacked(bytearray(data)) == placed
    assert data.startswith(PICKLED) == pickles
