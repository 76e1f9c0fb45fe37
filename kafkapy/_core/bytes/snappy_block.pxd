"""Decompresses a block of snappy (format description of 2011): a length, then literals and copies of earlier output.

No dependency of kafkapy offers this to C, and the format is small. Leaf functions; they *borrow*.
"""
from libc.stdint cimport int64_t, uint8_t

cdef enum:
    SNAPPY_SLACK = 16                    # bytes after the block that decompressing may overwrite

# Returns the decompressed length that the block claims; -1 if there is none, or an impossible one for its size.
cdef int64_t snappy_claim(const uint8_t *block, Py_ssize_t size) noexcept nogil
# Decompresses the block into `out`, which has room for the claim and the slack. Returns whether it is complete and has
# the claimed length.
cdef bint snappy_decompress(const uint8_t *block, Py_ssize_t size, uint8_t *out) noexcept nogil
