# Types for the compiler only; what is done stands in request_head.py.
cimport cython

cdef long long _MILLISECONDS_MAX
cdef int _SHORT_MAX
cdef tuple _LENGTHS

cdef class RequestHeads:
    cdef bytes _authority, _scheme
    cdef dict _keys, _methods

    @cython.locals(same=bytes, timeout_ms=cython.longlong, timeout=bytes, pieces=list, name=bytes, text=bytes, size=Py_ssize_t)
    cpdef bytes block(self, str method, headers, double timeout_s)
    cdef bytes _key(self, str key)
    cdef bytes _packed(self, str method)
