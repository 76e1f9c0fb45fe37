"""Splits a byte stream into Kafka's frames, each of which begins with its size as an int32.

The functions use no socket and store nothing. The broker's reactor uses the inline functions of `frame.pxd`.
`split_frames` does the same for Python code, such as clients and tests.
"""

from kafkapy._core.bytes.frame cimport FRAME_PREFIX_BYTES
from kafkapy._core.bytes.primitives cimport load_int32
from kafkapy.errors import ProtocolViolation


def split_frames(const unsigned char[:] buffer, int max_size, int min_size=0):
    """Returns the positions of the complete frames in `buffer`, and the number of bytes that they take.

    The result is ([(start, end), ...], bytes); a pair has the position of a frame's payload, without the size prefix.

    Raises ProtocolViolation for a size prefix below `min_size`, such as a negative one, or above `max_size`.
    """
    cdef Py_ssize_t pos = 0
    cdef Py_ssize_t end = buffer.shape[0]
    cdef int size
    cdef list frames = []
    while end - pos >= FRAME_PREFIX_BYTES:
        size = load_int32(&buffer[pos])
        if size < min_size or size < 0:
            raise ProtocolViolation(f"Invalid receive (size = {size})")
        if size > max_size:
            raise ProtocolViolation(f"Invalid receive (size = {size} larger than {max_size})")
        if end - pos - FRAME_PREFIX_BYTES < size:
            break
        frames.append((pos + FRAME_PREFIX_BYTES, pos + FRAME_PREFIX_BYTES + size))
        pos += FRAME_PREFIX_BYTES + size
    return frames, pos
