# Types for the compiler only; what is done stands in quick_frames.py.
cimport cython
from smg_node.engines.transport.h2.protocol.stream_state cimport Flow
from smg_node.native.grpc_messages cimport whole_messages

cdef int _HEAD, _HEADERS, _OPENS, _ENDS

@cython.locals(flow=Flow, end=Py_ssize_t, taken=Py_ssize_t, heard=bint, kind=cython.int, flags=cython.int, number=cython.longlong, length=Py_ssize_t, stop=Py_ssize_t, messages=list, room=cython.longlong, had=Py_ssize_t, size=Py_ssize_t)
cpdef tuple quick_frames(bytes data, Py_ssize_t at, dict flows, dict usual, object fine, long long size_max, list touched)
