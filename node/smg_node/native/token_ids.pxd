# Types for the compiler only; what is done stands in ids.py.
cimport cython

@cython.locals(size=Py_ssize_t, at=Py_ssize_t, end=Py_ssize_t, one=cython.uint, out=bytearray)
cdef bytes _bytes_of(bytes data)

@cython.locals(found=bytearray)
cpdef bytes varint(unsigned long long value)
