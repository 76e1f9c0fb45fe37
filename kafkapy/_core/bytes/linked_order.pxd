"""An order of objects that changes without the interpreter lock: a doubly linked list that borrows its members."""
from cpython.ref cimport PyObject


cdef class Linked:
    cdef PyObject *previous
    cdef PyObject *next
    cdef PyObject *order                 # the LinkedOrder that it is in, or NULL


cdef class LinkedOrder:
    cdef PyObject *first
    cdef PyObject *last

    # Whoever adds a member keeps it alive until it is taken out.
    cdef void append(self, Linked member) noexcept nogil
    # Nothing if it is not in this order.
    cdef void take_out(self, Linked member) noexcept nogil
    cdef void move_to_end(self, Linked member) noexcept nogil
    cdef list members(self)
