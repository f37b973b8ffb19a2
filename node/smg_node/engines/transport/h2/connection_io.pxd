# Types for the compiler only; what is done stands in link.py.
cimport cython
from smg_node.engines.transport.h2.protocol.connection cimport Connection
from smg_node.engines.transport.h2.protocol.stream_state cimport Flow
from smg_node.engines.transport.h2.protocol.send_window cimport Sending

cdef class Link:
    cdef object _loop, _host, _asked_at
    cdef public object _transport
    cdef Connection _core
    cdef bint _full, _awake, _due, _opened
    cdef double _heard_at
    cdef readonly object ready, over

    @cython.locals(core=Connection)
    cpdef Py_ssize_t places(self) except? -1

    @cython.locals(core=Connection)
    cpdef Py_ssize_t places_kept(self) except? -1

    @cython.locals(core=Connection)
    cpdef begin(self, Flow flow, bytes block, object message)

    cpdef drop(self, Flow flow, ending)
    cpdef refill(self, Flow flow)
    cpdef look(self, double now_s, double ping_interval_s)
    cpdef hang_up(self, str why)

    @cython.locals(core=Connection, flow=Flow)
    cpdef data_received(self, bytes data)

    @cython.locals(sending=Sending)
    cpdef _flush(self)
    cdef _settle(self)
