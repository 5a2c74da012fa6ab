"""The cleaning of compacted logs: the door to ext/c/cleaner_*.c.

Owns the two passes of Kafka's cleaner: index_keys puts the keys of the dirty part into a KeyMap, a Rewriter writes what
stays of the segments into a `.cleaned` one with its indexes. Invariants: the GIL is held only to decompress, to
compress and for formats 0 and 1; a batch is looked at after its checksum; memory is the key map's, two buffers that grow to
the largest batch and, of a compressed batch, its records; nothing that is read is ever changed. What is wrong with a log
is a CleanerError, what is wrong with a disk an OSError. KIP-98 (transactions), KIP-534 (delete horizon).

    cleaner_door.pxi     the C functions
    cleaner_shared.pxi   KeyMap, Throttle, Round, AbortedTransactions
    cleaner_legacy.pxi   formats 0 and 1
    cleaner_passes.pxi   index_keys, Rewriter
"""

from libc.errno cimport errno
from libc.stddef cimport size_t
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

import os


class CleanerError(Exception):
    """A segment that cannot be cleaned: a batch at `position` of `path` is not what it should be."""

    def __init__(self, path, position, reason):
        super().__init__(f"{path}: {reason} at position {position}")
        self.path = path
        self.position = position
        self.reason = reason


class Cancelled(Exception):
    """Round.cancel() was called."""


include "cleaner_door.pxi"
include "cleaner_shared.pxi"
include "cleaner_legacy.pxi"
include "cleaner_passes.pxi"
