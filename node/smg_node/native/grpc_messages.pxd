# Types for the compiler only; what is done stands in messages.py.
cimport cython

cdef int _HEADS, _PREFIX

@cython.locals(end=Py_ssize_t, size=cython.longlong, length=cython.longlong, stop=Py_ssize_t, call=cython.longlong)
cpdef Py_ssize_t whole_messages(bytes data, Py_ssize_t at, long long number, long long size_max, long long room, list messages) except -1
