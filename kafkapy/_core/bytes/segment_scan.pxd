# The walk over batch headers, for the gated fetch path.
from libc.stdint cimport int64_t

# find_batch without the interpreter lock: 1 with place and size of the batch, 0 if there is none, -1 for an error or a
# file that is damaged (Python finds out which).
cdef int locate_batch(int fd, int64_t position, int64_t end, int64_t offset, int64_t *found_position,
                      int64_t *found_size) noexcept nogil
