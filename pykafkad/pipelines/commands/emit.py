"""`pykafkad sql emit`: the program for PySpark that a script amounts to."""

from __future__ import annotations

from collections.abc import Sequence

from pykafkad.pipelines.checking import Checker, read
from pykafkad.pipelines.commands.arguments import Arguments
from pykafkad.pipelines.spark_sql.emitting import program
from pykafkad.tools import output

USAGE = """\
usage: pykafkad sql emit FILE.sql

Writes the program for PySpark that a script's queries amount to. Where all of them are compiled to Spark SQL it runs
without pykafkad; those that are not import pykafkad's operators, and the program says which these are:

  pykafkad sql emit rides.sql > rides.py
  spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0 rides.py HOST:PORT CHECKPOINTS [--once]
"""


def main(arguments: Sequence[str]) -> int:
    file = Arguments(arguments, ()).file()
    text, checker = read(file), Checker()
    problems = list(checker.script(text, file))
    for problem in problems:
        output.error(str(problem))
    if problems:
        return 1
    output.text(program(file, text, checker.session))
    return 0
