"""Statements of every kind, as they are written again: what parser, formatter and fuzzer start from; and random ones."""

from __future__ import annotations

import decimal
import random
from collections.abc import Callable
from typing import Any

from pykafkad.pipelines.syntax import ast

STATEMENTS = [
    "CREATE STREAM RIDES (ID BIGINT KEY, WHO STRING, AT TIMESTAMP) WITH (KAFKA_TOPIC = 'rides', FORMAT = 'JSON')",
    "CREATE OR REPLACE STREAM `my rides` (ID INTEGER KEY, H ARRAY<STRUCT<KEY STRING, VALUE BYTES>> HEADERS) "
    "WITH (KAFKA_TOPIC = 'r', VALUE_FORMAT = 'DELIMITED', VALUE_DELIMITER = '|', PARTITIONS = 3)",
    "CREATE SOURCE TABLE IF NOT EXISTS T (ID STRING PRIMARY KEY, V DECIMAL(10, 2), M MAP<STRING, `odd type`>) "
    "WITH (KAFKA_TOPIC = 't', WRAP_SINGLE_VALUE = FALSE, RETRIES = -1)",
    "CREATE STREAM H (V STRING, A BYTES HEADER('it''s')) WITH (KAFKA_TOPIC = 'h')",
    "CREATE STREAM INFERRED WITH (KAFKA_TOPIC = 'known', VALUE_FORMAT = 'AVRO')",
    "CREATE STREAM S2 AS SELECT * FROM S EMIT CHANGES",
    "CREATE STREAM IF NOT EXISTS S2 WITH (PARTITIONS = 2) AS SELECT A.*, B.X AS Y, A.S->F->`g`, A.S->* "
    "FROM S AS A LEFT JOIN T AS B ON A.ID = B.ID WHERE A.ID > 3 AND NOT A.V IS NULL PARTITION BY A.X EMIT CHANGES",
    "CREATE TABLE C AS SELECT ID, COUNT(*) AS N, SUM(V + 1) AS S FROM S "
    "WINDOW HOPPING (SIZE 30 SECONDS, ADVANCE BY 10 SECONDS, RETENTION 1 DAYS, GRACE PERIOD 0 MILLISECONDS) "
    "WHERE V BETWEEN 1 AND 2 GROUP BY ID, V HAVING COUNT(*) > 1 EMIT FINAL",
    "CREATE TABLE C AS SELECT ID, COUNT(*) AS N FROM S WINDOW TUMBLING (SIZE 1 HOURS) GROUP BY ID",
    "CREATE TABLE C AS SELECT ID, COUNT(*) AS N FROM S WINDOW SESSION (5 MINUTES, GRACE PERIOD 1 DAYS) GROUP BY ID",
    "INSERT INTO S SELECT * FROM A INNER JOIN B WITHIN 10 SECONDS GRACE PERIOD 1 SECONDS ON A.K = B.K "
    "FULL JOIN C WITHIN (1 HOURS, 2 HOURS) ON A.K = C.K RIGHT JOIN D WITHIN 1 DAYS ON D.K = A.K",
    "INSERT INTO S WITH (QUERY_ID = 'x') SELECT K, EXPLODE(ARRAY[1, 2.50, 3.0E0, NULL]) AS V FROM A",
    "INSERT INTO S (A, `b`) VALUES (1, MAP('a' := STRUCT(X := -1, Y := TRUE)))",
    "INSERT INTO S VALUES ('a', -1.5, ARRAY[], FROM_BYTES(X, 'hex'))",
    "SELECT * FROM T WHERE ID = 3 AND WINDOWSTART >= '2020-01-01' LIMIT 3",
    "SELECT CASE WHEN A = 1 THEN 'x' ELSE 'y' END AS W, CASE A WHEN 1 THEN 2 END AS V FROM S EMIT CHANGES LIMIT 10",
    "SELECT TRANSFORM(A, (X) => X * 2 + Y), REDUCE(M, 0, (S, K, V) => S + V), F(A.*), G(*), H() FROM S",
    "SELECT DATEADD(DAYS, 1, D), DATESUB(`DAYS`, 1, D), `MAP`(A), `ARRAY`[1] FROM S",
    "SELECT CAST(A AS ARRAY<MAP<STRING, STRUCT< >>>), A[1]['k'], -A, -(-1), (-1)[2] FROM S",
    "SELECT A LIKE 'x%' ESCAPE '!', A NOT LIKE 'b', A NOT IN (1, 2), A IS DISTINCT FROM B, NOT A = 1 OR B FROM S",
    "SELECT (A OR B) AND C, A - (B - C), (A + B) * C, A - B - C, A % -2, (A = B) = (C < D), (-A)->B FROM S",
    "DROP STREAM IF EXISTS S DELETE TOPIC",
    "DROP TABLE T",
    "ALTER STREAM S ADD COLUMN A INTEGER, ADD COLUMN B STRING",
    "CREATE TYPE IF NOT EXISTS ADDRESS AS STRUCT<STREET STRING, `no` INTEGER>",
    "DROP TYPE IF EXISTS ADDRESS",
    "TERMINATE CTAS_C_3",
    "PAUSE ALL",
    "RESUME QUERY",
    "SHOW STREAMS EXTENDED",
    "SHOW TABLES",
    "SHOW ALL TOPICS EXTENDED",
    "SHOW QUERIES",
    "SHOW FUNCTIONS",
    "SHOW PROPERTIES",
    "SHOW VARIABLES",
    "SHOW TYPES",
    "DESCRIBE S EXTENDED",
    "DESCRIBE `TABLES`",
    "DESCRIBE STREAMS",
    "DESCRIBE TABLES EXTENDED",
    "DESCRIBE FUNCTION UCASE",
    "EXPLAIN CTAS_C_3",
    "EXPLAIN `SHOW`",
    "EXPLAIN CREATE TABLE C AS SELECT K, COUNT(*) AS N FROM S GROUP BY K",
    "PRINT 'my-topic' FROM BEGINNING INTERVAL 2 LIMIT 3",
    "SET 'auto.offset.reset' = 'earliest'",
    "UNSET 'auto.offset.reset'",
    "DEFINE `replicas` = 'it''s 3'",
    "UNDEFINE `replicas`",
    "RUN SCRIPT '/tmp/x.sql'",
    "ASSERT NOT EXISTS TOPIC 'x' TIMEOUT 10 SECONDS",
    "ASSERT TOPIC 'x' WITH (PARTITIONS = 3, REPLICAS = 1)",
    "ASSERT SCHEMA SUBJECT 'x-value' ID 3 TIMEOUT 1 MINUTES",
    "ASSERT STREAM S (ID INTEGER KEY) WITH (KAFKA_TOPIC = 's')",
    "ASSERT TABLE T (ID INTEGER PRIMARY KEY)",
    "ASSERT VALUES S (ID, `b`) VALUES (1, 'x')",
    "ASSERT NULL VALUES T (ID) KEY (1)",
]

