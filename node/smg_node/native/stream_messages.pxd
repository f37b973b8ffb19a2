# Types for the compiler only; what is done stands in chunks.py.
cimport cython

cdef int _ID_TAG, _IDS_TAG, _CUT, _NONE

cdef class MessageReader:
    cdef int _part_tag, _choice_tag, _prompt_tag, _cached_tag, _reason_tag, _matched_tag
    cdef Py_ssize_t _at
    cdef long long _choice, _prompt, _cached, _matched
    cdef str _reason

    @cython.locals(size=Py_ssize_t, tag=cython.int, number=cython.longlong, packed=bint)
    cdef bint _read(self, bytes data, list ids) except -1

    @cython.locals(length=cython.longlong)
    cdef bint _begun(self, bytes data, Py_ssize_t size) except -1

    @cython.locals(one=cython.longlong)
    cdef bint _ids(self, bytes data, Py_ssize_t end, Py_ssize_t size, list ids) except -1

    @cython.locals(word=bytes)
    cdef bint _word(self, bytes data, Py_ssize_t end, Py_ssize_t size) except -1

    cdef bint _count(self, int tag, long long number) except -1

    @cython.locals(at=Py_ssize_t, value=cython.ulonglong, shift=cython.int, byte=cython.ulonglong)
    cdef long long _number(self, bytes data, Py_ssize_t end) except -2

cdef class ChunkReader(MessageReader):
    @cython.locals(ids=list, choice=cython.longlong, prompt=cython.longlong, cached=cython.longlong, count=Py_ssize_t, had=Py_ssize_t)
    cpdef run(self, batch, Py_ssize_t at)

    cpdef bint is_of_first(self, bytes message, list ids, long long cached) except -1

cdef class EndReader(MessageReader):
    @cython.locals(ids=list, prompt=cython.longlong, cached=cython.longlong)
    cpdef read(self, bytes data)
