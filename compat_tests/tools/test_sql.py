"""`pykafkad sql` on Apache Kafka: a script and a shell's statements do there what they do on pykafkad."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from compat_tests.tools.both import Both, Side
from compat_tests.tools.toolbox import SECONDS

# Each key in one record, so that the rows come in one order whatever arrives first. All in one hour, and a recent one:
# what is older than retention.ms Kafka may delete at any moment.
SCRIPT = """\
CREATE STREAM rides (id BIGINT KEY, who STRING, km DOUBLE)
  WITH (kafka_topic='{name}', partitions=3, format='JSON');
INSERT INTO rides (rowtime, id, who, km) VALUES ({hour}1000, 1, 'ann', 3.5);
INSERT INTO rides (rowtime, id, who, km) VALUES ({hour}2000, 2, 'bob', 7);
INSERT INTO rides (rowtime, id, who, km) VALUES ({hour}3000, 3, 'cy', 1);
INSERT INTO rides (rowtime, id, who, km) VALUES ({hour}4000, 4, 'ann', 1.25);
CREATE STREAM far WITH (kafka_topic='{name}-far', value_format='DELIMITED') AS
  SELECT id, who, km * 1000 AS m FROM rides WHERE km > 1;
CREATE TABLE per WITH (kafka_topic='{name}-per', format='JSON') AS
  SELECT who, COUNT(*) AS n, SUM(m) AS m FROM far WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY who;
"""
LOOKED = """\
CREATE TABLE per (who STRING PRIMARY KEY, n INT, m DOUBLE)
  WITH (kafka_topic='{name}-per', format='JSON', window_type='TUMBLING', window_size='1 HOUR');
SELECT * FROM per WHERE who = 'ann';
SET 'auto.offset.reset' = 'earliest';
SELECT who, n, m, WINDOWSTART FROM per WHERE who = 'ann' EMIT CHANGES LIMIT 2;
PRINT '{name}-far' FROM BEGINNING LIMIT 1;
ASSERT TOPIC '{name}-far' WITH (partitions=3, replicas=1);
DROP TABLE per DELETE TOPIC;
ASSERT NOT EXISTS TOPIC '{name}-per' TIMEOUT 10 SECONDS;
"""


def sql(side: Side, *arguments: str) -> subprocess.CompletedProcess[str]:
    found = subprocess.run(
        [sys.executable, "-m", "pykafkad", "sql", *arguments, "--bootstrap-server", side.bootstrap],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert found.returncode == 0, f"{side.name}:\n{found.stdout}\n{found.stderr}"
    return found


def test_a_script_does_the_same_on_both(both: Both, tmp_path: Path) -> None:
    name = both.name("sql")
    file = tmp_path / "rides.sql"
    hour = int(time.time()) // 3600 * 3600 // 10 - 360  # the one before, without its last four digits in ms
    file.write_text(SCRIPT.format(name=name, hour=hour))
    counted, shown = [], []
    for side in both.sides:
        run = sql(
            side, "run", "--host", "local", str(file), "--once", "--checkpoints", str(tmp_path / side.name)
        )
        facts = {one["query"]: one for one in map(json.loads, run.stdout.splitlines())}
        counted.append([(one["rows_in"], one["rows_out"], one["state"]) for one in facts.values()])
        shown.append(sql(side, "--execute", LOOKED.format(name=name)).stdout)
    assert counted == [[(4, 3, "RUNNING"), (3, 3, "RUNNING")]] * 2
    assert shown[0] == shown[1]
    rows = [line.split() for line in shown[0].splitlines() if line.startswith(" ann ")]
    assert [row[2] for row in rows[-2:]] == ["1", "2"]
