"""Statements with records in and out, through analysis, plans and the plain loop."""

from __future__ import annotations

from typing import Any

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.hosts import local
from pykafkad.pipelines.testing import run_case

CLICKS = "CREATE STREAM clicks (who STRING KEY, page STRING, ms INT) WITH (kafka_topic='clicks', value_format='JSON');"
PEOPLE = (
    "CREATE TABLE people (id STRING PRIMARY KEY, town STRING, age INT) "
    "WITH (kafka_topic='people', value_format='JSON');"
)


def click(who: str | None, page: str | None, ms: int | None = 1, time: int = 0) -> dict[str, Any]:
    return {"topic": "clicks", "key": who, "value": {"page": page, "ms": ms}, "timestamp": time}


def person(name: str, town: str | None = None, age: int | None = None, time: int = 0) -> dict[str, Any]:
    value = None if town is None and age is None else {"town": town, "age": age}
    return {"topic": "people", "key": name, "value": value, "timestamp": time}


def out(statements: list[str], *inputs: dict[str, Any]) -> list[tuple[Any, ...]]:
    """Key, value and time of what is written, with the window's start where there is one."""
    return [
        (
            record["key"],
            record["value"],
            record["timestamp"],
            *([record["window"]["start"]] if "window" in record else []),
        )
        for record in run_case(statements, list(inputs), host="local")
    ]


def refusal(*statements: str) -> str:
    with pytest.raises(StatementError) as refused:
        run_case([CLICKS, PEOPLE, *statements], [], host="local")
    return str(refused.value)


class TestStreams:
    def test_columns_are_computed_filtered_and_named(self) -> None:
        select = "CREATE STREAM o AS SELECT who AS w, UCASE(page), ms * 2 AS twice, ms + 1 FROM clicks WHERE ms > 1;"
        assert out([CLICKS, select], click("a", "x", 1), click("b", "y", 5, 7)) == [
            ("b", {"KSQL_COL_0": "Y", "TWICE": 10, "KSQL_COL_1": 6}, 7)
        ]

    def test_what_one_query_writes_another_reads_at_once(self) -> None:
        one = "CREATE STREAM long AS SELECT * FROM clicks WHERE ms > 10;"
        other = "CREATE TABLE counts AS SELECT page, COUNT(*) AS n FROM long GROUP BY page;"
        assert out([CLICKS, one, other], click("a", "x", 11), click("a", "x", 1), click("b", "x", 12)) == [
            ("a", {"PAGE": "x", "MS": 11}, 0),
            ("x", {"N": 1}, 0),
            ("b", {"PAGE": "x", "MS": 12}, 0),
            ("x", {"N": 2}, 0),
        ]

    def test_partition_by_makes_another_key_of_a_column_and_a_column_of_the_key(self) -> None:
        again = "CREATE STREAM o AS SELECT * FROM clicks PARTITION BY page;"
        assert out([CLICKS, again], click("a", "x", 2)) == [("x", {"MS": 2, "WHO": "a"}, 0)]

    def test_a_record_that_cannot_be_read_is_passed_over(self) -> None:
        copy = "CREATE STREAM o AS SELECT * FROM clicks;"
        bad = {"topic": "clicks", "key": "a", "value": {"page": "x", "ms": "many"}}
        assert out([CLICKS, copy], bad, click("b", "y")) == [("b", {"PAGE": "y", "MS": 1}, 0)]

    def test_table_functions_make_rows(self) -> None:
        words = "CREATE STREAM o AS SELECT who, EXPLODE(SPLIT(page, '/')) AS part FROM clicks;"
        assert [value for _, value, _ in out([CLICKS, words], click("a", "x/y"))] == [
            {"PART": "x"},
            {"PART": "y"},
        ]

    def test_insert_into_fills_a_stream_that_there_is(self) -> None:
        made = "CREATE STREAM o AS SELECT who, page FROM clicks WHERE ms = 1;"
        more = "INSERT INTO o SELECT who, page FROM clicks WHERE ms = 2;"
        assert [key for key, *_ in out([CLICKS, made, more], click("a", "x", 1), click("b", "x", 2))] == [
            "a",
            "b",
        ]

    def test_values_of_the_script_come_before_the_inputs(self) -> None:
        copy = "CREATE STREAM o AS SELECT who, ms FROM clicks;"
        values = "INSERT INTO clicks (who, ms, ROWTIME) VALUES ('v', 7, 9);"
        assert out([CLICKS, copy, values], click("a", "x", 2)) == [("v", {"MS": 7}, 9), ("a", {"MS": 2}, 0)]

    def test_a_record_may_go_round_until_a_filter_ends_it(self) -> None:
        made = "CREATE STREAM tries (who STRING KEY, n INT) WITH (kafka_topic='tries', value_format='JSON');"
        again = "INSERT INTO tries SELECT who, n + 1 AS n FROM tries WHERE n < 3;"
        first = {"topic": "tries", "key": "a", "value": {"n": 1}}
        assert [value["N"] for _, value, _ in out([made, again], first)] == [2, 3]

    def test_one_that_goes_round_without_end_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(local, "MAX_FOLLOWING", 50)
        made = "CREATE STREAM tries (who STRING KEY, n INT) WITH (kafka_topic='tries', value_format='JSON');"
        first = {"topic": "tries", "key": "a", "value": {"n": 1}}
        with pytest.raises(local.EndlessQueries, match="topic tries"):
            out([made, "INSERT INTO tries SELECT * FROM tries;"], first)

    def test_the_sink_s_time_is_that_of_its_timestamp_column(self) -> None:
        timed = "CREATE STREAM o WITH (timestamp='at') AS SELECT who, CAST(ms AS BIGINT) AS at FROM clicks;"
        assert out([CLICKS, timed], click("a", "x", 99, 5), click("b", "x", -1)) == [("a", {"AT": 99}, 99)]


