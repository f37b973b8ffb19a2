# Types for the compiler only; what is done stands in flow.py.
cimport cython

cdef class Flow:
    cdef public long long number, room, window
    cdef public list messages
    cdef public object ending
    cdef public list unsent
    cdef public long long unsent_size
    cdef public bint answered, whole, touched
    cdef public bytearray part

    cdef _begin(self)
    cpdef deliver(self)

    @cython.locals(part=bytearray, at=Py_ssize_t, end=Py_ssize_t, size=Py_ssize_t, stop=Py_ssize_t)
    cpdef feed(self, bytes payload, long long message_max_bytes)
