"""A script as a program for PySpark: each compiled query as what it does to Spark's frames, the others by our operators.

What the program does not do as `sql run` does is said in its own docstring.
"""

from __future__ import annotations

from pykafkad.pipelines.analysis.session import Session
from pykafkad.pipelines.plan.topology import Plan
from pykafkad.pipelines.spark_sql import CONFIGS
from pykafkad.pipelines.spark_sql.aggregates import aggregation
from pykafkad.pipelines.spark_sql.direct import direct
from pykafkad.pipelines.spark_sql.forms import said_of
from pykafkad.pipelines.spark_sql.sql import NotCompiled
from pykafkad.pipelines.spark_sql.statements import is_stateless, statement
from pykafkad.pipelines.spark_sql.steps import Chain

HEAD = '''\
"""What {file} amounts to, for PySpark 4.2 with Spark's Kafka connector:

    PROGRAM BOOTSTRAP CHECKPOINTS [--once]

Its topics have to be there. Queries compiled to Spark SQL write at least once, by Spark's Kafka sink, which gives results
the time of their writing. A record that Spark does not read just as pykafkad does is {odd}.
{grouped}{operators}"""

import sys

from pyspark.sql import SparkSession
{functions}
BOOTSTRAP, CHECKPOINTS, ONCE = sys.argv[1], sys.argv[2], "--once" in sys.argv[3:]
TRIGGER = {{"availableNow": True}} if ONCE else {{"processingTime": "0 seconds"}}

builder = SparkSession.builder.appName({file!r})
for name, value in {configs!r}.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()


def read(topic):
    """What is committed in a topic."""
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.fetch.max.wait.ms", "10")
        .option("subscribe", topic)
        .option("startingOffsets", {starts!r})
        .option("includeHeaders", "true")
        .load()
    )


def write(name, rows, mode="append"):
    writer = rows.writeStream.format("kafka").queryName(name).outputMode(mode)
    writer = writer.option("kafka.bootstrap.servers", BOOTSTRAP).option("includeHeaders", "true")
    query = writer.option("checkpointLocation", CHECKPOINTS + "/" + name).trigger(**TRIGGER).start()
    if ONCE:
        query.awaitTermination()

'''
TAIL = """
for query in spark.streams.active:
    query.awaitTermination()
"""
GROUPED = """
Spark keeps what is known of groups. A record that Spark does not read just as pykafkad does is left out of them, and a
window is closed to a record by the times in earlier batches, not by those before it in its own.
"""
OPERATORS = '''
SCRIPT = {script!r}


def operate(query_id):
    """A query that is not compiled: pykafkad's operators."""
    from pykafkad.pipelines.hosts.emitted import start

    query = start(spark, SCRIPT, query_id, BOOTSTRAP, CHECKPOINTS, {starts!r}, ONCE)
    if ONCE:
        query.awaitTermination()

'''


def program(file: str, script: str, session: Session) -> str:
    plans = {query_id: meaning.plan for query_id, meaning in session.meanings.items()}
    chains = {query_id: _chain(plan) for query_id, plan in plans.items()}
    operated = [query_id for query_id, chain in chains.items() if chain is None]
    starts = session.catalog.setting("auto.offset.reset").lower()
    dead = any(plan.bad_records.dead_letters for plan in plans.values())
    grouped = any(chain is not None and not is_stateless(plans[one]) for one, chain in chains.items())
    text = HEAD.format(
        file=file,
        odd="a dead letter, where the script has a topic for them, else left out" if dead else "left out",
        operators="".join(f"\n{one} needs pykafkad: {said_of(plans[one])}\n" for one in operated),
        grouped=GROUPED if grouped else "",
        functions="from pyspark.sql.functions import expr\n" if grouped else "",
        configs=dict(CONFIGS),
        starts=starts,
    )
    if operated:
        text += OPERATORS.format(script=script, starts=starts)
    for query_id, chain in chains.items():
        said = session.catalog.queries[query_id].text.replace("\n", "\n# ")
        text += f"\n# {query_id}: {said}\n"
        text += f"operate({query_id!r})\n" if chain is None else _query(query_id, plans[query_id], chain)
    return text + TAIL


def _chain(plan: Plan) -> Chain | None:
    try:
        return direct(plan, statement(plan) if is_stateless(plan) else aggregation(plan).as_one)
    except NotCompiled:
        return None


def _query(query_id: str, plan: Plan, chain: Chain) -> str:
    lines = [f"rows = read({plan.topics()[0]!r})"]
    lines += [f"rows = rows.{step.said()}" for step in chain.steps]
    mode = "" if is_stateless(plan) else ", 'update'"
    return "\n".join([*lines, f"write({query_id!r}, rows{mode})", ""])
