"""The batches that a consumer fetched: detects damage, hides aborted transactions, and decompresses records."""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdint cimport INT64_MAX, uint16_t

from kafkapy._core.bytes.batch_layout cimport (
    BATCH_OVERHEAD, CONTROL_FLAG, HEADER_INCOMPLETE, HEADER_OK, HEADER_OLD_MAGIC, LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG, parse_batch_header)
from kafkapy._core.bytes.batch_validation cimport crc_is_valid
from kafkapy._core.bytes.codecs cimport CODEC_MASK
from kafkapy._core.bytes.primitives cimport load_int16, read_varint, read_varlong
from kafkapy._core.bytes.codec_functions import find_codec_functions
from kafkapy._core.bytes.compression import DecompressionError, decompress
from kafkapy._core.bytes.message_set import iterate_records
from kafkapy.errors import ApiError, Error

# The results of `judge_batch`. SHOWN is a status, which `enter_batch` returns as it is; HIDDEN is not, and leads to the
# next batch.
cdef enum:
    SHOWN = AT_RECORD
    HIDDEN = 1
    ABORT_MARKER = 0

cdef int64_t LARGEST_OPENED_BYTES = 1 << 30
# Unused collectors, which keep their memory and the libraries' contexts for the next user.
cdef list idle_collectors = []


