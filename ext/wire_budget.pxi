# How much of a message is read or written in one go, and how much at all.
#
# Elements of arrays are counted (and bytes that are copied, BYTES_AN_ELEMENT of them as one). Where the budget is that of
# a turn of the loop, LargeMessage says that a thread must do it. A thread's budget is what a message may hold at all; it
# `breathes`: after so many elements the interpreter is given away for a moment, so that the loop goes on. To write an
# element takes 5 to 60 ns (100 where its texts are not ASCII and new), to read one makes an object and takes 200.

cdef enum:
    TURN_ELEMENTS = 10_000         # are read in some 2 ms
    TURN_WRITTEN = 32_000          # are written in some 2 ms
    MESSAGE_ELEMENTS = 1_000_000   # some 200 MB of objects
    RECORD_ELEMENTS = 262_144      # numbers of four bytes that Kafka's default for max.message.bytes has room for
    BYTES_AN_ELEMENT = 4096
    BREATH_READ = 1_000
    BREATH_WRITTEN = 4_000
    BREATH_US = 50

MESSAGE_ELEMENTS_MAX = MESSAGE_ELEMENTS

cdef struct Budget:
    int64_t left
    int until_breath
    int breath     # so many elements; 0: never
    bint has_end   # there is one
    int64_t most   # what was left at first

cdef Budget UNLIMITED = Budget(INT64_MOST, 0, 0, False, 0)
cdef Budget READ_IN_A_TURN = Budget(TURN_ELEMENTS, 0, 0, True, TURN_ELEMENTS)
cdef Budget READ_APART = Budget(MESSAGE_ELEMENTS, BREATH_READ, BREATH_READ, True, MESSAGE_ELEMENTS)
cdef Budget RECORD_READ_APART = Budget(RECORD_ELEMENTS, BREATH_READ, BREATH_READ, True, RECORD_ELEMENTS)
cdef Budget WRITTEN_IN_A_TURN = Budget(TURN_WRITTEN, 0, 0, True, TURN_WRITTEN)
cdef Budget WRITTEN_APART = Budget(MESSAGE_ELEMENTS, BREATH_WRITTEN, BREATH_WRITTEN, True, MESSAGE_ELEMENTS)


cdef extern from "memory.h" nogil:
    bint give_back_memory(size_t)


def release_memory(size_t least):
    """Of what large messages took and left behind in pieces, give free memory back to the system, where it is `least`
    bytes or more; whether that was done. A thread does it beside the loop."""
    cdef bint done
    with nogil:
        done = give_back_memory(least)
    return done


class LargeMessage(Exception):
    """To be read or written by a thread: it would hold the loop for too long."""


cdef inline int spend(Budget* budget, int64_t elements) except -1:
    if budget.has_end:
        budget.left -= elements
        if budget.left < 0:
            overspent(budget)
    return 0


cdef int overspent(Budget* budget) except -1:
    if budget.breath:
        raise WireError(f"a message of more than {budget.most} elements")
    raise LargeMessage


cdef inline void breathe(Budget* budget) noexcept:
    budget.until_breath -= 1
    if budget.until_breath <= 0:
        budget.until_breath = budget.breath
        with nogil:
            usleep(BREATH_US)
