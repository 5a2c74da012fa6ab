"""A log's end is cut off, or all of it, since its leader has something else there. A crash may come at any point:

    lower   the recovery point's checkpoint says no more than what will be left, and is on the disk
    cut     storage/log/follower.py
    sync    the cut is on the disk, since a power cut might bring back what was cut off, among what came after

Invariant: `done` is called once, and nothing is appended to the log before.
"""

from __future__ import annotations

from pykafkad import errors
from pykafkad.errors import KafkaError
from pykafkad.hot.segment import CorruptSegment
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.flushing import all_files
from pykafkad.storage.log import follower
from pykafkad.storage.log.log import damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.storage.log.context import Done, Step
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs


class Truncations:
    def __init__(self, manager: Logs) -> None:
        self._manager = manager

    def cut(self, log: Log, step: Step, offset: int, is_wanted: Callable[[], bool], done: Done) -> None:
        manager = self._manager
        manager.compaction.abort(log)
        done = manager.moves.cut_off(log.topic, log.index, done)
        left = min(offset, log.bases[0]) if step is follower.start_anew else offset

        def lowered() -> None:
            if not is_wanted():
                done(KafkaError(errors.NOT_LEADER_OR_FOLLOWER))
            elif manager.get(log.topic, log.index) is not log or not log.is_online:
                done(KafkaError(errors.KAFKA_STORAGE_ERROR))
            else:
                self._cut(log, step, offset, done)

        if log.lower_flushed(left):
            manager.checkpointing.write(checkpoints.RECOVERY_POINTS, lowered)
        else:
            lowered()

    def _cut(self, log: Log, step: Step, offset: int, done: Done) -> None:
        manager = self._manager
        start = log.log_start_offset
        try:
            step(log, offset, manager.clock.now_ms())
            work = all_files(log, log.active.base_offset)
        except CorruptSegment as error:
            done(damaged(error))
            return
        except OSError as error:
            log.fail(error)
            manager.drop_offline()
            done(KafkaError(errors.KAFKA_STORAGE_ERROR))
            return
        starts_lower = log.log_start_offset < start
        manager.submit(
            lambda: files.patiently(work), lambda result: self._synced(log, result, starts_lower, done)
        )

    def _synced(self, log: Log, result: Any, starts_lower: bool, done: Done) -> None:
        self._manager.background_done(log.log_directory, result)
        if result is not None:
            done(KafkaError(errors.KAFKA_STORAGE_ERROR))
        elif starts_lower:  # else the checkpoint would have a start set its segments aside
            self._manager.checkpointing.write(checkpoints.LOG_STARTS, lambda: done(None))
        else:
            done(None)
