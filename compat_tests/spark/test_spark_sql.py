"""What is compiled to Spark SQL means what our operators do: generated records through both, expression by expression.

A record that Spark leaves to our operators (`odd`) proves nothing, so of each statement enough must not be such.
"""

# ruff: noqa: E501 (tables of what is tried)

from __future__ import annotations

import datetime
import json
import random
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pykafkad.pipelines import spark_sql
from pykafkad.pipelines.hosts.spark import configured
from pykafkad.pipelines.plan.ends import Record, ignore
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql.statements import statement
from pykafkad.pipelines.testing import prepared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAME = (
    "topic STRING, key BINARY, value BINARY, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, partition INT, offset BIGINT"
)
RECORDS = 400
COLUMNS = "i INT, j INT, b BIGINT, c BIGINT, d DOUBLE, e DOUBLE, s STRING, t STRING, f BOOLEAN, g BOOLEAN, m TIMESTAMP"


@pytest.fixture(scope="module")
def sql_spark(spark: SparkSession) -> Iterator[SparkSession]:
    with configured(spark, spark_sql.CONFIGS):
        yield spark


# --- records

WHOLE = [0, 1, -1, 2, 3, 7, -7, 2**31 - 1, -(2**31), 1000]
LONG = [*WHOLE, 2**63 - 1, -(2**63), 2**53 + 1, 10**18]
DOUBLES = [0.0, -0.0, 1.5, -2.25, 1e10, 1e-9, 0.1, 123456.789, 5e300, 7, 3.0]
TEXTS = [
    "",
    "a",
    "abc",
    "ABC",
    "x%y",
    "a_c",
    "7",
    "-12",
    "3.5",
    "true",
    " pad\t",
    "näh",
    "日本",
    "😀",
    'q"q',
    "a\\b",
    "TRUE",
    "\n",
]


def value_of(rng: random.Random) -> dict[str, Any]:
    kinds: dict[str, list[Any]] = {
        "I": WHOLE, "J": WHOLE, "B": LONG, "C": LONG, "D": DOUBLES, "E": DOUBLES, "S": TEXTS, "T": TEXTS,
        "F": [True, False], "G": [True, False], "M": [0, 1_700_000_000_123, -5],
    }  # fmt: skip
    made = {name: None if rng.random() < 0.15 else rng.choice(values) for name, values in kinds.items()}
    return {name: each for name, each in made.items() if each is not None or rng.random() < 0.5}


ODD_TEXTS = [
    b"", b"null", b"{", b"[]", b"7", b'"x"', b"{} x", b'{"I":1}]', b'{"I":1},{"I":2}', b"\xff", b'{"S":"\xff"}', b"\0\0\0\0\1{}",
    b'{"I":"12"}', b'{"I":1.7}', b'{"I":3000000000}', b'{"I":true}', b'{"D":"2.5"}', b'{"D":1e400}', b'{"D":NaN}', b'{"F":"true"}',
    b'{"S":1}', b'{"S":1.50}', b'{"S":1e3}', b'{"S":-0}', b'{"S":true}', b'{"S":{"a": 1}}', b'{"S":[1, 2]}', b'{"B":1e3}',
    b'{"i":1,"I":null}', b'{"i":1,"I":2}', b'{"\\u0049":1}', b'{"\\u0069":5}', '{"ı":4}'.encode(), b'{"S":"\\ud83d\\ude00"}',
    b'{"S":"\\ud800"}', b'{"S":"\\u00e9"}', b'{"I":1,"I":2}', b"{'I':1}", b'{"I":01}', b'{"I":+1}', b' {"I" : 1 } ', b'{"D":12345678901234567890}',
    b'{"D":-0}', b'{"X":{"I":3}}', b'{"I":1,}', b'{"S":"a\tb"}', b'{"S":"a\\tb"}', b'{"M":1.5}', b'{"B":99999999999999999999}',
]  # fmt: skip


def json_records(seed: int) -> list[bytes | None]:
    rng = random.Random(seed)
    found: list[bytes | None] = [None, *ODD_TEXTS]
    for number in range(RECORDS):
        value = value_of(rng)
        if number % 3 == 1:
            value = {name.lower(): each for name, each in value.items()}
        if number % 50 == 7:
            value = {rng.choice((name, name.lower())): each for name, each in value.items()}
        found.append(json.dumps(value, ensure_ascii=number % 2 == 0).encode())
    return found


