"""Queries that Spark runs, with a Spark that is none: their order, what is tried again, what their checkpoints are of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.checking import Checker
from pykafkad.pipelines.hosts.spark import NoSpark
from pykafkad.pipelines.hosts.spark_streaming import StreamingQueryOptions, failure_of
from pykafkad.pipelines.hosts.spark_writing import Done
from pykafkad.pipelines.running import spark_engine
from pykafkad.pipelines.running.checkpoints import ANEW, KEEP
from pykafkad.pipelines.running.spark_checkpoints import SparkCheckpoints
from pykafkad.pipelines.running.spark_engine import ATTEMPTS, SparkEngine

SCRIPT = """
CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', format='JSON');
CREATE STREAM t AS SELECT k, v FROM s WHERE v > 0;
CREATE TABLE c AS SELECT k, COUNT(*) AS n FROM t GROUP BY k;
"""
FAILED = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted: Traceback (most recent call last):
  File "spark.py", line 1, in packed
pykafkad.pipelines.hosts.spark.QueryFailed: ValueError: too large at s-0 offset 7

\tat org.apache.spark.api.python
"""


@dataclass
class Streaming:
    """A streaming query, as far as a test lets it come."""

    options: StreamingQueryOptions
    error: str | None = None
    isActive: bool = True
    recentProgress: list[Any] = field(default_factory=list)
    stopped: bool = False

    @property
    def lastProgress(self) -> Any:
        return self.recentProgress[-1] if self.recentProgress else None

    def exception(self) -> str | None:
        return self.error

    def stop(self) -> None:
        self.stopped = True

    def end(self, error: str | None = None) -> None:
        self.isActive, self.error = False, error

    def read(self, batch: int, rows: int, end: str, latest: str) -> None:
        source = SimpleNamespace(endOffset=end, latestOffset=latest)
        self.recentProgress.append(
            SimpleNamespace(
                batchId=batch, numInputRows=rows, batchDuration=5, sources=[source], stateOperators=[]
            )
        )


class World:
    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str = SCRIPT) -> None:
        self.now, self.said, self.ends = 100.0, list[str](), {("s", 0): 10, ("T", 0): 0}
        self.started: list[tuple[str, Streaming]] = []
        monkeypatch.setattr(
            spark_engine, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=lambda seconds: None)
        )
        monkeypatch.setattr(spark_engine, "start", self._start)
        self.directory = tmp_path
        broker = SimpleNamespace(
            bootstrap="b:1", configs={}, ends=lambda partitions: {one: self.ends[one] for one in partitions}
        )
        self.spark: Any = SimpleNamespace(stop=lambda: None)
        self.engine = self.fresh(broker, script)

    def fresh(self, broker: Any, script: str, changed: str | None = None) -> SparkEngine:
        checker = Checker()
        assert not list(checker.script(script, "x.sql"))
        self.session, self.broker = checker.session, broker
        checkpoints = SparkCheckpoints(str(self.directory), changed)
        engine = SparkEngine(
            cast(Any, broker), self.said.append, lambda: cast(Any, self.session_made()), checkpoints
        )
        for query_id, meaning in self.session.meanings.items():
            engine.start(query_id, meaning.plan, {(meaning.plan.topics()[0], 0): 0})
        return engine

    def _start(self, spark: Any, name: str, plan: Any, options: StreamingQueryOptions) -> Streaming:
        query = Streaming(options)
        self.started.append((name, query))
        return query

    def session_made(self) -> Any:
        if isinstance(self.spark, Exception):
            raise self.spark
        return self.spark

    def begin(self) -> None:
        self.engine.begin(self.session)
        self.engine.step()


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(tmp_path, monkeypatch)


def test_all_queries_begin_at_their_offsets(world: World) -> None:
    world.begin()
    assert [(name, one.options.starting_offsets) for name, one in world.started] == [
        ("T", '{"s": {"0": 0}}'),
        ("C", '{"T": {"0": 0}}'),
    ]
    assert not world.started[0][1].options.until_idle


def test_once_a_query_begins_when_what_it_reads_is_written(world: World) -> None:
    world.engine.stop_at_ends()
    world.begin()
    assert [name for name, _ in world.started] == ["T"] and world.started[0][1].options.until_idle
    world.started[0][1].end()
    world.engine.step()
    world.engine.step()
    assert [name for name, _ in world.started] == ["T", "C"] and world.engine.is_behind()
    world.started[1][1].end()
    world.engine.step()
    assert not world.engine.is_behind()


