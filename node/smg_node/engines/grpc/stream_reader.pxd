# Types for the compiler only; what is done stands in reader.py.
cimport cython
from smg_node.native.stream_messages cimport ChunkReader, EndReader

cdef class StreamReader:
    cdef readonly object _wire
    cdef object _stop_ids, _logprobs, _prompt_logprobs, _had_ids, _had_prompt, _finished
    cdef long long _choices, _open
    cdef public bint aborted, over

    @cython.locals(reader=ChunkReader, ends=EndReader, at=Py_ssize_t, count=Py_ssize_t, end=Py_ssize_t)
    cpdef take(self, batch, list chunks)
    cpdef feed(self, message)
    cpdef end(self)
    cdef _odd(self, wire, bytes data)
    cdef _end_choice(self, tuple told)
