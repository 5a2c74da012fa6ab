"""INSERT INTO ... VALUES: the record that follows, and what is refused."""

from __future__ import annotations

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.running.inserting import inserted
from pykafkad.pipelines.syntax import ast
from pykafkad.pipelines.syntax.parser import parse
from tests.unit.test_sql_catalog import with_sources

STREAM = (
    "CREATE STREAM S (K INT KEY, V STRING, D DOUBLE, N DECIMAL(6,2), A ARRAY<BIGINT>, B BIGINT) "
    "WITH (KAFKA_TOPIC='s', KEY_FORMAT='KAFKA', VALUE_FORMAT='JSON')"
)
TABLE = "CREATE TABLE T (K STRING PRIMARY KEY, D DATE) WITH (KAFKA_TOPIC='t', FORMAT='DELIMITED')"
HEADERS = "CREATE STREAM H (V INT, X BYTES HEADER('x')) WITH (KAFKA_TOPIC='h', FORMAT='JSON')"


def made(statement: str) -> tuple[bytes | None, bytes | None, int]:
    parsed = parse(statement)
    assert isinstance(parsed, ast.InsertValues)
    target = with_sources(STREAM, TABLE, HEADERS).source(parsed.target)
    record = inserted(target, parsed, 42)
    assert record.topic == target.topic
    return record.key, record.value, record.time


@pytest.mark.parametrize(
    ("statement", "record"),
    [
        (
            "INSERT INTO S (K, V) VALUES (1, 'a')",
            (b"\0\0\0\1", b'{"V":"a","D":null,"N":null,"A":null,"B":null}', 42),
        ),
        (
            "INSERT INTO S VALUES (-1, UCASE('a'), 1, 2, ARRAY[1, 2], 3)",
            (b"\xff\xff\xff\xff", b'{"V":"A","D":1.0,"N":2.00,"A":[1,2],"B":3}', 42),
        ),
        (
            "INSERT INTO S (ROWTIME, D) VALUES (7, 1.5)",
            (None, b'{"V":null,"D":1.5,"N":null,"A":null,"B":null}', 7),
        ),
        ("INSERT INTO T (K, D) VALUES ('x', '1970-01-02')", (b"x", b"1", 42)),
        ("INSERT INTO H (V) VALUES (NULL)", (None, b'{"V":null}', 42)),
    ],
)
def test_values_make_a_record(statement: str, record: tuple[bytes | None, bytes | None, int]) -> None:
    assert made(statement) == record


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("INSERT INTO S (K, W) VALUES (1, 'a')", "Column name W does not exist in S"),
        ("INSERT INTO S (K, K) VALUES (1, 2)", "Column K is given twice"),
        ("INSERT INTO S VALUES (1, 'a')", "Expected a value for each column of S"),
        ("INSERT INTO S (K) VALUES ('one')", "Expected type INTEGER for field K but got STRING('one')"),
        ("INSERT INTO S (K) VALUES (3000000000)", "Expected type INTEGER for field K but got BIGINT"),
        ("INSERT INTO S (N) VALUES (12345.5)", "12345.5 is no value for N"),
        ("INSERT INTO S (V) VALUES (NOTHING('a'))", "NOTHING"),
        ("INSERT INTO S (V) VALUES (OTHER)", "OTHER"),
        ("INSERT INTO T (D) VALUES ('1970-01-02')", "value for primary key column K is required"),
        (
            "INSERT INTO H (V, X) VALUES (1, FROM_BYTES('a', 'utf8'))",
            "Cannot insert into the HEADER column X",
        ),
    ],
)
def test_what_is_no_value_is_refused(statement: str, reason: str) -> None:
    with pytest.raises(StatementError) as caught:
        made(statement)
    assert reason in caught.value.reason
