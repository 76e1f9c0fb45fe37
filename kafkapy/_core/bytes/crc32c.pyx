"""CRC-32C of bytes-like objects, by the fastest variant that the processor supports."""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer

cdef extern from "crc32c_hardware.h" nogil:
    int crc32c_prepare()
    uint32_t crc32c_by(int variant, uint32_t crc, const uint8_t *bytes, size_t length)

cdef int fastest = crc32c_prepare()
VARIANTS = ("table", "one stream", "three streams")
FASTEST_VARIANT = fastest

cdef enum:
    WORTH_RELEASING = 65536              # from this many bytes on the interpreter lock is released: a few microseconds


cdef uint32_t crc32c_update(uint32_t crc, const uint8_t *bytes, size_t length) noexcept nogil:
    return crc32c_by(fastest, crc, bytes, length)


def crc32c(buffer, Py_ssize_t start=0, uint32_t crc=0):
    """Returns the CRC-32C of `buffer[start:]`; `crc` is the checksum of the preceding bytes, or 0 if there are none.

    Raises IndexError if `start` is outside the buffer.
    """
    return crc32c_with(fastest, buffer, start, crc)


def crc32c_with(int variant, buffer, Py_ssize_t start=0, uint32_t crc=0):
    """Returns the same as `crc32c`, computed by the implementation with the index `variant` in VARIANTS.

    For tests and measurements. Raises ValueError if the processor does not support the variant.
    """
    if variant < 0 or variant > fastest:
        raise ValueError(f"CRC-32C by {variant} is not possible on this processor")
    cdef Py_buffer view
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    try:
        if start < 0 or start > view.len:
            raise IndexError(f"start {start} is outside the buffer of {view.len} bytes")
        if view.len - start < WORTH_RELEASING:
            return crc32c_by(variant, crc, <const uint8_t *>view.buf + start, <size_t>(view.len - start))
        with nogil:
            crc = crc32c_by(variant, crc, <const uint8_t *>view.buf + start, <size_t>(view.len - start))
        return crc
    finally:
        PyBuffer_Release(&view)
