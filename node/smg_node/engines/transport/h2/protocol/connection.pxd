# Types for the compiler only; what is done stands in connection.py.
cimport cython
from smg_node.engines.transport.h2.protocol.stream_state cimport Flow
from smg_node.engines.transport.h2.protocol.fast_frames cimport quick_frames
from smg_node.engines.transport.h2.protocol.send_window cimport Sending

cdef int _HEAD_BYTES, _FRAME_MAX_BYTES
cdef long long _LAST_NUMBER

cdef class Connection:
    cdef readonly dict flows
    cdef readonly Sending sending
    cdef readonly long long flows_max, calls_max
    cdef readonly bint greeted, leaving, calm
    cdef readonly object broken
    cdef long long _streams_max, _message_max_bytes, _short, _idle_frames
    cdef readonly long long _room
    cdef bytes _rest
    cdef list _touched
    cdef object _block
    cdef dict _usual, _long
    cdef readonly object _sections

    @cython.locals(number=cython.longlong)
    cpdef begin(self, Flow flow, bytes block, object message)
    cpdef refill(self, Flow flow)
    cpdef ping(self)

    @cython.locals(flow=Flow)
    cpdef list lost(self, str why)

    @cython.locals(touched=list, at=Py_ssize_t)
    cpdef list receive(self, bytes data)

    @cython.locals(flows=dict, touched=list, usual=dict, at=Py_ssize_t, end=Py_ssize_t, taken=Py_ssize_t, more=Py_ssize_t, heard=bint, word=cython.ulonglong, flags=cython.int, number=cython.longlong)
    cdef Py_ssize_t _frames(self, bytes data) except -1

    @cython.locals(kind=cython.int, size=Py_ssize_t)
    cdef bint _frame(self, bytes data, Py_ssize_t at, unsigned long long word, int flags, long long number) except -1

    cdef _admit(self)
    cdef Flow _flow(self, long long number)
    cdef _end(self, Flow flow, ending)
    cdef _over(self, Flow flow, ending)
    cdef _touch(self, Flow flow)
    cdef _take_room(self, long long taken)
