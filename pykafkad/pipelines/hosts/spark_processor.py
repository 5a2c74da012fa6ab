"""A stage with state, as Spark's transformWithState calls it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import pandas
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from pykafkad.pipelines.hosts.spark import as_frame, packed
from pykafkad.pipelines.plan.rows import Row
from pykafkad.pipelines.plan.stages import OUT, Moving, Stages


class StageProcessor(StatefulProcessor):
    def __init__(self, stage: int, stages: Mapping[str, Stages], buckets: int) -> None:
        self.stage, self.stages, self.buckets = stage, stages, buckets

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.state = handle.getValueState("states", "states BINARY")

    def handleInputRows(  # the name is Spark's, and so are the parameters'
        self, key: Any, rows: Iterator[pandas.DataFrame], timerValues: Any
    ) -> Iterator[pandas.DataFrame]:
        lane, bucket = str(key[0]), int(key[1])
        frame = pandas.concat(list(rows))
        stages, out, touched = self.stages[lane], list[tuple[Any, ...]](), False
        kept = self.state.get()
        states: dict[int, Any] = {} if kept is None else pickle.loads(kept[0])
        arrived = zip(frame["seq"], frame["step"], frame["port"], frame["row"], strict=True)
        for seq, step, port, row in sorted(arrived, key=lambda one: bytes(one[0])):
            if step == OUT or stages.entered[step] > self.stage:
                out.append((lane, bucket, seq, step, port, row))
                continue
            moved = Moving(int(step), int(port), Row(*pickle.loads(row)))
            for number, moving in enumerate(stages.arrive(moved, states)):
                out.append(packed(lane, stages, moving, bytes(seq), number, self.buckets))
            touched = True
        if touched:
            self.state.update((pickle.dumps(states),))
        yield as_frame(out)

    def close(self) -> None:
        """Nothing is held."""
