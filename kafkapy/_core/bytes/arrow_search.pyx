"""Searches the columns of an ArrowBatch for bytes, and reads single rows of it as Python objects.

A search runs over the contiguous bytes of a column without the interpreter lock. The records of a topic that contain a
text are therefore found without a Python object for each record.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcmp

from kafkapy._core.bytes.arrow_batch cimport ArrowBatch
from kafkapy._core.bytes.arrow_columns cimport BYTES_COLUMN, ArrowColumn, offsets_of

cdef extern from "string.h" nogil:
    void *memmem(const void *haystack, size_t size, const void *needle, size_t needle_size)


cdef inline bint is_null(const ArrowColumn *column, int64_t row) noexcept nogil:
    return column.has_nulls and not column.validity[row >> 3] >> (row & 7) & 1


cdef object bytes_at(const ArrowColumn *column, int64_t row):
    """Returns a copy of the bytes in a row of a column; None if the row is null."""
    if is_null(column, row):
        return None
    cdef int32_t *offsets = offsets_of(column)
    return PyBytes_FromStringAndSize(<char *>column.data + offsets[row], offsets[row + 1] - offsets[row])


cdef int64_t row_at(const int32_t *offsets, int64_t low, int64_t high, int64_t position) noexcept nogil:
    """Returns the row, at least `low` and below `high`, that contains the byte at `position` of the column's data.

    `offsets[row]` is the position at which the bytes of a row begin (Arrow's offsets).
    """
    cdef int64_t middle
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[middle] <= position:
            low = middle
        else:
            high = middle
    return low


cdef int64_t next_row(const ArrowColumn *column, int64_t row, int64_t rows, const uint8_t *needle,
                      Py_ssize_t size) noexcept nogil:
    """Returns the first row whose bytes contain the needle, searching from `row` up to `rows` - 1; -1 if there is none.
    """
    cdef const int32_t *offsets = offsets_of(column)
    cdef const uint8_t *at = column.data + offsets[row]
    cdef const uint8_t *end = column.data + offsets[rows]
    cdef const uint8_t *found
    while at < end:
        found = <const uint8_t *>memmem(at, <size_t>(end - at), needle, <size_t>size)
        if found == NULL:
            return -1
        row = row_at(offsets, row, rows, found - column.data)
        if found - column.data + size <= offsets[row + 1]:
            return row
        # The match begins in one row and ends in the next one.
        at = found + 1
    return -1


cdef const ArrowColumn *bytes_column(ArrowBatch batch, str name) except NULL:
    cdef const ArrowColumn *column = batch.place_of(name)[0] if name in batch.columns else NULL
    if column == NULL or column.kind != BYTES_COLUMN:
        raise ValueError(f"the batch has no column of bytes {name!r}")
    return column


def rows_containing(ArrowBatch batch, str column, const uint8_t[::1] needle, int64_t start=0, int64_t limit=-1):
    """Returns the rows from `start` on whose bytes in the column contain the needle; at most `limit` rows (-1: all).

    Null contains nothing. Raises ValueError for an empty needle or a column without bytes.
    """
    cdef const ArrowColumn *searched = bytes_column(batch, column)
    cdef int64_t rows = batch.content.rows, row = max(start, 0)
    cdef Py_ssize_t size = needle.shape[0]
    if not size:
        raise ValueError("an empty needle is in every row")
    found = []
    while row < rows and limit != len(found):
        with nogil:
            row = next_row(searched, row, rows, &needle[0], size)
        if row < 0:
            break
        found.append(row)
        row += 1
    return found


def rows_equal_to(ArrowBatch batch, str column, const uint8_t[::1] content, int64_t start=0, int64_t limit=-1):
    """Returns the rows from `start` on whose bytes in the column are equal to `content`; at most `limit` (-1: all).

    Null is equal to nothing. Raises ValueError for a column without bytes.
    """
    cdef const ArrowColumn *searched = bytes_column(batch, column)
    cdef const int32_t *offsets = offsets_of(searched)
    cdef int64_t rows = batch.content.rows, row
    cdef Py_ssize_t size = content.shape[0]
    found = []
    for row in range(max(start, 0), rows):
        if limit == len(found):
            break
        if offsets[row + 1] - offsets[row] == size and not is_null(searched, row) and (
                size == 0 or memcmp(searched.data + offsets[row], &content[0], <size_t>size) == 0):
            found.append(row)
    return found


def read_row(ArrowBatch batch, int64_t row):
    """Returns a row as a dictionary from the names of the batch's columns to values.

    Keys and values are bytes or None; headers are a tuple of pairs of name and bytes or None; a timestamp is in the
    batch's unit. Raises IndexError for a row that the batch does not have.
    """
    cdef const ArrowColumn *column
    if not 0 <= row < batch.content.rows:
        raise IndexError(row)
    found = {}
    for name in batch.columns:
        column = batch.place_of(name)[0]
        if name in ("key", "value"):
            found[name] = bytes_at(column, row)
        elif name == "topic":
            found[name] = bytes_at(column, row).decode()
        elif name == "headers":
            found[name] = headers_at(column, row)
        elif column.width == 4:
            found[name] = (<int32_t *>column.values)[row]
        else:
            found[name] = (<int64_t *>column.values)[row]
    return found


cdef tuple headers_at(const ArrowColumn *headers, int64_t row):
    cdef const ArrowColumn *pair = headers.children[0]
    cdef int64_t at
    found = []
    for at in range(offsets_of(headers)[row], offsets_of(headers)[row + 1]):
        found.append((bytes_at(pair.children[0], at).decode("utf-8", "replace"), bytes_at(pair.children[1], at)))
    return tuple(found)
