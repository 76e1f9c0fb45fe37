"""Record batches of magic 2 (KIP-98): a view of the header, the records, and functions that build and check them."""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t

from kafkapy._core.bytes cimport batch_layout as layout
from kafkapy._core.bytes.batch_layout cimport (
    BATCH_OVERHEAD, CONTROL_FLAG, DELETE_HORIZON_FLAG, HEADER_OK, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG,
    BatchHeader, last_sequence_of, parse_batch_header)
from kafkapy._core.bytes.batch_validation cimport crc_is_valid
from kafkapy._core.bytes.codecs cimport CODEC_MASK
from kafkapy._core.bytes.primitives cimport read_varint, read_varlong
from kafkapy._core.bytes.batch_validation import (
    BatchSummary, RecordValidationError, assign_offsets, scan_batches, validate_batches)
from kafkapy._core.bytes.compression import LARGEST_DECOMPRESSED_BYTES, DecompressionError, decompress
from kafkapy._core.bytes.record_batch_builder import RecordBatchBuilder
from kafkapy.errors import ApiError, Error

OVERHEAD = BATCH_OVERHEAD
# The constants of batch_layout for callers that read a header without decoding it. The magic is the newest format's.
LENGTH_AT, LOG_OVERHEAD, SMALLEST_LENGTH = layout.LENGTH_AT, layout.LOG_OVERHEAD, layout.SMALLEST_LENGTH
MAGIC_AT, BATCH_MAGIC = layout.MAGIC_AT, 2
LOW_ATTRIBUTES_AT, TRANSACTIONAL_ATTRIBUTE = layout.ATTRIBUTES_AT + 1, layout.TRANSACTIONAL_FLAG
PRODUCER_ID_AT = layout.PRODUCER_ID_AT


cdef class Record:
    """One record, copied from its batch. The object does not change after its construction.

    `timestamp` is in ms since 1970. The key, the value and the values of headers are bytes or None. A header key is a
    str; bytes in it that are not valid UTF-8 are represented by surrogates (Python's "surrogateescape").
    """

    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly bytes key
    cdef readonly bytes value
    cdef readonly tuple headers

    def __init__(self, int64_t offset, int64_t timestamp, bytes key, bytes value, tuple headers=()):
        self.offset = offset
        self.timestamp = timestamp
        self.key = key
        self.value = value
        self.headers = headers

    def __iter__(self):
        return iter((self.offset, self.timestamp, self.key, self.value, self.headers))

    def __eq__(self, other):
        return isinstance(other, Record) and tuple(self) == tuple(other)

    def __hash__(self):
        return hash(tuple(self))

    def __repr__(self):
        return (f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
                f"headers={self.headers!r})")


@cython.no_gc  # excluded from garbage collection, which could release the memoryview before its buffer
cdef class RecordBatch:
    """A view of one batch in a buffer, which it *pins*. The object does not change, and any thread may use it.

    The constructor raises ApiError CORRUPT_MESSAGE if the buffer does not contain the whole batch; it does not verify
    the checksum.
    """

    cdef object buffer
    cdef Py_buffer view
    cdef bint pinned
    cdef BatchHeader header

    def __cinit__(self, buffer, Py_ssize_t position=0):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.pinned = True
        self.buffer = buffer
        if position < 0 or position > self.view.len:
            raise IndexError(f"position {position} is outside the buffer of {self.view.len} bytes")
        if parse_batch_header(<const uint8_t *>self.view.buf, position, self.view.len, &self.header) != HEADER_OK:
            raise ApiError(Error.CORRUPT_MESSAGE, f"No whole record batch of magic 2 at position {position}")

    def __dealloc__(self):
        if self.pinned:
            PyBuffer_Release(&self.view)

    @property
    def position(self):
        return self.header.position

    @property
    def base_offset(self):
        return self.header.base_offset

    @property
    def size_in_bytes(self):
        return self.header.size

    @property
    def partition_leader_epoch(self):
        return self.header.partition_leader_epoch

    @property
    def magic(self):
        return self.header.magic

    @property
    def crc(self):
        return self.header.crc

    @property
    def attributes(self):
        return self.header.attributes

    @property
    def compression(self):
        return self.header.attributes & CODEC_MASK

    @property
    def timestamp_type(self):
        """0 for create time, 1 for log append time."""
        return 1 if self.header.attributes & LOG_APPEND_TIME_FLAG else 0

    @property
    def is_transactional(self):
        return (self.header.attributes & TRANSACTIONAL_FLAG) != 0

    @property
    def is_control(self):
        return (self.header.attributes & CONTROL_FLAG) != 0

    @property
    def has_delete_horizon(self):
        return (self.header.attributes & DELETE_HORIZON_FLAG) != 0

    @property
    def last_offset_delta(self):
        return self.header.last_offset_delta

    @property
    def last_offset(self):
        return self.header.base_offset + self.header.last_offset_delta

    @property
    def next_offset(self):
        return self.header.base_offset + self.header.last_offset_delta + 1

    @property
    def base_timestamp(self):
        return self.header.base_timestamp

    @property
    def max_timestamp(self):
        return self.header.max_timestamp

    @property
    def producer_id(self):
        return self.header.producer_id

    @property
    def producer_epoch(self):
        return self.header.producer_epoch

    @property
    def base_sequence(self):
        return self.header.base_sequence

    @property
    def last_sequence(self):
        return last_sequence_of(&self.header)

    @property
    def record_count(self):
        return self.header.record_count

    @property
    def data(self):
        """A memoryview of the whole batch."""
        return memoryview(self.buffer).cast("B")[self.header.position:self.header.position + self.header.size]

    def is_valid(self):
        """Returns whether the CRC in the header agrees with the bytes of the batch."""
        return crc_is_valid(<const uint8_t *>self.view.buf, &self.header)

    def ensure_valid(self):
        """Raises ApiError CORRUPT_MESSAGE unless the CRC is valid."""
        if not self.is_valid():
            raise ApiError(
                Error.CORRUPT_MESSAGE, f"Record batch at offset {self.header.base_offset} does not match its CRC")

    def __iter__(self):
        return self.records()

    def records(self, max_bytes=LARGEST_DECOMPRESSED_BYTES):
        """Returns an iterator over the records.

        Raises ApiError CORRUPT_MESSAGE if they do not decompress to at most `max_bytes`. The iterator raises ApiError
        INVALID_RECORD if the records do not fill the batch exactly.
        """
        cdef int codec = self.header.attributes & CODEC_MASK
        payload = self.data[BATCH_OVERHEAD:]
        if codec:
            try:
                payload = decompress(codec, payload, max_bytes)
            except (DecompressionError, ValueError) as error:
                raise ApiError(Error.CORRUPT_MESSAGE, f"Failed to decompress record stream ({error})") from None
        return RecordIterator(payload, self)

    def __repr__(self):
        return (f"RecordBatch(base_offset={self.base_offset}, last_offset={self.last_offset}, "
                f"record_count={self.record_count}, size_in_bytes={self.size_in_bytes})")


