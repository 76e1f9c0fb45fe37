"""Copies records of magic 2 into columns, one batch at a time. Leaf functions that *borrow* the records."""
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.bytes.arrow_columns cimport ArrowColumn, RecordColumns
from kafkapy._core.client.fetched_batches cimport RecordSpan

cdef enum:
    ROWS_OK = 0                          # the batch has no more records, or the columns take no more rows
    ROWS_FULL = 1                        # the columns take no more bytes
    ROWS_NO_MEMORY = 2
    ROWS_DAMAGED = 3                     # the rows before this record were added
    ROWS_REACHED_END = 4                 # a record at `until_offset` or after it

# Adds rows from the span's position on. Records before `next_offset` are skipped; it advances past the last added one.
# Of each record, only its length and the fields of the requested columns are read.
cdef int put_records(RecordColumns *columns, RecordSpan *span, int64_t *next_offset,
                     int64_t until_offset) noexcept nogil
# Reserves memory for a row and its bytes, for rows that are added one by one.
cdef int reserve_row(RecordColumns *columns, int64_t bytes) noexcept nogil
# Adds one row; memory for it must be reserved.
cdef void put_row(RecordColumns *columns, int64_t offset, int64_t timestamp, const uint8_t *key, int64_t key_size,
                  const uint8_t *value, int64_t value_size) noexcept nogil
# Sets the values that all rows from `first` on share. `topic` has as many bytes as the columns were told.
cdef void put_constants(RecordColumns *columns, int64_t first, const uint8_t *topic, int32_t partition,
                        int32_t timestamp_type) noexcept nogil