class TestGroups:
    def test_a_table_s_group_loses_what_moves_to_another(self) -> None:
        towns = "CREATE TABLE o AS SELECT town, COUNT(*) AS n, SUM(age) AS years FROM people GROUP BY town;"
        assert out(
            [PEOPLE, towns],
            person("a", "Rome", 5),
            person("b", "Rome", 7),
            person("a", "Bonn", 5),
            person("b"),
        ) == [
            ("Rome", {"N": 1, "YEARS": 5}, 0),
            ("Rome", {"N": 2, "YEARS": 12}, 0),
            ("Rome", {"N": 1, "YEARS": 7}, 0),
            ("Bonn", {"N": 1, "YEARS": 5}, 0),
            ("Rome", {"N": 0, "YEARS": 0}, 0),
        ]

    def test_having_deletes_a_group_that_no_longer_passes(self) -> None:
        few = "CREATE TABLE o AS SELECT page, COUNT(*) AS n FROM clicks GROUP BY page HAVING COUNT(*) < 3;"
        assert [value for _, value, _ in out([CLICKS, few], *[click("a", "x")] * 4)] == [
            {"N": 1},
            {"N": 2},
            None,
        ]

    def test_an_aggregate_may_be_of_any_expression_of_its_columns(self) -> None:
        made = "SUM(REDUCE(ARRAY[ms, 1], 0, (s, x) => s + x)) AS n, LATEST_BY_OFFSET(who) AS last"
        query = f"CREATE TABLE o AS SELECT page, {made} FROM clicks GROUP BY page;"
        assert out([CLICKS, query], click("a", "x", 4), click("b", "x", 7)) == [
            ("x", {"N": 5, "LAST": "a"}, 0),
            ("x", {"N": 13, "LAST": "b"}, 0),
        ]

    def test_expressions_of_what_is_grouped_by_may_be_selected(self) -> None:
        query = "CREATE TABLE o AS SELECT ms % 2 AS odd, (ms % 2) * 10 + COUNT(*) AS x FROM clicks GROUP BY ms % 2;"
        assert out([CLICKS, query], click("a", "x", 3), click("a", "x", 5)) == [
            (1, {"X": 11}, 0),
            (1, {"X": 12}, 0),
        ]

    def test_several_columns_are_a_key_of_several_columns(self) -> None:
        json_keys = CLICKS.replace("value_format", "key_format='JSON', value_format")
        query = "CREATE TABLE o AS SELECT page, who, COUNT(*) AS n FROM clicks GROUP BY who, page;"
        assert out([json_keys, query], click("a", "x")) == [({"WHO": "a", "PAGE": "x"}, {"N": 1}, 0)]


