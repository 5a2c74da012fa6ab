"""The partitions that are on their way to another log directory: asked for, waiting, under way, over.

At most two copy at a time, the others wait in the order in which they were asked for; what begins or ends one does not
depend on how many there are. Owns the table of moves; storage/moves/move.py has the way of one. Which directory a
partition should lie in the metadata says, by the `placement` that LogManager.open_all is given; without one (tools,
tests) nobody is asked.
"""

from __future__ import annotations

from collections import deque
from functools import partial

from pykafkad import errors, uuids
from pykafkad.errors import KafkaError
from pykafkad.logs import logger
from pykafkad.storage import files
from pykafkad.storage.files import TopicPartition
from pykafkad.storage.log import lookups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol

    from pykafkad.storage.directories import LogDirectory
    from pykafkad.storage.log.context import Done
    from pykafkad.storage.log.log import Log
    from pykafkad.storage.moves.move import Move
    from pykafkad.storage.parts import Logs

    Moved = Callable[[KafkaError | None], None]

    class Placement(Protocol):
        def directory_of(self, topic: str, index: int) -> bytes:
            """The id of the directory that the metadata names."""

        def moved(self, partition: Log, directory: LogDirectory, done: Moved) -> None:
            """The partition is about to go on in this directory, when `done` is told that the metadata says so."""


AT_ONCE = 2  # of the threads there are, others want some too
NAME_MAX = 255
MARK_LENGTH = len(".") + 32 + len("-future")

log = logger("storage")


class Anywhere:
    """The placement of a storage without metadata."""

    def directory_of(self, topic: str, index: int) -> bytes:
        return uuids.ZERO

    def moved(self, partition: Log, directory: LogDirectory, done: Moved) -> None:
        done(None)


