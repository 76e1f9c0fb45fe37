"""The memory of Arrow's columns: fixed-width values, bytes and text behind int32 offsets, lists of structs.

    validity  one bit a row, least significant first; 0: null. Only where rows can be null
    values    `capacity` fixed-width values, or `capacity + 1` offsets into `data` (or into the child's rows)
    data      bytes

Plain C memory with a count of owners, since whoever takes a column may let go of it on any thread, without the
interpreter lock. While it is filled it has one owner. Functions that grow it answer COLUMN_ statuses; nothing is written
beyond what was reserved.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    COLUMN_OK = 0
    COLUMN_FULL = 1                      # the offsets would not fit an int32
    COLUMN_NO_MEMORY = 2

# What a column is made of, beside its validity.
cdef enum:
    FIXED_COLUMN = 0                     # values
    BYTES_COLUMN = 1                     # offsets, data
    LIST_COLUMN = 2                      # offsets into the rows of its child
    STRUCT_COLUMN = 3                    # children with as many rows

cdef struct ArrowColumn:
    int owners
    const char *name                     # of the life of the process, as is the format
    const char *format                   # Arrow's notation of the type
    int kind
    int width                            # bytes of a row in `values`
    bint has_nulls
    int64_t length, capacity             # rows
    int64_t null_count                   # once counted
    uint8_t *validity
    uint8_t *values
    uint8_t *data
    int64_t data_capacity
    ArrowColumn *children[2]
    int child_count

# The columns of record batches that are filled together; NULL: not wanted.
cdef struct RecordColumns:
    int64_t rows
    int64_t row_limit
    int64_t byte_limit                   # of keys and values, about
    int64_t timestamp_factor             # 1: milliseconds, 1000: microseconds
    ArrowColumn *key
    ArrowColumn *value
    ArrowColumn *topic
    Py_ssize_t topic_size                # bytes of the name that is put there
    ArrowColumn *partition
    ArrowColumn *offset
    ArrowColumn *timestamp
    ArrowColumn *timestamp_type
    ArrowColumn *headers                 # a list of structs of name and value


# A column without rows, or NULL. `width` is that of a fixed value.
cdef ArrowColumn *new_column(const char *name, const char *format, int kind, int width, bint has_nulls) noexcept nogil
# Gives a column to its parent. False, and the child dropped, if one of them is NULL.
cdef bint adopt_column(ArrowColumn *parent, ArrowColumn *child) noexcept nogil
cdef ArrowColumn *hold_column(ArrowColumn *column) noexcept nogil
# One owner less; the last one frees it and lets go of its children. NULL is allowed.
cdef void drop_column(ArrowColumn *column) noexcept nogil
# Room for so many more rows, and bytes of rows, behind the first `rows`.
cdef int reserve_rows(ArrowColumn *column, int64_t rows, int64_t more) noexcept nogil
cdef int reserve_data(ArrowColumn *column, int64_t rows, int64_t more) noexcept nogil
# There will be no more than these rows: counts nulls, of children too. NULL is allowed.
cdef void close_column(ArrowColumn *column, int64_t rows) noexcept nogil

cdef inline int32_t *offsets_of(const ArrowColumn *column) noexcept nogil:
    return <int32_t *>column.values


cdef inline void set_valid(ArrowColumn *column, int64_t row) noexcept nogil:
    column.validity[row >> 3] |= <uint8_t>(1 << (row & 7))
