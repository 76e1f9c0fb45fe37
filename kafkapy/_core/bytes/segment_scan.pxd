# The walk over batch headers, for the gate's fetch path.
from libc.stdint cimport int64_t

# Does what find_batch does, without the interpreter lock. Returns 1 with the position and size of the batch, 0 if there
# is no batch, or -1 for an error or a damaged file (Python finds out which).
cdef int locate_batch(int fd, int64_t position, int64_t end, int64_t offset, int64_t *found_position,
                      int64_t *found_size) noexcept nogil
