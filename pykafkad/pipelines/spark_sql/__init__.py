"""Statements as Spark SQL: what is proven to mean the same there, and nothing else.

    sql.py           an expression of Spark SQL with what must be known of it: when it fails, when its answer is not ours
    expressions.py   expressions of ksqlDB's SQL to such;  functions.py: the functions that are proven
    reading.py       a record's bytes to columns;  writing.py: columns to bytes
    statements.py    a plan without state as a chain of selects and filters

Three things keep the meaning. What is not in these tables raises NotCompiled, and the statement runs as our operators.
A record that Spark would read, or calculate, differently from us is marked `odd` by a condition that is part of the
compiled text, and our operators in Python take it instead, in its place among the others. And the tests compare both
for generated expressions and records.

The texts need a session with spark.sql.ansi.enabled=false and spark.sql.caseSensitive=true.
"""

CONFIGS = {"spark.sql.ansi.enabled": "false", "spark.sql.caseSensitive": "true"}
"""Of the session that the texts mean what they should in."""
