# Types for the compiler only; what is done stands in stream.py.
cimport cython
from smg_node.engines.transport.h2.protocol.stream_state cimport Flow
from smg_node.engines.transport.h2.connection_io cimport Link

cdef long long _REFILL_AT

cdef class H2Stream(Flow):
    cdef object _loop, _owner, _take, _waiter
    cdef bint _held, _listed
    cdef readonly double due_at
    cdef public Link link

    cpdef pour(self, take)
    cpdef pause(self)
    cpdef resume(self)
    cpdef cancel(self)
    cpdef end(self, ending)
    cpdef deliver(self)
    cdef _judge(self, ending)
    cdef bint _pour(self, take, waiter) except -1
    cdef _conclude(self, waiter, ending)
    cdef _refill(self)

cdef class Notice(H2Stream):
    cpdef deliver(self)
