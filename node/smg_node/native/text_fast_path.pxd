# Types for the compiler only; what is done stands in cut_through.py.
cimport cython
from smg_node.native.stream_messages cimport ChunkReader

cdef class CutThrough:
    cdef ChunkReader _reader
    cdef list _texts, _told
    cdef object _ending, _mute, _put, _said, _text
    cdef bytes _head, _tail
    cdef Py_ssize_t _most, _at_once
    cdef long long _cached
    cdef public bint behind

    @cython.locals(frames=bytes)
    cpdef object show(self, batch)

    @cython.locals(reader=ChunkReader, texts=list, known=Py_ssize_t, ids=list, told=list, frames=list, at=Py_ssize_t, message=bytes, text=str, printed=object, one=object)
    cpdef bytes take(self, batch)
