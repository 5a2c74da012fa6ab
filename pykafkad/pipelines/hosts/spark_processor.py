"""A stage with state, as Spark's transformWithState calls it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

import pandas
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructField, StructType

from pykafkad.pipelines.hosts.left_out import LeftOut
from pykafkad.pipelines.hosts.spark import (
    BAD,
    Packing,
    Placed,
    QueryFailed,
    unpacked,
    without_collection,
)
from pykafkad.pipelines.plan.rows import row_of
from pykafkad.pipelines.plan.stages import Bucket, Stages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

STATE = StructType([StructField("states", BinaryType())])


class StageProcessor(StatefulProcessor):
    def __init__(
        self, stage: int, stages: Mapping[str, Stages], buckets: int, query_id: str, every_change: bool = True
    ) -> None:
        self.stage, self.stages, self.buckets, self.query_id = stage, stages, buckets, query_id
        self.every_change = every_change

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("states", STATE)
        self.left_out = {lane: LeftOut(stages.plan, self.query_id) for lane, stages in self.stages.items()}

    def handleInputRows(  # the name is Spark's, and so are the parameters'
        self, key: Any, rows: Iterator[pandas.DataFrame], timerValues: Any
    ) -> Iterator[pandas.DataFrame]:
        with without_collection():
            given = [packed for frame in rows for packed in frame["rows"]]
            found = self._packed(str(key[0]), int(key[1]), given).frame()
        yield found

    def _packed(self, lane: str, number: int, rows: Iterable[bytes]) -> Packing:
        kept, packing = self.state.get(), Packing(self.stages, self.buckets)
        states: dict[int, Any] = {} if kept is None else pickle.loads(kept[0])
        bucket = Bucket(states, None if self.every_change else {})
        arrived: list[Placed] = [placed for packed in rows for placed in unpacked(packed)]
        arrived.sort(key=itemgetter(0))
        try:
            if self._arrive(lane, number, arrived, bucket, packing):
                self.state.update((pickle.dumps(states, 5),))
        except Exception as error:
            raise QueryFailed(f"{type(error).__name__}: {error}{_at(bucket.seq)}") from None
        return packing

    def _arrive(
        self, lane: str, number: int, arrived: list[Placed], bucket: Bucket, packing: Packing
    ) -> bool:
        """Whether any of the rows had come to its step."""
        stages, left_out, touched = self.stages[lane], self.left_out[lane], False
        entered, arriving, stage = stages.entered, stages.arriving, self.stage
        for placed in arrived:
            seq, step, port, row = placed
            if step < 0 or entered[step] > stage:
                packing.put(lane, number, placed)
                continue
            bucket.seq = seq
            arriving[step, port](row_of(row), bucket)
            touched = True
            if bucket.moving:
                for place, moving in enumerate(bucket.moving):
                    packing.add(lane, seq, place, moving)
                bucket.moving = []
            if left_out.any:
                packing.put(lane, number, (seq, BAD, 0, (left_out.taken(),)))
        for place, moving in enumerate(stages.flush(stage, bucket)):
            packing.add(lane, bucket.seq, place, moving)
        if left_out.any:
            packing.put(lane, number, (bucket.seq, BAD, 0, (left_out.taken(),)))
        return touched

    def close(self) -> None:
        """Nothing is held."""


def _at(seq: bytes) -> str:
    """The record that a row's place in the order begins with, as spark_streaming.py numbers those of topics."""
    topic, zero, _ = seq[8:].partition(b"\0")  # a partition's number begins with a zero
    if not zero or not topic:
        return ""
    rest = seq[8 + len(topic) :]
    return (
        f" at {topic.decode()}-{int.from_bytes(rest[:4], 'big')} offset {int.from_bytes(rest[4:12], 'big')}"
    )
