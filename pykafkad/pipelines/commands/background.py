"""What the shell does while somebody types: the broker for the occasion is started, modules are imported, queries go on.

`Behind` makes the runner in a thread of its own, so that the prompt need not wait for it, and then takes turns with
whoever obeys statements: the runner is used under `lock` only.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pykafkad.pipelines.running.broker import Broker
    from pykafkad.pipelines.running.hosting import QueryEngine
    from pykafkad.pipelines.running.runner import Runner
    from pykafkad.testing.broker import Broker as OwnBroker

YIELD_S = 0.0005
"""Between two turns of the engine, for others to get the lock."""
TROUBLE_S = 1.0
NOTES = 50


class Behind:
    """`bootstrap` is None for a broker of ours; `master`, of Spark, for queries in this process. Whatever goes wrong with
    the start is raised by `runner`."""

    def __init__(self, bootstrap: str | None, configs: Mapping[str, str], master: str | None = None) -> None:
        self.lock = threading.Lock()
        self.notes: deque[str] = deque(maxlen=NOTES)
        """What queries have to say, for whoever shows it."""
        self._bootstrap, self._configs, self._master = bootstrap, configs, master
        self._own: OwnBroker | None = None
        self._runner: Runner | None = None
        self._failure: BaseException | None = None
        self._ready, self._stop = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="pykafkad-sql", daemon=True)
        self._thread.start()

    def runner(self) -> Runner:
        """Waits until it is there."""
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        assert self._runner is not None
        return self._runner

    def _run(self) -> None:
        try:
            self._open()
        except BaseException as problem:
            self._failure = problem
        finally:
            self._ready.set()
        if self._runner is not None:
            self._keep_going(self._runner)

    def _open(self) -> None:
        bootstrap = self._bootstrap
        if bootstrap is None:
            from pykafkad.testing.broker import Broker as OwnBroker

            self._own = OwnBroker(log_level="warn")
            bootstrap = self._own.bootstrap_servers
        from pykafkad.pipelines.running.broker import Broker
        from pykafkad.pipelines.running.runner import Runner

        broker = Broker(bootstrap, self._configs)
        broker.cluster.any_broker()
        self._runner = Runner(broker, self.notes.append, engine=self._engine(broker))

    def _engine(self, broker: Broker) -> QueryEngine | None:
        """None: the loop in this process."""
        if self._master is None:
            return None
        from pykafkad.pipelines.running.spark_checkpoints import SparkCheckpoints
        from pykafkad.pipelines.running.spark_engine import SparkEngine

        checkpoints = SparkCheckpoints()
        coming = Coming(self._master, checkpoints.directory / "spark.log", self.notes.append)
        return SparkEngine(broker, self.notes.append, coming, checkpoints)

    def _keep_going(self, runner: Runner) -> None:
        while not self._stop.is_set():
            moved = False
            try:
                with self.lock:
                    runner.engine.begin(runner.session)
                    moved = runner.engine.step()
                    runner.note_failures()
            except Exception as problem:
                self.notes.append(f"{type(problem).__name__}: {problem}")
                self._stop.wait(TROUBLE_S)
            self._stop.wait(YIELD_S if moved else runner.engine.pause_s)

    def close(self) -> None:
        """Queries end with the shell."""
        self._ready.wait()
        self._stop.set()
        self._thread.join()
        if self._runner is not None:
            self._runner.close()
        if self._own is not None:
            self._own.close()


class Coming:
    """A session of Spark that is made while others go on. Called, it gives the session, or None as long as there is none;
    what went wrong is raised."""

    def __init__(self, master: str, log: Path, told: Callable[[str], object]) -> None:
        self._master, self._log, self._told = master, log, told
        self._made: Future[SparkSession] = Future()
        threading.Thread(target=self._make, name="pykafkad-spark", daemon=True).start()

    def __call__(self) -> SparkSession | None:
        return self._made.result() if self._made.done() else None

    def _make(self) -> None:
        try:
            from pykafkad.pipelines.hosts import spark, spark_connector

            jars = spark_connector.jars(self._told)
            spark.say_aside(self._log)
            self._made.set_result(spark.session_that_says(self._master, spark.running(jars), self._log))
        except BaseException as problem:
            self._made.set_exception(problem)