@cython.no_gc  # excluded from garbage collection, which could release the memoryview before its buffer
cdef class FetchedBatches:
    """The fetched bytes of one partition, which it *pins*, and the consumer's position in them.

    The current batch is kept decompressed. `aborted` has pairs of first offset and producer id, as in a fetch response
    with read_committed. Not thread-safe.
    """

    def __cinit__(self, buffer, str topic not None, int32_t partition, int64_t fetch_offset, *, until_offset=None,
                  aborted=(), bint read_committed=False, bint check_crcs=True, int64_t high_watermark=-1,
                  int64_t last_stable_offset=-1, int64_t log_start_offset=-1):
        cdef Py_ssize_t index
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.pinned = True
        self.buffer = buffer
        self.topic, self.partition, self.next_offset = topic, partition, fetch_offset
        self.until_offset = INT64_MAX if until_offset is None else until_offset
        self.read_committed, self.check_crcs = read_committed, check_crcs
        self.high_watermark, self.last_stable_offset = high_watermark, last_stable_offset
        self.log_start_offset, self.leader_epoch = log_start_offset, -1
        transactions = sorted(aborted)
        if transactions:
            self.aborted = <AbortedTransaction *>PyMem_Malloc(len(transactions) * sizeof(AbortedTransaction))
            self.aborted_producers = <int64_t *>PyMem_Malloc(len(transactions) * sizeof(int64_t))
            if self.aborted == NULL or self.aborted_producers == NULL:
                raise MemoryError()
            for index in range(len(transactions)):
                self.aborted[index].first_offset, self.aborted[index].producer_id = transactions[index]
            self.aborted_count = len(transactions)
        self.end_offset = max(fetch_offset, self.find_end())

    def __dealloc__(self):
        PyMem_Free(self.aborted)
        PyMem_Free(self.aborted_producers)
        if self.pinned:
            PyBuffer_Release(&self.view)

    @property
    def size(self):
        """The number of fetched bytes."""
        return self.view.len

    cdef int64_t find_end(self) noexcept nogil:
        """Returns the offset after the last whole batch, according to the batches' headers; -1 if there is no whole
        batch."""
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

    cdef int enter_batch(self) noexcept nogil:
        cdef const uint8_t *buf = <const uint8_t *>self.view.buf
        cdef int status
        while self.position < self.view.len:
            status = parse_batch_header(buf, self.position, self.view.len, &self.header)
            if status == HEADER_INCOMPLETE:
                break
            if self.header.base_offset >= self.until_offset:
                self.next_offset = max(self.next_offset, self.until_offset)
                break
            if status == HEADER_OLD_MAGIC:
                return AT_OLD_MESSAGES
            if status != HEADER_OK:
                return DAMAGED_BATCH
            self.is_unchecked = self.check_crcs
            if not (self.defers_crcs and self.header.attributes & (CODEC_MASK | CONTROL_FLAG) == 0) and (
                    self.check_batch() != AT_RECORD):
                return DAMAGED_BATCH
            self.leader_epoch = self.header.partition_leader_epoch
            status = self.judge_batch()
            if status != HIDDEN:
                return status
            self.leave_batch()
        self.is_exhausted = True
        return AT_END

    cdef int check_batch(self) noexcept nogil:
        if self.is_unchecked and not crc_is_valid(<const uint8_t *>self.view.buf, &self.header):
            return DAMAGED_BATCH
        self.is_unchecked = False
        return AT_RECORD

    cdef void leave_batch(self) noexcept nogil:
        self.next_offset = max(self.next_offset, self.header.base_offset + self.header.last_offset_delta + 1)
        self.position += <Py_ssize_t>self.header.size
        self.span.remaining = 0

    cdef int judge_batch(self) noexcept nogil:
        """Returns whether the consumer sees the records of the current batch: SHOWN, HIDDEN or DAMAGED_CONTROL.

        Control batches, batches of aborted transactions, empty batches, and batches that were read before are HIDDEN.
        DAMAGED_CONTROL is a control batch whose type cannot be read.
        """
        cdef int64_t last_offset = self.header.base_offset + self.header.last_offset_delta
        cdef bint is_control = (self.header.attributes & CONTROL_FLAG) != 0
        cdef Py_ssize_t at
        cdef int kind
        if self.header.record_count <= 0 or last_offset < self.next_offset and not is_control:
            return HIDDEN
        if self.read_committed and self.header.producer_id >= 0 and self.aborted_count:
            self.note_aborted(last_offset)
            at = self.find_aborted_producer(self.header.producer_id)
            if is_control:
                kind = self.judge_marker()
                if kind < 0:
                    return DAMAGED_CONTROL
                if kind == ABORT_MARKER and at >= 0:
                    self.aborted_producer_count -= 1
                    self.aborted_producers[at] = self.aborted_producers[self.aborted_producer_count]
            elif self.header.attributes & TRANSACTIONAL_FLAG and at >= 0:
                return HIDDEN
        return HIDDEN if is_control else SHOWN

    cdef void note_aborted(self, int64_t last_offset) noexcept nogil:
        """Adds to `aborted_producers` the producers whose aborted transactions begin at `last_offset` or before.

        The batches of these producers are hidden until the transaction's marker.
        """
        cdef int64_t producer_id
        while self.aborted_met < self.aborted_count and self.aborted[self.aborted_met].first_offset <= last_offset:
            producer_id = self.aborted[self.aborted_met].producer_id
            if self.find_aborted_producer(producer_id) < 0:
                self.aborted_producers[self.aborted_producer_count] = producer_id
                self.aborted_producer_count += 1
            self.aborted_met += 1

    cdef Py_ssize_t find_aborted_producer(self, int64_t producer_id) noexcept nogil:
        cdef Py_ssize_t at
        for at in range(self.aborted_producer_count):
            if self.aborted_producers[at] == producer_id:
                return at
        return -1

    cdef int judge_marker(self) noexcept nogil:
        """Returns the type of a control batch; -1 if it is malformed.

        The key of its only record consists of the version and the type, two int16.
        """
        cdef const uint8_t *buf = <const uint8_t *>self.view.buf
        cdef Py_ssize_t pos = self.header.position + BATCH_OVERHEAD
        cdef Py_ssize_t end = self.header.position + <Py_ssize_t>self.header.size
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
            return -1
        return <uint16_t>load_int16(buf + pos + 2)

    cdef int open_batch(self) noexcept nogil:
        cdef const uint8_t *records = <const uint8_t *>self.view.buf + self.header.position + BATCH_OVERHEAD
        cdef Py_ssize_t size = <Py_ssize_t>self.header.size - BATCH_OVERHEAD
        cdef int codec = self.header.attributes & CODEC_MASK
        if codec:
            if self.collector is None or not self.collector.collect(codec, records, size):
                return AT_CLOSED_BATCH
            records, size = self.collector.records, self.collector.size
        return self.begin_span(records, size)

    cdef int begin_span(self, const uint8_t *records, Py_ssize_t size) noexcept nogil:
        if self.header.record_count > size // SMALLEST_RECORD:
            return DAMAGED_RECORD
        self.span.buf, self.span.pos, self.span.end = records, 0, size
        self.span.remaining = self.header.record_count
        self.span.base_offset, self.span.base_timestamp = self.header.base_offset, self.header.base_timestamp
        self.span.has_log_append_time = (self.header.attributes & LOG_APPEND_TIME_FLAG) != 0
        self.span.log_append_time = self.header.max_timestamp
        return AT_RECORD

    cdef void finish(self) noexcept nogil:
        """Ends the reading of the fetched bytes, when a record at or after `until_offset` was found.

        Moves `position` to the end of the bytes, and `next_offset` to `until_offset` unless it is higher already.
        """
        self.next_offset = max(self.next_offset, self.until_offset)
        self.position = self.view.len
        self.span.remaining = 0

    cdef int open_by_python(self, int status) except -1:
        if status == AT_OLD_MESSAGES:
            self.open_old_messages()
        elif status == AT_CLOSED_BATCH:
            status = self.open_closed_batch()
        if status == AT_END and self.collector is not None:
            idle_collectors.append(self.collector)
            self.collector = None
        if status >= DAMAGED_BATCH:
            raise self.complaint(status)
        return status

    cdef int open_old_messages(self) except -1:
        """Reads all messages of magic 0 and 1 up to the next batch into `old_records`.

        Sets `span.remaining` to the number of these messages.
        """
        cdef BatchHeader header
        cdef Py_ssize_t end = self.position
        while parse_batch_header(<const uint8_t *>self.view.buf, end, self.view.len, &header) == HEADER_OLD_MAGIC:
            end += <Py_ssize_t>header.size
        messages = memoryview(self.buffer).cast("B")[self.position:end]
        found = list(iterate_records(messages))
        self.old_records = [each for each in found if self.next_offset <= each.offset < self.until_offset]
        self.old_records.reverse()
        if found:
            self.header.base_offset = found[len(found) - 1].offset
        self.header.last_offset_delta = 0
        self.header.size = end - self.position
        self.span.remaining = <int32_t>len(self.old_records)
        if not self.old_records:
            self.old_records = None
            self.leave_batch()
        return 0

    cdef int open_closed_batch(self) except -1:
        """Decompresses the current batch; returns AT_RECORD, or the status that says why no record can be read.

        The RecordCollector decompresses the batch with the functions of the codec's library. If it cannot, Python's
        module for the codec decompresses the batch. Raises ApiError with CORRUPT_MESSAGE if Python's module fails too.
        """
        cdef int codec = self.header.attributes & CODEC_MASK
        cdef int status
        find_codec_functions(codec)
        if self.collector is None:
            self.collector = idle_collectors.pop() if idle_collectors else RecordCollector()
        status = self.open_batch()
        if status != AT_CLOSED_BATCH:
            return status
        self.opened = None
        start = self.header.position + BATCH_OVERHEAD
        closed = memoryview(self.buffer).cast("B")[start:self.header.position + self.header.size]
        try:
            self.opened = bytes(decompress(codec, closed, LARGEST_OPENED_BYTES))
        except (DecompressionError, ValueError) as error:
            raise ApiError(Error.CORRUPT_MESSAGE, f"Failed to decompress record stream ({error})") from None
        return self.begin_span(<const uint8_t *>PyBytes_AS_STRING(self.opened), PyBytes_GET_SIZE(self.opened))

    cdef object complaint(self, int status):
        where = f"Record batch for partition {self.topic}-{self.partition} at offset {self.header.base_offset}"
        self.span.remaining = 0
        if status == DAMAGED_BATCH:
            return ApiError(Error.CORRUPT_MESSAGE, f"{where} is invalid")
        if status == DAMAGED_CONTROL:
            return ApiError(Error.INVALID_RECORD, f"{where} is a control record without a type")
        return ApiError(Error.INVALID_RECORD, f"{where} has an invalid record")
