"""`pykafkad sql` as a program, against a broker: scripts that run, and the shell in a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pykafkad.testing import Broker
from pykafkad.tools.producer import Producer

SECONDS = 60
SQL = [sys.executable, "-m", "pykafkad", "sql"]
RUN = ["run", "--host", "local"]
SCRIPT = """\
CREATE STREAM rides (id BIGINT KEY, who STRING, km DOUBLE) WITH (kafka_topic='rides', partitions=2, format='JSON');
INSERT INTO rides VALUES (1, 'ann', 3.5);
INSERT INTO rides VALUES (2, 'bob', 7);
INSERT INTO rides VALUES (3, 'ann', 1);
CREATE STREAM far WITH (value_format='DELIMITED') AS SELECT id, who, km * 1000 AS m FROM rides WHERE km > 2;
CREATE TABLE per AS SELECT who, COUNT(*) AS n, SUM(m) AS m FROM far GROUP BY who;
"""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(config={"log.retention.ms": "-1"}) as running:  # the records' times are those of 1970
        yield running


@pytest.fixture(autouse=True)
def fresh(broker: Broker) -> None:
    """Every test begins without topics."""
    every = ("--delete", "--if-exists", "--topic", "[^_].*")
    subprocess.run(
        [sys.executable, "-m", "pykafkad", "topics", "--bootstrap-server", broker.bootstrap_servers, *every],
        check=True,
        capture_output=True,
        timeout=SECONDS,
    )


def sql(broker: Broker, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    found = subprocess.run(
        [*SQL, *arguments, "--bootstrap-server", broker.bootstrap_servers],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert found.returncode == code, f"{found.stdout}\n{found.stderr}"
    return found


def shown(broker: Broker, *statements: str) -> list[str]:
    return sql(broker, "--execute", "".join(statements)).stdout.splitlines()


def cells(lines: list[str]) -> list[tuple[str, ...]]:
    """The rows of tables."""
    return [tuple(cell.strip() for cell in line.split("|")) for line in lines if "|" in line]


def final(found: subprocess.CompletedProcess[str]) -> dict[str, dict[str, object]]:
    """The last line of each query."""
    return {facts["query"]: facts for facts in map(json.loads, found.stdout.splitlines())}


@pytest.mark.parametrize("option", ["--once", "--until-idle"])
def test_a_script_runs_until_all_is_done(broker: Broker, tmp_path: Path, option: str) -> None:
    file = tmp_path / "rides.sql"
    file.write_text(SCRIPT)
    facts = final(sql(broker, *RUN, str(file), option))
    assert [(one["rows_in"], one["rows_out"], one["state"]) for one in facts.values()] == [
        (3, 2, "RUNNING"),
        (2, 2, "RUNNING"),
    ]
    table = (
        "CREATE TABLE per (who STRING PRIMARY KEY, n INT, m DOUBLE) "
        "WITH (kafka_topic='PER', key_format='JSON', value_format='DELIMITED');"
    )
    assert sorted(cells(shown(broker, table, "SELECT * FROM per;"))) == [
        ("WHO", "N", "M"),
        ("ann", "1", "3500.0"),
        ("bob", "1", "7000.0"),
    ]


def test_a_record_that_cannot_be_read_is_left_out_and_the_rest_goes_on(
    broker: Broker, tmp_path: Path
) -> None:
    file = tmp_path / "bad.sql"
    file.write_text(
        "CREATE STREAM texts (v STRING) WITH (kafka_topic='s', partitions=1, format='KAFKA');"
        "INSERT INTO texts VALUES ('{\"A\": 1}');"
        "INSERT INTO texts VALUES ('{no JSON');"
        "INSERT INTO texts VALUES ('{\"A\": 2}');"
        "CREATE STREAM s (a INT) WITH (kafka_topic='s', value_format='JSON');"
        "CREATE STREAM t AS SELECT a FROM s;"
    )
    found = sql(broker, *RUN, str(file), "--until-idle")
    (facts,) = final(found).values()
    assert (facts["rows_in"], facts["rows_out"], facts["bad_records"]) == (3, 2, 1)
    assert "s-0 offset 1 is left out" in found.stderr


def test_nothing_is_done_of_a_script_with_a_mistake(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "wrong.sql"
    file.write_text(f"{SCRIPT}SELECT nothing FROM per;\n")
    found = sql(broker, *RUN, str(file), "--once", code=1)
    assert found.stdout == "" and f"{file}:7:8: " in found.stderr
    assert not any(row[0] == "rides" for row in cells(shown(broker, "SHOW TOPICS;")))


def test_what_a_cluster_must_have_is_said_where_it_is_missing(broker: Broker) -> None:
    create = "CREATE STREAM s (a INT) WITH (kafka_topic='nowhere', value_format='JSON');"
    found = sql(broker, "--execute", create, code=1)
    assert "Topic 'nowhere' does not exist" in found.stderr
    assert "Kafka topic does not exist" not in found.stderr
    found = sql(broker, "--execute", "ASSERT TOPIC nowhere TIMEOUT 0 SECONDS;", code=1)
    assert "Topic nowhere does not exist" in found.stderr
    assert shown(broker, "ASSERT NOT EXISTS TOPIC nowhere;") == [
        "Topic nowhere does not exist, as it should."
    ]
    first = "CREATE STREAM s (a INT) WITH (kafka_topic='s', partitions=3, value_format='JSON');"
    again = "CREATE STREAM u (a INT) WITH (kafka_topic='s', partitions=2, value_format='JSON');"
    assert "it has 3 partitions, not 2" in sql(broker, "--execute", first + again, code=1).stderr


def test_push_and_pull_and_print(broker: Broker) -> None:
    lines = shown(
        broker,
        "SET 'auto.offset.reset' = 'earliest';",
        SCRIPT,
        "SELECT who, n FROM per EMIT CHANGES LIMIT 2;",
        "SELECT who FROM rides WHERE km < 2;",
        "PRINT rides FROM BEGINNING LIMIT 3;",
    )
    rows = cells(lines)
    assert sorted(rows[1:3]) == [("ann", "1"), ("bob", "1")]
    assert lines.count(" ann") == 1
    assert sum(line.startswith("rowtime: 20") for line in lines) == 3
    assert any('key: 2, value: {"WHO":"bob","KM":7.0}' in line for line in lines)


def test_queries_are_paused_and_terminated_and_what_they_wrote_to_is_dropped(broker: Broker) -> None:
    lines = shown(
        broker,
        SCRIPT,
        "PAUSE CSAS_FAR_1; SHOW QUERIES; RESUME ALL; TERMINATE CTAS_PER_3; SHOW QUERIES;",
        "DROP TABLE per DELETE TOPIC; DROP STREAM far; DROP STREAM IF EXISTS far; ASSERT NOT EXISTS TOPIC PER;",
        "CREATE OR REPLACE STREAM rides (id BIGINT KEY) WITH (kafka_topic='rides', format='JSON'); DESCRIBE rides;",
    )
    states = [(row[0], row[2]) for row in cells(lines) if row[0].startswith("C")]
    assert states == [("CSAS_FAR_1", "PAUSED"), ("CTAS_PER_3", "RUNNING"), ("CSAS_FAR_1", "RUNNING")]
    assert cells(lines)[-1] == ("ID", "BIGINT  (key)")


class Terminal:
    """The shell, as somebody sees it who types."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.seen = ""
        environment = {
            **os.environ,
            "XDG_DATA_HOME": str(home),
            "TMPDIR": str(home),
            "TERM": "dumb",
            "COLUMNS": "80",
        }
        environment.pop("KAFKA_BOOTSTRAP_SERVERS", None)
        self.pid, self._file = pty.fork()
        if not self.pid:
            os.execve(sys.executable, [*SQL, *arguments], environment)

    def type(self, text: str) -> None:
        os.write(self._file, text.encode())

    def until(self, mark: str) -> str:
        """What came up to the mark."""
        deadline = time.monotonic() + SECONDS
        while mark not in self.seen:
            assert time.monotonic() < deadline, f"{mark!r} never came: {self.seen}"
            if select.select([self._file], [], [], 0.1)[0]:
                self.seen += os.read(self._file, 65536).decode(errors="replace")
        before, _, self.seen = self.seen.partition(mark)
        return before

    def end(self) -> int:
        """Its exit code."""
        try:
            while os.read(self._file, 65536):
                pass
        except OSError:
            pass  # it has closed the terminal
        os.close(self._file)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    shell = Terminal(tmp_path)
    try:
        yield shell
    finally:
        try:
            os.kill(shell.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass


def test_the_shell_has_a_broker_of_its_own_and_shows_rows_until_ctrl_c(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.until("sql> ")
    terminal.type("CREATE STREAM s (k INT KEY, v STRING)\n")
    terminal.until("...> ")
    terminal.type("WITH (kafka_topic='s', partitions=1, format='JSON');\n")
    terminal.until("Stream S created")
    terminal.type("INSERT INTO s VALUES (1, 'first'); SET 'auto.offset.reset'='earliest';\n")
    terminal.until("Successfully changed")
    terminal.type("CREATE STREAM loud AS SELECT k, UCASE(v) AS v FROM s;\n")
    terminal.until("its query runs")
    terminal.type("SELECT * FROM loud EMIT CHANGES;\n")
    terminal.until("| FIRST")
    terminal.type("\x03")
    terminal.until("Query terminated")
    terminal.until("sql> ")
    terminal.type("SELECT nothing FROM s EMIT CHANGES;\n")
    assert "       ^" in terminal.until("line 1:8: ")
    terminal.until("sql> ")
    terminal.type("exit\n")
    terminal.until("1 query ends with this shell")
    assert terminal.end() == 0
    assert "SELECT * FROM loud EMIT CHANGES;" in (tmp_path / "pykafkad" / "sql_history").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["pykafkad"]


def test_the_shell_takes_statements_from_a_pipe(broker: Broker) -> None:
    found = subprocess.run(
        [*SQL, "--bootstrap-server", broker.bootstrap_servers],
        input="SHOW TOPICS; SELCT; SHOW TOPICS;",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert found.returncode == 1 and found.stdout.count("Kafka Topic") == 1
    assert "Did you mean SELECT?" in found.stderr


IMPORTS = """
import sys
from pykafkad.pipelines.commands.shell import answer_lines
from pykafkad.pipelines.syntax.tokens import split

class Behind:
    def runner(self):
        print(*(name for name in sys.modules if name.startswith("pykafkad.pipelines")))
        raise SystemExit

next(answer_lines(Behind(), split("SHOW TOPICS;")[0][0]))
"""


def test_modules_are_imported_by_one_thread_after_the_other() -> None:
    """What makes the runner imports those of statements, which need each other, in a thread."""
    found = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[2] for name in found.stdout.split() if name.count(".") > 1}
    assert loaded == {"commands", "errors", "syntax"}, (
        "these are imported before the thread has ended its part"
    )


def test_a_broker_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    found = subprocess.run(
        [*SQL, "--bootstrap-server", "127.0.0.1:1", "--execute", "SHOW TOPICS;"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert found.returncode == 1 and len(found.stderr.splitlines()) == 1


def test_what_is_promised_only_in_spark_is_refused_before_a_query_begins(
    broker: Broker, tmp_path: Path
) -> None:
    file = tmp_path / "once.sql"
    file.write_text("SET 'processing.guarantee' = 'exactly_once_v2';" + SCRIPT)
    found = sql(broker, *RUN, str(file), "--once", code=1)
    assert "processing.guarantee=exactly_once_v2 is kept where Spark runs the queries" in found.stderr
    assert found.stdout == ""


def test_a_run_without_spark_says_what_is_missing(tmp_path: Path) -> None:
    """Spark is the default; what it lacks is said before anything else is looked for."""
    file = tmp_path / "rides.sql"
    file.write_text(SCRIPT)
    empty = {**os.environ, "PATH": str(tmp_path)}
    empty.pop("JAVA_HOME", None)
    found = subprocess.run(
        [*SQL, "run", str(file)], capture_output=True, text=True, timeout=SECONDS, check=False, env=empty
    )
    assert found.returncode == 2
    (line,) = found.stderr.splitlines()
    assert "Spark" in line and line.endswith("--host local needs neither Spark nor Java")


def test_a_wrong_command_line_is_refused() -> None:
    for arguments, said in [
        (["chek"], "did you mean check?"),
        (["x.sql"], "unknown command"),
        (["run"], "which file?"),
    ]:
        found = subprocess.run(
            [*SQL, *arguments], capture_output=True, text=True, timeout=SECONDS, check=False
        )
        assert found.returncode == 2 and said in found.stderr


# --- checkpoints

COUNTS = """\
CREATE STREAM src (k STRING KEY, v INT) WITH (kafka_topic='src', partitions=3, format='JSON');
CREATE STREAM big AS SELECT k, v FROM src WHERE v >= 0;
CREATE TABLE counts AS SELECT k, COUNT(*) AS n FROM big GROUP BY k;
"""
READ_COUNTS = (
    "CREATE TABLE counts (k STRING PRIMARY KEY, n BIGINT) WITH (kafka_topic='COUNTS', format='JSON');"
    "SELECT * FROM counts;"
)


def produce(broker: Broker, count: int) -> None:
    """So many records for each of five keys."""
    producer = Producer(broker.bootstrap_servers, {})
    for number in range(count):
        for key in "abcde":
            producer.send("src", b'"%s"' % key.encode(), b'{"V": %d}' % number, timestamp_ms=1000 + number)
    producer.close()


def counted(broker: Broker) -> list[tuple[str, ...]]:
    return sorted(cells(shown(broker, READ_COUNTS)))[1:]


def test_a_run_goes_on_where_the_last_one_ended(broker: Broker, tmp_path: Path) -> None:
    file, kept = tmp_path / "counts.sql", str(tmp_path / "kept")
    file.write_text(COUNTS)
    for runs, total in enumerate((10, 30), start=1):
        sql(broker, *RUN, str(file), "--once", "--checkpoints", kept)
        produce(broker, 10 if runs == 1 else 20)
        facts = final(sql(broker, *RUN, str(file), "--once", "--checkpoints", kept))
        assert [one["rows_in"] for one in facts.values()] == [(total - (0 if runs == 1 else 10)) * 5] * 2
        assert counted(broker) == [(key, str(total)) for key in "abcde"]


def test_a_killed_run_loses_nothing(broker: Broker, tmp_path: Path) -> None:
    file, kept = tmp_path / "counts.sql", str(tmp_path / "kept")
    file.write_text(COUNTS.replace("CREATE TABLE", "SET 'auto.offset.reset'='earliest'; CREATE TABLE"))
    sql(broker, *RUN, str(file), "--once", "--checkpoints", kept)
    produce(broker, 4000)
    for _ in range(3):
        process = subprocess.Popen(
            [*SQL, *RUN, str(file), "--checkpoints", kept, "--bootstrap-server", broker.bootstrap_servers],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        while "Table COUNTS created" not in process.stderr.readline():
            assert process.poll() is None
        process.kill()
        process.communicate(timeout=SECONDS)
    sql(broker, *RUN, str(file), "--once", "--checkpoints", kept)
    written = {name: int(number) for name, number in counted(broker)}
    assert set(written) == set("abcde") and min(written.values()) >= 4000


def test_a_changed_query_is_not_run_on_the_old_ones_state_unasked(broker: Broker, tmp_path: Path) -> None:
    file, kept = tmp_path / "counts.sql", str(tmp_path / "kept")
    file.write_text(COUNTS)
    run = (*RUN, str(file), "--once", "--checkpoints", kept)
    sql(broker, *run)
    produce(broker, 10)
    sql(broker, *run)
    file.write_text(COUNTS.replace("v >= 0", "v >= 5"))
    assert "means something else" in sql(broker, *run, code=1).stderr
    assert final(sql(broker, *run, "--changed", "keep"))["CSAS_BIG_1"]["rows_in"] == 0
    file.write_text(COUNTS.replace("v >= 0", "v >= 6"))
    assert final(sql(broker, *run, "--changed", "anew"))["CSAS_BIG_1"]["rows_in"] == 50
    file.write_text(COUNTS.replace("COUNT(*)", "SUM(v)").replace("GROUP BY", "WHERE v > 1 GROUP BY"))
    assert "does not fit it any more" in sql(broker, *run, "--changed", "keep", code=1).stderr


def test_a_run_that_is_asked_to_end_ends_well(broker: Broker, tmp_path: Path) -> None:
    file, kept = tmp_path / "counts.sql", tmp_path / "kept"
    file.write_text(COUNTS)
    process = subprocess.Popen(
        [*SQL, *RUN, str(file), "--checkpoints", str(kept), "--bootstrap-server", broker.bootstrap_servers],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    facts = json.loads(process.stdout.readline())
    assert facts["state"] == "RUNNING"
    assert "another run" in sql(broker, *RUN, str(file), "--checkpoints", str(kept), code=1).stderr
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    assert sorted(path.name for path in kept.iterdir()) == ["BIG.checkpoint", "COUNTS.checkpoint", "lock"]


def test_a_query_that_fails_stops_alone_and_says_at_which_record(broker: Broker, tmp_path: Path) -> None:
    file = tmp_path / "large.sql"
    file.write_text(
        "CREATE STREAM s (v STRING) WITH (kafka_topic='s', partitions=1, format='JSON');"
        "INSERT INTO s VALUES ('small'); INSERT INTO s VALUES ('large');"
        "CREATE STREAM t AS SELECT LPAD(v, CASE WHEN v = 'large' THEN 2000000 ELSE 5 END, '.') AS v FROM s;"
        "CREATE STREAM u AS SELECT v FROM s;"
    )
    found = sql(broker, *RUN, str(file), "--until-idle", code=1)
    failed, good = final(found).values()
    assert failed["state"] == "ERROR" and "s-0 offset 1" in str(failed["problem"])
    assert (good["state"], good["rows_out"]) == ("RUNNING", 2)
    assert "CSAS_T_1 has stopped: " in found.stderr


TWO = """\
SET 'auto.offset.reset' = 'earliest';
CREATE STREAM a (k STRING KEY, n INT) WITH (kafka_topic='a', partitions=2, value_format='JSON');
CREATE STREAM b (k STRING KEY, n INT) WITH (kafka_topic='b', partitions=2, value_format='JSON');
CREATE STREAM ao AS SELECT k, n + 1 AS m FROM a;
CREATE STREAM bo AS SELECT k, n + 1 AS m FROM b;
"""


def numbered(broker: Broker, topics: str, first: int, end: int) -> None:
    producer = Producer(broker.bootstrap_servers, {})
    for topic in topics:
        for number in range(first, end):
            producer.send(topic, f"k{number}".encode(), b'{"N": %d}' % number, timestamp_ms=1000 + number)
    producer.close()


class Going:
    """A run that goes on; its standard error is read as it comes."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        file = directory / "two.sql"
        file.write_text(TWO)
        self._err = directory / "err"
        command = [*SQL, "run", str(file), "--host", "local", "--bootstrap-server", broker.bootstrap_servers]
        with self._err.open("wb") as err:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err
            )

    def until(self, mark: str) -> None:
        deadline = time.monotonic() + SECONDS
        while mark not in self._err.read_text():
            assert self.process.poll() is None and time.monotonic() < deadline, self._err.read_text()
            time.sleep(0.05)

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)


def written(broker: Broker, topic: str, expected: int) -> list[int]:
    """What the query of the topic has written, as soon as there is so much."""
    column, deadline = "M", time.monotonic() + SECONDS
    command = ["consume", "--topic", topic, "--from-beginning", "--timeout-ms", "1500"]
    while True:
        found = subprocess.run(
            [*SQL[:-1], *command, "--bootstrap-server", broker.bootstrap_servers],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        values = [json.loads(line)[column] for line in found.stdout.splitlines()]
        if len(values) >= expected or time.monotonic() > deadline:
            return sorted(values)


def test_a_topic_that_is_deleted_is_named_and_the_other_queries_go_on(broker: Broker, tmp_path: Path) -> None:
    going = Going(broker, tmp_path)
    try:
        going.until("Stream BO created")
        numbered(broker, "ab", 0, 10)
        assert written(broker, "AO", 10) == list(range(1, 11))
        command = ["topics", "--delete", "--topic", "a", "--bootstrap-server", broker.bootstrap_servers]
        subprocess.run([*SQL[:-1], *command], check=True, timeout=SECONDS)
        going.until("CSAS_AO_2: there is no topic a; it is tried again")
        numbered(broker, "b", 10, 20)
        assert written(broker, "BO", 20) == list(range(1, 21))
        assert going.end() == 0
    finally:
        going.process.kill()


def test_a_broker_that_is_killed_and_comes_again_costs_nothing(tmp_path: Path) -> None:
    with Broker(config={"log.retention.ms": "-1"}, data=tmp_path / "data") as own:
        going = Going(own, tmp_path)
        try:
            going.until("Stream BO created")
            numbered(own, "ab", 0, 10)
            assert written(own, "AO", 10) == list(range(1, 11))
            own.kill()
            time.sleep(1)
            own.start()
            numbered(own, "ab", 10, 20)
            for topic in ("AO", "BO"):
                assert sorted(set(written(own, topic, 20))) == list(range(1, 21))
            assert going.end() == 0
        finally:
            going.process.kill()
