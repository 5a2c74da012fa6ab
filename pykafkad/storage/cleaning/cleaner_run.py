"""One cleaning on its way: steps of a thread, and the loop between them.

    index      (thread)  -> groups of segments
    rewrite    (thread)  -> a group's `.cleaned` files;  swap in (loop);  sync the directory (thread);  the next group
    the end    (loop)    -> the log is clean up to where its keys were indexed

Invariants: nothing is swapped in once the run was aborted, or when the segments it was made from are not all there any
more; files that are not swapped in are removed. The run is over exactly once: `over(run, error)`.
"""

from __future__ import annotations

from pykafkad.hot.cleaner import Cancelled
from pykafkad.logs import logger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from pykafkad.hot.cleaner import Rewriter
    from pykafkad.hot.segment import Segment
    from pykafkad.pure.cleaning import Source
    from pykafkad.storage.cleaning.cleaning import Cleaning
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.parts import Logs
    from pykafkad.workers import Submit

log = logger("cleaner")


class Run:
    __slots__ = (
        "_at",
        "_ended",
        "_groups",
        "_manager",
        "_over",
        "_submit",
        "aborted",
        "cleaning",
        "directory",
        "finished",
        "partition",
        "started_ms",
    )

    def __init__(
        self,
        manager: Logs,
        partition: Log,
        cleaning: Cleaning,
        submit: Submit,
        over: Callable[[Run, BaseException | None], None],
    ) -> None:
        self._manager = manager
        self._submit = submit
        self._over = over
        self.partition = partition
        self.directory: LogDirectory = partition.log_directory
        self.cleaning = cleaning
        self.started_ms = manager.clock.monotonic_ms()
        self.aborted = False
        self.finished = False
        self._ended = False
        self._groups: list[list[Source]] = []  # to be rewritten, the next one last
        self._at = cleaning.sources  # what the thread reads

    def begin(self) -> None:
        self._step(self.cleaning.index, self._indexed)

    def abort(self) -> None:
        """It comes back soon, without effect."""
        self.aborted = True
        self.cleaning.round.cancel()

    # -- the way

    def _step(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def back(result: Any) -> None:
            try:
                self._back(result, done)
            except Exception as error:
                if self._ended:
                    raise
                self._end(error)

        self._submit(work, back)

    def _back(self, result: Any, done: Callable[[Any], None]) -> None:
        if self.aborted or not self._is_there() or segments_of(self.partition, self._at) is None:
            self._give_up(result)
        elif isinstance(result, BaseException):
            self._end(None if isinstance(result, Cancelled) else result)
        else:
            done(result)

    def _is_there(self) -> bool:
        partition = self.partition
        return (
            self._manager.get(partition.topic, partition.index) is partition
            and partition.log_directory is self.directory
            and self.directory.is_online
        )

    def _indexed(self, groups: list[list[Source]]) -> None:
        self._groups = groups[::-1]
        self._next_group()

    def _next_group(self, _: Any = None) -> None:
        if not self._groups:
            self.finished = True
            self._end(None)
            return
        self._at = sources = self._groups.pop()
        segments = segments_of(self.partition, sources)
        if segments is None:
            self._end(None)
            return
        producers = last_records(self.partition)
        self._step(
            lambda: self.cleaning.rewrite(sources, producers), lambda cleaned: self._swap(cleaned, segments)
        )

    def _swap(self, cleaned: Rewriter, old: list[Segment]) -> None:
        if not all(any(each is segment for segment in self.partition.segments) for each in old):
            self._give_up(cleaned)
            return
        try:
            self.partition.replace_segments(cleaned, old)
        except Exception as error:
            self._end(error)
            return
        self._at = []
        self._step(self.cleaning.sync_directory, self._next_group)

    # -- its ends

    def _give_up(self, result: Any) -> None:
        """Files that nobody wants, in a directory that may have another name by now, or be another topic's."""
        discard = getattr(result, "discard", None)
        if discard is not None:
            self._submit(discard, lambda _: None)
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        self._ended = True
        try:
            self.cleaning.close()
        finally:
            self._over(self, error)


def tell(run: Run, now_ms: int) -> None:
    """Say what it did."""
    cleaning, done, name = run.cleaning, run.cleaning.round, run.partition.name
    log.info(
        f"{name} is clean up to {cleaning.end_offset}, {cleaning.dirt.first_dirty_offset} before:"
        f" {done.messages_read:,} records in {megabytes(done.bytes_read)} became {done.messages_written:,}"
        f" in {megabytes(done.bytes_written)}, by {cleaning.key_count:,} keys in"
        f" {(now_ms - run.started_ms) / 1000:.1f} s"
    )
    if done.invalid_messages:
        log.warn(f"{name}: {done.invalid_messages:,} records had no key and are gone")


def segments_of(partition: Log, sources: list[Source]) -> list[Segment] | None:
    """The segments as they are now; None when one has gone."""
    by_base = {segment.base_offset: segment for segment in partition.segments}
    found = [by_base[source.base_offset] for source in sources if source.base_offset in by_base]
    return found if len(found) == len(sources) else None


def last_records(partition: Log) -> dict[int, tuple[int | None, int]]:
    """What must stay of each producer that may come back: its last batch, which has its sequence, or its marker."""
    return {
        entry.producer_id: (entry.last_offset if entry.last_offset >= 0 else None, entry.epoch)
        for entry in partition.producers
    }


def megabytes(size: int) -> str:
    return f"{size / (1 << 20):,.1f} MB"
