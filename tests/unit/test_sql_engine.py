"""Queries in the plain loop, with a cluster that is none: what is tried again, what stops a query, what is kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from pykafkad.errors import UNKNOWN_TOPIC_OR_PARTITION, KafkaError
from pykafkad.pipelines import StatementError
from pykafkad.pipelines.checking import Checker
from pykafkad.pipelines.formats.registry import RegistryError
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.running import engine as engine_module
from pykafkad.pipelines.running.checkpoints import ANEW, KEEP, Checkpoints, name_of
from pykafkad.pipelines.running.engine import ATTEMPTS, BAD_SAID, Engine, Task, patiently
from pykafkad.pipelines.running.reading import Merging, Reading

SCRIPT = """
CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', format='JSON');
CREATE STREAM t AS SELECT k, v FROM s WHERE v > 0;
CREATE TABLE c AS SELECT k, COUNT(*) AS n FROM s GROUP BY k;
INSERT INTO t SELECT k, v FROM s WHERE v < 0;
"""
PARTITION = ("s", 0)


class Given:
    """A reading whose records a test gives."""

    def __init__(self) -> None:
        self.merging = Merging({PARTITION: 0})
        self.failures: list[Exception] = []

    def poll(self) -> bool:
        if self.failures:
            raise self.failures.pop()
        return False

    def give(self, *values: bytes | None) -> None:
        start = self.merging.positions[PARTITION]
        records = [
            Record("s", b'"a"', value, 1000 + offset, offset=offset)
            for offset, value in enumerate(values, start)
        ]
        self.merging.add(PARTITION, records, start + len(values))


class Written:
    """A broker that takes everything but `refused` values."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.refused: bytes | None = b"\0"

    def send(self, record: Record, done: Any) -> None:
        if record.value == self.refused:
            done(KafkaError(UNKNOWN_TOPIC_OR_PARTITION))
        else:
            self.records.append(record)

    def flush(self) -> None:
        pass


class Loop:
    """An engine with the queries of a script, each with a reading of its own."""

    def __init__(self, script: str = SCRIPT) -> None:
        self.checker = Checker()
        assert list(self.checker.script(script, "x.sql")) == []
        self.broker, self.said = Written(), list[str]()
        self.engine = Engine(cast(Any, self.broker), self.said.append)
        self.given: dict[str, Given] = {}
        for query_id, meaning in self.checker.session.meanings.items():
            given = self.given[query_id] = Given()
            self.engine.tasks[query_id] = Task(query_id, meaning.plan, cast(Reading, given), self.said.append)

    def values(self, topic: str) -> list[bytes | None]:
        return [record.value for record in self.broker.records if record.topic == topic]


def test_what_a_query_writes_follows_from_what_it_reads() -> None:
    loop = Loop()
    for given in loop.given.values():
        given.give(b'{"V": 1}', b'{"V": -1}')
    assert loop.engine.step() and not loop.engine.step()
    assert loop.values("T") == [b'{"V":1}', b'{"V":-1}']
    assert loop.values("C") == [b'{"N":1}', b'{"N":2}']


def test_records_that_cannot_be_read_are_said_with_measure() -> None:
    loop = Loop()
    loop.given["CSAS_T_1"].give(*[b"{"] * 150, b'{"V": 7}')
    loop.engine.step()
    task = loop.engine.tasks["CSAS_T_1"]
    assert (task.counts.read, task.counts.bad, loop.values("T")) == (151, 150, [b'{"V":7}'])
    assert len(loop.said) == BAD_SAID + 1 and "(100 have been by now)" in loop.said[-1]
    assert "s-0 offset 0 is left out" in loop.said[0]


def test_a_query_whose_write_is_refused_stops_alone() -> None:
    loop = Loop()
    loop.broker.refused = b'{"V":1}'
    for given in loop.given.values():
        given.give(b'{"V": 1}')
    loop.engine.step()
    failed = loop.engine.tasks["CSAS_T_1"]
    assert failed.problem is not None and "s-0 offset 0" in failed.problem and not failed.runs
    assert loop.values("C") == [b'{"N":1}'] and loop.engine.tasks["CTAS_C_3"].runs


