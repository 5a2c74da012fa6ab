"""The statements of a project's SQL files, in Spark's grammar, read by Spark's parser.

CREATE STREAMING TABLE t [(columns)] [USING format] [PARTITIONED BY (...)] [TBLPROPERTIES (...)] [AS query]
CREATE MATERIALIZED VIEW v ... AS query         CREATE TEMPORARY VIEW v AS query
CREATE FLOW f AS INSERT INTO t BY NAME query    SET name = value
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pykafkad.pipelines.projects.spec import ProjectError, Spec
from pykafkad.tools.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import SparkSession

KAFKA = "kafka"
DEFAULT_FORMAT = "parquet"


@dataclass(slots=True)
class Flow:
    """A query that writes into a table; the one of CREATE ... AS has the table's name."""

    name: str
    table: str
    query: Any
    """Spark's logical plan, unresolved."""
    at: str
    configs: Mapping[str, str]


@dataclass(slots=True)
class Dataset:
    """A streaming table, a materialized view or a temporary view."""

    kind: str
    name: str
    at: str
    """The file and line that define it."""
    format: str = DEFAULT_FORMAT
    properties: Mapping[str, str] = field(default_factory=dict)
    columns: str | None = None
    """Those that are declared, as DDL."""
    partitions: tuple[str, ...] = ()
    flows: list[Flow] = field(default_factory=list)


STREAMING, MATERIALIZED, VIEW = "streaming table", "materialized view", "temporary view"


def read(spark: SparkSession, spec: Spec) -> dict[str, Dataset]:
    """What the files define, by names in lower case."""
    return _Reader(spark).read(spec)


def jvm(spark: SparkSession) -> Any:
    """The classes of Spark's process."""
    return spark._jvm


def java(spark: SparkSession, collection: Any) -> Any:
    """A collection of Scala's as one of Java's, which py4j makes Python's."""
    return jvm(spark).scala.jdk.javaapi.CollectionConverters.asJava(collection)


