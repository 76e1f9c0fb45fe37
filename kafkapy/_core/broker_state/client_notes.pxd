# Which clients have appended to an audited partition, as runs of offsets. The gate and the Python path note each
# append; the thread of the audit gets copies.
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    MOST_CLIENT_IDS = 1024                    # the name of each further client is not stored
    NAME_SLOTS = 2048                    # a power of two
    LONGEST_CLIENT_ID = 255                   # bytes; the name of a client with a longer id is not stored
    MOST_CLIENT_RUNS = 16384             # runs of a partition that the audit has not read


cdef struct ClientName:
    uint8_t *text                        # owned
    int32_t length


cdef class ClientNames:
    cdef ClientName names[MOST_CLIENT_IDS]    # by number; number 0 has no text
    cdef int32_t slots[NAME_SLOTS]       # hash table of numbers; 0: empty
    cdef int32_t count
    # Returns the number of a client id, which is stored if it is new; 0 if it is empty or cannot be stored.
    cdef int32_t number_of(self, const uint8_t *text, int32_t length) noexcept nogil
    # Returns whether the number is that of this client id.
    cdef bint is_name(self, int32_t number, const uint8_t *text, int32_t length) noexcept nogil


cdef struct ClientRun:                   # up to the first offset of the next run
    int64_t first_offset
    int32_t client                       # number in ClientNames


cdef class ClientNotes:
    cdef ClientNames names
    cdef ClientRun *runs
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity
    # Notes that the client appends a batch at `base_offset`. `length` may be negative, for a client id that is null.
    cdef void note(self, int64_t base_offset, const uint8_t *client_id, int32_t length) noexcept nogil
    cdef bint grow(self) noexcept nogil
    # Returns the index of the run that contains the offset, or -1 if the offset is before the first run.
    cdef Py_ssize_t place_of(self, int64_t offset) noexcept nogil
