"""A stage with state, as Spark's transformWithState calls it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

import pandas
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pykafkad.pipelines.hosts.left_out import LeftOut
from pykafkad.pipelines.hosts.spark import BAD, Packing, Placed, QueryFailed
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.stages import Moving, Stages


class StageProcessor(StatefulProcessor):
    def __init__(self, stage: int, stages: Mapping[str, Stages], buckets: int, query_id: str) -> None:
        self.stage, self.stages, self.buckets, self.query_id = stage, stages, buckets, query_id

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("states", "states BINARY")
        self.left_out = {lane: LeftOut(stages.plan, self.query_id) for lane, stages in self.stages.items()}

    def handleInputRows(  # the name is Spark's, and so are the parameters'
        self, key: Any, rows: Iterator[pandas.DataFrame], timerValues: Any
    ) -> Iterator[pandas.DataFrame]:
        lane, bucket = str(key[0]), int(key[1])
        stages, packing = self.stages[lane], Packing(self.stages, self.buckets)
        kept = self.state.get()
        states: dict[int, Any] = {} if kept is None else pickle.loads(kept[0])
        arrived: list[Placed] = [
            placed for frame in rows for packed in frame["rows"] for placed in pickle.loads(packed)
        ]
        touched = False
        for placed in sorted(arrived, key=itemgetter(0)):
            seq, step, port, row = placed
            if step < 0 or stages.entered[step] > self.stage:
                packing.put(lane, bucket, placed)
                continue
            try:
                follows = stages.arrive(Moving(step, port, Row(*row)), states)
            except Exception as error:
                raise QueryFailed(f"{type(error).__name__}: {error}{_at(seq)}") from None
            for number, moving in enumerate(follows):
                packing.add(lane, seq, number, moving)
            if (gathered := self.left_out[lane].taken()) is not None:
                packing.put(lane, bucket, (seq, BAD, 0, (gathered,)))
            touched = True
        if touched:
            self.state.update((pickle.dumps(states, 5),))
        yield packing.frame()

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
