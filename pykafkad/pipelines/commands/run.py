"""`pykafkad sql run`: a script's statements, and then its queries, for as long as is asked."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from types import FrameType

from pykafkad.pipelines.checking import Checker, read
from pykafkad.pipelines.commands.arguments import Arguments, UsageError
from pykafkad.pipelines.commands.explain import width
from pykafkad.pipelines.commands.host import is_spark
from pykafkad.pipelines.rendering import lines
from pykafkad.pipelines.running.broker import Broker
from pykafkad.pipelines.running.checkpoints import ANEW, KEEP, Checkpoints
from pykafkad.pipelines.running.progress import Progress
from pykafkad.pipelines.running.runner import Runner
from pykafkad.pipelines.syntax.parser import parse_script
from pykafkad.tools import output, settings

USAGE = """\
usage: pykafkad sql run FILE.sql|DIRECTORY [options]

Obeys the statements of a script and keeps its queries going until it is stopped. Before anything is done the whole
script is checked. Progress goes to a terminal's last line, or once a second as JSON lines into a pipe, where the
answers of statements go to standard error.

Queries run in Spark, or with --host local in this process, which needs neither Spark nor Java. With --checkpoints they
go on where the last run of the script ended, however it ended, and write at least once what follows from each record (in
Spark exactly once after SET 'processing.guarantee' = 'exactly_once_v2'); else they begin anew.

  --bootstrap-server HOST:PORT  the brokers; without it those of KAFKA_BOOTSTRAP_SERVERS, else localhost:9092
  --command-config FILE  configs of a Kafka client
  --host HOST       where the queries run: spark (the default), or local, in this process
  --master URL      of spark: its cluster; without it, all processors of this machine (local[*])
  --realtime        of spark: statements without state in Spark's real-time mode, where they can be, records as they come;
                    at least once, and results have the time of their writing
  --once            do what is in the topics now, with all that follows from it, and end
  --until-idle      end when the queries have done all that there is
  --checkpoints DIR  keep there how far the queries are, and their state
  --changed keep|anew  of a query that means something else than its checkpoint: go on with the state, or without

A directory is a project of Spark's declarative pipelines, with spark-pipeline.yml and SQL files in Spark's language; of
the options --bootstrap-server, --master and --once are for it.

With --once and --until-idle queries begin at the earliest records unless the script sets auto.offset.reset.
"""
OPTIONS = ("--bootstrap-server", "--command-config", "--host", "--master", "--checkpoints", "--changed")
REALTIME = "--realtime"
REAL_TIME_MASTER = "local[64]"
"""In real-time mode every partition that is read has a task of its own, which waits most of the time."""


def main(arguments: Sequence[str]) -> int:
    given = Arguments(arguments, OPTIONS, ("--once", "--until-idle", REALTIME))
    file = given.file()
    if os.path.isdir(file):
        from pykafkad.pipelines.commands import project

        return project.main(given)
    on_spark = _is_for_spark(given)
    ends = given.flags - {REALTIME}
    if len(ends) > 1:
        raise UsageError("--once or --until-idle?")
    text = read(file)
    problems = list(Checker().script(text, file))
    for problem in problems:
        output.error(str(problem))
    if problems:
        return 1
    runner = spark_runner(given) if on_spark else Runner(connected(given), output.error, _checkpoints(given))
    try:
        return run(runner, text, ends)
    finally:
        runner.close()


def _is_for_spark(given: Arguments) -> bool:
    """Whether Spark runs the queries. UsageError: the options do not go together."""
    on_spark, changed = is_spark(given, "spark"), given.values.get("--changed")
    if REALTIME in given.flags and (not on_spark or given.flags & {"--once", "--until-idle"}):
        raise UsageError(f"{REALTIME} goes with --host spark, and not with an end")
    if changed not in (None, KEEP, ANEW):
        raise UsageError(f"--changed {changed}: {KEEP} or {ANEW}")
    if changed is not None and "--checkpoints" not in given.values:
        raise UsageError("--changed goes with --checkpoints")
    return on_spark


def _checkpoints(given: Arguments) -> Checkpoints | None:
    directory = given.values.get("--checkpoints")
    return None if directory is None else Checkpoints(directory, given.values.get("--changed"))


def spark_runner(given: Arguments) -> Runner:
    """A runner whose queries Spark runs. What is wrong with the rest is found before Spark begins."""
    from pykafkad.pipelines.hosts import spark, spark_connector
    from pykafkad.pipelines.running.spark_checkpoints import SparkCheckpoints
    from pykafkad.pipelines.running.spark_engine import SparkEngine

    broker = connected(given)
    checkpoints = SparkCheckpoints(given.values.get("--checkpoints"), given.values.get("--changed"))
    jars = spark_connector.jars(output.error)
    realtime = REALTIME in given.flags
    master = given.values.get("--master", REAL_TIME_MASTER if realtime else "local[*]")
    log = checkpoints.directory / "spark.log"
    with spark.saying_into(log):
        made = spark.session_that_says(master, spark.running(jars), log)
    engine = SparkEngine(broker, output.error, lambda: made, checkpoints, realtime)
    return Runner(broker, output.error, engine=engine)


def connected(given: Arguments) -> Broker:
    file = given.values.get("--command-config")
    configs = settings.load(file) if file is not None else {}
    settings.check_security(configs)
    return Broker(settings.bootstrap(given.values.get("--bootstrap-server"), configs), configs)


def run(runner: Runner, text: str, flags: set[str]) -> int:
    if flags:
        runner.catalog.properties["auto.offset.reset"] = "earliest"
    watched = os.isatty(1)
    for parsed in parse_script(text, runner.variables):
        for answer in runner.obey(parsed):
            for line in lines(answer, width()):
                (output.line if watched else output.error)(line)
    output.flush()
    if "--once" in flags:
        runner.engine.stop_at_ends()
    runner.engine.begin(runner.session)
    progress = Progress(runner.engine, watched)
    _go_on(runner, progress, until_idle=bool(flags))
    progress.show(final=True)
    return 1 if any(task.problem for task in runner.engine.tasks.values()) else 0


def _go_on(runner: Runner, progress: Progress, until_idle: bool) -> None:
    """Until somebody stops it, or nothing is left to do. Queries that have all failed leave nothing to do either."""
    engine, stopping = runner.engine, Stopping()
    while not stopping.asked and any(task.problem is None for task in engine.tasks.values()):
        moved = engine.step()
        runner.note_failures()
        runner.keep()
        if progress.is_due:
            progress.show()
        if moved:
            continue
        if until_idle and not engine.is_behind():
            break
        time.sleep(engine.pause_s)
    runner.keep(now=True)


class Stopping:
    """Whether somebody has asked for the end: Ctrl-C or SIGTERM. The second time ends the process at once."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
