"""Message: what the generated classes of the protocol have in common. Contents page; see `message.pyx`."""


cdef class Message:
    pass
