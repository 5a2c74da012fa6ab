from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum

from _typeshed import ReadableBuffer

from pykafkad.hot.index import OffsetIndex, TimeIndex
from pykafkad.hot.records import Batches

class CorruptSegment(Exception):
    """The bytes where a batch should be are not one."""

def limit_open_files(most: int, let_go: Callable[[], None] | None, descriptors: int = ...) -> None:
    """From `most` open files of segments on, `let_go` is called before another one is opened. Files are opened for
    reading with descriptors below `descriptors` only."""

class NewFiles:
    """For each (directory, ((name, content), ...)) files that are not there yet, and the directory too. Both methods are
    for a thread: they hold no interpreter's lock. They give for each 0; or an errno value, and what was made until then
    is there; or a negative one, and nothing is."""

    def __init__(self, wanted: Iterable[tuple[str, tuple[tuple[bytes, bytes], ...]]]) -> None: ...
    def make(self) -> list[int]: ...
    def make_with_directories(self) -> list[int]: ...

class SegmentFile:
    """An open file, closed when the last one who holds it lets go."""

    fd: int
    writable: bool
    path: str
    def __init__(self, path: str, create: bool = False, writable: bool = False) -> None: ...

class FileRange:
    """Bytes of a file that a Fetch answer is made of."""

    file: SegmentFile
    offset: int
    size: int
    def __init__(self, file: SegmentFile, offset: int, size: int) -> None: ...
    @property
    def fd(self) -> int: ...
    def read(self) -> bytes: ...

class Appended:
    """Where an append went."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool
    def __init__(
        self,
        base_offset: int,
        last_offset: int,
        log_append_time_ms: int,
        log_start_offset: int,
        duplicate: bool = False,
    ) -> None: ...

class BatchHeader:
    """A batch as it lies in the file."""

    position: int
    size: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    leader_epoch: int
    attributes: int
    magic: int
    count: int
    @property
    def last_sequence(self) -> int: ...
    @property
    def is_transactional(self) -> bool: ...
    @property
    def is_control(self) -> bool: ...

class Segment:
    """The `.log` file of one base offset with its two indexes."""

    directory: str
    suffix: str
    base_offset: int
    size: int
    queued_bytes: int
    end_offset: int
    max_timestamp: int
    max_timestamp_offset: int
    first_timestamp: int
    created_ms: int
    offset_index: OffsetIndex
    time_index: TimeIndex
    index_interval_bytes: int
    max_bytes: int
    roll_ms: int
    unindexed_bytes: int
    changed: bool
    def __init__(
        self,
        directory: str,
        base_offset: int,
        offset_index: OffsetIndex,
        time_index: TimeIndex,
        size: int = 0,
        fresh: bool = False,
        suffix: str = ".log",
    ) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def queued_batches(self) -> int: ...
    def open_file(self) -> SegmentFile: ...
    def reserve(self) -> None: ...
    def give_back(self) -> None: ...
    def release(self) -> None: ...
    def seal(self) -> None: ...
    def move(self, directory: str) -> None: ...
    def append(
        self, batch: Batches, base_offset: int, leader_epoch: int, now_ms: int, log_start_offset: int
    ) -> Appended | None: ...
    def load_first_timestamp(self) -> int: ...
    def must_roll(self, bytes_more: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool: ...
    def queue(self, data: ReadableBuffer, base_offset: int, last_offset: int, max_timestamp: int) -> int: ...
    def discard(self) -> None: ...
    def write(self) -> int: ...
    def read(
        self, offset: int, max_bytes: int, limit_offset: int, at_least_one: bool
    ) -> FileRange | None: ...
    def batch_reaching(self, offset: int) -> BatchHeader | None: ...
    def batch_since(self, timestamp: int, start_offset: int) -> BatchHeader | None: ...
    def headers(self, position: int = 0) -> Iterator[BatchHeader]: ...
    def bytes_at(self, position: int, size: int) -> bytes: ...
    def load_end(self) -> int: ...
    def truncate(self, position: int) -> None: ...
    def check(
        self,
        each: Callable[[BatchHeader], None],
        limit: int = -1,
        epoch: int = -1,
        walked: Callable[[int], None] | None = None,
    ) -> Fault | None: ...

class Verdict(IntEnum):
    """What is wrong with the batch where a walk ended."""

    TORN = ...  # the file ends inside it
    IMPOSSIBLE = ...  # a size, magic or offset no batch can have
    CHECKSUM = ...
    ORDER = ...  # offsets that were there before
    TOO_FAR = ...  # further from the segment's base than an index can say
    EPOCH = ...  # the leader epoch falls

class Fault:
    """The bad batch at which a walk ended: decisions go by its verdict, its text is for the log.

    `offsets`: (first, last) as the batch has them; None where it cannot be read at all.
    """

    verdict: Verdict
    position: int
    offsets: tuple[int, int] | None

class Inspection:
    """A look at every byte of a segment's file, of which nothing is changed."""

    fd: int
    path: str
    def __init__(
        self,
        path: str,
        base_offset: int,
        end: int = -1,
        offset_index: bytes | None = None,
        time_index: bytes | None = None,
        epoch: int = -1,
        position: int = 0,
    ) -> None: ...
    def turn(self, max_bytes: int = ...) -> list[BatchHeader]: ...
    def skip(self) -> bool: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def fault(self) -> Fault | None: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...
    @property
    def batches(self) -> int: ...
    @property
    def records(self) -> int: ...
    @property
    def gaps(self) -> int: ...
    @property
    def index_faults(self) -> tuple[tuple[int, int], tuple[int, int]]: ...
    @property
    def index_entries(self) -> tuple[int, int]: ...
    def bytes_at(self, position: int, size: int) -> bytes: ...
