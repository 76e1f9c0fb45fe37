"""An order of objects that can change without the interpreter lock: a doubly linked list that borrows its members."""
from cpython.ref cimport PyObject


cdef class Linked:
    cdef PyObject *previous
    cdef PyObject *next
    cdef PyObject *order                 # the LinkedOrder that contains it, or NULL


cdef class LinkedOrder:
    cdef PyObject *first
    cdef PyObject *last

    # The caller keeps the member alive until it is removed.
    cdef void append(self, Linked member) noexcept nogil
    # Does nothing if the member is not in this order.
    cdef void take_out(self, Linked member) noexcept nogil
    cdef void move_to_end(self, Linked member) noexcept nogil
    cdef list members(self)
