"""Message: the base class of the protocol's generated classes. See `message.pyx`."""


cdef class Message:
    pass