def test_once_there_must_be_an_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, monkeypatch, SCRIPT + "INSERT INTO s SELECT k, v - 1 AS v FROM t;")
    with pytest.raises(StatementError, match=r"^Queries write what they read \(CSAS_T_1, CTAS_C_\d, INSERT"):
        world.engine.stop_at_ends()


def test_it_is_idle_when_all_has_read_to_the_ends(world: World) -> None:
    world.begin()
    first = world.started[0][1]
    first.read(0, 4, '{"s": {"0": 4}}', '{"s": {"0": 10}}')
    first.options.done(Done(3, 0, []))
    world.engine.step()
    task = world.engine.tasks["CSAS_T_1"]
    assert task.lag == {("s", 0): 6} and (task.counts.read, task.counts.written) == (4, 3)
    assert world.engine.is_behind()
    first.read(1, 6, '{"s": {"0": 10}}', '{"s": {"0": 10}}')
    world.engine.step()
    assert task.counts.read == 10 and not world.engine.is_behind()
    world.ends["T", 0] = 1
    assert world.engine.is_behind()


def test_records_that_are_left_out_are_named_and_counted(world: World) -> None:
    world.begin()
    world.started[0][1].options.done(Done(1, 12, ["s-0 offset 3 is left out: no JSON"]))
    assert world.said == ["CSAS_T_1: s-0 offset 3 is left out: no JSON"]
    assert world.engine.tasks["CSAS_T_1"].counts.bad == 12


def test_a_query_that_fails_at_a_record_stops_alone(world: World) -> None:
    world.begin()
    world.started[0][1].end(FAILED)
    world.engine.step()
    first, second = world.engine.tasks.values()
    assert first.problem == "ValueError: too large at s-0 offset 7" and second.problem is None
    assert world.said == ["CSAS_T_1 has stopped: ValueError: too large at s-0 offset 7"]
    assert len(world.started) == 2


def test_what_may_go_better_later_is_tried_again(world: World) -> None:
    world.begin()
    for _ in range(ATTEMPTS):
        world.started[-1][1].end("WriteFailed: no broker")
        world.engine.step()
        world.engine.step()
        begun = len(world.started)
        world.now += 60
        world.engine.step()
        assert len(world.started) == begun + 1, "it waits first"
    world.started[-1][1].end("WriteFailed: no broker")
    world.engine.step()
    assert world.engine.tasks["CTAS_C_3"].problem == "no broker"
    assert world.said == ["CTAS_C_3: no broker; it is tried again", "CTAS_C_3 has stopped: no broker"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FAILED, ("ValueError: too large at s-0 offset 7", False)),
        (
            "a\n  File x\npykafkad.WriteFailed: away: the record of key b'k'\n",
            ("away: the record of key b'k'", True),
        ),
        ("x\npykafkad.pipelines.formats.RegistryError: no answer\n", ("RegistryError: no answer", True)),
        ("[STREAM_FAILED] no topic\n\tat org", ("[STREAM_FAILED] no topic", True)),
    ],
)
def test_a_failure_is_one_line(text: str, said: tuple[str, bool]) -> None:
    assert failure_of(cast(Any, Streaming(cast(Any, None), text))) == said


def again(world: World, script: str, changed: str | None = None) -> SparkEngine:
    world.engine.close()
    (world.directory / "T" / "offsets").mkdir(parents=True, exist_ok=True)
    (world.directory / "T" / "offsets" / "0").touch()
    world.engine = world.fresh(world.broker, script, changed)
    return world.engine


def identity(world: World) -> str:
    checkpoint = world.engine.tasks["CSAS_T_1"].checkpoint
    assert checkpoint is not None
    return checkpoint.identity


def test_a_query_goes_on_from_its_checkpoint(world: World) -> None:
    world.engine.begin(world.session)
    first = identity(world)
    again(world, SCRIPT).begin(world.session)
    assert identity(world) == first and world.engine.tasks["CSAS_T_1"].positions is None