class TestWindows:
    def test_a_window_is_a_part_of_the_key(self) -> None:
        query = (
            "CREATE TABLE o AS SELECT page, COUNT(*) AS n, WINDOWSTART AS ws FROM clicks "
            "WINDOW TUMBLING (SIZE 10 SECONDS) GROUP BY page;"
        )
        assert out(
            [CLICKS, query], click("a", "x", time=1), click("b", "x", time=12000), click("c", "x", time=3)
        ) == [
            ("x", {"N": 1, "WS": 0}, 1, 0),
            ("x", {"N": 1, "WS": 10000}, 12000, 10000),
            ("x", {"N": 2, "WS": 0}, 3, 0),
        ]

    def test_final_emits_only_what_is_closed(self) -> None:
        query = (
            "CREATE TABLE o AS SELECT page, COUNT(*) AS n FROM clicks WINDOW TUMBLING (SIZE 1 SECOND, RETENTION 1 HOUR, "
            "GRACE PERIOD 0 SECONDS) GROUP BY page EMIT FINAL;"
        )
        assert out(
            [CLICKS, query], click("a", "x", time=1), click("b", "x", time=9), click("c", "y", time=1000)
        ) == [("x", {"N": 2}, 9, 0)]

    def test_a_windowed_table_is_read_as_a_windowed_stream(self) -> None:
        made = "CREATE TABLE t AS SELECT page, COUNT(*) AS n FROM clicks WINDOW SESSION (5 SECONDS) GROUP BY page;"
        read = (
            "CREATE STREAM s (page STRING KEY, n BIGINT) "
            "WITH (kafka_topic='T', value_format='JSON', window_type='session');"
        )
        copy = "CREATE STREAM o AS SELECT page, n, WINDOWEND AS we FROM s;"
        last = out([CLICKS, made, read, copy], click("a", "x", time=1), click("a", "x", time=4))[-1]
        assert last == ("x", {"N": 2, "WE": 4}, 4, 1)


class TestJoins:
    def test_a_stream_takes_what_a_table_has(self) -> None:
        query = (
            "CREATE STREAM o AS SELECT c.who, town, page FROM clicks c LEFT JOIN people p ON c.who = p.id;"
        )
        assert out(
            [CLICKS, PEOPLE, query], click("a", "x"), person("a", "Rome"), click("a", "y", time=3)
        ) == [
            ("a", {"TOWN": None, "PAGE": "x"}, 0),
            ("a", {"TOWN": "Rome", "PAGE": "y"}, 3),
        ]

    def test_streams_meet_within_a_time_by_any_expression(self) -> None:
        views = (
            "CREATE STREAM views (site STRING KEY, n INT) WITH (kafka_topic='views', value_format='JSON');"
        )
        query = "CREATE STREAM o AS SELECT page, n, who FROM clicks JOIN views WITHIN 5 SECONDS ON page = LCASE(site);"
        view = {"topic": "views", "key": "X", "value": {"n": 4}, "timestamp": 4000}
        assert out([CLICKS, views, query], click("a", "x"), view, click("b", "x", time=9001)) == [
            ("x", {"N": 4, "WHO": "a"}, 4000)
        ]

    def test_a_full_join_of_tables_has_a_key_of_its_own(self) -> None:
        jobs = "CREATE TABLE jobs (id STRING PRIMARY KEY, job STRING) WITH (kafka_topic='jobs', value_format='JSON');"
        query = "CREATE TABLE o AS SELECT ROWKEY AS id, town, job FROM people p FULL OUTER JOIN jobs j ON p.id = j.id;"
        job = {"topic": "jobs", "key": "b", "value": {"job": "cook"}}
        assert out([PEOPLE, jobs, query], person("a", "Rome"), job, person("b", "Bonn"), person("a")) == [
            ("a", {"TOWN": "Rome", "JOB": None}, 0),
            ("b", {"TOWN": None, "JOB": "cook"}, 0),
            ("b", {"TOWN": "Bonn", "JOB": "cook"}, 0),
            ("a", None, 0),
        ]

    def test_a_foreign_key_finds_every_row_that_names_it(self) -> None:
        towns = "CREATE TABLE towns (name STRING PRIMARY KEY, land STRING) WITH (kafka_topic='t', value_format='JSON');"
        query = "CREATE TABLE o AS SELECT id, land FROM people JOIN towns ON town = name;"
        town = {"topic": "t", "key": "Rome", "value": {"land": "Italy"}}
        assert out(
            [PEOPLE, towns, query], person("a", "Rome"), person("b", "Rome"), town, person("a", "Bonn")
        ) == [
            ("a", {"LAND": "Italy"}, 0),
            ("b", {"LAND": "Italy"}, 0),
            ("a", None, 0),
        ]