NAMES = ["A", "B1", "lower", "with space", "back`tick", "SELECT", "EMIT", "DAYS", "MAP", "_X@", "é"]


class Making:
    """Random expressions, down to a depth."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.lambdas: list[str] = []

    def expression(self, depth: int) -> ast.Expression:
        if depth <= 0:
            return self.leaf()
        makers = [self.leaf, *(lambda make=make: make(depth - 1) for make in self.branches())]
        return self.chance.choice(makers)()

    def leaf(self) -> ast.Expression:
        chance, name = self.chance, self.name()
        if self.lambdas and chance.random() < 0.3:
            return ast.LambdaVariable(chance.choice(self.lambdas))
        column = ast.ColumnReference(name, self.name() if name in self.lambdas else None)
        return chance.choice(
            [
                column,
                ast.ColumnReference(name, self.name()),
                ast.NullLiteral(),
                ast.BooleanLiteral(chance.random() < 0.5),
                ast.IntegerLiteral(chance.choice([0, 1, -1, 2**31, -(2**63), 2**63 - 1])),
                ast.DecimalLiteral(decimal.Decimal(chance.choice(["1", "-0.5", "100.000", "1" * 40 + ".5"]))),
                ast.DoubleLiteral(chance.choice([0.0, -1.5, 1e300, 1e-7, 5e-324, float("inf")])),
                ast.StringLiteral(chance.choice(["", "'", "a''b", "--", "${x}", "\n", "`"])),
            ]
        )

    def name(self) -> str:
        return self.chance.choice(NAMES)

    def some(self, depth: int, least: int = 0) -> tuple[ast.Expression, ...]:
        return tuple(self.expression(depth) for _ in range(self.chance.randint(least, 3)))

    def branches(self) -> list[Callable[[int], ast.Expression]]:
        chance, one, some = self.chance, self.expression, self.some
        return [
            lambda d: ast.Negation(one(d)),
            lambda d: ast.Arithmetic(chance.choice(OPERATORS), one(d), one(d)),
            lambda d: ast.Comparison(chance.choice(COMPARISONS), one(d), one(d)),
            lambda d: ast.Logical(chance.choice(["AND", "OR"]), one(d), one(d)),
            lambda d: ast.Not(one(d)),
            lambda d: ast.IsNull(one(d), chance.random() < 0.5),
            lambda d: ast.Between(one(d), one(d), one(d), chance.random() < 0.5),
            lambda d: ast.In(one(d), some(d, 1), chance.random() < 0.5),
            lambda d: ast.Like(one(d), one(d), chance.choice([None, "'", "!"]), chance.random() < 0.5),
            lambda d: ast.Case(
                chance.choice([None, one(d)]), (ast.When(one(d), one(d)),), chance.choice([None, one(d)])
            ),
            lambda d: ast.FunctionCall(self.name().upper(), some(d)),
            self.with_lambda,
            lambda d: ast.ArrayLiteral(some(d)),
            lambda d: ast.MapLiteral(tuple((one(d), one(d)) for _ in range(2))),
            lambda d: ast.StructLiteral(((self.name(), one(d)),)),
            lambda d: ast.FieldAccess(one(d), self.name()),
            lambda d: ast.Subscript(one(d), one(d)),
        ]

    def with_lambda(self, depth: int) -> ast.Expression:
        argument, parameters = self.expression(depth), tuple(self.chance.sample(NAMES, 2))
        before = list(self.lambdas)
        self.lambdas += parameters
        body = self.expression(depth)
        self.lambdas = before
        return ast.FunctionCall("TRANSFORM", (argument, ast.Lambda(parameters, body)))


OPERATORS: list[Any] = ["+", "-", "*", "/", "%"]
COMPARISONS: list[Any] = ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]
