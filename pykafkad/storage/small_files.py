"""partition.metadata and leader-epoch-checkpoint of new logs, made by a thread a moment after their creation was
answered: a Kafka that is given the directory takes one without for a stray, and who creates thousands of partitions waits
for none of it.

Invariants: the thread makes only what is not there yet, and a log that saves its files itself (with its first record, at
the stop) replaces what is there, so what a log has written stays. A log that the thread could not do this for does it
itself, on the loop.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice

from pykafkad.hot.segment import NewFiles
from pykafkad.logs import logger
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.files import LEADER_EPOCHS, PARTITION_METADATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.pure.leader_epochs import Entries
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs

    Contents = tuple[tuple[bytes, bytes], ...]  # names of files, and what they say

AFTER_MS = 250  # Kafka's own are there within a second
AT_ONCE = 128  # few enough for the loop, where the thread can make none

logged = logger("storage")


class SmallFiles:
    """`call_soon`: at the end of a pass of the loop, when the log has its role; without a loop there is none."""

    def __init__(self, manager: Logs, call_soon: Callable[[Callable[[], None]], Any]) -> None:
        self._manager = manager
        self._call_soon = call_soon
        self._logs: dict[Log, None] = {}  # without these files, in the order of their creation
        self._is_coming = False

    def add(self, log: Log) -> None:
        self._logs[log] = None
        if not self._is_coming:
            self._is_coming = True
            self._call_soon(self._wait)

    def _wait(self) -> None:
        self._manager.call_later(AFTER_MS, self.make)

    def forget(self, log: Log) -> None:
        """It is not served any more."""
        self._logs.pop(log, None)

    def make(self) -> None:
        """Those of the oldest, and when they are there of the next."""
        self._is_coming = False  # should this go wrong, the next new log begins anew
        logs = list(islice(self._logs, AT_ONCE))
        some = [(log, log.epochs.entries) for log in logs if log.stored_epochs is None]
        new = NewFiles((log.directory, contents(log.topic_id, epochs)) for log, epochs in some)
        for log in logs:
            del self._logs[log]
        self._is_coming = True
        self._manager.submit(new.make, lambda result: self._made(some, result))

    def _made(self, some: list[tuple[Log, Entries]], result: Any) -> None:
        errors = [-1] * len(some) if isinstance(result, BaseException) else result
        for (log, epochs), error in zip(some, errors, strict=True):
            if log.is_served and log.stored_epochs is None:
                try:
                    self._note(log, epochs, error)
                except Exception as mishap:  # one log's is not the next one's
                    logged.exception(log.name, mishap)
        if self._logs:
            self.make()
        else:
            self._is_coming = False

    def _note(self, log: Log, epochs: Entries, error: int) -> None:
        if error:
            self._manager.guard(log.log_directory, log.save_files)
        else:
            log.stored_epochs = epochs


@lru_cache(maxsize=16)
def contents(topic_id: bytes, epochs: Entries) -> Contents:
    """Of the small files of a log: most are made after one of the same topic."""
    return (
        (PARTITION_METADATA.encode(), checkpoints.topic_id_text(topic_id)),
        (LEADER_EPOCHS.encode(), checkpoints.epochs_text(epochs)),
    )
