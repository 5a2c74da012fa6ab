"""spark-pipeline.yml, and the options of `sql run DIRECTORY`, without Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from pykafkad.pipelines.commands.arguments import Arguments, UsageError
from pykafkad.pipelines.commands.project import main
from pykafkad.pipelines.projects.spec import ProjectError, load

pytest.importorskip("yaml", reason="no PyYAML here")

GOOD = """
name: shop
storage: state
database: shop
configuration:
  spark.sql.shuffle.partitions: "2"
libraries:
  - glob: {include: transformations/**}
  - glob: {include: one.sql}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "transformations" / "deep").mkdir(parents=True)
    for name in ("one.sql", "two.sql", "transformations/b.sql", "transformations/deep/a.sql"):
        (tmp_path / name).write_text("")
    (tmp_path / "spark-pipeline.yml").write_text(GOOD)
    return tmp_path


def test_a_spec_is_read(project: Path) -> None:
    spec = load(project)
    assert (spec.name, spec.database, spec.catalog) == ("shop", "shop", None)
    assert spec.storage == (project / "state").as_uri()
    assert spec.configuration == {"spark.sql.shuffle.partitions": "2"}
    assert [str(file.relative_to(project)) for file in spec.files] == [
        "transformations/b.sql",
        "transformations/deep/a.sql",
        "one.sql",
    ]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("name: shop", "nam: shop", "nam is no key; did you mean name?"),
        ("storage: state", "", "storage is missing"),
        ("name: shop", "name: 5", "name is missing, or no text"),
        ("database: shop", "database: 5", "database is no text"),
        ('"2"', "2", "configuration has texts by texts"),
        ("transformations/**", "trans*/**", "a file, or a directory with /** is expected"),
        ("transformations/**", "transformations/**/*.sql", "a file, or a directory with /** is expected"),
        ("glob: {include: one.sql}", "one.sql", "libraries are a list of glob"),
        ("name: shop", "name: [", "line 4: expected ',' or ']'"),
        (GOOD, "- a", "keys and values are expected"),
        (GOOD, "name: a\nstorage: b", "its libraries name no file"),
    ],
)
def test_a_spec_that_is_none(project: Path, before: str, after: str, why: str) -> None:
    assert before in GOOD
    (project / "spark-pipeline.yml").write_text(GOOD.replace(before, after))
    with pytest.raises(ProjectError) as refused:
        load(project)
    assert why in str(refused.value) and "\n" not in str(refused.value)


def test_a_directory_has_one_spec_and_sql_alone(project: Path) -> None:
    (project / "transformations" / "c.py").write_text("")
    with pytest.raises(ProjectError, match="only SQL files can be run here"):
        load(project)
    (project / "spark-pipeline.yaml").write_text(GOOD)
    with pytest.raises(ProjectError, match=r"two files spark-pipeline\.yml"):
        load(project)
    with pytest.raises(ProjectError, match=r"no file spark-pipeline\.yml"):
        load(project / "transformations")


@pytest.mark.parametrize(
    "option", ["--checkpoints=x", "--changed=keep", "--command-config=x", "--host=local"]
)
def test_options_that_are_not_for_projects(project: Path, option: str) -> None:
    options = ("--checkpoints", "--changed", "--command-config", "--host")
    with pytest.raises(UsageError, match="project"):
        main(Arguments([str(project), option], options))
