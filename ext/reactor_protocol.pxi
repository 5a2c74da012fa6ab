# What a listener or a connection is given besides its socket: a protocol (which bytes make a frame, and who is called
# with one), and a transport (how bytes travel; ext/c/reactor_transport.h).
#
# Framings and transports are C, and come as capsules named FRAMING_NAME and TRANSPORT_NAME.

cdef const char* FRAMING_NAME = "pykafkad.framing"
cdef const char* TRANSPORT_NAME = "pykafkad.transport"

# The requests that the broker serves: whoever hears of one that held the loop is told how its frame began.
cdef str BROKERS_PROTOCOL = "on_frame"
KAFKA_REQUESTS = PyCapsule_New(<void*>kafka_request, FRAMING_NAME, NULL)
KAFKA_ANSWERS = PyCapsule_New(<void*>kafka_answer, FRAMING_NAME, NULL)
TEXT_LINES = PyCapsule_New(<void*>text_line, FRAMING_NAME, NULL)


cdef class Protocol:
    cdef readonly object on_frame, on_close
    cdef readonly str name
    cdef framing_function next_frame
    cdef object framing  # keeps it
    cdef uint32_t max_frame
    cdef Py_ssize_t answers_max
    cdef int64_t answer_bytes_max

    def __init__(self, on_frame, *, framing=KAFKA_REQUESTS, on_close=None, max_frame_bytes=MAX_FRAME_BYTES,
                 name=BROKERS_PROTOCOL, asks=False):
        self.on_frame = on_frame
        self.on_close = on_close
        self.name = name
        self.framing = framing
        self.next_frame = <framing_function>PyCapsule_GetPointer(framing, FRAMING_NAME)
        self.max_frame = max_frame_bytes
        # Who asks reads the answers whatever it has not sent yet: the other side may not read before they are taken.
        self.answers_max = INT_MAX if asks else answers_max
        self.answer_bytes_max = INT64_MAX if asks else answer_bytes_max


cdef str frame_trouble(frame_status status, const frame_view* view, uint32_t max_frame_bytes):
    """Why no frame can be like that, for the log."""
    if status == FRAME_REFUSED:
        return view.why.decode()
    if status == FRAME_NEGATIVE:
        return f"Invalid receive (size = {<int64_t>view.end - (1 << 32)})"
    return f"Invalid receive (size = {view.end} larger than {max_frame_bytes})"
