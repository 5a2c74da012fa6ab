"""A partition moves to another log directory while it is written to and read from (KIP-113, KIP-858).

    copy      threads copy its segments, 16 MiB a time, to TARGET/<topic>-<partition>.<32 hex>-future
    settle    when little is missing: a thread copies what lies beside the segments and syncs the copy, the target's
              checkpoints know the partition, and the metadata names the target as its directory
    switch    in one turn of the loop: the last bytes are copied, and what has changed beside them, the copy gets the
              partition's name, and the same log goes on there; when all that is on the disk too, the original is
              renamed to -delete

Invariants: at every moment one directory has all that was acknowledged, and a start finds out which: the original
as long as the copy is called -future; where both have the partition's name, the one that the metadata names. A move
that a stop or a crash interrupted begins anew at the next start. Segments of a partition that is under way
may be deleted, but not rewritten: the copy is made by name and length.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right

from pykafkad.logs import logger
from pykafkad.pure import java
from pykafkad.storage import files
from pykafkad.storage.checkpoints import checkpoints
from pykafkad.storage.checkpoints.checkpointing import log_start_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container
    from typing import Any

    from pykafkad.errors import KafkaError
    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.moves.moves import Moves
    from pykafkad.storage.parts import Logs

PIECE_BYTES = 16 << 20  # what one job of a thread copies
LEAST_BYTES = 64 << 10  # the same, at the slowest rate
LAST_BYTES = (
    1 << 20
)  # what the loop may copy itself, where somebody writes so fast that less is never missing
LITTLE = 32  # the part of that which it copies otherwise
CHUNK_BYTES = 1 << 20
MISSES = 3  # times that the files to copy may be gone, before that is taken for a broken directory
PAY_MS = 1_000  # how long it may take until another rate is noticed
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
SIDE_FILES = (files.INDEX, files.TIME_INDEX, files.TRANSACTION_INDEX)
OFFSET_ENTRY_BYTES, TIME_ENTRY_BYTES = 8, 12

Piece = tuple[str, int, int]  # a file's name, from where to where
Stamp = tuple[
    int, int, int
]  # a file's size, when it was changed, and which one it is: another one where it is another

log = logger("storage")


class SourceError(Exception):
    """The original could not be read."""


class Move:
    __slots__ = (
        "_began_ms",
        "_beside",
        "_busy",
        "_copied",
        "_final",
        "_last_bytes",
        "_misses",
        "_moves",
        "_owed",
        "_reached",
        "_settled",
        "_stopped",
        "manager",
        "partition",
        "path",
        "started",
        "target",
    )

    def __init__(self, moves: Moves, manager: Logs, partition: Log, target: LogDirectory) -> None:
        self._moves = moves
        self.manager = manager
        self.partition = partition
        self.target = target
        self.path = f"{target.path}/{files.marked_directory(partition.name, 'future')}"
        self.started = False  # it may wait for others
        self._copied: dict[str, int] = {}  # name -> bytes
        self._beside: dict[str, Stamp] = {}  # what the copies of files beside the segments were made of
        self._final: dict[str, Stamp] = {}  # those of them that do not change any more
        self._last_bytes = LAST_BYTES // LITTLE
        self._reached = 0  # segments below this offset are copied
        self._misses = 0
        self._owed = 0  # bytes that were copied since `_began_ms`
        self._began_ms = 0
        self._busy = False  # a job of ours is out
        self._settled = False
        self._stopped = False

    @property
    def size(self) -> int:
        return sum(size for name, size in self._copied.items() if name.endswith(files.LOG))

    @property
    def rate(self) -> int:
        """Bytes a second; 0: as fast as it goes."""
        return java.parse_long(self.manager.config.dynamic.get(RATE, "0").strip(java.BLANKS))

    @property
    def lag(self) -> int:
        """Offsets that the copy may not have yet: by the index of the segment that is being copied."""
        for segment in self.partition.segments:
            copied = self._copied.get(files.offset_name(segment.base_offset, files.LOG), 0)
            if copied >= segment.size:
                continue
            index, slots = segment.offset_index, range(segment.offset_index.entries)
            slot = bisect_right(slots, copied, key=lambda each: index.entry(each)[1]) - 2
            reached = index.entry(slot)[0] + 1 if slot >= 0 else segment.base_offset
            return self.partition.log_end_offset - reached
        return 0

    # -- what to copy

    def missing(self, limit: int) -> list[Piece]:
        """Of the logs, in order, at most `limit` bytes."""
        pieces: list[Piece] = []
        segments = self.partition.segments
        for segment in segments[bisect_left(self.partition.bases, self._reached) :]:
            name = files.offset_name(segment.base_offset, files.LOG)
            start = self._copied.get(name, 0)
            # A cleaning may leave one without records: it is a file all the same.
            is_empty = segment.size == 0 and name not in self._copied
            if is_empty or (start < segment.size and limit > 0):
                end = min(segment.size, start + limit)
                pieces.append((name, start, end))
                limit -= end - start
        return pieces

    def lengths(self) -> dict[str, int]:
        """Of the active segment's indexes: the files are longer than what is in them."""
        active = self.partition.active
        return {
            files.offset_name(active.base_offset, suffix): index.entries * size
            for suffix, index, size in (
                (files.INDEX, active.offset_index, OFFSET_ENTRY_BYTES),
                (files.TIME_INDEX, active.time_index, TIME_ENTRY_BYTES),
            )
        }

    # -- the way

    def begin(self) -> None:
        """OSError: the target cannot be written."""
        os.mkdir(self.path)
        log.info(
            f"{self.partition.name} moves from {self.partition.log_directory.path} to {self.target.path}"
        )

    def start(self) -> None:
        self.started = True
        self._step(self.proceed)

    def _step(self, step: Callable[..., None], *arguments: Any) -> None:
        """A mistake of ours ends this move, and none of the others."""
        try:
            step(*arguments)
        except Exception as error:
            if not self._stopped:
                self._failed(error)
            else:
                log.exception(f"{self.partition.name} has moved to {self.target.path}, and then", error)
                self._moves.go_on()

    def proceed(self) -> None:
        """The next step; on the loop, with no job of ours out."""
        rate = self.rate
        pieces = self.missing(min(PIECE_BYTES, max(rate, LEAST_BYTES)) if rate else PIECE_BYTES)
        source, path = self.partition.directory, self.path
        if self._must_copy():
            self._owed = sum(end - start for _, start, end in pieces)
            self._began_ms = self.manager.clock.monotonic_ms()
            self._job(lambda: copy(source, path, pieces), lambda done: self._copied_some(pieces, done))
        elif not self._settled:
            names, bases, lengths = list(self._copied), set(self.partition.bases), self.lengths()
            synced = min(self.partition.recovery_point, self.partition.active.base_offset)
            self._job(
                lambda: finish(source, path, names, bases, lengths, synced), lambda done: self._settle(*done)
            )
        elif self.partition.is_dirty:
            self._job(lambda: None, lambda _: self.proceed())  # after the pass that is under way
        else:
            self._switch()

    def _must_copy(self) -> bool:
        """A thread does, since to make a file, or to copy much, would hold the loop."""
        missing = self.missing(PIECE_BYTES)
        size = sum(end - start for _, start, end in missing)
        if size <= self._last_bytes:
            return not self._settled and any(name not in self._copied for name, _, _ in missing)
        if size <= LAST_BYTES:  # and it may be as much again when that is copied
            self._last_bytes = min(2 * self._last_bytes, LAST_BYTES)
        return True

    def _job(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        self._busy = True

        def back(result: Any) -> None:
            self._busy = False
            if self._stopped:
                self._moves.go_on()
            elif isinstance(result, BaseException):
                self._failed(result)
            else:
                self._step(done, result)

        self.manager.submit(work, back)

    def _copied_some(self, asked: list[Piece], done: list[Piece]) -> None:
        for name, _, end in done:
            self._copied[name] = end
        if done == asked and done:
            self._reached = files.offset_of(done[-1][0], files.LOG) or 0
        expected = any(files.offset_of(name, files.LOG) in self.partition.bases for name, _, _ in asked)
        self._misses = self._misses + 1 if expected and not done else 0
        if self._misses == MISSES:
            self._failed(SourceError("files of the log are gone"))
        else:
            self._pay()

    def _pay(self) -> None:
        """Go on when what was copied last is paid for, at the rate that holds then: no thread sleeps over it."""
        if self._stopped:
            return
        now_ms, rate = self.manager.clock.monotonic_ms(), self.rate
        self._owed -= rate * (now_ms - self._began_ms) // 1000
        self._began_ms = now_ms
        if rate <= 0 or self._owed <= 0:
            self.proceed()
        else:
            pause_ms = min(-(-self._owed * 1000 // rate), PAY_MS)
            self.manager.call_later(pause_ms, lambda: self._step(self._pay))

    def _settle(self, beside: dict[str, Stamp], final: dict[str, Stamp]) -> None:
        """The copy is on the disk; so are to be the target's checkpoints, and then the metadata."""

        def assign() -> None:
            if not self._stopped:
                self._step(self._moves.placement.moved, self.partition, self.target, assigned)

        def assigned(error: KafkaError | None) -> None:
            if self._stopped:
                return
            if error is not None:
                self.cancel(f"the metadata could not be written: {error}")
                return
            self._settled = True
            self._step(self.proceed)

        self._beside, self._final = beside, final
        if log_start_of(self.partition) is None:
            assign()  # there is nothing that the checkpoint had to say, and it names all partitions
        else:
            self.manager.checkpointing.write(checkpoints.LOG_STARTS, assign)

    def _switch(self) -> None:
        partition, source = self.partition, self.partition.log_directory
        old, new = partition.directory, f"{self.target.path}/{partition.name}"
        try:
            partition.save_files()
            beside = side_files(old, set(partition.bases), self.lengths(), self._final)
        except OSError as error:
            raise SourceError(str(error)) from error
        changed = [(name, 0, stamp[0]) for name, stamp in beside.items() if self._beside.get(name) != stamp]
        copy(old, self.path, [*self.missing(LAST_BYTES), *changed])
        logs = {files.offset_name(base, files.LOG) for base in partition.bases}
        gone = [name for name in self._copied if name not in logs]
        for name in (*gone, *(self._beside.keys() - beside.keys())):
            files.remove(f"{self.path}/{name}")
        files.rename(self.path, new)
        self._end()
        partition.move_to(self.target)
        log.info(f"{partition.name} has moved to {self.target.path}")
        self._moves.moved(partition, source, old)
        self._moves.go_on()

    # -- ends

    def _end(self) -> None:
        self._stopped = True
        self._moves.over(self)

    def _failed(self, error: BaseException) -> None:
        """The disk of the one or the other, whose directory is offline then; or a mishap, of this move alone."""
        is_source = isinstance(error, SourceError)
        cause = error.__cause__ if is_source else error
        if not isinstance(cause, OSError) or not files.is_of_disk(cause):
            log.exception(f"{self.partition.name} cannot move to {self.target.path}", error)
            self.cancel("the copy went wrong")
            return
        self._end()
        if is_source:
            self.partition.log_directory.fail(f"{self.partition.name}: {error}")
        else:
            self.target.fail(f"{self.path}: {error}")
        self.manager.drop_offline()
        self._moves.go_on()

    def cancel(self, why: str) -> None:
        """The partition stays where it is; what was copied goes."""
        log.info(f"{self.partition.name} does not move to {self.target.path}: {why}")
        self._end()
        if self.target.is_online:
            self.manager.deletions.rename(self.target, self.path, 0)
        if not self._busy:
            self._moves.go_on()

    def interrupt(self) -> None:
        """The broker stops: no more jobs."""
        self._stopped = True

    def empty(self) -> None:
        """What is left of an interrupted move has nothing in it, so that the next start, or Kafka's, begins anew."""
        for name in os.listdir(self.path):
            files.remove(f"{self.path}/{name}")


def side_files(
    source: str, bases: Container[int], lengths: dict[str, int], final: dict[str, Stamp]
) -> dict[str, Stamp]:
    """What belongs to the logs of these segments: small, and copied whole. `final`: what is known and does not change, so
    that the loop need not look at each file of thousands of segments. OSError: the source cannot be read."""
    found = {}
    for name in os.listdir(source):
        if name in final:
            found[name] = final[name]
            continue
        if name.endswith(files.LOG):
            continue
        suffix = os.path.splitext(name)[1]
        offset = files.offset_of(name, suffix)
        if name in lengths:
            found[name] = lengths[name], 0, 0
        elif (
            (suffix in SIDE_FILES and offset in bases)
            or (suffix == files.SNAPSHOT and offset is not None)
            or name in files.WHOLE
        ):
            status = os.stat(f"{source}/{name}")
            found[name] = status.st_size, status.st_mtime_ns, status.st_ino
    return found


def finish(
    source: str, target: str, names: list[str], bases: Container[int], lengths: dict[str, int], synced: int
) -> tuple[dict[str, Stamp], dict[str, Stamp]]:
    """Copies what lies beside these segments and syncs the copy. Gives what the copies were made of, and again those of
    segments that lie below `synced`: they were rolled, and their files do not change any more."""
    try:
        beside = side_files(source, bases, lengths, {})
    except FileNotFoundError:
        beside = {}  # a segment is being deleted
    except OSError as error:
        raise SourceError(str(error)) from error
    copied = {}
    for name, stamp in beside.items():
        try:
            if copy(source, target, [(name, 0, stamp[0])]):
                copied[name] = stamp
        except SourceError as error:
            if error.__cause__ is not None:
                raise
            # It has become shorter meanwhile, and is copied at the end.
    sync(target, names)
    return copied, {name: stamp for name, stamp in copied.items() if is_below(name, synced)}


def is_below(name: str, synced: int) -> bool:
    return name not in files.WHOLE and int(name[:20]) < synced


def copy(source: str, target: str, pieces: list[Piece]) -> list[Piece]:
    """Those that were copied: files may be gone meanwhile. OSError: the target's; SourceError: the source's."""
    done = []
    for piece in pieces:
        name, start, end = piece
        try:
            fd = os.open(f"{source}/{name}", os.O_RDONLY)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise SourceError(str(error)) from error
        try:
            copy_bytes(fd, f"{target}/{name}", start, end)
        finally:
            os.close(fd)
        done.append(piece)
    return done


def copy_bytes(source_fd: int, path: str, start: int, end: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        while start < end:
            try:
                data = os.pread(source_fd, min(CHUNK_BYTES, end - start), start)
            except OSError as error:
                raise SourceError(str(error)) from error
            if not data:
                raise SourceError(f"the original of {path} ends at {start}, not at {end}")
            start += os.pwrite(fd, data, start)
        if os.fstat(fd).st_size > end:
            os.ftruncate(fd, end)
    finally:
        os.close(fd)


def sync(path: str, names: list[str]) -> None:
    for name in names:
        files.fsync_path(f"{path}/{name}")
    files.fsync_path(path)