# --- both


def plan_of(*statements: str) -> Plan:
    return prepared([*statements], []).plans[-1]


def records_of(topic: str, keys: list[bytes | None], values: list[bytes | None]) -> list[Record]:
    return [
        Record(topic, keys[n % len(keys)], value, 1_700_000_000_000 + n, (("n", str(n).encode()),), n % 3, n)
        for n, value in enumerate(values)
    ]


def ours(plan: Plan, records: list[Record]) -> dict[int, Any]:
    return {n: shown(made) for n, one in enumerate(records) for made in plan.records(one, {}, ignore)}


def shown(made: Record) -> tuple[Any, ...]:
    return plain(made.key), plain(made.value), made.time


def plain(data: bytes | None) -> Any:
    """JSON as what it says (a number is one however it is written), other bytes as they are."""
    if data is None or not data.startswith(b"{"):
        return data
    return repr(json.loads(data))


def compiled(spark: SparkSession, plan: Plan, records: list[Record]) -> tuple[dict[int, Any], set[int]]:
    """By the records' numbers what Spark makes of them, and those that it leaves to our operators."""
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    rows = [
        (
            *(one.topic, one.key, one.value, epoch + datetime.timedelta(milliseconds=one.time)),
            *([{"key": name, "value": value} for name, value in one.headers], one.partition, one.offset),
        )
        for one in records
    ]
    found, odd = {}, set()
    for row in statement(plan).applied(spark.createDataFrame(rows, FRAME)).collect():
        number = int(row.headers[0].value)
        if row.record is not None:
            odd.add(number)
        else:
            value = None if row.value is None else bytes(row.value)
            key = None if row.key is None else bytes(row.key)
            found[number] = shown(Record("", key, value, row.time))
    return found, odd


def compare(spark: SparkSession, plan: Plan, records: list[Record], enough: float) -> None:
    expected = ours(plan, records)
    got, odd = compiled(spark, plan, records)
    assert got == {n: one for n, one in expected.items() if n not in odd}
    assert len(odd) <= (1 - enough) * len(records), [records[n].value for n in sorted(odd)][:50]


# --- statements

SOURCE = f"CREATE STREAM r (k STRING KEY, {COLUMNS}) WITH (kafka_topic='r', value_format='JSON');"

