# Types for the compiler only; what is done stands in block_table.py.
cimport cython
from libc.stdint cimport uint32_t, uint64_t

cdef class BlockTable:
    cdef uint64_t[::1] _cells
    cdef uint32_t[::1] _heads
    cdef uint64_t _room, _count, _hand, _low, _split

    @cython.locals(cell=uint64_t)
    cpdef uint32_t get(self, uint64_t one)

    @cython.locals(found=list, one=uint64_t, cell=uint64_t, value=uint32_t)
    cpdef list look(self, hashes)

    @cython.locals(one=uint64_t, at=uint64_t, above=uint64_t)
    cpdef add(self, hashes, uint32_t value)

    @cython.locals(one=uint64_t, cell=uint64_t)
    cpdef put(self, hashes, uint32_t value)

    @cython.locals(value=uint32_t, after=uint32_t)
    cpdef bint turn(self, Py_ssize_t places, judge)

    @cython.locals(met=set, at=uint64_t, value=uint32_t, last=uint32_t)
    cpdef set ahead(self, uint64_t places)

    cpdef bint skip(self, uint64_t places)

    @cython.locals(found=list, at=uint64_t, value=uint32_t)
    cpdef list having(self, values)

    @cython.locals(found=list, at=uint64_t, value=uint32_t)
    cpdef list items(self)

    cdef uint64_t _chains(self)

    @cython.locals(at=uint64_t)
    cdef uint64_t _home(self, uint64_t one)

    @cython.locals(cell=uint64_t)
    cdef uint64_t _find(self, uint64_t one)

    @cython.locals(at=uint64_t, before=uint64_t, following=uint64_t)
    cdef _point(self, uint64_t cell, uint64_t instead)

    cdef _drop(self, uint64_t cell)
    cdef bint _ended(self)

    @cython.locals(bit=uint64_t, near=uint64_t, far=uint64_t, cell=uint64_t, following=uint64_t, value=uint64_t, wider=cython.uint[::1])
    cdef _split_one(self)

    @cython.locals(wider=cython.ulonglong[::1])
    cdef _enlarge(self)
