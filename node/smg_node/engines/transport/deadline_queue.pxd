# Types for the compiler only; what is done stands in deadlines.py.
cimport cython

cdef class Deadlines:
    cdef dict _due
    cdef double _soonest_s

    cpdef bint add(self, item, double due_s) except -1
    cpdef remove(self, item)
    cpdef list due(self, double now_s)