class Moves:
    def __init__(self, manager: Logs) -> None:
        self.placement: Placement = Anywhere()
        self._manager = manager
        self._moves: dict[TopicPartition, Move] = {}
        self._waiting: deque[Move] = deque()  # and some that were given up meanwhile
        self._started = 0
        self._leaving: set[TopicPartition] = set()  # moved, and the original still has the partition's name
        self._blocked: dict[TopicPartition, Move] = {}  # until that has gone
        self._left: list[tuple[str, LogDirectory, str]] = []  # by the last stop: name, where, path
        self._stopped = False

    def get(self, topic: str, index: int) -> Move | None:
        return self._moves.get((topic, index))

    def __iter__(self) -> Iterator[Move]:
        return iter(list(self._moves.values()))

    # -- beginning

    def ask(self, topic: str, index: int, path: str) -> None:
        """A client wants the partition in that directory. KafkaError, as Kafka says it, when it cannot go there."""
        if len(files.partition_directory(topic, index)) + MARK_LENGTH > NAME_MAX:
            raise KafkaError(errors.INVALID_TOPIC_EXCEPTION, "The topic name is too long.")
        manager = self._manager
        target = next((each for each in manager.directories if each.path == path), None)
        if target is None:
            raise KafkaError(errors.LOG_DIR_NOT_FOUND)
        if manager.is_cordoned(target):
            raise KafkaError(errors.INVALID_REPLICA_ASSIGNMENT)
        partition = manager.get(topic, index)
        if not target.is_online:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR)
        if partition is None:
            raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
        move = self.get(topic, index)
        if move is not None:
            if move.target is target:
                return
            move.cancel("it is to go elsewhere")
        if partition.log_directory is not target:
            self._begin(partition, target)

    def _begin(self, partition: Log, target: LogDirectory) -> None:
        from pykafkad.storage.moves.move import Move

        if len(self._manager.online) < len(self._manager.directories):
            # In the one that is offline there may be another copy.
            raise KafkaError(errors.KAFKA_STORAGE_ERROR)
        move = Move(self, self._manager, partition, target)
        try:
            move.begin()
        except OSError as error:
            target.fail(f"{move.path}: {error}")
            self._manager.drop_offline()
            raise KafkaError(errors.KAFKA_STORAGE_ERROR) from error
        self._moves[partition.topic, partition.index] = move
        self._waiting.append(move)
        self._manager.compaction.abort(partition)
        self.go_on()

    def go_on(self) -> None:
        """Those that wait may start, when others are through."""
        threads = self._manager.config["num.replica.alter.log.dirs.threads"]
        limit = min(AT_ONCE, threads) if threads and threads > 0 else AT_ONCE
        while self._waiting and self._started < limit and not self._stopped:
            move = self._waiting.popleft()
            key = move.partition.topic, move.partition.index
            if self._moves.get(key) is not move:
                continue
            if key in self._leaving:
                self._blocked[key] = move
                continue
            self._started += 1
            move.start()

    # -- the end

    def over(self, move: Move) -> None:
        key = move.partition.topic, move.partition.index
        if self._moves.get(key) is move:
            del self._moves[key]
            self._started -= move.started

    def cancel(self, topic: str, index: int, why: str) -> None:
        move = self.get(topic, index)
        if move is not None:
            move.cancel(why)

    def cut_off(self, topic: str, index: int, done: Done) -> Done:
        """The partition's end is about to be cut off, and a copy does not follow that: it begins anew when it is."""
        move = self.get(topic, index)
        if move is None:
            return done
        move.cancel("its end is cut off")
        return partial(self._was_cut, move, done)

    def _was_cut(self, move: Move, done: Done, error: KafkaError | None) -> None:
        done(error)
        partition = move.partition
        if not self._stopped and self._manager.get(partition.topic, partition.index) is partition:
            self._begin_again(partition, move.target)

    def _begin_again(self, partition: Log, target: LogDirectory) -> None:
        try:
            self._begin(partition, target)
        except KafkaError as error:
            log.warn(f"{partition.name} does not move to {target.path}: {error}")

    def drop_offline(self) -> None:
        """A directory failed: what moves from it or to it does not."""
        for move in self:
            if not (move.target.is_online and move.partition.log_directory.is_online):
                move.cancel("a log directory is offline")

    def moved(self, partition: Log, source: LogDirectory, old: str) -> None:
        """The partition is served from its new directory. When that is on the disk the original may go."""
        manager = self._manager
        directory, offsets, end = partition.directory, list(partition.bases), partition.log_end_offset
        target, cuts = partition.log_directory, partition.cuts
        key = partition.topic, partition.index
        self._leaving.add(key)

        def synced(result: Any) -> None:
            self._leaving.discard(key)
            if key in self._blocked:
                self._waiting.append(self._blocked.pop(key))
            try:
                manager.background_done(target, result)
                if result is None:
                    if partition.log_directory is target and partition.cuts == cuts:
                        partition.recovery_point = max(partition.recovery_point, end)
                    if source.is_online:
                        manager.deletions.rename(source, old, partition.settings.file_delete_delay_ms)
            finally:
                self.go_on()

        manager.compaction.moved(partition)
        manager.submit(lambda: sync_all(target, directory, offsets), synced)

    # -- stop and start

    def stop(self) -> None:
        """No more copying: the broker wants to stop."""
        self._stopped = True
        for move in self:
            move.interrupt()

    def close(self) -> None:
        for move in self:
            if move.target.is_online:
                self._manager.guard(move.target, move.empty)

    def found(self, name: str, directory: LogDirectory, path: str) -> None:
        """A copy that was not finished, at start."""
        self._left.append((name, directory, path))

    def resume(self) -> None:
        """Begin again what the last stop, or crash, interrupted."""
        left, self._left = self._left, []
        for name, directory, path in left:
            key = files.parse_partition_directory(name.rpartition(".")[0])
            partition = self._manager.get(*key) if key is not None else None
            if partition is None:
                log.warn(f"{path} is a copy of a partition that is not there, and is left alone")
                continue
            self._manager.deletions.rename(directory, path, 0)
            if partition.log_directory is not directory:
                self._begin_again(partition, directory)


def sync_all(parent: LogDirectory, directory: str, offsets: list[int]) -> None:
    """All of a partition's files, and that they are where they are."""
    lookups.sync_files(parent.syncs, directory, 0, offsets)
    parent.syncs.path(parent.path)