class TestRefusals:
    @pytest.mark.parametrize(
        ("statement", "reason"),
        [
            (
                "CREATE STREAM o AS SELECT page FROM clicks;",
                "must include the key column WHO in its projection",
            ),
            ("CREATE STREAM o AS SELECT who FROM clicks;", "contains no value columns"),
            (
                "CREATE STREAM o AS SELECT who, pag FROM clicks;",
                "'PAG' cannot be resolved. Did you mean PAGE?",
            ),
            ("CREATE STREAM o AS SELECT * FROM click;", "CLICK does not exist. Did you mean CLICKS?"),
            ("CREATE TABLE o AS SELECT * FROM clicks;", "produces a STREAM"),
            (
                "CREATE TABLE o AS SELECT page, ms, COUNT(*) FROM clicks GROUP BY page;",
                "not part of GROUP BY: MS",
            ),
            ("CREATE TABLE o AS SELECT COUNT(*) FROM clicks;", "without a GROUP BY clause"),
            ("CREATE STREAM o AS SELECT who, ms AS rowtime FROM clicks;", "reserved column name"),
            ("CREATE STREAM o AS SELECT *, ms FROM clicks;", "column (`MS`) more than once"),
            ("CREATE STREAM o AS SELECT * FROM clicks WHERE ms;", "Should evaluate to boolean"),
            (
                "CREATE STREAM o AS SELECT * FROM clicks JOIN people ON page = town;",
                "on the table's primary key",
            ),
            ("CREATE STREAM o AS SELECT * FROM clicks c JOIN people p ON c.ms = p.id;", "types don't match"),
            (
                "CREATE TABLE o AS SELECT * FROM people JOIN clicks ON id = who;",
                "table-stream joins are not supported",
            ),
            ("CREATE STREAM o AS SELECT * FROM clicks PARTITION BY town;", "'TOWN' cannot be resolved"),
            (
                "CREATE TABLE o AS SELECT * FROM people PARTITION BY town;",
                "only supported for STREAM results",
            ),
            (
                "CREATE STREAM s (a INT PRIMARY KEY, b INT) WITH (kafka_topic='s', value_format='JSON');",
                "use 'KEY'",
            ),
            ("CREATE TABLE s (a INT) WITH (kafka_topic='s', value_format='JSON');", "require a PRIMARY KEY"),
            ("CREATE STREAM s (a INT) WITH (kafka_topic='s', value_format='JSN');", "Unknown format: JSN"),
            (
                "CREATE STREAM s (a INT) WITH (kafka_topic='s', value_fromat='JSON');",
                "Did you mean VALUE_FORMAT?",
            ),
            (
                "CREATE STREAM s (a INT, a INT) WITH (kafka_topic='s', value_format='JSON');",
                "Duplicate column names",
            ),
            ("INSERT INTO people SELECT * FROM clicks;", "PEOPLE is a table"),
        ],
    )
    def test_says_why(self, statement: str, reason: str) -> None:
        assert reason in refusal(statement)

    def test_a_refused_statement_leaves_nothing_behind(self) -> None:
        wrong = "CREATE STREAM o AS SELECT page FROM clicks;"
        assert "O does not exist" in refusal("CREATE STREAM p AS SELECT * FROM o;", wrong)
        with pytest.raises(StatementError):
            run_case([CLICKS, wrong], [], host="local")

    def test_partitions_that_do_not_fit_are_not_joined(self) -> None:
        few = PEOPLE.replace("people (", "few (").replace("'people'", "'few', partitions=1")
        many = CLICKS.replace("clicks (", "many (").replace("'clicks'", "'many', partitions=2")
        join = "CREATE STREAM o AS SELECT m.who, town FROM many m JOIN few f ON m.{} = f.id;"
        assert "number of partitions don't match" in refusal(few, many, join.format("who"))
        fits = "CREATE STREAM o AS SELECT m.page, town FROM many m JOIN few f ON m.page = f.id;"
        run_case([few, many, fits], [], host="local")


@pytest.mark.parametrize("prefix", ["", "ksql.streams."])
def test_properties_have_their_own_names_and_texts(prefix: str) -> None:
    properties = {f"{prefix}ksql.functions.collect_list.limit": 2, "ksql.unknown": None}
    collected = "CREATE TABLE t AS SELECT who, COLLECT_LIST(ms) AS all FROM clicks GROUP BY who;"
    inputs = [click("a", "p", ms) for ms in (1, 2, 3)]
    written = run_case([CLICKS, collected], inputs, properties, host="local")
    assert [record["value"]["ALL"] for record in written] == [[1], [1, 2], [1, 2]]
