# Types for the compiler only; what is done stands in sending.py.
cimport cython
from smg_node.engines.transport.h2.protocol.stream_state cimport Flow

cdef int _PIECE_MAX, _DATA, _HEADERS, _END_HEADERS, _END_STREAM, _PREFIX_BYTES

cdef class Sending:
    cdef readonly list out
    cdef readonly dict waiting
    cdef public long long window, initial, frame_max, whole_max, last

    @cython.locals(size=cython.longlong, width=cython.longlong, whole=cython.longlong, number=cython.longlong)
    cpdef begin(self, Flow flow, bytes block, object message)

    cdef _begin_in_pieces(self, Flow flow, bytes block, object message)

    @cython.locals(unsent=list, out=list, length=cython.longlong, next_=Py_ssize_t)
    cdef _cut(self, Flow flow, long long size)

    @cython.locals(waiting=dict, flow=Flow, size=cython.longlong, piece=cython.longlong, last=cython.int)
    cpdef bint pump(self, long long most) except -1

    cpdef drop(self, Flow flow)
    cpdef bint widen(self, Flow flow, long long more) except -1
    cpdef widen_all(self, long long more)
    cpdef enlarge(self, long long frame_max)
    cpdef reopen(self, long long initial, list flows)
    cpdef bytes taken(self)
    cpdef list views(self)
