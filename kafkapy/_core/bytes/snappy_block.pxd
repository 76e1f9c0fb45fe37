"""Decompresses a block of snappy (its format description, 2011): a length, then literals and copies of what came before.

No library that we depend on offers this to C, and the format is small. Leaf stratum, *borrows*.
"""
from libc.stdint cimport int64_t, uint8_t

cdef enum:
    SNAPPY_SLACK = 16                    # bytes behind the block that decompressing may overwrite

# What the block says that it decompresses to; -1 if it does not say, or no block of its size could.
cdef int64_t snappy_claim(const uint8_t *block, Py_ssize_t size) noexcept nogil
# The block into `out`, which has room for the claim and the slack. Whether it is a whole one that keeps its claim.
cdef bint snappy_decompress(const uint8_t *block, Py_ssize_t size, uint8_t *out) noexcept nogil
