# Types for the compiler only; what is done stands in watch.py.
cimport cython
from smg_node.engines.transport.deadline_queue cimport Deadlines

cdef class Watches:
    cdef readonly object time
    cdef readonly Deadlines deadlines
    cdef object _loop, _timer

    cpdef wind(self)

cdef class Watch:
    cdef Watches _watches
    cdef object _bite, _first_event_s, _stall_s
    cdef double _deadline_s, _deadline_at, _last_at
    cdef bint _begun
    cdef readonly object bitten

    @cython.locals(now_s=double, silent_s=double)
    cdef _begin(self, Watches watches, bite, double deadline_s, first_event_s, stall_s)
    cpdef seen(self)
    cpdef complete(self)
    cpdef stop(self)
    cpdef look(self)
    cdef _look_at(self, double due_at)
