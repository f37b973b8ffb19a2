# Types for the compiler only; what is done stands in transport.py.
cimport cython
from smg_node.engines.transport.deadline_queue cimport Deadlines
from smg_node.engines.transport.h2.connection_io cimport Link
from smg_node.engines.transport.h2.protocol.request_head cimport RequestHeads
# By another name, so that the module still has its own: a test puts another class there.
from smg_node.engines.transport.h2.message_stream cimport H2Stream as AnyStream

cdef class H2Transport:
    cdef readonly str target
    cdef object _options, _loop, _connecting, _failure
    cdef Py_ssize_t _connections, _notices
    cdef long long _message_max_bytes
    cdef readonly double _ping_interval_s
    cdef RequestHeads _heads
    cdef list _links
    cdef readonly set _all
    cdef readonly object _waiting, _timer
    cdef public Deadlines _deadlines
    cdef readonly double _retry_s
    cdef double _retry_at
    cdef bint _closed

    @cython.locals(link=Link)
    cdef _place(self, AnyStream stream, bytes block, object request)

    @cython.locals(link=Link)
    cdef _place_first(self, AnyStream stream, bytes block, object request)

    @cython.locals(best=Link, most=Py_ssize_t, link=Link, more=Py_ssize_t)
    cdef Link _free(self)

    @cython.locals(link=Link)
    cdef Link _free_first(self)