cdef class RecordIterator:
    """An iterator over the decompressed records of one batch. Not thread-safe."""

    cdef const uint8_t[::1] payload
    cdef Py_ssize_t pos
    cdef int32_t remaining
    cdef BatchHeader header

    def __cinit__(self, payload, RecordBatch batch not None):
        self.payload = payload
        self.header = batch.header
        self.remaining = batch.header.record_count

    def __iter__(self):
        return self

    def __next__(self):
        cdef Py_ssize_t end = self.payload.shape[0]
        cdef int32_t length = 0
        if self.remaining <= 0:
            if self.pos != end:
                self.pos = end
                raise ApiError(Error.INVALID_RECORD, "Bytes follow the last record of a batch")
            raise StopIteration
        if self.pos < end:
            self.pos = read_varint(&self.payload[0], self.pos, end, &length)
        else:
            self.pos = -1
        if self.pos < 0 or length < 1 or length > end - self.pos:
            raise self.give_up()
        return self.parse(self.pos + length)

    cdef object give_up(self):
        self.remaining = 0
        self.pos = self.payload.shape[0]
        return ApiError(Error.INVALID_RECORD, "Found invalid record structure")

    cdef Record parse(self, Py_ssize_t end):
        """Returns the record whose attributes are at `self.pos` and which ends at `end`, inside the payload.

        Raises ApiError INVALID_RECORD if it is malformed.
        """
        cdef const uint8_t *buf = &self.payload[0]
        cdef int64_t timestamp_delta = 0
        cdef int32_t offset_delta = 0, headers = 0
        cdef Record record = Record.__new__(Record)
        record.headers = ()
        self.pos = read_varlong(buf, self.pos + 1, end, &timestamp_delta)
        if self.pos >= 0:
            self.pos = read_varint(buf, self.pos, end, &offset_delta)
        record.key = self.field(end)
        record.value = self.field(end)
        if self.pos >= 0:
            self.pos = read_varint(buf, self.pos, end, &headers)
        if self.pos < 0 or headers < 0 or headers > end - self.pos:
            raise self.give_up()
        if headers:
            record.headers = self.header_fields(headers, end)
        if self.pos != end:
            raise self.give_up()
        record.offset = self.header.base_offset + offset_delta
        if self.header.attributes & LOG_APPEND_TIME_FLAG:
            record.timestamp = self.header.max_timestamp
        else:
            record.timestamp = <int64_t>(<uint64_t>self.header.base_timestamp + <uint64_t>timestamp_delta)
        self.remaining -= 1
        return record

    cdef bytes field(self, Py_ssize_t end):
        """Returns the bytes after a length prefix at `self.pos`, or None for null, and moves `self.pos` past them.

        Returns None and sets `self.pos` to -1 if the bytes do not end before `end`.
        """
        cdef int32_t length = 0
        cdef const uint8_t *buf = &self.payload[0]
        if self.pos < 0:
            return None
        self.pos = read_varint(buf, self.pos, end, &length)
        if self.pos < 0 or length < 0:
            return None
        if length > end - self.pos:
            self.pos = -1
            return None
        self.pos += length
        return PyBytes_FromStringAndSize(<char *>buf + self.pos - length, length)

    cdef tuple header_fields(self, int32_t count, Py_ssize_t end):
        cdef list pairs = []
        cdef bytes name
        for _ in range(count):
            name = self.field(end)
            if name is None:
                raise self.give_up()
            content = self.field(end)
            if self.pos < 0:
                raise self.give_up()
            pairs.append((name.decode("utf-8", "surrogateescape"), content))
        return tuple(pairs)


def iterate_batches(buffer, Py_ssize_t position=0):
    """Yields the batches of a buffer from `position`, up to an incomplete last batch.

    Raises ApiError CORRUPT_MESSAGE for a malformed batch.
    """
    cdef Py_buffer view
    cdef BatchHeader header
    cdef Py_ssize_t end = memoryview(buffer).nbytes
    while position < end:
        if end - position < 17:
            return
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        parse_batch_header(<const uint8_t *>view.buf, position, end, &header)
        PyBuffer_Release(&view)
        if header.size > end - position:
            return
        batch = RecordBatch(buffer, position)
        yield batch
        position += batch.size_in_bytes