def test_a_cluster_that_does_not_answer_is_tried_again_and_then_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, now = Loop(), [0.0]
    monkeypatch.setattr("pykafkad.pipelines.running.engine.time.monotonic", lambda: now[0])
    given, task = loop.given["CSAS_T_1"], loop.engine.tasks["CSAS_T_1"]
    given.give(b'{"V": 1}')
    given.failures = [OSError("away")]
    assert not loop.engine.step() and loop.values("T") == []
    loop.engine.step()
    assert loop.values("T") == [], "it waits a moment"
    now[0] += 60
    loop.engine.step()
    assert loop.values("T") == [b'{"V":1}'] and loop.said == ["CSAS_T_1: away; it is tried again"]
    given.failures = [OSError("away")] * (ATTEMPTS + 1)
    for _ in range(ATTEMPTS + 1):
        assert task.problem is None
        now[0] += 60
        loop.engine.step()
    assert task.problem == "away at s-0 offset 0"


def test_a_registry_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "REGISTRY_PAUSES_S", (0.0, 0.0, 0.0, 0.0))
    answers = [RegistryError("away"), RegistryError("away"), None]

    def call() -> str:
        problem = answers.pop(0)
        if problem is not None:
            raise problem
        return "there"

    assert patiently(call) == "there"

    def never() -> str:
        raise RegistryError("away")

    with pytest.raises(RegistryError):
        patiently(never)


# --- checkpoints


def kept(loop: Loop, directory: Path, changed: str | None = None) -> Checkpoints:
    checkpoints = Checkpoints(str(directory), changed)
    checkpoints.keep(loop.checker.session, loop.engine.tasks, now=True)
    checkpoints.close()
    return Checkpoints(str(directory), changed)


def test_a_checkpoint_has_offsets_and_state(tmp_path: Path) -> None:
    loop = Loop()
    for given in loop.given.values():
        given.give(b'{"V": 1}', b'{"V": -1}')
    loop.engine.step()
    checkpoints, again = kept(loop, tmp_path), Loop()
    found = checkpoints.found(again.checker.session, "CTAS_C_3")
    assert found is not None and found.positions == {PARTITION: 2}
    given, task = again.given["CTAS_C_3"], again.engine.tasks["CTAS_C_3"]
    task.states = found.states
    given.give(b'{"V": 5}')
    again.engine.step()
    assert again.values("C") == [b'{"N":3}']


def test_names_are_those_of_what_is_written_to() -> None:
    session = Loop().checker.session
    inserting = next(query_id for query_id in session.catalog.queries if query_id.startswith("INSERT"))
    assert [name_of(session, one) for one in ("CSAS_T_1", "CTAS_C_3", inserting)] == ["T", "C", "T.1"]
    odd = Loop(SCRIPT.replace("STREAM t", "STREAM `../é`").replace("INTO t", "INTO `../é`")).checker.session
    assert name_of(odd, next(iter(odd.catalog.queries))) == "-2e--2e--2f--e9-"


@pytest.mark.parametrize(
    ("script", "changed", "outcome"),
    [
        (SCRIPT, None, True),
        (
            SCRIPT.replace("CREATE STREAM t", "SET 'auto.offset.reset' = 'earliest';\nCREATE STREAM t"),
            None,
            True,
        ),
        (SCRIPT.replace("COUNT(*)", "SUM(v)"), None, "means something else"),
        (SCRIPT.replace("COUNT(*)", "SUM(v)"), KEEP, True),
        (SCRIPT.replace("COUNT(*)", "SUM(v)"), ANEW, False),
        (SCRIPT.replace("FROM s GROUP", "FROM s WHERE v > 2 GROUP"), KEEP, "does not fit it any more"),
        (SCRIPT.replace("v INT", "v BIGINT"), None, "means something else"),
    ],
)
def test_a_checkpoint_is_for_a_query_that_means_the_same(
    tmp_path: Path, script: str, changed: str | None, outcome: bool | str
) -> None:
    checkpoints, session = kept(Loop(), tmp_path, changed), Loop(script).checker.session
    query_id = next(query_id for query_id in session.catalog.queries if query_id.startswith("CTAS"))
    if isinstance(outcome, bool):
        assert (checkpoints.found(session, query_id) is not None) is outcome
        return
    with pytest.raises(StatementError, match=outcome):
        checkpoints.found(session, query_id)


def test_a_damaged_checkpoint_and_a_directory_in_use_are_said(tmp_path: Path) -> None:
    loop = Loop()
    checkpoints = kept(loop, tmp_path)
    (tmp_path / "C.checkpoint").write_bytes(b"\x80nothing")
    with pytest.raises(StatementError, match=r"C\.checkpoint cannot be read"):
        checkpoints.found(loop.checker.session, "CTAS_C_3")
    with pytest.raises(StatementError, match="in use"):
        Checkpoints(str(tmp_path))
    checkpoints.close()
    Checkpoints(str(tmp_path)).close()
