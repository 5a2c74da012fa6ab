"""What a person reads who wrote a statement that is none."""

from __future__ import annotations

import os
import random

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.syntax import tokens
from pykafkad.pipelines.syntax.parser import parse, parse_script
from tests.sql_statements import STATEMENTS

RUNS = int(os.environ.get("RUNS", "4000"))
SEED = int(os.environ.get("SEED", "15"))


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELCT * FROM S", "line 1:1: expected CREATE, SELECT, ... found SELCT. Did you mean SELECT?"),
        ("SELECT *\n FORM S", "line 2:2: expected , or FROM, found FORM. Did you mean FROM?"),
        (
            "CREATE STRAEM S (A INT) WITH (KAFKA_TOPIC='s')",
            "1:8: ... STREAM or TABLE, found STRAEM. Did you mean STREAM?",
        ),
        ("SELECT A FORM S", "line 1:15: expected , or FROM, found S. Did you mean FROM instead of FORM?"),
        ("SELECT A FROM S WHRE A = 1", "found A. Did you mean WHERE instead of WHRE?"),
        ("SELECT A FROM", "line 1:14: expected a stream or table, but the statement ends here"),
        ("SELECT A FROM S WHERE A = ", "expected an expression, but the statement ends here"),
        (
            "SELECT A AS FROM FROM S",
            "expected a name for the column, found FROM. FROM is a word of the language: write `FROM`",
        ),
        ("SELECT A FROM S GROUP BY ()", "GROUP BY requires at least one expression"),
        ("SELECT A FROM S EMIT CHANGS", "expected FINAL or CHANGES, found CHANGS. Did you mean CHANGES?"),
        ("SELECT A FROM S LIMIT -1", "line 1:23: expected a whole number, found -"),
        ("SELECT A FROM S WINDOW TUMBLING (SIZE 5 SECNDS) GROUP BY A", "found SECNDS. Did you mean SECONDS?"),
        ("SELECT A FROM S WHERE A LIKE 'x' ESCAPE 'ab'", "ESCAPE takes one character, not 2"),
        ("SELECT 'it FROM S", "line 1:8: the string that begins here does not end"),
        ("SELECT /* FROM S", "line 1:8: the comment that begins here does not end"),
        ("SELECT A ? B FROM S", "line 1:10: '?' means nothing here"),
        ("SELECT `` FROM S", "a name cannot be empty"),
        ("SELECT 9223372036854775808 FROM S", "9223372036854775808 is out of BIGINT's range"),
        ("SELECT A FROM S LIMIT 99999999999999999999", "is too large a number"),
        ("SELECT A FROM S; SHOW TABLES", "line 1:18: expected the end of the statement, found SHOW"),
        ("CREATE STREAM S (A DECIMAL(2,3)) WITH (KAFKA_TOPIC='s')", "DECIMAL precision must be >= scale"),
        ("CREATE STREAM S (A DECIMAL(0,0)) WITH (KAFKA_TOPIC='s')", "DECIMAL precision must be >= 1"),
        ("CREATE STREAM S (A VARCHAR(20)) WITH (KAFKA_TOPIC='s')", "VARCHAR has no length or precision"),
        (
            "CREATE STREAM S (A STRUCT<B INT, B INT>) WITH (KAFKA_TOPIC='s')",
            "Duplicate field names found in STRUCT: B",
        ),
        ("CREATE STREAM S WITH (PARTITIONS=1, partitions=2) AS SELECT * FROM X", "PARTITIONS is given twice"),
        ("CREATE STREAM S", "but the statement ends here"),
        ("INSERT INTO S (A, B) VALUES (1)", "2 columns, but 1 values"),
        ("PRINT ${topic}", "the variable ${topic} is not defined"),
        ("", "expected ... but the statement ends here"),
        ("SELECT " + "(" * 100 + "A" + ")" * 100 + " FROM S", "more than 60 levels are nested here"),
        ("SELECT " + "- " * 100 + "A FROM S", "more than 60 levels are nested here"),
        ("SELECT " + "A + " * 1000 + "A FROM S", "more than 150 operators and parentheses are nested here"),
        ("CREATE TYPE T AS " + "ARRAY<" * 100 + "INT" + ">" * 100, "more than 60 levels are nested here"),
    ],
)
def test_an_error_says_where_and_what(statement: str, message: str) -> None:
    with pytest.raises(StatementError) as caught:
        parse(statement)
    for part in message.split(" ... "):
        assert part in str(caught.value)


def test_a_place_is_one_of_the_script() -> None:
    with pytest.raises(StatementError) as caught:
        list(parse_script("SHOW TABLES;\nSHOW TABLES;\n\n  SHOW\n TABELS;"))
    assert (caught.value.at.line, caught.value.at.column) == (5, 2)
    assert caught.value.reason.endswith("found TABELS. Did you mean TABLES?")


def mutated(chance: random.Random, text: str, other: str) -> str:
    for _ in range(chance.randint(1, 3)):
        place, length = chance.randrange(len(text) + 1), chance.randrange(6)
        put = chance.choice(
            [
                "",
                "",
                "'",
                "`",
                "(",
                ")",
                "[",
                "<",
                "-",
                ".",
                "->",
                "=>",
                "${",
                "/*",
                "\n",
                "9" * 30,
                "é",
                "\0",
                "1E9",
            ]
        )
        if chance.random() < 0.3:
            words = other.split(" ")
            put = " ".join(words[chance.randrange(len(words)) :][: chance.randint(1, 4)])
        text = text[:place] + put + text[place + length :]
    return text


def test_whatever_is_written_is_a_statement_or_a_statement_error() -> None:
    chance, places = random.Random(SEED), []
    for run in range(RUNS):
        text = mutated(chance, chance.choice(STATEMENTS), chance.choice(STATEMENTS))
        try:
            tokens.split(text)
            parse(text)
        except StatementError as error:
            places.append(error.at)
        except Exception as error:
            raise AssertionError(f"SEED={SEED}, run {run}: {text!r}") from error
    assert RUNS / 4 < len(places) < RUNS
    assert min(places) >= (1, 1)
