"""The memory of Arrow's columns: fixed-width values, bytes and text with int32 offsets, and lists of structs.

    validity  one bit per row, least significant bit first; 0 is null; only in columns that can have nulls
    values    `capacity` fixed-width values, or `capacity + 1` offsets into `data` (or into the child's rows)
    data      bytes

A column is plain C memory with a reference count, because a reader may release it on any thread without the
interpreter lock. A column has one owner while it is filled. Functions that grow a column return a COLUMN_ status;
nothing is written beyond the reserved memory.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    COLUMN_OK = 0
    COLUMN_FULL = 1                      # the offsets would not fit an int32
    COLUMN_NO_MEMORY = 2

# The buffers of a column, in addition to its validity.
cdef enum:
    FIXED_COLUMN = 0                     # values
    BYTES_COLUMN = 1                     # offsets, data
    LIST_COLUMN = 2                      # offsets into the rows of its child
    STRUCT_COLUMN = 3                    # children with the same number of rows

cdef struct ArrowColumn:
    int owners
    const char *name                     # static, like the format
    const char *format                   # Arrow's notation of the type
    int kind
    int width                            # bytes of a row in `values`
    bint has_nulls
    int64_t length, capacity             # rows
    int64_t null_count                   # set by close_column
    uint8_t *validity
    uint8_t *values
    uint8_t *data
    int64_t data_capacity
    ArrowColumn *children[2]
    int child_count

# The columns of record batches that are filled together; NULL if a column was not requested.
cdef struct RecordColumns:
    int64_t rows
    int64_t row_limit
    int64_t byte_limit                   # approximate bytes of keys and values
    int64_t timestamp_factor             # 1: milliseconds, 1000: microseconds
    const uint8_t *needle                # bytes that added records contain, or NULL; *borrowed*
    size_t needle_size
    int64_t scanned                      # records that were searched for the needle; at most about `row_limit`
    ArrowColumn *key
    ArrowColumn *value
    ArrowColumn *topic
    Py_ssize_t topic_size                # bytes of the name to write
    ArrowColumn *partition
    ArrowColumn *offset
    ArrowColumn *timestamp
    ArrowColumn *timestamp_type
    ArrowColumn *headers                 # a list of structs of name and value


# Returns a column without rows, or NULL. `width` is the size of a fixed-width value.
cdef ArrowColumn *new_column(const char *name, const char *format, int kind, int width, bint has_nulls) noexcept nogil
# Adds a column to its parent. Returns False, and releases the child, if one of them is NULL.
cdef bint adopt_column(ArrowColumn *parent, ArrowColumn *child) noexcept nogil
cdef ArrowColumn *hold_column(ArrowColumn *column) noexcept nogil
# Releases one reference; the last one frees the column and releases its children. NULL is allowed.
cdef void drop_column(ArrowColumn *column) noexcept nogil
# Reserves memory for more rows, and for their bytes, after the first `rows`.
cdef int reserve_rows(ArrowColumn *column, int64_t rows, int64_t more) noexcept nogil
cdef int reserve_data(ArrowColumn *column, int64_t rows, int64_t more) noexcept nogil
# Sets the final number of rows and counts the nulls, in children too. NULL is allowed.
cdef void close_column(ArrowColumn *column, int64_t rows) noexcept nogil

cdef inline int32_t *offsets_of(const ArrowColumn *column) noexcept nogil:
    return <int32_t *>column.values


cdef inline void set_valid(ArrowColumn *column, int64_t row) noexcept nogil:
    column.validity[row >> 3] |= <uint8_t>(1 << (row & 7))
