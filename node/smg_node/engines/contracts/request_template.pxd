# Types for the compiler only; what is done stands in splice.py.
cimport cython
from smg_node.native.token_ids cimport varint

cdef class Splice:
    cdef object _build
    cdef str _params_name, _limit_name
    cdef bytes _id, _ids, _limit, _params, _tokenized
    cdef dict _asked, _kinds

    @cython.locals(known=tuple, head=bytes, middle=bytes, name=bytes, ids=bytes, before=bytes, whole=bytes)
    cpdef bytes written(self, request, bias_width)
    cdef tuple _known(self, asked, request, bias_width)
    cdef tuple _learned(self, kind, request, bias_width)
