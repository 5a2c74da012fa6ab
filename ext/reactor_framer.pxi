class FrameError(ValueError):
    """No frame can begin like this; the text says why."""


cdef class Framer:
    """The framing of a connection fed from memory instead of a socket: the same receive(), the same frame_next()."""
    cdef inbox inbox
    cdef slabs slabs
    cdef uint32_t max_frame_bytes

    def __cinit__(self, uint32_t max_frame_bytes=MAX_FRAME_BYTES):
        self.max_frame_bytes = max_frame_bytes

    def __dealloc__(self):
        inbox_clear(&self.inbox)
        free(self.slabs.bytes[0])

    @property
    def kept_bytes(self):
        """Memory held for a frame that is not whole yet."""
        return self.inbox.capacity

    def feed(self, const uint8_t[::1] data):
        """Receives all of data, as if a socket had it; gives the bodies of the frames that are whole now."""
        cdef memory_source source
        cdef receipt result
        cdef list frames = []
        source.bytes = &data[0] if data.shape[0] else NULL
        source.left = data.shape[0]
        while source.left:
            self.slabs.current = self.slabs.used[0] = 0
            receive(&self.inbox, &self.slabs, read_memory, <intptr_t>&source, &result)
            if result.status == RECEIVED_CHUNK:
                self.walk(self.slabs.bytes[0], result.end, frames)
            elif result.status == RECEIVED_FRAME:
                self.walk(self.inbox.bytes, self.inbox.have, frames)
                inbox_clear(&self.inbox)
            elif result.status != RECEIVED_NOTHING:
                raise MemoryError
        return frames

    cdef int walk(self, uint8_t* bytes, uint32_t end, list frames) except -1:
        cdef uint32_t at = 0, length = 0
        cdef frame_status status
        while True:
            status = frame_next(bytes + at, end - at, self.max_frame_bytes, &length)
            if status != FRAME_WHOLE:
                break
            at += FRAME_HEAD_BYTES
            frames.append(bytes[at : at + length])
            at += length
        if status != FRAME_PARTIAL:
            raise FrameError(frame_trouble(status, length, self.max_frame_bytes))
        if at < end and inbox_keep(&self.inbox, bytes + at, end - at) < 0:
            raise MemoryError
        return 0
