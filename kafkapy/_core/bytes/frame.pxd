# The size prefix of Kafka's frames: four bytes, big endian, the number of bytes that follow.
from libc.stdint cimport int32_t

cdef enum:
    FRAME_PREFIX_BYTES = 4
    FRAME_SMALLEST = 8              # api key, api version, correlation id
    RESPONSE_SMALLEST = 4           # correlation id


cdef inline bint frame_size_is_valid(int32_t size, int32_t limit) noexcept nogil:
    """Returns whether a request of `size` bytes may be received: at least a header, and at most `limit` bytes."""
    return size >= FRAME_SMALLEST and size <= limit


cdef inline bint response_size_is_valid(int32_t size, int32_t limit) noexcept nogil:
    """Returns whether a response of `size` bytes may be received: it holds a header and stays within the limit."""
    return size >= RESPONSE_SMALLEST and size <= limit