SELECTS = {
    "whole numbers": "i + j AS a1, i - j AS a2, i * j AS a3, i / j AS a4, i % j AS a5, -i AS a6, i + 1 AS a7, i * b AS a8",
    "long numbers": "b + c AS a1, b - c AS a2, b * c AS a3, b / c AS a4, b % c AS a5, b + 1 AS a6, b / 2 AS a7, i / 0 AS a8",
    "doubles": "d + e AS a1, d - e AS a2, d * e AS a3, d / 4 AS a4, -d AS a5, d * 1000 AS a6, d + i AS a7, b * d AS a8, d * 2.5 AS a9",
    "comparisons": "i < j AS a1, i = b AS a2, d >= e AS a3, s = t AS a4, s < t AS a5, f = g AS a6, b > d AS a7, s <> 'abc' AS a8, "
    "d > 1.5 AS a9, i <= 7.5 AS b1, m = '1970-01-01T00:00:00' AS b2, f <> true AS b3, b > 9223372036854775000 AS b4",
    "distinct": "i IS DISTINCT FROM j AS a1, s IS NOT DISTINCT FROM t AS a2, i + 1 IS DISTINCT FROM 8 AS a3",
    "logic": "f AND g AS a1, f OR g AS a2, NOT f AS a3, NOT (i > 3) AS a4, i > 1 OR i / j > 0 AS a5, i > 1 AND i / j > 0 AS a6, "
    "f OR s = 'a' AS a7, NOT (f AND NOT g) AS a8, (i + j > 0) OR f AS a9",
    "nulls": "i IS NULL AS a1, i + j IS NULL AS a2, s IS NOT NULL AS a3, (f AND g) IS NULL AS a4, NOT (i + j > 2) AS a5",
    "ranges": "i BETWEEN -1 AND 7 AS a1, s BETWEEN 'a' AND 'b' AS a2, i NOT BETWEEN j AND 7 AS a3, i + j BETWEEN 0 AND 9 AS a4",
    "sets": "i IN (1, 2, 7) AS a1, s IN ('a', 'ABC') AS a2, i NOT IN (0) AS a3, b IN (1, 9223372036854775807) AS a4, f IN (true) AS a5",
    "patterns": "s LIKE 'a%' AS a1, s LIKE '%_c' AS a2, s NOT LIKE '_' AS a3, s LIKE 'x%%y' AS a4, s LIKE '%.%' AS a5, s LIKE '' AS a6",
    "cases": "CASE WHEN i > 1 THEN 'big' WHEN i IS NULL THEN 'none' ELSE 'small' END AS a1, CASE i WHEN 1 THEN j WHEN 7 THEN 0 END AS a2, "
    "CASE WHEN i / j > 1 THEN 1 ELSE 2 END AS a3, CASE WHEN f THEN i + j ELSE b END AS a4, CASE WHEN f THEN g END AS a5, "
    "NOT CASE WHEN f THEN g ELSE f END AS a6",
    "casts": "CAST(i AS BIGINT) AS a1, CAST(b AS INT) AS a2, CAST(i AS DOUBLE) AS a3, CAST(b AS DOUBLE) AS a4, CAST(d AS INT) AS a5, "
    "CAST(d AS BIGINT) AS a6, CAST(i AS STRING) AS a7, CAST(b AS STRING) AS a8, CAST(f AS STRING) AS a9, CAST(s AS BOOLEAN) AS b1, "
    "CAST('7' AS INT) AS b2, CAST(i + j AS STRING) AS b3, CAST(NULL AS STRING) AS b4",
    "functions": "COALESCE(s, t, 'none') AS a1, COALESCE(i + j, 0) AS a2, IFNULL(i, 9) AS a3, LEN(s) AS a4, TRIM(s) AS a5, CONCAT(s, t) AS a6, "
    "CONCAT(s, CAST(i AS STRING)) AS a7, SUBSTRING(s, 2) AS a8, SUBSTRING(s, 1, 2) AS a9, REPLACE(s, 'a', 'zz') AS b1, INSTR(s, 'b') AS b2, "
    "ABS(d) AS b3, s + t AS b4, s + '!' AS b5, AS_VALUE(s) AS b6, SUBSTRING(s, 3, -1) AS b7",
    "letters": "UCASE(t) AS a1, LCASE(t) AS a2",
    "system": "ROWTIME AS a1, ROWPARTITION AS a2, ROWOFFSET AS a3, ROWTIME > '2023-01-01T00:00:00' AS a4, ROWTIME + 1 AS a5",
    "everything": "*",
}  # fmt: skip
SELDOM = {"letters": 0.5, "casts": 0.5, "whole numbers": 0.5, "long numbers": 0.5}


@pytest.mark.parametrize("name", SELECTS)
def test_expressions(sql_spark: SparkSession, name: str) -> None:
    plan = plan_of(
        SOURCE,
        f"CREATE STREAM w WITH (kafka_topic='w') AS SELECT k, {SELECTS[name]} FROM r;".replace("k, *", "*"),
    )
    values = json_records(len(name))
    records = records_of("r", [b"k", None, b"", "schlüssel".encode(), b"\xff"], values)
    compare(sql_spark, plan, records, SELDOM.get(name, 0.6))


@pytest.mark.parametrize(
    "condition",
    ["i > 1", "NOT (i > 1)", "i + j > 0", "NOT (i + j > 0)", "f", "NOT f", "d / e > 1", "s LIKE 'a%' OR i IN (1, 7)", "CAST(s AS INT) > 0"],
)  # fmt: skip
def test_filters(sql_spark: SparkSession, condition: str) -> None:
    plan = plan_of(
        SOURCE, f"CREATE STREAM w WITH (kafka_topic='w') AS SELECT k, i, d, s FROM r WHERE {condition};"
    )
    compare(sql_spark, plan, records_of("r", [b"k"], json_records(3)), 0.2)


KEYS: dict[str, list[bytes | None]] = {
    "k INT KEY|KAFKA": [
        struct.pack(">i", 7),
        struct.pack(">i", -7),
        None,
        b"123",
        struct.pack(">i", -(2**31)),
    ],
    "k BIGINT KEY|KAFKA": [struct.pack(">q", n) for n in (0, 5, -5, 2**63 - 1, -(2**63))],
    "k STRING KEY|KAFKA": [b"a", b"", None, b"\xc3", "ß".encode()],
    "k BIGINT KEY|JSON": [b"7", b'"7"', b" 8", b"null", b"1.5", b"x", None, b"1 2"],
    "k STRING KEY|JSON": [b'"a"', b"7", b"null", b'"\\u00e9"', b'"q\\"q"', None, b"1.50", b"1e2"],
    "k BOOLEAN KEY|JSON": [b"true", b"false", b'"true"', None],
    "k INT KEY|DELIMITED": [b"7", b"-7", b"", b" 7", b"x", None, b"1,2"],
    "k STRING KEY|DELIMITED": [b"a", b"", b'"a,b"', b"-x", None],
}


