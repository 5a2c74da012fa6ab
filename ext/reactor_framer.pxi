class FrameError(ValueError):
    """No frame can begin like this; the text says why."""


cdef class Framer:
    """The framing of a connection fed from memory instead of a socket: the same receive(), the same kafka_request()."""
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
            receive(&self.inbox, &self.slabs, read_memory, &source, &result)
            if result.status == RECEIVED_CHUNK:
                self.walk(self.slabs.bytes[0], result.end, frames)
            elif result.status == RECEIVED_FRAME:
                self.walk(self.inbox.bytes, self.inbox.have, frames)
                inbox_clear(&self.inbox)
            elif result.status != RECEIVED_NOTHING:
                raise MemoryError
        return frames

    cdef int walk(self, uint8_t* bytes, uint32_t end, list frames) except -1:
        cdef uint32_t at = 0
        cdef frame_view view
        cdef frame_status status
        while True:
            status = kafka_request(bytes + at, end - at, self.max_frame_bytes, &view)
            if status != FRAME_WHOLE:
                break
            frames.append(bytes[at + view.start : at + view.end])
            at += view.end
        if status != FRAME_PARTIAL:
            raise FrameError(frame_trouble(status, &view, self.max_frame_bytes))
        if at < end and inbox_keep(&self.inbox, bytes + at, end - at, view.end) < 0:
            raise MemoryError
        return 0
