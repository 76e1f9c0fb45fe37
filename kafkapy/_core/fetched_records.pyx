"""What a consumer has fetched of a partition, taken out record by record: aborted and control batches passed over."""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

from kafkapy._core.batch_layout cimport (
    BATCH_OVERHEAD, CONTROL_FLAG, HEADER_INCOMPLETE, HEADER_OK, HEADER_OLD_MAGIC, LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG, BatchHeader, parse_batch_header)
from kafkapy._core.batch_validation cimport crc_is_valid
from kafkapy._core.codecs cimport CODEC_MASK
from kafkapy._core.primitives cimport load_int16, read_varint, read_varlong
from kafkapy._core.compression import DecompressionError, decompress
from kafkapy.errors import ApiError, Error

cdef int64_t LARGEST_DECOMPRESSED_BYTES = 1 << 30


cdef class ConsumerRecord:
    """One record as a consumer sees it. Immutable. `timestamp` in ms since 1970, `timestamp_type` 0: the producer's, 1:
    the broker's append time; key, value and headers' values are bytes or None, or what the deserializers made."""

    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int32_t leader_epoch
    cdef readonly int64_t offset, timestamp
    cdef readonly int8_t timestamp_type
    cdef readonly object key, value
    cdef readonly tuple headers

    def with_content(self, key, value):
        """The same record with another key and value."""
        cdef ConsumerRecord made = ConsumerRecord.__new__(ConsumerRecord)
        made.topic, made.partition, made.leader_epoch = self.topic, self.partition, self.leader_epoch
        made.offset, made.timestamp, made.timestamp_type = self.offset, self.timestamp, self.timestamp_type
        made.key, made.value, made.headers = key, value, self.headers
        return made

    def __repr__(self):
        return (f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
                f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})")


