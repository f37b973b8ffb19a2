# Types for the compiler only; what is done stands in remote_call.py.
cimport cython
from smg_node.engines.grpc.stream_reader cimport StreamReader
from smg_node.engines.transport.stream_timeouts cimport Watch

cdef class RemoteCall(Watch):
    cdef object _engine, _stream, _broken, _pass, _take
    cdef readonly StreamReader _reader
    cdef bint _closed, _enough
    cdef public bint ended
    cdef readonly str request_id

    cpdef pass_by(self, first)
    cpdef abort(self)

    @cython.locals(reader=StreamReader, chunks=list)
    cpdef _hand(self, batch)
