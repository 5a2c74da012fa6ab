"""The loop: readiness, receiving, framing, ordered answers, gathered sends, file ranges, accepting, timers.

One pass: wait -> receive from all ready sockets without the GIL -> the protocol's `on_frame` for each frame of connections that
lately took little (a new one may take much) -> listeners, watches, posts, timers, `call_soon` -> frames of connections that
took much -> `on_pass_end` (the appends of the pass are written) -> each connection's answers with one send -> file ranges from
the write queue, a budget of bytes a pass -> one callback of `call_between`. Where there is more than the first frames, they are
answered before the rest: the end of the pass, and the sends, come once more. The rest has a budget of time (LATE_US), after
which what can wait does, but for one connection that takes much, one post, one timer.

Invariants:
- All state belongs to the thread that runs the loop; only `post` and `stop` may be called from others.
- Requests of a connection are done one after the other: while one waits for its answer, the next is not begun (only
  what a Produce appends is there at the end of the pass, and another Produce may be begun before).
- Answers leave a connection in the order of its requests, whenever each becomes known.
- The bytes of a frame are valid and writable until the end of its pass. They are never changed later where somebody
  still holds them: a buffer with an owner besides the reactor is not received into again.
- Everything that waits has a bound: ANSWERS_MAX and ANSWER_BYTES_MAX a connection (beyond them no frame of it is
  handled and nothing more is read from it), ALL_ANSWERS_BYTES_MAX all of them together, EVENTS_PER_PASS,
  ACCEPTS_PER_PASS, RECEIVE_*_BYTES, GATHER_*, WRITE_QUEUE_PASS_BYTES. A frame's memory grows with the bytes received,
  that of all of them has a bound (FrameRoom).
- The loop does not wait for a disk to send a file: where pages are missing from memory, a thread reads WARM_BYTES first.
- An end of stream ends the connection after the answers to what came before it, as in Kafka, which does not read
  while a request is under way. An error, or a frame that cannot be, does likewise and leaves all others alone.

- What a frame is and how bytes travel is said for each listener, or connection, by its protocol and its transport. All of
  the above holds whatever these are.

Files: reactor_protocol.pxi (protocols), reactor_connection.pxi (connections, tickets), reactor_room.pxi (memory of unfinished
frames), reactor_watch.pxi (timers, watches, listeners), reactor_holds.pxi (how long callbacks hold the loop), reactor_loop.pxi
(the reactor); ext/c/reactor_*.c (framing, transports, sending, timer heap).
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.exc cimport PyErr_CheckSignals
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_REFCNT, PyObject
from libc.errno cimport EAGAIN, ECONNABORTED, ECONNRESET, EINTR, EMFILE, EPIPE, errno
from libc.limits cimport INT_MAX
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

from _queue import SimpleQueue
from _thread import start_new_thread
from collections import deque
from os import strerror

cdef extern from "reactor_frames.h" nogil:
    enum:
        FRAME_START_MAX_BYTES
        RECEIVE_CHUNK_BYTES
        SLAB_BYTES
        EVENTS_PER_PASS
        READY_PER_PASS
        SLABS_MAX
    cdef enum frame_status:
        FRAME_WHOLE
        FRAME_PARTIAL
        FRAME_NEGATIVE
        FRAME_TOO_LARGE
        FRAME_REFUSED
    cdef struct frame_view:
        uint32_t start
        uint32_t end
        bint appends
        const char* why
    ctypedef frame_status (*framing_function "framing")(const uint8_t*, size_t, uint32_t, frame_view*)
    frame_status kafka_request(const uint8_t*, size_t, uint32_t, frame_view*)
    frame_status kafka_answer(const uint8_t*, size_t, uint32_t, frame_view*)
    frame_status text_line(const uint8_t*, size_t, uint32_t, frame_view*)
    cdef struct frame_memory:
        int64_t most
        int64_t used
    int64_t frame_memory_used(const frame_memory*)
    void frame_memory_give_back(frame_memory*, int64_t)
    cdef struct inbox:
        uint8_t* bytes
        uint32_t have
        uint32_t capacity
        uint32_t wanted
        bint favoured
        frame_memory* memory
    int inbox_keep(inbox*, const uint8_t*, uint32_t, uint32_t)
    void inbox_clear(inbox*)
    uint8_t* inbox_take(inbox*)
    bint inbox_has_room(const inbox*)
    void inbox_favour(inbox*)
    cdef struct slabs:
        uint8_t* bytes[SLABS_MAX]
        uint32_t used[SLABS_MAX]
        uint32_t current
    cdef enum receive_status:
        RECEIVED_NOTHING
        RECEIVED_CHUNK
        RECEIVED_FRAME
        RECEIVED_NO_ROOM
        RECEIVED_END
        RECEIVED_ERROR
        RECEIVED_ATTENDED
    cdef struct receipt:
        receive_status status
        int error
        uint32_t slab
        uint32_t start
        uint32_t end
        uint32_t received
    ctypedef ssize_t (*read_function)(void*, void*, size_t)
    void receive(inbox*, slabs*, read_function, void*, receipt*)

cdef extern from "reactor_socket.h" nogil:
    cdef struct memory_source:
        const uint8_t* bytes
        size_t left
    ssize_t read_memory(void*, void*, size_t)
    enum:
        INET6_ADDRSTRLEN
    cdef struct sockaddr_in6:
        pass
    int address_text(const sockaddr_in6*, char*)
    void peer_address(int, sockaddr_in6*)
    int64_t c_monotonic_us "monotonic_us"()
    int64_t thread_cpu_us()

cdef extern from "reactor_transport.h" nogil:
    ctypedef struct transport_table "struct transport":
        int (*open)(const transport_table*, peer*)
        read_function receive
        bint (*finish)(peer*)
        void (*close)(peer*)
        const char* (*trouble)(const peer*)
    const transport_table plain_transport

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
        const transport_table* transport
        void* session
        uint32_t wants
        uint32_t bars
        bint ready
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
    void serve_event(peer*, uint32_t, slabs*, receipt*)

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
    int dup_fd "dup"(int)

# Answers of one connection that are not wholly sent, and the bytes of those in memory: at either bound its next frame
# waits, and nothing more is read from it until half of them have left.
ANSWERS_MAX = 128
ANSWER_BYTES_MAX = 1024 * 1024
# Bytes of answers that all connections together have not taken: beyond, the one that keeps the most is closed.
ALL_ANSWERS_BYTES_MAX = 256 * 1024 * 1024
# New connections taken from one listener in one pass.
ACCEPTS_PER_PASS = 64
# How long a listener rests when the process or the system has no descriptor left for a connection, and how often at
# most that is said.
ACCEPT_REST_MS = 100
ACCEPT_REPORT_MS = 60_000
# No timer waits longer.
FOREVER_MS = 100 * 365 * 24 * 60 * 60 * 1000
MAX_FRAME_BYTES = 104857600
# What unfinished frames of all connections may take together, where nobody says otherwise; one more may go on beyond it.
UNFINISHED_BYTES_MAX = 256 * 1024 * 1024
# A slab that this many passes did not need is given back.
SLAB_KEEP_PASSES = 64
cdef Py_ssize_t answers_max = ANSWERS_MAX
cdef int64_t answer_bytes_max = ANSWER_BYTES_MAX
cdef int64_t all_answers_bytes_max = ALL_ANSWERS_BYTES_MAX
cdef int accepts_per_pass = ACCEPTS_PER_PASS
cdef double forever_ms = FOREVER_MS
cdef enum:
    CONTROL_EVENTS = 32
    SLEEP_MAX_MS = 1 << 30  # in one go


cdef class Reactor
cdef class Connection
cdef class FrameMemory
cdef class FrameRoom


@cython.no_gc
cdef class Buffer:
    """Received bytes: a slab, or the one large frame that was too big for it. Freed with its last reference."""
    cdef uint8_t* bytes
    cdef Py_ssize_t size
    cdef bint is_slab
    cdef FrameMemory memory  # of a large frame: what it takes is given back with it

    def __dealloc__(self):
        free(self.bytes)
        if self.memory is not None:
            frame_memory_give_back(&self.memory.bytes, self.size)

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


include "reactor_protocol.pxi"
include "reactor_holds.pxi"
include "reactor_room.pxi"
include "reactor_connection.pxi"
include "reactor_watch.pxi"
include "reactor_loop.pxi"
include "reactor_framer.pxi"