def said_by(error: Exception) -> str:
    """The line of an error of Spark's that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines if not line.startswith("==")), type(error).__name__)


class _Reader:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._datasets: dict[str, Dataset] = {}
        self._flows: dict[str, Flow] = {}

    def read(self, spec: Spec) -> dict[str, Dataset]:
        for file in spec.files:
            configs: dict[str, str] = {}
            for at, plan in self._statements(file):
                kind = plan.getClass().getSimpleName()
                if kind == "SetCommand":
                    configs = {**configs, **self._set(plan, at)}
                    continue
                take = getattr(self, f"_{kind}", None)
                if take is None:
                    raise ProjectError(f"{at}: {_words(kind)} has no place in a pipeline")
                take(plan, at, configs)
        self._lead_flows()
        return self._datasets

    def _statements(self, file: Path) -> Iterator[tuple[str, Any]]:
        spark = self._spark
        splitter = jvm(spark).org.apache.spark.sql.pipelines.graph.SqlGraphRegistrationContext
        try:
            split = splitter.splitSqlFileIntoQueries(spark._jsparkSession, file.read_text(), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ProjectError(f"{file}: {error}") from None
        except Exception as error:  # Spark's errors have many classes
            raise ProjectError(f"{file}: {said_by(error)}") from None
        for one in java(spark, split):
            line = one.queryOrigin().line()
            yield f"{file}:{line.get() if line.isDefined() else 1}", one.plan()

    # --- statements, by the names of their plans

    def _set(self, plan: Any, at: str) -> dict[str, str]:
        pair = plan.kv()
        if pair.isEmpty() or pair.get()._2().isEmpty():
            raise ProjectError(f"{at}: SET name = value is expected")
        return {pair.get()._1(): pair.get()._2().get()}

    def _CreateStreamingTable(self, plan: Any, at: str, configs: Mapping[str, str]) -> None:
        self._table(STREAMING, plan, at)

    def _CreateStreamingTableAsSelect(self, plan: Any, at: str, configs: Mapping[str, str]) -> None:
        table = self._table(STREAMING, plan, at)
        self._flow(Flow(table.name, table.name, plan.query(), at, configs))

    def _CreateMaterializedViewAsSelect(self, plan: Any, at: str, configs: Mapping[str, str]) -> None:
        table = self._table(MATERIALIZED, plan, at)
        if table.format == KAFKA:
            raise ProjectError(
                f"{at}: a materialized view is written anew as a whole, which a topic cannot be"
            )
        self._flow(Flow(table.name, table.name, plan.query(), at, configs))

    def _CreateViewCommand(self, plan: Any, at: str, configs: Mapping[str, str]) -> None:
        if java(self._spark, plan.userSpecifiedColumns()):
            raise ProjectError(f"{at}: name a view's columns in its query")
        view = self._add(Dataset(VIEW, plan.name().table(), at))
        self._flow(Flow(view.name, view.name, plan.plan(), at, configs))

    def _CreateFlowCommand(self, plan: Any, at: str, configs: Mapping[str, str]) -> None:
        insert = plan.flowOperation()
        if insert.getClass().getSimpleName() != "InsertIntoStatement":
            raise ProjectError(f"{at}: a flow AS INSERT INTO table BY NAME is expected")
        if not insert.byName() or insert.overwrite():
            raise ProjectError(f"{at}: INSERT INTO table BY NAME query is expected")
        table = self._name(insert.table().multipartIdentifier(), at)
        self._flow(Flow(self._name(plan.name().nameParts(), at), table, insert.query(), at, configs))

    # --- their parts

    def _table(self, kind: str, plan: Any, at: str) -> Dataset:
        spec = plan.tableSpec()
        columns = ", ".join(
            f"`{one.name().replace('`', '``')}` {one.dataType().sql()}"
            for one in java(self._spark, plan.columns())
        )
        provider = spec.provider()
        return self._add(
            Dataset(
                kind,
                self._name(plan.name().nameParts(), at),
                at,
                provider.get().lower() if provider.isDefined() else DEFAULT_FORMAT,
                dict(java(self._spark, spec.properties())),
                columns or None,
                tuple(self._partition(one, at) for one in java(self._spark, plan.partitioning())),
            )
        )

    def _partition(self, transform: Any, at: str) -> str:
        if transform.name() != "identity":
            raise ProjectError(f"{at}: PARTITIONED BY takes columns, not {transform}")
        return ".".join(transform.references()[0].fieldNames())

    def _name(self, parts: Any, at: str) -> str:
        names = list(java(self._spark, parts))
        if len(names) != 1:
            raise ProjectError(f"{at}: {'.'.join(names)}: names here have no database in front")
        return str(names[0])

    def _add(self, dataset: Dataset) -> Dataset:
        before = self._datasets.setdefault(dataset.name.lower(), dataset)
        if before is not dataset:
            raise ProjectError(f"{dataset.at}: {dataset.name} is defined at {before.at} already")
        return dataset

    def _flow(self, flow: Flow) -> None:
        before = self._flows.setdefault(flow.name.lower(), flow)
        if before is not flow:
            raise ProjectError(f"{flow.at}: a flow {flow.name} is defined at {before.at} already")

    def _lead_flows(self) -> None:
        """Gives each flow to its table, wherever that is defined."""
        for flow in self._flows.values():
            table = self._datasets.get(flow.table.lower())
            if table is None:
                known = [one.name for one in self._datasets.values() if one.kind == STREAMING]
                raise ProjectError(f"{flow.at}: there is no table {flow.table}{nearest(flow.table, known)}")
            if table.kind != STREAMING and flow.name != table.name:
                raise ProjectError(
                    f"{flow.at}: {table.name} is a {table.kind}, flows write into streaming tables"
                )
            table.flows.append(flow)


def _words(kind: str) -> str:
    """CreateTable as CREATE TABLE."""
    spaced = "".join(f" {letter}" if letter.isupper() else letter for letter in kind).strip()
    return spaced.removesuffix(" Command").removesuffix(" Statement").upper()
