"""The loop: readiness, receiving, framing, ordered answers, gathered sends, file ranges, accepting, timers.

One pass: wait (the control set, with listeners, watches and posts, is asked first) -> receive from all ready sockets without
the GIL -> posts, watches, timers, `call_soon` -> `on_frame` for each frame -> `on_pass_end` (the appends of the pass are
written) -> each connection's answers with one send -> file ranges from the write queue, a budget of bytes a pass.

Invariants:
- All state belongs to the thread that runs the loop; only `post` and `stop` may be called from others.
- Answers leave a connection in the order of its requests, whenever each becomes known.
- The bytes of a frame are valid and writable until the end of its pass. They are never changed later where somebody
  still holds them: a buffer with an owner besides the reactor is not received into again.
- Everything that waits has a bound: ANSWERS_MAX and ANSWER_BYTES_MAX a connection (beyond them no frame of it is
  handled and nothing more is read from it), EVENTS_PER_PASS, ACCEPTS_PER_PASS, RECEIVE_*_BYTES, GATHER_*,
  WRITE_QUEUE_PASS_BYTES. A frame's memory grows with the bytes received.
- The loop does not wait for a disk to send a file: where pages are missing from memory, a thread reads WARM_BYTES first.
- An end of stream ends the connection after the answers to what came before it, as in Kafka, which does not read
  while a request is under way. An error, or a frame that cannot be, does likewise and leaves all others alone.

Files: reactor_connection.pxi (connections, tickets), reactor_watch.pxi (timers, watches, listeners), reactor_loop.pxi
(the reactor); ext/c/reactor_*.c (framing, sending, timer heap).
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_REFCNT, PyObject
from libc.errno cimport EAGAIN, ECONNABORTED, ECONNRESET, EINTR, EPIPE, errno
from libc.stdint cimport int64_t, intptr_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from _queue import SimpleQueue
from _thread import start_new_thread
from collections import deque
from os import strerror

cdef extern from "reactor_frames.h" nogil:
    enum:
        FRAME_HEAD_BYTES
        RECEIVE_CHUNK_BYTES
        SLAB_BYTES
        EVENTS_PER_PASS
        SLABS_MAX
    cdef enum frame_status:
        FRAME_WHOLE
        FRAME_PARTIAL
        FRAME_NEGATIVE
        FRAME_TOO_LARGE
    frame_status frame_next(const uint8_t*, size_t, uint32_t, uint32_t*)
    const char* frame_guess(uint32_t)
    cdef struct inbox:
        uint8_t* bytes
        uint32_t have
        uint32_t capacity
        uint32_t wanted
    int inbox_keep(inbox*, const uint8_t*, uint32_t)
    void inbox_clear(inbox*)
    cdef struct slabs:
        uint8_t* bytes[SLABS_MAX]
        uint32_t used[SLABS_MAX]
        uint32_t current
    cdef enum receive_status:
        RECEIVED_NOTHING
        RECEIVED_CHUNK
        RECEIVED_FRAME
        RECEIVED_END
        RECEIVED_ERROR
    cdef struct receipt:
        receive_status status
        int error
        uint32_t slab
        uint32_t start
        uint32_t end
        uint32_t received
    ctypedef ssize_t (*read_function)(intptr_t, void*, size_t)
    void receive(inbox*, slabs*, read_function, intptr_t, receipt*)

cdef extern from "reactor_socket.h" nogil:
    ssize_t read_socket(intptr_t, void*, size_t)
    cdef struct memory_source:
        const uint8_t* bytes
        size_t left
    ssize_t read_memory(intptr_t, void*, size_t)
    enum:
        INET6_ADDRSTRLEN
    cdef struct sockaddr_in6:
        pass
    int address_text(const sockaddr_in6*, char*)
    void peer_address(int, sockaddr_in6*)
    int64_t c_monotonic_us "monotonic_us"()

cdef extern from "reactor_send.h" nogil:
    enum:
        GATHER_BYTES
        GATHER_RANGE_BYTES
        WRITE_QUEUE_PASS_BYTES
        WARM_BYTES
        KEEP_GIL_BYTES
    cdef struct out_part:
        void* owner
        const uint8_t* bytes
        int64_t offset
        int64_t left
        int fd
    cdef struct out_queue:
        out_part* parts
        uint32_t done
        uint32_t head
        uint32_t end
        uint32_t answers
        int64_t bytes
    int out_push(out_queue*, out_part)
    void out_answer_ends(out_queue*)
    void out_forget(out_queue*)
    void out_free(out_queue*)
    cdef enum out_status:
        OUT_EMPTY
        OUT_MORE
        OUT_BLOCKED
        OUT_FAILED
        OUT_FILE_SHORT
        OUT_COLD
    cdef struct peer:
        int fd
        uint32_t interest
        void* owner
        inbox inbox
        out_queue out
        out_status status
        int error
        bint reading
        bint queued
        bint blocked
        bint warming
        int64_t warm_to
        int64_t active_at_ms
        sockaddr_in6 address
    cdef struct write_queue:
        peer* first
    cdef struct out_room:
        pass
    void out_pump(peer*, out_room*, int64_t*, bint)
    void write_queue_add(write_queue*, peer*)
    void write_queue_remove(write_queue*, peer*)
    uint32_t write_queue_pump(write_queue*, out_room*, int64_t*, peer**, uint32_t)
    void warm_range(int, int64_t, int64_t)

cdef extern from "reactor_wait.h" nogil:
    cdef struct patience:
        int credit
        peer* favourite
        bint heard
    int wait_for_events(patience*, int, epoll_event*, int, slabs*, receipt*)

cdef extern from "reactor_timers.h" nogil:
    cdef struct timer:
        int64_t deadline_us
        uint64_t sequence
        size_t place
        void* owner
    cdef struct timers:
        timer** items
        size_t count
        uint64_t next_sequence
    int timers_add(timers*, timer*)
    void timers_remove(timers*, timer*)

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        void* ptr
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    int EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL
    uint32_t EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP
    int epoll_create1(int)
    int epoll_ctl(int, int, int, epoll_event*)
    int epoll_wait(int, epoll_event*, int, int)

cdef extern from "<sys/eventfd.h>" nogil:
    int EFD_CLOEXEC, EFD_NONBLOCK
    int eventfd(unsigned int, int)
    int eventfd_write(int, uint64_t)
    int eventfd_read(int, uint64_t*)

cdef extern from "<sys/socket.h>" nogil:
    int SOCK_NONBLOCK, SOCK_CLOEXEC
    cdef struct sockaddr:
        pass
    ctypedef unsigned int socklen_t
    int accept4(int, sockaddr*, socklen_t*, int)

cdef extern from "<unistd.h>" nogil:
    int close_fd "close"(int)

# Answers of one connection that are not wholly sent, and the bytes of those in memory: at either bound its next frame
# waits, and nothing more is read from it until half of them have left.
ANSWERS_MAX = 128
ANSWER_BYTES_MAX = 1024 * 1024
# New connections taken from one listener in one pass.
ACCEPTS_PER_PASS = 64
# How long a listener rests when the process or the system has no descriptor left for a connection, and how often at
# most that is said.
ACCEPT_REST_MS = 100
ACCEPT_REPORT_MS = 60_000
MAX_FRAME_BYTES = 104857600
# A slab that this many passes did not need is given back.
SLAB_KEEP_PASSES = 64
cdef Py_ssize_t answers_max = ANSWERS_MAX
cdef int64_t answer_bytes_max = ANSWER_BYTES_MAX
cdef int accepts_per_pass = ACCEPTS_PER_PASS
cdef enum:
    CONTROL_EVENTS = 32


cdef class Reactor
cdef class Connection


cdef class Buffer:
    """Received bytes: a slab, or the one large frame that was too big for it. Freed with its last reference."""
    cdef uint8_t* bytes
    cdef Py_ssize_t size
    cdef bint is_slab

    def __dealloc__(self):
        free(self.bytes)

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.bytes, self.size, 0, flags)


cdef Buffer own_bytes(uint8_t* bytes, Py_ssize_t size):
    cdef Buffer buffer = Buffer.__new__(Buffer)
    buffer.bytes = bytes
    buffer.size = size
    return buffer


cdef tuple address_of(const sockaddr_in6* address):
    cdef char text[INET6_ADDRSTRLEN]
    cdef int port = address_text(address, text)
    return (<bytes>text).decode("ascii"), port


cdef str frame_trouble(frame_status status, uint32_t length, max_frame_bytes):
    """Why no frame of that length can be, for the log."""
    cdef const char* guess = frame_guess(length)
    if guess != NULL:
        return f"{guess.decode()} on a port that speaks the Kafka protocol in plain text"
    if status == FRAME_NEGATIVE:
        return f"Invalid receive (size = {<int64_t>length - (1 << 32)})"
    return f"Invalid receive (size = {length} larger than {max_frame_bytes})"


include "reactor_connection.pxi"
include "reactor_watch.pxi"
include "reactor_loop.pxi"
include "reactor_framer.pxi"