@cython.no_gc  # not even traversed: a collection would clear the memoryview that it pins, from under its view
cdef class FetchedRecords:
    """Owns the place in one partition's fetched bytes, which it *pins*, and the decompressed batch it is in.

    `next_offset` is where the consumer goes on. Not thread-safe.
    """

    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int64_t next_offset
    cdef readonly int64_t high_watermark, last_stable_offset, log_start_offset
    cdef readonly int32_t leader_epoch       # of the batch read last; -1: none yet
    cdef readonly bint is_exhausted
    cdef readonly int64_t end_offset         # behind the last whole batch: where the next fetch goes on
    cdef object buffer
    cdef Py_buffer view
    cdef bint pinned
    cdef bint check_crcs, read_committed
    cdef list aborted                    # (first offset, producer id), by offset; those met already are taken off
    cdef set aborted_producers
    cdef Py_ssize_t position             # of the next batch
    cdef BatchHeader header              # of the batch it is in
    cdef const uint8_t[::1] payload
    cdef Py_ssize_t pos
    cdef int32_t remaining
    cdef list old_records

    def __cinit__(self, buffer, str topic not None, int32_t partition, int64_t fetch_offset, *, aborted=(),
                  bint read_committed=False, bint check_crcs=True, int64_t high_watermark=-1,
                  int64_t last_stable_offset=-1, int64_t log_start_offset=-1):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.pinned = True
        self.buffer = buffer
        self.topic, self.partition, self.next_offset = topic, partition, fetch_offset
        self.aborted = sorted(aborted)
        self.aborted_producers = set()
        self.read_committed, self.check_crcs = read_committed, check_crcs
        self.high_watermark, self.last_stable_offset = high_watermark, last_stable_offset
        self.log_start_offset, self.leader_epoch = log_start_offset, -1
        self.end_offset = max(fetch_offset, self.find_end())

    cdef int64_t find_end(self) except -2:
        """The offset behind the last whole batch, by the headers; messages of old formats are read."""
        cdef const uint8_t *buf = <const uint8_t *>self.view.buf
        cdef BatchHeader header
        cdef Py_ssize_t position = 0
        cdef int64_t end = -1
        cdef int status
        while position < self.view.len:
            status = parse_batch_header(buf, position, self.view.len, &header)
            if status == HEADER_OLD_MAGIC:
                end = max(end, header.base_offset + 1)
            elif status == HEADER_OK:
                end = header.base_offset + header.last_offset_delta + 1
            else:
                break
            position += header.size
        return end

    def __dealloc__(self):
        if self.pinned:
            PyBuffer_Release(&self.view)

    @property
    def size(self):
        """Bytes fetched."""
        return self.view.len

    def take(self, Py_ssize_t limit):
        """Up to `limit` records from `next_offset` on; fewer only at the end. ApiError CORRUPT_MESSAGE or INVALID_RECORD
        for a damaged batch, which stays the next one."""
        cdef list records = []
        while len(records) < limit:
            if self.remaining == 0 and not self.enter_batch():
                break
            self.take_from_batch(limit, records)
        return records

    cdef int take_from_batch(self, Py_ssize_t limit, list records) except -1:
        cdef ConsumerRecord record
        if self.old_records is not None:
            while self.old_records and len(records) < limit:
                records.append(self.old_record(self.old_records.pop(0)))
            self.remaining = <int32_t>len(self.old_records)
        while self.old_records is None and self.remaining > 0 and len(records) < limit:
            record = self.parse_record()
            self.remaining -= 1
            if record.offset >= self.next_offset:
                records.append(record)
                self.next_offset = record.offset + 1
        if self.remaining == 0:
            self.leave_batch()
        return 0

    cdef int leave_batch(self) except -1:
        self.next_offset = max(self.next_offset, self.header.base_offset + self.header.last_offset_delta + 1)
        self.position += self.header.size
        self.payload = None
        self.old_records = None
        return 0

    cdef bint enter_batch(self) except -1:
        """Stands before the first record of the next batch that the consumer is to see; False at the end."""
        cdef const uint8_t *buf = <const uint8_t *>self.view.buf
        cdef int status
        while self.position < self.view.len:
            status = parse_batch_header(buf, self.position, self.view.len, &self.header)
            if status == HEADER_INCOMPLETE:
                break
            if status == HEADER_OLD_MAGIC:
                self.enter_old_messages()
                return self.remaining > 0
            if status != HEADER_OK or self.check_crcs and not crc_is_valid(buf, &self.header):
                raise ApiError(Error.CORRUPT_MESSAGE, f"Record batch for partition {self.topic}-{self.partition} at "
                               f"offset {self.header.base_offset} is invalid")
            self.leader_epoch = self.header.partition_leader_epoch
            if self.header.record_count > 0 and not self.is_hidden():
                self.open_batch()
                return True
            self.leave_batch()
        self.is_exhausted = True
        return False

    cdef bint is_hidden(self) except -1:
        """Whether the batch is no application's: a marker, or of a transaction that was aborted."""
        cdef int64_t last_offset = self.header.base_offset + self.header.last_offset_delta
        if self.header.base_offset + self.header.last_offset_delta < self.next_offset and (
                not self.header.attributes & CONTROL_FLAG):
            return True
        if self.read_committed and self.header.producer_id >= 0:
            while self.aborted and self.aborted[0][0] <= last_offset:
                self.aborted_producers.add(self.aborted.pop(0)[1])
            if self.header.attributes & CONTROL_FLAG:
                if self.is_abort_marker():
                    self.aborted_producers.discard(self.header.producer_id)
            elif self.header.attributes & TRANSACTIONAL_FLAG and self.header.producer_id in self.aborted_producers:
                return True
        return self.header.attributes & CONTROL_FLAG != 0

    cdef bint is_abort_marker(self) except -1:
        """Its one record has a key of version and type, two int16: 0 is abort."""
        cdef const uint8_t *buf = <const uint8_t *>self.view.buf
        cdef Py_ssize_t pos = self.header.position + BATCH_OVERHEAD
        cdef Py_ssize_t end = self.header.position + self.header.size
        cdef int32_t length = 0
        cdef int64_t ignored = 0
        pos = read_varint(buf, pos, end, &length)
        if pos >= 0 and pos < end:
            pos = read_varlong(buf, pos + 1, end, &ignored)
        if pos >= 0:
            pos = read_varint(buf, pos, end, &length)
        if pos >= 0:
            pos = read_varint(buf, pos, end, &length)
        if pos < 0 or length < 4 or length > end - pos:
            raise ApiError(Error.INVALID_RECORD, "A control record without a type")
        return load_int16(buf + pos + 2) == 0

    cdef int open_batch(self) except -1:
        cdef int codec = self.header.attributes & CODEC_MASK
        content = memoryview(self.buffer).cast("B")[
            self.header.position + BATCH_OVERHEAD:self.header.position + self.header.size]
        if codec:
            try:
                content = decompress(codec, content, LARGEST_DECOMPRESSED_BYTES)
            except (DecompressionError, ValueError) as error:
                raise ApiError(Error.CORRUPT_MESSAGE, f"Failed to decompress record stream ({error})") from None
        self.payload = content
        self.pos = 0
        self.remaining = self.header.record_count
        return 0

    cdef int enter_old_messages(self) except -1:
        """Messages of magic 0 and 1: the rest of the bytes at once, they are few and old."""
        from kafkapy._core.message_set import iterate_records
        content = memoryview(self.buffer).cast("B")[self.position:]
        self.old_records = [record for record in iterate_records(content) if record.offset >= self.next_offset]
        self.remaining = <int32_t>len(self.old_records)
        self.header.size = self.view.len - self.position
        self.header.last_offset_delta = -1
        self.header.base_offset = self.next_offset
        for record in self.old_records:
            self.header.base_offset = record.offset + 1
        if not self.remaining:
            self.leave_batch()
            self.is_exhausted = True
        return 0

    cdef ConsumerRecord old_record(self, old):
        cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
        record.topic, record.partition, record.leader_epoch = self.topic, self.partition, -1
        record.offset, record.timestamp = old.offset, old.timestamp
        record.timestamp_type = old.timestamp_type if old.timestamp >= 0 else -1
        record.key, record.value, record.headers = old.key, old.value, ()
        self.next_offset = record.offset + 1
        return record

    cdef ConsumerRecord parse_record(self):
        cdef const uint8_t *buf
        cdef Py_ssize_t end = self.payload.shape[0]
        cdef int32_t length = 0, offset_delta = 0, headers = 0
        cdef int64_t timestamp_delta = 0
        cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
        if self.pos >= end:
            raise self.malformed()
        buf = &self.payload[0]
        self.pos = read_varint(buf, self.pos, end, &length)
        if self.pos < 0 or length < 1 or length > end - self.pos:
            raise self.malformed()
        end = self.pos + length
        self.pos = read_varlong(buf, self.pos + 1, end, &timestamp_delta)
        if self.pos >= 0:
            self.pos = read_varint(buf, self.pos, end, &offset_delta)
        record.key = self.field(buf, end)
        record.value = self.field(buf, end)
        if self.pos >= 0:
            self.pos = read_varint(buf, self.pos, end, &headers)
        if self.pos < 0 or headers < 0 or headers > end - self.pos:
            raise self.malformed()
        record.headers = self.header_fields(buf, headers, end) if headers else ()
        if self.pos != end:
            raise self.malformed()
        record.topic, record.partition = self.topic, self.partition
        record.leader_epoch = self.header.partition_leader_epoch
        record.offset = self.header.base_offset + offset_delta
        if self.header.attributes & LOG_APPEND_TIME_FLAG:
            record.timestamp, record.timestamp_type = self.header.max_timestamp, 1
        else:
            record.timestamp = <int64_t>(<uint64_t>self.header.base_timestamp + <uint64_t>timestamp_delta)
        return record

    cdef object malformed(self):
        self.remaining = 0
        self.payload = None
        return ApiError(Error.INVALID_RECORD, f"Record batch for partition {self.topic}-{self.partition} at offset "
                        f"{self.header.base_offset} has an invalid record")

    cdef bytes field(self, const uint8_t *buf, Py_ssize_t end):
        """None if null or, with `pos` then -1, if it ends early."""
        cdef int32_t length = 0
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

    cdef tuple header_fields(self, const uint8_t *buf, int32_t count, Py_ssize_t end):
        cdef list pairs = []
        cdef bytes name
        for _ in range(count):
            name = self.field(buf, end)
            content = self.field(buf, end)
            if name is None or self.pos < 0:
                raise self.malformed()
            pairs.append((name.decode("utf-8", "surrogateescape"), content))
        return tuple(pairs)
