"""What a project's tables and views are as data frames: each query sees those that it names, by temporary views.

A topic is read by Spark's Kafka source, a table of files from the directories that its flows write, one each: a directory
of a streaming query's files has the log of one query.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from pykafkad.pipelines.hosts.spark import configured
from pykafkad.pipelines.projects.definitions import (
    KAFKA,
    MATERIALIZED,
    VIEW,
    Dataset,
    Flow,
    jvm,
    said_by,
)
from pykafkad.pipelines.projects.spec import ProjectError
from pykafkad.tools.names import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import DataFrame, SparkSession

READS = (
    *("subscribe", "subscribepattern", "assign", "startingoffsets", "startingtimestamp"),
    *("startingoffsetsbytimestamp", "failondataloss", "maxoffsetspertrigger", "minoffsetspertrigger"),
    *("maxtriggerdelay", "minpartitions", "maxrecordsperpartition", "groupidprefix"),
)
"""Properties of a topic that is read, as Spark's Kafka source has them."""
BOTH = ("topic", "includeheaders")
OUTPUT_MODE = "outputmode"
_RELATION = re.compile(r"UnresolvedRelation \[([^\]]*)\], \[[^\]]*\], (true|false)")


class Graph:
    """The frames of flows, made when they are asked for."""

    def __init__(
        self, spark: SparkSession, datasets: Mapping[str, Dataset], storage: str, bootstrap: str | None
    ) -> None:
        self._spark, self._datasets, self._storage, self._bootstrap = spark, datasets, storage, bootstrap
        self._frames: dict[str, DataFrame] = {}
        self._open: list[str] = []
        self.order: list[Flow] = []
        """The flows that run, each after those whose results it reads."""
        for dataset in datasets.values():
            if dataset.format == KAFKA and dataset.kind != VIEW:
                _check_topic(dataset)
            for flow in dataset.flows:
                self.frame(flow)

    def table(self, flow: Flow) -> Dataset:
        return self._datasets[flow.table.lower()]

    def path(self, table: Dataset, flow: Flow) -> str:
        """Where a flow's files are."""
        return f"{self._storage}/tables/{table.name}/{flow.name}"

    def checkpoint(self, flow: Flow) -> str:
        return f"{self._storage}/_checkpoints/{flow.table}/{flow.name}"

    def frame(self, flow: Flow) -> DataFrame:
        """What the flow's query gives, with its table's columns where these are declared."""
        found = self._frames.get(flow.name)
        if found is None:
            if flow.name in self._open:
                raise ProjectError(
                    f"{flow.at}: {' reads '.join([*self._open, flow.name])}: they read each other"
                )
            self._open.append(flow.name)
            found = self._frames[flow.name] = self._made(flow)
            self._open.pop()
            if self.table(flow).kind != VIEW:
                self.order.append(flow)
        return found

    def fresh(self, flow: Flow) -> DataFrame:
        """The frame of a query that reads what is there now: a frame keeps the list of files that it was made with."""
        return self._made(flow)

    def _made(self, flow: Flow) -> DataFrame:
        from pyspark.sql import DataFrame
        from pyspark.sql.types import StructType

        table = self.table(flow)
        sees = [
            (name, self._seen(dataset, streaming, flow)) for name, dataset, streaming in self._reads(flow)
        ]
        for name, seen in sees:
            seen.createOrReplaceTempView(f"`{name}`")
        try:
            with configured(self._spark, flow.configs):
                made = jvm(self._spark).org.apache.spark.sql.classic.Dataset.ofRows(
                    self._spark._jsparkSession, flow.query
                )
                frame = DataFrame(made, self._spark)
                if table.columns is not None:
                    frame = frame.to(cast(StructType, StructType.fromDDL(table.columns)))
        except Exception as error:  # Spark's errors have many classes
            raise ProjectError(f"{flow.at}: {said_by(error)}{self._meant(error)}") from None
        finally:
            for name, _ in sees:
                self._spark.catalog.dropTempView(name)
        if table.kind != VIEW and frame.isStreaming != (table.kind != MATERIALIZED):
            raise ProjectError(
                f"{flow.at}: {table.name} is a {table.kind}, whose query has to read "
                + ("what is there, without STREAM" if frame.isStreaming else "a stream: STREAM(name)")
            )
        return frame

    def _meant(self, error: Exception) -> str:
        missing = re.search(r"The table or view `([^`]+)` cannot be found", str(error))
        return nearest(missing[1], [one.name for one in self._datasets.values()]) if missing else ""

    def _reads(self, flow: Flow) -> Iterator[tuple[str, Dataset, bool]]:
        """The project's own among the names that a query has: as the query writes it, what it is, whether as a stream."""
        seen: dict[str, bool] = {}
        for name, streaming in _RELATION.findall(flow.query.treeString()):
            dataset = self._datasets.get(name.lower())
            if dataset is None:
                continue
            if seen.setdefault(name.lower(), streaming == "true") != (streaming == "true"):
                raise ProjectError(f"{flow.at}: {name} is read as a stream and as a table in one query")
        for name, streaming_ in seen.items():
            yield name, self._datasets[name], streaming_

    def _seen(self, dataset: Dataset, streaming: bool, by: Flow) -> DataFrame:
        if dataset.format == KAFKA and dataset.kind != VIEW:
            for flow in dataset.flows:
                self.frame(flow)  # what is written into the topic comes before what reads it
            return self._topic(dataset, streaming)
        if not dataset.flows:
            raise ProjectError(f"{by.at}: nothing is written into {dataset.name}")
        frames = [self._files(dataset, flow, streaming) for flow in dataset.flows]
        whole = frames[0]
        for other in frames[1:]:
            whole = whole.unionByName(other)
        return whole

    def _files(self, dataset: Dataset, flow: Flow, streaming: bool) -> DataFrame:
        frame = self.frame(flow)
        if dataset.kind == VIEW:
            return frame if frame.isStreaming else self.fresh(flow)
        path = self.path(dataset, flow)
        self._make_directory(path)
        reader: Any = self._spark.readStream if streaming else self._spark.read
        read: DataFrame = reader.format(dataset.format).schema(frame.schema).load(path)
        return read

    def _make_directory(self, path: str) -> None:
        place = jvm(self._spark).org.apache.hadoop.fs.Path(path)
        place.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf()).mkdirs(place)

    # --- topics

    def _topic(self, dataset: Dataset, streaming: bool) -> DataFrame:
        properties = {key.lower(): value for key, value in dataset.properties.items()}
        topic = properties.pop("topic", None)
        properties.pop(OUTPUT_MODE, None)
        if topic is not None:
            properties["subscribe"] = topic
        options = {"startingoffsets": "earliest", **self.servers(dataset), **properties}
        reader: Any = self._spark.readStream if streaming else self._spark.read
        read: DataFrame = reader.format(KAFKA).options(**options).load()
        return read

    def servers(self, dataset: Dataset) -> dict[str, str]:
        """Where the topic is: what the table says, else what the command does."""
        key = "kafka.bootstrap.servers"
        if key in {name.lower() for name in dataset.properties} or self._bootstrap is None:
            return {}
        return {key: self._bootstrap}


def _check_topic(table: Dataset) -> None:
    names = {key.lower() for key in table.properties}
    for key in table.properties:
        if not key.lower().startswith("kafka.") and key.lower() not in (*READS, *BOTH, OUTPUT_MODE):
            raise ProjectError(
                f"{table.at}: {key} is no property of a table USING kafka{nearest(key, [*READS, *BOTH])}"
            )
    if table.flows and "topic" not in names:
        raise ProjectError(f"{table.at}: {table.name} is written, so TBLPROPERTIES has to name its 'topic'")
    if len(names & {"topic", "subscribe", "subscribepattern", "assign"}) != 1:
        raise ProjectError(
            f"{table.at}: TBLPROPERTIES names the topic of {table.name}: 'topic', or what to read of several"
        )
    if table.columns is not None or table.partitions:
        raise ProjectError(
            f"{table.at}: a table USING kafka has the columns of Spark's Kafka source: key, value and others"
        )