def test_a_changed_query_begins_anew_or_goes_on_as_it_is_told(world: World) -> None:
    world.engine.begin(world.session)
    first = identity(world)
    other = SCRIPT.replace("v > 0", "v > 1")
    with pytest.raises(StatementError, match="means something else"):
        again(world, other).begin(world.session)
    again(world, other, KEEP).begin(world.session)
    assert identity(world) == first
    again(world, SCRIPT, ANEW).begin(world.session)
    assert identity(world) != first and not (world.directory / "T" / "offsets").exists()


def state_began(world: World, **kept: str) -> Path:
    """The checkpoint of the query that counts, as a run has left it that read something."""
    file = world.directory / "C.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({name: one for name, one in content.items() if name != "state"} | kept))
    (world.directory / "C" / "offsets").mkdir(parents=True, exist_ok=True)
    (world.directory / "C" / "offsets" / "0").touch()
    return file


def compiles(world: World) -> bool:
    checkpoint = world.engine.tasks["CTAS_C_3"].checkpoint
    assert checkpoint is not None
    return checkpoint.compiles


def test_operators_go_on_with_the_state_that_they_have_though_the_query_is_compiled_now(world: World) -> None:
    world.engine.begin(world.session)
    assert compiles(world)
    state_began(world)  # by a version that kept no form
    again(world, SCRIPT).begin(world.session)
    assert not compiles(world)
    assert [
        text
        for text in world.said
        if "--changed anew" in text and text.startswith("CTAS_C_3 goes on as operators")
    ]
    again(world, SCRIPT, ANEW).begin(world.session)
    assert compiles(world) and not (world.directory / "C" / "offsets").exists()


@pytest.mark.parametrize("changed", [None, KEEP])
def test_no_other_form_opens_the_state_of_an_aggregation(world: World, changed: str | None) -> None:
    world.engine.begin(world.session)
    state_began(world, state="Spark SQL: another")
    with pytest.raises(StatementError, match="aggregation of Spark's own"):
        again(world, SCRIPT, changed).begin(world.session)
    again(world, SCRIPT, ANEW).begin(world.session)
    assert compiles(world)


def test_without_a_directory_nothing_is_left_behind() -> None:
    checkpoints = SparkCheckpoints()
    kept: Callable[[], bool] = checkpoints.directory.exists
    assert kept()
    checkpoints.close()
    assert not kept()


# --- in the shell: Spark begins behind the prompt, and statements come one by one


def test_queries_wait_for_the_session(world: World) -> None:
    world.spark, made = None, world.spark
    world.begin()
    assert not world.started and world.engine.is_behind()
    world.spark = made
    world.engine.step()
    assert [name for name, _ in world.started] == ["T", "C"]


def test_where_there_is_no_session_queries_fail_and_say_why(world: World) -> None:
    world.spark = NoSpark("Spark does not begin")
    world.begin()
    assert [task.problem for task in world.engine.tasks.values()] == ["Spark does not begin"] * 2
    world.engine.close()


def test_a_query_of_a_later_statement_begins_beside_the_others(world: World) -> None:
    late = {query_id: world.engine.tasks.pop(query_id) for query_id in list(world.engine.tasks)[1:]}
    world.begin()
    world.engine.tasks.update(late)
    world.begin()
    assert [name for name, _ in world.started] == ["T", "C"]


def test_a_paused_query_stops_and_goes_on_from_its_checkpoint(world: World) -> None:
    world.begin()
    name, query = world.started[0]
    task = next(iter(world.engine.tasks.values()))
    query.read(0, 7, '{"s": {"0": 7}}', '{"s": {"0": 9}}')
    task.is_paused = True
    world.engine.step()
    world.engine.step()
    assert query.stopped and task.counts.read == 7 and len(world.started) == 2
    task.is_paused = False
    world.engine.step()
    assert [each for each, _ in world.started] == ["T", "C", name] and task.runs


def test_rows_of_a_push_query_wait_for_the_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def shown(spark: Any, plan: Any, options: StreamingQueryOptions, told: Any) -> Any:
        asked.append((spark, options.starting_offsets))
        yield "row"

    monkeypatch.setattr(spark_engine, "shown", shown)
    world.spark, made = None, world.spark
    plan = next(iter(world.engine.tasks.values())).plan
    rows = world.engine.pushed(plan, {("s", 0): 3})
    assert next(rows) is None and not asked
    world.spark = made
    assert next(rows) == cast(Any, "row") and asked == [(made, '{"s": {"0": 3}}')]
