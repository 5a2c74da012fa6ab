"""Compaction as the other parts know it: when the log cleaner looks around, and the cleaner, once there is work for it.

Most brokers have no compacted topic but the small ones of the groups: they do without storage/cleaning/cleaner.py and the
compiled code behind it.
"""

from __future__ import annotations

from pykafkad.periodic import pause_ms
from pykafkad.storage.checkpoints.checkpoints import CLEANED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.storage.cleaning.cleaner import LogCleaner
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs
    from pykafkad.workers import Submit

FIRST_MS = 1_000  # after the start, which is not to wait for it


class Compaction:
    def __init__(self, manager: Logs) -> None:
        self._manager = manager
        self._submit = manager.submit
        self._call_later: Callable[..., Any] = lambda delay_ms, action: None
        self._timer: Any = None
        self._stopped = False
        self.cleaner: LogCleaner | None = None

    def begin(self, call_later: Callable[..., Any], submit: Submit) -> None:
        """The broker runs: look around from now on, by threads of its own, since a cleaning takes long."""
        if self._manager.config["log.cleaner.enable"] and not self._stopped:
            self._submit = submit
            self._call_later = call_later
            self._timer = call_later(FIRST_MS, self._tick)

    def _tick(self) -> None:
        """As a periodic job, but that the interval may change at any time."""
        began_us = self._manager.clock.monotonic_us()
        try:
            self.turn()
        finally:
            interval_ms = self._manager.config["log.cleaner.backoff.ms"]
            took_us = self._manager.clock.monotonic_us() - began_us
            self._timer = self._call_later(pause_ms(interval_ms, took_us), self._tick)

    def turn(self) -> None:
        """Clean what is due, and let go of what compacted logs need not keep: Kafka's cleaner does both."""
        compacted = [each for each in self._manager.partitions.values() if each.settings.compacts]
        if not compacted or self._stopped:
            return
        if self.cleaner is None and any(len(each.segments) > 1 for each in compacted):
            self._make()
        if self.cleaner is not None:
            self.cleaner.turn()
        self._manager.retention.look_at(compacted)

    def _make(self) -> None:
        from pykafkad.storage.cleaning.cleaner import LogCleaner

        self.cleaner = LogCleaner(self._manager, self._submit)

    def is_busy(self, partition: Log) -> bool:
        """Whether something is being made of its segments just now."""
        return self.cleaner is not None and self.cleaner.is_busy(partition)

    def reconfigure(self) -> None:
        """The broker's config changed: Kafka starts its cleaners anew then."""
        if self.cleaner is not None:
            self.cleaner.reconfigure()
        if self._timer is not None and not self._stopped:
            self._timer.cancel()
            self._tick()

    def abort(self, partition: Log) -> None:
        """Whatever is being made of its segments must not take their place any more."""
        if self.cleaner is not None:
            self.cleaner.abort(partition)

    def forget(self, partition: Log) -> None:
        """It is deleted: another topic of that name is not clean because this one was."""
        self.abort(partition)
        if partition.first_dirty_offset is not None:
            self._manager.checkpointing.write(CLEANED)

    def moved(self, partition: Log) -> None:
        """It lies in another log directory now, and so does what is known of it."""
        if partition.first_dirty_offset is not None:
            self._manager.checkpointing.write(CLEANED)

    def stop(self) -> None:
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self.cleaner is not None:
            self.cleaner.stop()
