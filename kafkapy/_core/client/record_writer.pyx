"""Writes the bytes of a producer's records into batches."""
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafkapy._core.bytes.primitives cimport (
    LARGEST_VARLONG, read_varint, read_varlong, size_of_varlong, write_varlong)


cdef class HeaderWriter:

    def __dealloc__(self):
        PyMem_Free(self.memory)

    cdef int begin(self, int64_t count) except -1:
        """Begins the headers of the next record: writes `count`, the number of its headers."""
        self.size = 0
        reserve_headers(self, 0)
        self.size = write_varlong(self.memory, 0, count)
        return 0

    cdef int put(self, const uint8_t *data, Py_ssize_t size) except -1:
        """Appends the name or the value of a header; a size of -1 is null."""
        reserve_headers(self, max(size, 0))
        self.size = write_field(self.memory, self.size, data, size)
        return 0

    cdef int put_all(self, object headers) except -1:
        """Encodes the headers of one record: pairs of a name and a value, or a dict.

        Names and values are str or bytes-like; a value may be None.
        """
        cdef list pairs = list(headers.items()) if isinstance(headers, dict) else list(headers)
        cdef bytes encoded
        self.begin(len(pairs))
        for name, content in pairs:
            encoded = name.encode("utf-8", "surrogateescape") if isinstance(name, str) else bytes(name)
            self.put(encoded, len(encoded))
            if content is None:
                self.put(NULL, -1)
            else:
                encoded = content.encode() if isinstance(content, str) else bytes(content)
                self.put(encoded, len(encoded))
        return 0


cdef int reserve_headers(HeaderWriter headers, Py_ssize_t more) except -1:
    """Reserves memory for a field of `more` bytes with its length."""
    cdef Py_ssize_t wanted = headers.size + more + LARGEST_VARLONG
    cdef uint8_t *grown
    if more > INT32_MAX - headers.size:
        raise ValueError("the headers of a record are too large")
    if wanted > headers.capacity:
        wanted = max(wanted, headers.capacity * 2)
        grown = <uint8_t *>PyMem_Realloc(headers.memory, wanted)
        if grown == NULL:
            raise MemoryError()
        headers.memory, headers.capacity = grown, wanted
    return 0


cdef inline Py_ssize_t size_of_field(Py_ssize_t size) noexcept nogil:
    return 1 if size < 0 else size_of_varlong(size) + size


cdef inline Py_ssize_t write_field(uint8_t *buf, Py_ssize_t pos, const uint8_t *data, Py_ssize_t size) noexcept nogil:
    pos = write_varlong(buf, pos, size)
    if size > 0:
        memcpy(buf + pos, data, size)
        pos += size
    return pos


cdef Py_ssize_t size_of_content(const RecordContent *content) noexcept nogil:
    return size_of_field(content.key_size) + size_of_field(content.value_size) + max(content.headers_size, 1)


cdef int write_record(RecordBatchBuilder batch, int64_t timestamp, const RecordContent *content,
                      Py_ssize_t rest) except -1:
    cdef int64_t timestamp_delta = 0 if batch.record_count == 0 else timestamp - batch.base_timestamp
    cdef Py_ssize_t size = 1 + size_of_varlong(timestamp_delta) + size_of_varlong(batch.record_count) + rest, pos
    if size > INT32_MAX:
        raise ValueError(f"a record of {size} bytes is too large")
    batch.reserve(size + LARGEST_VARLONG)
    pos = begin_record(batch, size, timestamp_delta)
    pos = write_field(batch.records, pos, content.key, content.key_size)
    pos = write_field(batch.records, pos, content.value, content.value_size)
    if content.headers_size == 0:
        batch.records[pos] = 0
        pos += 1
    else:
        memcpy(batch.records + pos, content.headers, content.headers_size)
        pos += content.headers_size
    end_record(batch, pos, timestamp)
    return 0


cdef int copy_record(RecordBatchBuilder source, RecordBatchBuilder part, Py_ssize_t pos, Py_ssize_t end) except -1:
    cdef int64_t timestamp_delta = 0, timestamp
    cdef int32_t offset_delta = 0
    pos = read_varlong(source.records, pos + 1, end, &timestamp_delta)
    timestamp = source.base_timestamp + timestamp_delta
    pos = read_varint(source.records, pos, end, &offset_delta)
    timestamp_delta = 0 if part.record_count == 0 else timestamp - part.base_timestamp
    cdef Py_ssize_t size = 1 + size_of_varlong(timestamp_delta) + size_of_varlong(part.record_count) + end - pos, at
    part.reserve(size + LARGEST_VARLONG)
    at = begin_record(part, size, timestamp_delta)
    memcpy(part.records + at, source.records + pos, end - pos)
    end_record(part, at + end - pos, timestamp)
    return 0


cdef Py_ssize_t begin_record(RecordBatchBuilder batch, Py_ssize_t size, int64_t timestamp_delta) noexcept:
    """Writes the fields before the key of the next record; returns the position of the key."""
    cdef Py_ssize_t pos = write_varlong(batch.records, batch.length, size)
    batch.records[pos] = 0
    pos = write_varlong(batch.records, pos + 1, timestamp_delta)
    return write_varlong(batch.records, pos, batch.record_count)


cdef void end_record(RecordBatchBuilder batch, Py_ssize_t pos, int64_t timestamp) noexcept:
    """Counts the record that ends at the position `pos` as part of the batch."""
    batch.largest_record = max(batch.largest_record, pos - batch.length)
    batch.length = pos
    if batch.record_count == 0:
        batch.base_timestamp = timestamp
    batch.max_timestamp = max(batch.max_timestamp, timestamp)
    batch.last_offset_delta = batch.record_count
    batch.record_count += 1
