"""The positions of the record fields that the log cleaner reads. Inline leaf functions; they *borrow*.

The layout of a record is in record_scanner.pxd. Headers are skipped by the length of the record.
"""
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.bytes.primitives cimport read_varint, read_varlong


cdef struct RecordFields:
    Py_ssize_t start                     # of the record, at its length field
    Py_ssize_t body                      # at its attributes
    Py_ssize_t rest                      # after the timestamp delta
    Py_ssize_t end
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_length                   # negative: null
    Py_ssize_t key
    int32_t value_length


cdef inline bint locate_record(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, RecordFields *fields) noexcept nogil:
    """Locates the fields of the record at `pos`; returns False if it is malformed."""
    cdef int32_t length = 0
    fields.start = pos
    pos = read_varint(buf, pos, end, &length)
    if pos < 0 or length < 1 or length > end - pos:
        return False
    fields.body = pos
    end = pos + length
    fields.end = end
    pos = read_varlong(buf, pos + 1, end, &fields.timestamp_delta)
    if pos < 0:
        return False
    fields.rest = pos
    pos = read_varint(buf, pos, end, &fields.offset_delta)
    if pos < 0:
        return False
    pos = read_varint(buf, pos, end, &fields.key_length)
    if pos < 0 or fields.key_length > end - pos:
        return False
    fields.key = pos
    if fields.key_length > 0:
        pos += fields.key_length
    pos = read_varint(buf, pos, end, &fields.value_length)
    return pos >= 0 and fields.value_length <= end - pos
