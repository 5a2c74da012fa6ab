"""Scripts checked without a broker, and their plans explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pykafkad.pipelines import StatementError
from pykafkad.pipelines.checking import Checker
from pykafkad.pipelines.commands import check, explain
from pykafkad.pipelines.commands.arguments import Arguments, UsageError
from pykafkad.pipelines.commands.line_editing import completer
from pykafkad.pipelines.running.explaining import plan_lines
from pykafkad.pipelines.syntax.parser import parse
from pykafkad.tools import output

SCRIPT = """\
DEFINE topic = 'rides';
CREATE STREAM rides (id INT KEY, who STRING, km DOUBLE) WITH (kafka_topic='${topic}', format='JSON');
CREATE TABLE people (who STRING PRIMARY KEY, town STRING) WITH (kafka_topic='people', format='JSON');
CREATE STREAM far AS SELECT r.who, town, km FROM rides r LEFT JOIN people p ON r.who = p.who WHERE km > 2;
CREATE TABLE towns AS SELECT town, COUNT(*) AS n FROM far GROUP BY town;
INSERT INTO rides VALUES (1, 'ann', 2);
SELECT * FROM towns WHERE town = 'x';
EXPLAIN SELECT * FROM far EMIT CHANGES;
SHOW TOPICS; PRINT rides; SET 'auto.offset.reset'='earliest'; DESCRIBE towns; ASSERT TOPIC rides;
PAUSE ALL; TERMINATE CTAS_TOWNS_4; DROP TABLE towns;
"""


def problems(script: str) -> list[str]:
    return [str(problem) for problem in Checker().script(script, "x.sql")]


def test_a_script_without_mistakes() -> None:
    assert problems(SCRIPT) == []


def test_the_script_of_the_documentation_is_right() -> None:
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    scripts = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    assert [problems(script) for script in scripts] == [[]]
    wrong = page[page.index("    sql> ") :].splitlines()
    statement, error = wrong[0].removeprefix("    sql> "), wrong[3].strip()
    with pytest.raises(StatementError) as caught:
        parse(statement)
    assert str(caught.value) == error


def test_every_mistake_is_said_once() -> None:
    found = problems(
        "CREATE STREAM s (a INT) WITH (kafka_topic='s', format='JSN');\n"
        "CREATE STREAM t AS SELECT * FROM s;\n"
        "CREATE STREAM u (a INT) WITH (kafka_topic='u', format='JSON');\n"
        "SELECT b FROM u EMIT CHANGES;\n"
        "SELECT FROM u;\n"
        "SELECT uscase('x') FROM u;\n"
        "INSERT INTO u VALUES ('x');\n"
        "SHOW STREAMS"
    )
    assert [line.split(":")[:2] for line in found] == [["x.sql", str(line)] for line in (1, 4, 5, 6, 7)]
    assert "Did you mean JSON?" in found[0] and "UCASE" in found[3].upper()


def test_scripts_that_scripts_run_are_checked(tmp_path: Path) -> None:
    inner = tmp_path / "inner.sql"
    inner.write_text("CREATE STREAM s (a INT) WITH (kafka_topic='s', format='JSON');\nSELECT b FROM s;")
    (problem,) = problems(f"RUN SCRIPT '{inner}'; SELECT a FROM s;")
    assert problem.startswith(f"{inner}:2:")
    inner.write_text(f"RUN SCRIPT '{inner}';")
    (problem,) = problems(f"RUN SCRIPT '{inner}';")
    assert "more than 16 deep" in problem
    assert "Cannot read" in problems("RUN SCRIPT '/nowhere/x.sql'")[0]


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.sql"
    file.write_text(SCRIPT)
    assert check.main([str(file)]) == 0
    output.flush()
    assert capsys.readouterr().out == f"{file}: nothing is wrong with its 16 statements\n"
    file.write_text(
        "CREATE STREAM s (a INT) WITH (kafka_topic='s', format='JSON');CREATE STREAM t AS SELECT a + 1 AS b FROM s;"
    )
    assert explain.main([str(file)]) == 0
    output.flush()
    explained = capsys.readouterr().out
    assert "> write topic T (key JSON, value JSON)" in explained and "> read topic s" in explained
    file.write_text("SELCT")
    assert check.main([str(file)]) == 1
    output.flush()
    assert capsys.readouterr().out.startswith(f"{file}:1:1: expected CREATE")
    with pytest.raises(UsageError, match="which file"):
        check.main([])


def test_a_join_is_explained_as_a_tree() -> None:
    checker = Checker()
    assert list(checker.script(SCRIPT, "x.sql")) == []
    meaning = checker.session.meanings["CSAS_FAR_2"]
    shown = plan_lines(meaning.plan)
    assert shown[0] == "> write topic FAR (key JSON, value JSON)"
    depths = {line.strip(): len(line) - len(line.lstrip()) for line in shown}
    assert depths["> read topic rides (key JSON, value JSON)"] > 4
    assert depths["> read topic people (key JSON, value JSON)"] > 4


def test_arguments_are_known_or_refused() -> None:
    given = Arguments(["a.sql", "--once", "--host=local", "--x", "1"], ("--host", "--x"), ("--once",))
    assert (given.file(), given.flags, given.values) == ("a.sql", {"--once"}, {"--host": "local", "--x": "1"})
    with pytest.raises(UsageError, match=r"unknown option --onec; did you mean --once\?"):
        Arguments(["--onec"], (), ("--once",))
    with pytest.raises(UsageError, match="--host needs a value"):
        Arguments(["--host"], ("--host",))
    with pytest.raises(UsageError, match="one file only"):
        Arguments(["a", "b"], ()).file()


def test_tab_completes_names_and_words_in_the_case_that_is_typed() -> None:
    complete = completer(lambda: ["STREAMLINED", "streaky", "OTHER"])

    def offered(text: str) -> list[str]:
        found, number = [], 0
        while (one := complete(text, number)) is not None:
            found.append(one)
            number += 1
        return found

    assert offered("STRE") == ["STREAMLINED ", "streaky ", "STREAM ", "STREAMS "]
    assert offered("stre") == ["streamlined ", "streaky ", "stream ", "streams "]
    assert offered("nothing") == []
