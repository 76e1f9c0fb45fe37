"""Builds record batches of magic 2 for the metadata log, the coordinators' topics, the client and tests."""
from cpython.buffer cimport PyBUF_READ, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from kafkapy._core.bytes.batch_layout cimport (
    ATTRIBUTES_AT, BASE_OFFSET_AT, BASE_SEQUENCE_AT, BASE_TIMESTAMP_AT, BATCH_OVERHEAD, CONTROL_FLAG, CRC_AT,
    LAST_OFFSET_DELTA_AT, LEADER_EPOCH_AT, LENGTH_AT, LOG_APPEND_TIME_FLAG, LOG_OVERHEAD, MAGIC_AT,
    MAX_TIMESTAMP_AT, NO_TIMESTAMP, PRODUCER_EPOCH_AT, PRODUCER_ID_AT, RECORD_COUNT_AT, TRANSACTIONAL_FLAG)
from kafkapy._core.bytes.codecs cimport LARGEST_CODEC
from kafkapy._core.bytes.crc32c cimport crc32c_update
from kafkapy._core.bytes.primitives cimport (
    LARGEST_VARLONG, size_of_varlong, store_int16, store_int32, store_int64, store_uint32, write_varlong)
from kafkapy._core.bytes.compression import compress


cdef class RecordBatchBuilder:
    """A batch under construction, with the encoded records appended so far. Not thread-safe.

    `build` may be called any number of times.
    """

    def __init__(self, int64_t base_offset=0, *, int compression=0, level=None, int timestamp_type=0,
                 int64_t producer_id=-1, int16_t producer_epoch=-1, int32_t base_sequence=-1,
                 bint is_transactional=False, bint is_control=False, int32_t partition_leader_epoch=-1):
        if compression < 0 or compression > LARGEST_CODEC:
            raise ValueError(f"unknown compression codec {compression}")
        self.base_offset = base_offset
        self.compression = compression
        self.level = level
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.partition_leader_epoch = partition_leader_epoch
        self.base_timestamp = self.max_timestamp = NO_TIMESTAMP
        self.last_offset_delta = -1
        self.attributes = (compression | (LOG_APPEND_TIME_FLAG if timestamp_type else 0)
                           | (TRANSACTIONAL_FLAG if is_transactional else 0) | (CONTROL_FLAG if is_control else 0))

    def __dealloc__(self):
        PyMem_Free(self.memory)

    cdef int reserve(self, Py_ssize_t more) except -1:
        cdef Py_ssize_t wanted = self.length + more
        cdef uint8_t *grown
        if wanted > self.capacity:
            wanted = max(wanted, self.capacity * 2, 512)
            grown = <uint8_t *>PyMem_Realloc(self.memory, BATCH_OVERHEAD + wanted)
            if grown == NULL:
                raise MemoryError()
            self.memory = grown
            self.records = grown + BATCH_OVERHEAD
            self.capacity = wanted
        return 0

    def append(self, int64_t timestamp, key, value, headers=(), *, offset=None):
        """Adds a record at the next offset, or at `offset`, which may be higher but not lower. Returns its offset.

        `timestamp` is in ms since 1970. Key and value are bytes-like or None; headers are pairs of a name (str or
        bytes) and a bytes-like value or None. A str is written as UTF-8 with Python's error handler "surrogateescape",
        because names that were read from invalid UTF-8 contain surrogates.
        """
        cdef int64_t at = self.base_offset + self.last_offset_delta + 1 if offset is None else offset
        cdef int64_t offset_delta = at - self.base_offset
        if offset_delta <= self.last_offset_delta or offset_delta > INT32_MAX:
            raise ValueError(f"offset {at} does not follow {self.base_offset + self.last_offset_delta}")
        cdef list fields = [key, value]
        for name, content in headers:
            if name is None:
                raise ValueError("the key of a header is not null")
            fields.append(name.encode("utf-8", "surrogateescape") if isinstance(name, str) else name)
            fields.append(content)
        cdef int64_t timestamp_delta = 0 if self.record_count == 0 else timestamp - self.base_timestamp
        cdef Py_ssize_t size = (1 + size_of_varlong(timestamp_delta) + size_of_varlong(offset_delta)
                                + size_of_varlong((len(fields) - 2) // 2))
        for field in fields:
            size += 1 if field is None else size_of_varlong(len(field)) + len(field)
        if size > INT32_MAX:
            raise ValueError(f"a record of {size} bytes is too large")
        self.reserve(size + LARGEST_VARLONG)
        self.put_record(size, timestamp_delta, offset_delta, fields)
        if self.record_count == 0:
            self.base_timestamp = timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.last_offset_delta = <int32_t>offset_delta
        self.record_count += 1
        return at

    cdef int put_record(self, Py_ssize_t size, int64_t timestamp_delta, int64_t offset_delta, list fields) except -1:
        cdef Py_ssize_t pos = write_varlong(self.records, self.length, size), index
        self.records[pos] = 0
        pos = write_varlong(self.records, pos + 1, timestamp_delta)
        pos = write_varlong(self.records, pos, offset_delta)
        for index in range(len(fields)):
            if index == 2:
                pos = write_varlong(self.records, pos, (len(fields) - 2) // 2)
            pos = self.put_field(pos, fields[index])
        if len(fields) == 2:
            pos = write_varlong(self.records, pos, 0)
        self.length = pos
        return 0

    cdef Py_ssize_t put_field(self, Py_ssize_t pos, object field) except -1:
        cdef Py_buffer view
        if field is None:
            return write_varlong(self.records, pos, -1)
        PyObject_GetBuffer(field, &view, PyBUF_SIMPLE)
        try:
            if view.len != len(field):
                raise ValueError("keys, values and headers are buffers of bytes")
            pos = write_varlong(self.records, pos, view.len)
            memcpy(self.records + pos, view.buf, view.len)
            return pos + view.len
        finally:
            PyBuffer_Release(&view)

    @property
    def size_estimate(self):
        """The size of the uncompressed batch in bytes."""
        return BATCH_OVERHEAD + self.length

    def build(self):
        """Returns the batch as bytes. Raises ValueError if it has no record or is too large."""
        if self.record_count == 0:
            raise ValueError("a record batch has at least one record")
        cdef const uint8_t *body = self.records
        cdef Py_ssize_t body_size = self.length
        cdef bytes compressed
        if self.compression:
            compressed = compress(
                self.compression, PyMemoryView_FromMemory(<char *>self.records, self.length, PyBUF_READ), self.level)
            body, body_size = <const uint8_t *>PyBytes_AS_STRING(compressed), len(compressed)
        cdef bytes batch = PyBytes_FromStringAndSize(NULL, BATCH_OVERHEAD + body_size)
        cdef uint8_t *at = <uint8_t *>PyBytes_AS_STRING(batch)
        memcpy(at + BATCH_OVERHEAD, body, body_size)
        self.write_header(at, BATCH_OVERHEAD + body_size)
        return batch

    cdef int write_header(self, uint8_t *at, Py_ssize_t size) except -1:
        if size > INT32_MAX:
            raise ValueError(f"a record batch of {size} bytes is too large")
        store_int64(at + BASE_OFFSET_AT, self.base_offset)
        store_int32(at + LENGTH_AT, <int32_t>(size - LOG_OVERHEAD))
        store_int32(at + LEADER_EPOCH_AT, self.partition_leader_epoch)
        at[MAGIC_AT] = 2
        store_int16(at + ATTRIBUTES_AT, self.attributes)
        store_int32(at + LAST_OFFSET_DELTA_AT, self.last_offset_delta)
        store_int64(at + BASE_TIMESTAMP_AT, self.base_timestamp)
        store_int64(at + MAX_TIMESTAMP_AT, self.max_timestamp)
        store_int64(at + PRODUCER_ID_AT, self.producer_id)
        store_int16(at + PRODUCER_EPOCH_AT, self.producer_epoch)
        store_int32(at + BASE_SEQUENCE_AT, self.base_sequence)
        store_int32(at + RECORD_COUNT_AT, self.record_count)
        store_uint32(at + CRC_AT, crc32c_update(0, at + ATTRIBUTES_AT, <size_t>(size - ATTRIBUTES_AT)))
        return 0

    def __len__(self):
        return self.record_count
