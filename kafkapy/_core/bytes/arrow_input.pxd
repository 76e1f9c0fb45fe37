"""ArrowInput: the rows of a table of another library, read through Arrow's C interfaces without Python objects."""
from libc.stdint cimport int64_t, uint8_t

from kafkapy._core.bytes.arrow_batch cimport ArrowArray, ArrowSchema
from kafkapy._core.bytes.arrow_stream cimport ArrowArrayStream

# The results of reading a row.
cdef enum:
    ROW_OK = 0
    ROW_NULL = 1                         # only of `read_number`
    ROW_BROKEN = 2                       # the buffers contradict each other
    ROW_TOO_LARGE = 3                    # a value that a record cannot have

cdef enum:
    NO_LAYOUT = 0                        # no column; each row is null
    OFFSETS_32 = 1
    OFFSETS_64 = 2
    VIEWS = 3
    FIXED_BYTES = 4

# A column of binary or text values. The buffers belong to the current batch.
cdef struct BytesColumn:
    int layout
    bint is_text
    int64_t width                        # bytes of a value of FIXED_BYTES
    int64_t first                        # index of the first row in the buffers
    const uint8_t *validity              # NULL: no row is null
    const uint8_t *positions             # offsets, or views
    const uint8_t *data
    int64_t data_start, data_end         # offsets of the first row and after the last row
    const void **view_buffers
    const uint8_t *view_sizes            # int64 values
    int64_t view_count

# A column of integers, or of timestamps, which are read in ms.
cdef struct NumberColumn:
    int width                            # bytes of a value; 0: no column, each row is null
    bint is_signed
    int64_t multiplier, divisor
    int64_t first
    const uint8_t *validity
    const uint8_t *values

# A column of lists of headers, which are structs of a name and a value.
cdef struct HeadersColumn:
    int width                            # bytes of an offset; 0: no column, each row is null
    int64_t first
    const uint8_t *validity
    const uint8_t *offsets
    int64_t element_count
    const uint8_t *element_validity
    int64_t first_element
    BytesColumn name, content


cdef class ArrowInput:
    cdef ArrowArrayStream stream
    cdef ArrowSchema schema
    cdef ArrowArray batch
    cdef bint has_stream
    cdef int places[5]                   # indexes of the columns in the table, -1 for a column that it lacks
    cdef readonly int64_t rows           # of the current batch
    cdef readonly int64_t rows_before    # of all earlier batches
    cdef BytesColumn key, value
    cdef NumberColumn partition, timestamp
    cdef HeadersColumn headers

    cdef int take_stream(self, object capsule) except -1
    cdef int take_array(self, object capsules) except -1
    cdef int find_columns(self) except -1
    cdef const ArrowSchema *column_schema(self, int index) except NULL
    cdef int open_batch(self) except -1


# Set the bytes of a row; a size of -1 is null. They stay valid until the next batch is read.
cdef int read_bytes(const BytesColumn *column, int64_t row, const uint8_t **data, Py_ssize_t *size) noexcept nogil
# Sets the number in a row.
cdef int read_number(const NumberColumn *column, int64_t row, int64_t *number) noexcept nogil
# Sets the range of the headers of a row; `start` is -1 for null.
cdef int read_headers(const HeadersColumn *column, int64_t row, int64_t *start, int64_t *end) noexcept nogil
# Raises the exception for the status of a column in a row of the current batch, unless it is ROW_OK or ROW_NULL.
cdef int check_status(int status, ArrowInput rows, int64_t row, str column) except -1
