"""A doubly linked list of objects that can be changed without the interpreter lock.

It keeps the partitions of a fetch session in the order in which they are read, and sessions by their last use.
"""


cdef class Linked:
    """Base class of the members of a LinkedOrder; a member is in one list at most. Used only by the thread that owns
    it."""

    def __cinit__(self, *arguments, **keywords):
        self.previous = self.next = self.order = NULL


cdef class LinkedOrder:
    """Base class of ordered collections. Used only by the thread that owns it.

    The list holds no references: a subclass must keep its members alive, for example in a dictionary.
    """

    cdef void append(self, Linked member) noexcept nogil:
        member.previous = self.last
        member.next = NULL
        member.order = <PyObject *> self
        if self.last == NULL:
            self.first = <PyObject *> member
        else:
            (<Linked> self.last).next = <PyObject *> member
        self.last = <PyObject *> member

    cdef void take_out(self, Linked member) noexcept nogil:
        if member.order != <PyObject *> self:
            return
        if member.previous == NULL:
            self.first = member.next
        else:
            (<Linked> member.previous).next = member.next
        if member.next == NULL:
            self.last = member.previous
        else:
            (<Linked> member.next).previous = member.previous
        member.previous = member.next = member.order = NULL

    cdef void move_to_end(self, Linked member) noexcept nogil:
        if member.order == <PyObject *> self and self.last != <PyObject *> member:
            self.take_out(member)
            self.append(member)

    cdef list members(self):
        cdef list found = []
        cdef PyObject *at = self.first
        while at != NULL:
            found.append(<object> at)
            at = (<Linked> at).next
        return found
