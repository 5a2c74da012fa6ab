"""Records that a query leaves out: what SET says becomes of them, in the plain loop with a cluster that is none."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest

from pykafkad.pipelines import StatementError, settings
from pykafkad.pipelines.checking import Checker
from pykafkad.pipelines.plan.ends import Record
from pykafkad.pipelines.syntax.ast import SelectStatement
from pykafkad.pipelines.syntax.parser import parse_script
from tests.unit.test_sql_engine import PARTITION, Loop, Written

QUERY = """
CREATE STREAM s (k STRING KEY, v INT) WITH (kafka_topic='s', format='JSON');
CREATE STREAM t AS SELECT k, 10 / v AS v FROM s;
"""
DEAD = "SET 'errors.dead.letter.queue.topic.name' = 'dead';"


def run(settings: str, *values: bytes | None, query: str = QUERY) -> Loop:
    loop = Loop(settings + query)
    for given in loop.given.values():
        given.give(*values)
    loop.engine.step()
    return loop


def records(loop: Loop, topic: str) -> list[Record]:
    return [record for record in loop.broker.records if record.topic == topic]


def entries(loop: Loop, topic: str = "log") -> list[dict[str, Any]]:
    return [json.loads(record.value or b"") for record in records(loop, topic)]


def test_a_dead_letter_is_the_record_with_what_was_wrong_with_it() -> None:
    loop = Loop(DEAD + QUERY)
    bad = Record("s", b'"a"', b"{", 1234, (("trace", b"1"),), 0, 0)
    loop.given["CSAS_T_1"].merging.add(PARTITION, [bad], 1)
    loop.given["CSAS_T_1"].give(b'{"V": 5}')
    loop.engine.step()
    (dead,) = records(loop, "dead")
    assert (dead.key, dead.value, dead.time) == (b'"a"', b"{", 1234)
    headers = dict(dead.headers)
    assert headers["trace"] == b"1" and headers["__streams.errors.topic"] == b"s"
    assert (headers["__streams.errors.partition"], headers["__streams.errors.offset"]) == (b"0", b"0")
    assert b"no value of format JSON" in (headers["__streams.errors.message"] or b"")
    assert loop.values("T") == [b'{"V":2}'] and loop.engine.tasks["CSAS_T_1"].counts.written == 1
    assert len(loop.said) == 1, "it is said, too"


def test_a_dead_letter_that_is_refused_stops_the_query() -> None:
    loop = Loop(DEAD + QUERY)
    loop.broker.refused = b"{"
    loop.given["CSAS_T_1"].give(b"{")
    loop.engine.step()
    assert "s-0 offset 0" in (loop.engine.tasks["CSAS_T_1"].problem or ""), "nothing is lost"


@pytest.mark.parametrize("name", ["processing.log", "ksql.logging.processing.topic.name"])
def test_the_log_in_a_topic_has_ksqldbs_entries(name: str) -> None:
    loop = run(f"SET '{name}' = 'log';", b"{", b'{"V": 5}')
    (entry,) = entries(loop)
    assert entry["level"] == "ERROR" and entry["logger"] == "processing.CSAS_T_1.deserializer"
    assert entry["message"]["type"] == 0 and entry["time"] > 0
    error = entry["message"]["deserializationError"]
    assert (error["target"], error["topic"], error["recordB64"], error["cause"]) == ("value", "s", None, [])
    assert "no value of format JSON" in error["errorMessage"]
    assert loop.said == [] and loop.values("T") == [b'{"V":2}']


def test_the_log_has_the_records_where_that_is_set() -> None:
    loop = run("SET 'processing.log'='log'; SET 'processing.log.rows.include'='true';", b"{")
    (entry,) = entries(loop)
    assert base64.b64decode(entry["message"]["deserializationError"]["recordB64"]) == b"{"


def test_a_key_that_cannot_be_read_is_the_target() -> None:
    query = QUERY.replace("k STRING KEY", "k INT KEY")
    (entry,) = entries(run("SET 'processing.log'='log';", b'{"V": 5}', query=query))
    assert entry["message"]["deserializationError"]["target"] == "key"


def test_an_expression_that_fails_is_null_and_in_the_log() -> None:
    aggregate = "CREATE TABLE c AS SELECT k, SUM(10 / v) AS n FROM s GROUP BY k;"
    loop = run("SET 'processing.log'='log';", b'{"V": 0}', query=QUERY + aggregate)
    assert loop.values("T") == [b'{"V":null}']
    found = entries(loop)
    assert [entry["logger"] for entry in found] == [
        "processing.CSAS_T_1.processor",
        "processing.CTAS_C_3.processor",
    ]
    assert all("10 / " in entry["message"]["recordProcessingError"]["errorMessage"] for entry in found)
    assert run("", b'{"V": 0}').said == []


@pytest.mark.parametrize(
    ("expression", "value", "said"),
    [
        ("SUBSTRING(CAST(v AS STRING), 10 / v)", "null", "10 / "),
        ("CAST(PARSE_DATE(CAST(v AS STRING), 'yyyy') AS STRING)", "null", "PARSE_DATE("),
        ("ARRAY[10 / v, 3]", "[null,3]", "10 / "),
        ("STRUCT(a := 10 / v)", '{"A":null}', "STRUCT("),
        ("TRANSFORM(ARRAY[v], x => 10 / x)", "null", "TRANSFORM("),
    ],
)
def test_a_part_of_an_expression_that_fails_is_in_the_log(expression: str, value: str, said: str) -> None:
    query = QUERY.replace("10 / v", expression)
    loop = run("SET 'processing.log'='log';", b'{"V": 0}', query=query)
    assert loop.values("T") == [f'{{"V":{value}}}'.encode()]
    messages = [entry["message"]["recordProcessingError"]["errorMessage"] for entry in entries(loop)]
    assert len(messages) == 1 and said in messages[0]


def test_what_cannot_be_written_is_in_the_log_as_such() -> None:
    query = QUERY.replace("STREAM t AS", "STREAM t WITH (timestamp='v') AS").replace("v INT", "v BIGINT")
    loop = run(
        f"SET 'processing.log'='log'; SET 'processing.log.rows.include'='true'; {DEAD}",
        b'{"V": -5}',
        query=query,
    )
    (entry,) = entries(loop)
    assert entry["message"]["type"] == 3
    error = entry["message"]["serializationError"]
    assert error["topic"] == "T" and json.loads(error["record"])["offset"] == 0
    assert [record.value for record in records(loop, "dead")] == [b'{"V": -5}']


def test_nothing_is_said_where_nobody_wants_to_hear() -> None:
    loop = run("SET 'processing.log' = 'None';", b"{")
    assert loop.said == [] and loop.broker.records == []
    assert loop.engine.tasks["CSAS_T_1"].counts.bad == 1


def test_a_query_is_as_the_properties_were_when_it_was_made() -> None:
    again = QUERY.replace("STREAM s", "STREAM IF NOT EXISTS s").replace("STREAM t", "STREAM u")
    loop = run(DEAD, b"{", query=QUERY + "UNSET 'errors.dead.letter.queue.topic.name';" + again)
    assert len(loop.engine.tasks) == 2 and len(records(loop, "dead")) == 1


@pytest.mark.parametrize(("log", "is_said"), [("none", False), ("stderr", True), ("log", True)])
def test_a_select_writes_nothing_and_says_it_unless_told_not_to(log: str, is_said: bool) -> None:
    checker = Checker()
    script = f"{DEAD} SET 'processing.log' = '{log}'; {QUERY}"
    assert list(checker.script(script, "x.sql")) == []
    (select,) = parse_script("SELECT v FROM s EMIT CHANGES;")
    assert isinstance(select.statement, SelectStatement)
    bad_records = checker.session.analysed(select.statement.query).plan.bad_records
    assert (bad_records.is_said, bad_records.topics) == (is_said, {})


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("processing.log", "", "stderr, none or a topic's name is"),
        ("processing.log", "a topic", "stderr, none or a topic's name is"),
        ("processing.log.rows.include", "maybe", "one of true, false is"),
        ("errors.dead.letter.queue.topic.name", "..", "a topic's name is"),
        ("ksql.streams.errors.dead.letter.queue.topic.name", "x" * 250, "a topic's name is"),
        ("processing.lag", "x", "Did you mean processing.log?"),
    ],
)
def test_values_that_cannot_be_are_refused(name: str, value: str, reason: str) -> None:
    with pytest.raises(StatementError) as refused:
        settings.checked(name, value)
    assert reason in refused.value.reason


class Topics(Written):
    """A broker with whatever topic is asked for."""

    def topic(self, name: str) -> object:
        return SimpleNamespace(name=name, partitions=[0])


def test_queries_that_would_go_round_are_refused() -> None:
    script = DEAD + "CREATE STREAM d (v INT) WITH (kafka_topic='dead', format='JSON');"
    reads = "CREATE STREAM e AS SELECT v FROM d;"
    (problem,) = Checker().script(script + reads, "x.sql")
    assert "The query reads topic dead" in problem.reason and "UNSET 'errors.dead" in problem.reason
    assert (
        list(Checker().script(f"{script}UNSET 'errors.dead.letter.queue.topic.name';{reads}", "x.sql")) == []
    )
    both = Checker().script(f"{DEAD}SET 'processing.log' = 'dead';{QUERY}", "x.sql")
    assert ["are the same topic" in problem.reason for problem in both] == [True]
