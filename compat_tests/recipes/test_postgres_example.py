"""examples/postgres against a real PostgreSQL: everything is killed in the middle, and each payment counts once."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from compat_tests import needs

EXAMPLE = Path(__file__).parents[2] / "examples" / "postgres"
FLUSH_S, DEADLINE_S = 30, 60
PAYMENTS, CUSTOMERS = 6_000, 50


class Postgres:
    """A server of its own in a temporary directory, on a free port of 127.0.0.1; not as root, which it refuses."""

    def __init__(self) -> None:
        self._bin = needs.postgres()
        self.home = Path(tempfile.mkdtemp(prefix="pykafkad-postgres-"))
        self._as: list[str] = []
        if os.getuid() == 0:
            shutil.chown(self.home, "postgres", "postgres")
            self._as = ["runuser", "-u", "postgres", "--"]
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "shop", "-D", str(self.home / "data"))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.dsn = f"host=127.0.0.1 port={self._port} user=shop dbname=postgres connect_timeout=10"

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._as, str(self._bin / program), *arguments]
        done = subprocess.run(
            command, cwd=self.home, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def start(self) -> None:
        options = f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.home}"
        log = str(self.home / "log")
        self._run("pg_ctl", "-D", str(self.home / "data"), "-l", log, "-o", options, "-w", "start")

    def kill(self) -> None:
        """kill -9 of the postmaster; its children end by themselves."""
        os.kill(int((self.home / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.home / "data"), "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.home)


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    pytest.importorskip("psycopg", reason="no psycopg here; to have it: pip install psycopg[binary]")
    made = Postgres()
    made.start()
    yield made
    made.stop()


@contextmanager
def process(*command: str) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def produce(bootstrap: str, first: int, end: int) -> dict[str, int]:
    """What the customers' sums grow by."""
    sums: dict[str, int] = {}
    chance = random.Random(first)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number in range(first, end):
        who, cents, paid = f"c{chance.randrange(CUSTOMERS)}", chance.randrange(1000), number % 4 != 0
        value = {"cents": cents, "state": "paid" if paid else "open"}
        producer.produce("payments", json.dumps(value), who)
        sums[who] = sums.get(who, 0) + cents * paid
    assert producer.flush(FLUSH_S) == 0
    return sums


def balances(dsn: str) -> dict[str, int]:
    import psycopg

    with psycopg.connect(dsn) as connection:
        return dict(connection.execute("SELECT customer, cents FROM balance").fetchall())


def waited(condition: Callable[[], Any], *watched: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        for one in watched:
            assert one.poll() is None, one.communicate()
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.02)


def test_each_payment_counts_once_whatever_is_killed(
    bootstrap: str, postgres: Postgres, tmp_path: Path
) -> None:
    kept = tmp_path / "state"
    query = ["-m", "pykafkad", "sql", "run", str(EXAMPLE / "payments.sql"), "--host", "local"]
    query += ["--checkpoints", str(kept), "--bootstrap-server", bootstrap]
    writer = [str(EXAMPLE / "into_postgres.py"), postgres.dsn, bootstrap]
    subprocess.run(
        [sys.executable, *query, "--once"], check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE_S
    )
    with process(*writer) as second, process(*query) as running:
        waited(lambda: (postgres.home / "log").exists(), second, running)
        expected = produce(bootstrap, 0, PAYMENTS // 2)
        waited(lambda: _rows(postgres.dsn), second, running)
        running.kill()
        refused = subprocess.run(
            [sys.executable, *writer], capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert (refused.returncode, refused.stderr) == (1, "another writer is at work in this database\n")
        second.kill()
    more = produce(bootstrap, PAYMENTS // 2, PAYMENTS)
    with process(*query) as running, process(*writer) as second:
        before = _rows(postgres.dsn)
        waited(lambda: _rows(postgres.dsn) > before, second, running)
        postgres.kill()
        assert second.wait(DEADLINE_S) == 1
        running.kill()
    waited(lambda: _restarted(postgres))
    for command in ([*query, "--until-idle"], [*writer, "--until-idle"]):
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, timeout=DEADLINE_S)
    assert balances(postgres.dsn) == {who: cents + more.get(who, 0) for who, cents in expected.items()}


def _rows(dsn: str) -> int:
    """How far the writer says that it is, 0 before its tables are there."""
    import psycopg

    with psycopg.connect(dsn) as connection:
        if connection.execute("SELECT to_regclass('progress')").fetchone() == (None,):
            return 0
        found = connection.execute("SELECT COALESCE(SUM(next_offset), 0) FROM progress").fetchone()
        return int(found[0]) if found else 0


def _restarted(postgres: Postgres) -> bool:
    """The dead server's children may still hold its memory for a moment."""
    try:
        postgres.start()
    except AssertionError:
        return False
    return True
