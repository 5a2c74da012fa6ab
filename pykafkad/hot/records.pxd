# What the segment (ext/segment.pyx) takes of validated records without going through Python.

from libc.stdint cimport int32_t, int64_t


cdef class Placeable:
    """A batch that is good and not yet at its place: `put` gives it its offsets."""
    cdef readonly int64_t max_timestamp
    cdef readonly int64_t log_append_time
    cdef readonly int64_t size
    cdef readonly int64_t last_offset_delta
    cdef readonly object data
    cdef void put(self, int64_t base_offset, int32_t leader_epoch) noexcept
