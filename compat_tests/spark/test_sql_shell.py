"""`pykafkad sql --host spark`: the shell, whose queries Spark runs, those that are looked at too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest

from compat_tests import needs

DEADLINE_S = 300
STATEMENTS = """
SET 'auto.offset.reset' = 'earliest';
CREATE STREAM rides (who STRING KEY, km DOUBLE) WITH (kafka_topic='{rides}', partitions=1, value_format='JSON');
INSERT INTO rides (who, km) VALUES ('ann', 1.5);
INSERT INTO rides (who, km) VALUES ('bob', 12.0);
INSERT INTO rides (who, km) VALUES ('ann', 40.0);
CREATE STREAM far WITH (kafka_topic='{far}') AS SELECT who, km * 1000 AS m FROM rides WHERE km > 2;
SELECT who, m FROM far EMIT CHANGES LIMIT 2;
SELECT who, COUNT(*) AS n FROM rides GROUP BY who EMIT CHANGES LIMIT 2;
{last}
"""


@pytest.fixture
def shell(bootstrap: str) -> Callable[[str], subprocess.CompletedProcess[str]]:
    pytest.importorskip("pyspark", reason="no pyspark here; to have it: pip install pyspark==4.2.0")
    needs.program("java")
    needs.program("mvn")
    command = [sys.executable, "-m", "pykafkad", "sql", "--host", "spark", "--master", "local[2]"]

    def obeyed(statements: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "--bootstrap-server", bootstrap],
            input=statements,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )

    return obeyed


def rows(said: str) -> list[tuple[str, ...]]:
    cells = [tuple(cell.strip() for cell in line.split("|")) for line in said.splitlines() if "|" in line]
    return [tuple(cell for cell in row if cell) for row in cells]


def test_queries_and_what_is_looked_at_run_in_spark(
    shell: Callable[[str], subprocess.CompletedProcess[str]], new_topic: Callable[[str], str]
) -> None:
    said = shell(
        STATEMENTS.format(
            rides=new_topic("rides"), far=new_topic("far"), last="SELECT nothing FROM far EMIT CHANGES;"
        )
    )
    found = rows(said.stdout)
    assert ("bob", "12000.0") in found and ("ann", "40000.0") in found, said
    counted = found[found.index(("WHO", "N")) + 1 :]
    assert sorted(counted) == [("ann", "2"), ("bob", "1")], said
    # The last statement is refused in one line, and what the JVM says is not shown.
    assert said.returncode == 1 and "NOTHING" in said.stderr.upper(), said
    assert "WARN" not in said.stderr and "Exception" not in said.stderr and "Traceback" not in said.stderr, (
        said
    )
