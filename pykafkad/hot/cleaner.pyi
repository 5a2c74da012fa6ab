"""Typed face of ext/cleaner.pyx: the two passes over a compacted log.

A cleaning, as Kafka's Cleaner.doClean:

    round = Round(throttle, buffer_bytes)
    aborted = AbortedTransactions(); aborted.add(those that touch [first dirty offset, first uncleanable offset))
    for each dirty segment: index_keys(...) until it says full             -> clean up to keys.latest_offset + 1
    aborted = AbortedTransactions()                                        one for all groups of the round
    for each group of segments below it:
        rewriter = Rewriter(directory, group's first base offset, keys, aborted, round, ...)
        for each segment of the group: aborted.add(those that touch the segment); rewriter.add(path, size, ...)
        rewriter.finish(modified_ms)                                            the `.cleaned` files are there and synced

All of it may run in any one thread at a time; the GIL is released while bytes are read, hashed, filtered and written.
"""

from collections.abc import Iterable, Mapping

class CleanerError(Exception):
    """A segment that cannot be cleaned: a batch at `position` of `path` is not what it should be."""

    path: str
    position: int
    reason: str
    def __init__(self, path: str, position: int, reason: str) -> None: ...

class Cancelled(Exception):
    """Round.cancel() was called."""

class KeyMap:
    """Key -> latest offset, in fixed memory: 24 bytes an entry, of which 16 are a hash that stands for the key."""

    @property
    def slots(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def utilization(self) -> float: ...  # size / slots
    latest_offset: int  # up to here the log is in the map; -1: nothing is
    def __init__(self, memory_bytes: int) -> None: ...
    def get(self, key: bytes) -> int: ...  # -1: not there
    def put(self, key: bytes, offset: int) -> None: ...  # ValueError: full; sets latest_offset too
    def clear(self) -> None: ...
    def close(self) -> None: ...  # empty, memory given back; may be used again

class Throttle:
    """Bytes a second over all threads that share it, read and written alike. No rate is set: no limit."""

    bytes_per_second: float  # may be changed at any time; who waits for an older rate waits no longer
    def __init__(self, bytes_per_second: float = ...) -> None: ...
    def take(self, size: int, now_ns: int) -> int: ...  # ns to wait from now_ns on (tests)

class Round:
    """What the two passes of one cleaning share: throttle, size of the buffers, counts, and the way to stop it."""

    throttle: Throttle
    buffer_bytes: int  # of the read and of the write buffer each; they grow to the largest batch
    bytes_read: int
    messages_read: int
    bytes_written: int
    messages_written: int
    invalid_messages: int  # without a key
    batches_emptied: int  # kept as a header without records
    index_bytes_read: int
    index_messages_read: int
    largest_buffer_bytes: int  # memory the buffers took at most
    def __init__(self, throttle: Throttle | None = None, buffer_bytes: int = 262144) -> None: ...
    @property
    def cancelled(self) -> bool: ...
    def cancel(self) -> None: ...  # from any thread: a pass under way raises Cancelled soon

class AbortedTransactions:
    """Which batches belong to aborted transactions, while batches are walked in order.

    Kafka's CleanedTransactionMetadata. Entries are (producer id, first offset, last offset, last stable offset), as
    storage/log/transaction_index.py has them; the same entry may be added again with the next segment.
    """

    def __init__(self) -> None: ...
    def add(self, transactions: Iterable[tuple[int, int, int, int]]) -> None: ...

def index_keys(
    path: str,
    position: int,
    end: int,
    start_offset: int,
    end_offset: int,
    keys: KeyMap,
    max_keys: int,
    aborted: AbortedTransactions,
    round: Round,
) -> tuple[int, bool]:
    """Put the keys of the batches in bytes position..end of a `.log` file into the map.

    Records below start_offset are passed over; a batch that reaches end_offset ends the pass before it (end_offset:
    base of the next segment, or the first uncleanable offset). Returns (keys.latest_offset + 1, full): full when a record
    found max_keys keys in the map; latest_offset is then the last record that is in it. Not full: latest_offset is
    end_offset - 1, or one below the base offset of a batch that begins below end_offset and reaches it.
    CleanerError, Cancelled, OSError; the map is then good for nothing but clear().
    """

class Rewriter:
    """One cleaned segment: `%020d.log.cleaned`, `.index.cleaned`, `.timeindex.cleaned`, and `.txnindex.cleaned` when
    an aborted transaction's marker is kept."""

    @property
    def base_offset(self) -> int: ...
    @property
    def size(self) -> int: ...  # bytes written and to be written
    @property
    def batches(self) -> int: ...
    @property
    def end_offset(self) -> int: ...  # after the last batch; base_offset when there is none
    @property
    def max_timestamp(self) -> int: ...  # -1: no batch has one
    @property
    def max_timestamp_offset(self) -> int: ...  # last offset of the batch that has it
    @property
    def first_timestamp(self) -> int: ...  # max timestamp of the first batch; -1: no batch
    @property
    def aborted_transactions(self) -> list[tuple[int, int, int, int]]: ...  # as in .txnindex.cleaned
    @property
    def paths(self) -> list[str]: ...  # of the files that are there, .log.cleaned first
    def __init__(
        self,
        directory: str,
        base_offset: int,
        keys: KeyMap,
        aborted: AbortedTransactions,
        round: Round,
        *,
        last_records_of_producers: Mapping[int, tuple[int | None, int]],
        now_ms: int,
        delete_retention_ms: int,
        end_of_round: int,
        index_interval_bytes: int = 4096,
        suffix: str = ".cleaned",
    ) -> None:
        """Creates the files (what lies there from before is overwritten).

        last_records_of_producers: producer id -> (last data offset, None when it only wrote a marker; epoch).
        end_of_round: the first uncleanable offset; the batch that ends there is kept, if empty.
        """

    def add(self, path: str, size: int, keep_legacy_deletes: bool) -> None:
        """Clean the first `size` bytes of a `.log` file into the segment.

        keep_legacy_deletes: tombstones of formats 0 and 1 stay (the file's mtime is above the legacy horizon).
        CleanerError, Cancelled, OSError: only discard() is sensible then.
        """

    def finish(self, modified_ms: int) -> None:
        """Write what is left, cut the indexes, fsync the files, give them this mtime, close them."""

    def discard(self) -> None:
        """Close and remove the files; also after finish(). What is not there is no error."""