TO = ("JSON", "KAFKA", "DELIMITED")


@pytest.mark.parametrize(
    ("to", "key"),
    [(to, key) for to in TO for key in KEYS if not (to == "KAFKA" and "BOOLEAN" in key)],  # KAFKA has none
)
def test_keys(sql_spark: SparkSession, key: str, to: str) -> None:
    declared, form = key.split("|")
    source = f"CREATE STREAM r ({declared}, i INT) WITH (kafka_topic='r', key_format='{form}', value_format='JSON');"
    plan = plan_of(
        source, f"CREATE STREAM w WITH (kafka_topic='w', key_format='{to}') AS SELECT * FROM r WHERE i > 0;"
    )
    values: list[bytes | None] = [b'{"I":%d}' % (n % 5) for n in range(60)]
    compare(sql_spark, plan, records_of("r", KEYS[key], values), 0.3)


LINES = [
    b"1,2,3.5,abc,true", b"-1,,,,", b",,,,", b"1,2,3,4", b"1,2,3,4,true,6", b'1,2,3.5,"a,b",true', b"x,2,3,a,true", b" 1,2,3,a,true",
    b"1_0,2,3,a,true", b"1,2,1e5,a,false", b"1,2,nan,a,false", b"1,2,3d,a,false", b"1,2,.5,a,false", b"1,2,3.5,-x,TRUE", b"1,2,3.5,a b,false",
    b"1,2,3.5,a ,false", b"1,2,3.5,#a,true", b"99999999999,2,3.5,a,true", b"1,9999999999999999999,3.5,a,true", "1,2,3.5,é,true".encode(),
    b"1,2,3.5,a\nb,true", b"\xff,2,3.5,a,true", b"", b"1,2,3.5,a,yes", b"+1,2,3,a,true", "١,2,3,a,true".encode(),
]  # fmt: skip


def test_delimited(sql_spark: SparkSession) -> None:
    source = "CREATE STREAM r (i INT, b BIGINT, d DOUBLE, s STRING, f BOOLEAN) WITH (kafka_topic='r', value_format='DELIMITED');"
    lines: list[bytes | None] = [
        *LINES,
        None,
        *(b"%d,%d,%d.25,t%d,%s" % (n, -n, n, n, b"true" if n % 2 else b"false") for n in range(40)),
    ]
    records = records_of("r", [b"k"], lines)
    to_json = plan_of(
        source,
        "CREATE STREAM w WITH (kafka_topic='w', value_format='JSON') AS SELECT i, b, d * 2 AS d, s, f FROM r;",
    )
    compare(sql_spark, to_json, records, 0.5)
    back = plan_of(
        source, "CREATE STREAM w WITH (kafka_topic='w') AS SELECT b AS x, i, s, f, s AS t FROM r WHERE i > 0;"
    )
    compare(sql_spark, back, records, 0.5)
    tabs = plan_of(
        source, "CREATE STREAM w WITH (kafka_topic='w', value_delimiter='TAB') AS SELECT b, s, i, f FROM r PARTITION BY b;"
    )  # fmt: skip
    compare(sql_spark, tabs, records, 0.5)


def test_a_new_key(sql_spark: SparkSession) -> None:
    plan = plan_of(
        SOURCE,
        "CREATE STREAM w WITH (kafka_topic='w', key_format='JSON') AS SELECT i, s, i + 1 AS n FROM r PARTITION BY i, s;",
    )
    values = [value for value in json_records(9) if b"ud800" not in (value or b"")]
    records = records_of("r", [b"k"], values)
    compare(sql_spark, plan, records, 0.6)
    plan = plan_of(
        SOURCE, "CREATE STREAM w WITH (kafka_topic='w') AS SELECT s, i + 1 AS n FROM r PARTITION BY s;"
    )
    compare(sql_spark, plan, records, 0.6)
