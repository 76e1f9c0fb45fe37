"""Counts the records of batches by client and by the time bucket of their timestamps, for the audit of topics.

    batch of magic 2 -> its client, by offset -> (decompressed) records -> timestamp -> bucket -> table of counts

The batches come from a log, which has validated them. Only the length, the timestamp and the offset of a record are
read.
"""

from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from kafkapy._core.bytes.batch_layout cimport (
    BATCH_OVERHEAD, CONTROL_FLAG, HEADER_INCOMPLETE, HEADER_OK, HEADER_OLD_MAGIC, LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG, parse_batch_header)
from kafkapy._core.bytes.codecs cimport CODEC_MASK
from kafkapy._core.bytes.primitives cimport read_varint, read_varlong

COUNTED, FULL, OTHER, CORRUPT = CHUNK_COUNTED, TABLE_FULL, OTHER_FORMAT, BATCH_CORRUPT

cdef enum:
    SMALLEST_CAPACITY = 65536
    LARGEST_KEPT_BUFFER = 4 << 20        # of decompressed records, after `take`


cdef class BucketCounter(RecordDecompressor):
    """A table of counts, which `count` fills and `take` empties. Used by one thread at a time.

    An entry of the table has the number of records of one client in one time bucket. `count` stops before a batch if
    the table has `FULL_COUNTS` entries or more, and the caller has to call `take`. The table never has more than
    `MOST_COUNTS` entries. A single batch with thousands of time buckets may need more entries; `uncounted` is then the
    number of records for which the table had no entry.
    """

    def __init__(self, int64_t bucket_size_ms):
        """Allocates the table. `bucket_size_ms` is the length of a time bucket, above 0."""
        if bucket_size_ms <= 0:
            raise ValueError("The length of a time bucket must be above 0")
        self.bucket_size_ms = bucket_size_ms
        free(self.table)
        self.table = <BucketCount *> calloc(TABLE_SLOTS, sizeof(BucketCount))
        if self.table == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.table)
        free(self.clients)
        free(self.aborted)
        free(self.plain)

    def follow(self, clients, aborted):
        """Sets the clients and the aborted transactions of the batches that are counted next.

        `clients` are pairs (first offset, number of the client) in the order of offsets; a batch before the first one
        has the client 0. `aborted` are the aborted transactions as (producer id, first offset, last offset).
        """
        cdef list starts = list(clients)
        cdef list ranges = sorted(aborted, key=_last_offset)
        cdef void *grown
        cdef Py_ssize_t index
        self.client_count = self.aborted_count = 0
        grown = realloc(self.clients, (len(starts) or 1) * sizeof(ClientStart))
        if grown == NULL:
            raise MemoryError()
        self.clients = <ClientStart *> grown
        grown = realloc(self.aborted, (len(ranges) or 1) * sizeof(AbortedRange))
        if grown == NULL:
            raise MemoryError()
        self.aborted = <AbortedRange *> grown
        for index in range(len(starts)):
            self.clients[index].first_offset, self.clients[index].client = starts[index]
        for index in range(len(ranges)):
            (self.aborted[index].producer_id, self.aborted[index].first_offset,
             self.aborted[index].last_offset) = ranges[index]
        self.client_count, self.aborted_count = len(starts), len(ranges)

    def count(self, chunk, Py_ssize_t length, int64_t start_offset):
        """Counts the records at or above `start_offset` of the complete batches in `chunk[:length]`.

        Returns (reason, bytes, next offset): why it stopped, the size of the batches before that point, and the offset
        after the last batch that was counted. The reason is COUNTED if no complete batch is left, FULL if `take` has to
        empty the table, OTHER for messages of magic 0 or 1 or a batch that only Python can decompress, and CORRUPT for
        a damaged batch. *Borrows* `chunk`.
        """
        cdef const uint8_t[::1] data = chunk
        cdef Py_ssize_t pos = 0
        cdef int64_t next_offset = start_offset
        cdef int status = CHUNK_COUNTED
        if length > data.shape[0]:
            raise ValueError("The length is greater than the chunk")
        if length > 0:
            with nogil:
                status = self.pass_batches(&data[0], length, start_offset, &pos, &next_offset)
        return status, pos, next_offset

    def count_other(self, int64_t offset, int64_t timestamp, int64_t producer_id):
        """Counts one record of a batch at which `count` has stopped with OTHER.

        `producer_id` is -1 if the record does not belong to a transaction; `timestamp` is in ms since 1970.
        """
        self.choose(producer_id, producer_id >= 0, offset)
        self.count_timestamp(timestamp, 1)

    def take(self):
        """Returns the counts, and empties the table.

        Each count is (number of the client, True if the records belong to an aborted transaction, time bucket, number
        of records). A time bucket is identified by the time at which it begins, in ms since 1970.
        """
        cdef list taken = []
        cdef int index
        for index in range(TABLE_SLOTS):
            if self.table[index].number:
                taken.append((self.table[index].client, bool(self.table[index].is_aborted),
                              self.table[index].bucket_ms, self.table[index].number))
        memset(self.table, 0, TABLE_SLOTS * sizeof(BucketCount))
        self.used = 0
        self.latest = NULL
        if self.plain_capacity > LARGEST_KEPT_BUFFER:
            free(self.plain)
            self.plain = NULL
            self.plain_capacity = 0
        return taken

    cdef int pass_batches(self, const uint8_t *buf, Py_ssize_t end, int64_t start_offset, Py_ssize_t *pos,
                          int64_t *next_offset) noexcept nogil:
        cdef BatchHeader header
        cdef int status
        while True:
            status = parse_batch_header(buf, pos[0], end, &header)
            if status == HEADER_INCOMPLETE:
                return CHUNK_COUNTED
            if status == HEADER_OLD_MAGIC:
                return OTHER_FORMAT
            if status != HEADER_OK:
                return BATCH_CORRUPT
            if self.used >= FULL_COUNTS:
                return TABLE_FULL
            if header.base_offset + header.last_offset_delta >= start_offset:
                status = self.count_batch(buf + pos[0], &header, start_offset)
                if status != CHUNK_COUNTED:
                    return status
                next_offset[0] = header.base_offset + header.last_offset_delta + 1
            pos[0] += <Py_ssize_t> header.size

    cdef int count_batch(self, const uint8_t *buf, const BatchHeader *header, int64_t start_offset) noexcept nogil:
        """Counts the records at or above `start_offset` of the batch at `buf`.

        Returns CHUNK_COUNTED, OTHER_FORMAT if only Python can decompress the batch, or BATCH_CORRUPT.
        """
        cdef int32_t first_delta = <int32_t> max(start_offset - header.base_offset, <int64_t> 0)
        cdef int codec = header.attributes & CODEC_MASK
        if header.attributes & CONTROL_FLAG or header.record_count <= 0:
            return CHUNK_COUNTED
        self.choose(header.producer_id, header.attributes & TRANSACTIONAL_FLAG != 0, header.base_offset)
        if header.attributes & LOG_APPEND_TIME_FLAG and first_delta == 0:
            self.count_timestamp(header.max_timestamp, header.record_count)
            return CHUNK_COUNTED
        if codec == 0:
            return self.count_records(buf + BATCH_OVERHEAD, <Py_ssize_t> header.size - BATCH_OVERHEAD, header,
                                      first_delta)
        self.plain_length = 0
        self.renew()
        if not self.pass_codec(codec, buf + BATCH_OVERHEAD, <Py_ssize_t> header.size - BATCH_OVERHEAD):
            return OTHER_FORMAT
        return self.count_records(self.plain, self.plain_length, header, first_delta)

    cdef int count_records(self, const uint8_t *buf, Py_ssize_t end, const BatchHeader *header,
                           int32_t first_delta) noexcept nogil:
        """Counts the records in `buf[:end]` whose offset delta is at least `first_delta`.

        Returns CHUNK_COUNTED, or BATCH_CORRUPT for a malformed record.
        """
        cdef int64_t timestamp, timestamp_delta = 0
        cdef int32_t index, length = 0, offset_delta = 0
        cdef Py_ssize_t pos = 0, at
        for index in range(header.record_count):
            pos = read_varint(buf, pos, end, &length)
            if pos < 0 or length < 1 or length > end - pos:
                return BATCH_CORRUPT
            at = read_varlong(buf, pos + 1, pos + length, &timestamp_delta)
            if at < 0:
                return BATCH_CORRUPT
            if first_delta:
                if read_varint(buf, at, pos + length, &offset_delta) < 0:
                    return BATCH_CORRUPT
            if not first_delta or offset_delta >= first_delta:
                timestamp = header.base_timestamp + timestamp_delta
                if header.attributes & LOG_APPEND_TIME_FLAG:
                    timestamp = header.max_timestamp
                self.count_timestamp(timestamp, 1)
            pos += length
        return CHUNK_COUNTED

    cdef bint feed(self, Py_ssize_t length, int cost) noexcept nogil:
        """Appends the `length` bytes in the output memory to the decompressed records of the batch.

        Returns False if memory is short, or if the allowed work is used up; the batch is then left to Python.
        """
        cdef Py_ssize_t capacity
        cdef void *grown
        self.allowance -= <int64_t> length * cost
        if self.allowance <= 0:
            return False
        if length > self.plain_capacity - self.plain_length:
            capacity = max(self.plain_capacity * 2, self.plain_length + length, <Py_ssize_t> SMALLEST_CAPACITY)
            grown = realloc(self.plain, <size_t> capacity)
            if grown == NULL:
                return False
            self.plain = <uint8_t *> grown
            self.plain_capacity = capacity
        memcpy(self.plain + self.plain_length, self.output, <size_t> length)
        self.plain_length += length
        return True

    cdef void choose(self, int64_t producer_id, bint is_transactional, int64_t offset) noexcept nogil:
        """Finds the client of the batch at `offset`, and whether the batch belongs to an aborted transaction.

        Sets the fields that `count_timestamp` uses.
        """
        cdef Py_ssize_t low = 0, high = self.client_count, middle
        while low < high:
            middle = (low + high) // 2
            if self.clients[middle].first_offset <= offset:
                low = middle + 1
            else:
                high = middle
        self.latest = NULL
        self.client = self.clients[low - 1].client if low else 0
        self.is_aborted = False
        if not is_transactional:
            return
        low, high = 0, self.aborted_count
        while low < high:
            middle = (low + high) // 2
            if self.aborted[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        while low < self.aborted_count and not self.is_aborted:
            self.is_aborted = (self.aborted[low].producer_id == producer_id
                               and self.aborted[low].first_offset <= offset)
            low += 1

    cdef void count_timestamp(self, int64_t timestamp, int64_t number) noexcept nogil:
        """Counts `number` records of the chosen client with this timestamp in ms."""
        cdef int64_t into = timestamp % self.bucket_size_ms
        cdef BucketCount *slot = self.latest
        if slot == NULL or timestamp < slot.bucket_ms or timestamp - slot.bucket_ms >= self.bucket_size_ms:
            if into < 0:
                into += self.bucket_size_ms
            slot = self.slot_of(timestamp - into)
            if slot == NULL:
                self.uncounted += number
                return
            self.latest = slot
        slot.number += number

    cdef BucketCount *slot_of(self, int64_t bucket_ms) noexcept nogil:
        """Returns the slot of the table for a time bucket and the client that `choose` has found; NULL if the table is
        full.

        If there is no such slot, the function takes an empty one. The caller then has to increase the slot's number of
        records, since a slot with the number 0 counts as empty.
        """
        cdef size_t at = (<size_t> (bucket_ms // self.bucket_size_ms) * 31 + <size_t> self.client * 7919
                          + self.is_aborted)
        cdef BucketCount *slot
        while True:
            slot = &self.table[at & (TABLE_SLOTS - 1)]
            if slot.number == 0:
                break
            if slot.bucket_ms == bucket_ms and slot.client == self.client and slot.is_aborted == self.is_aborted:
                return slot
            at += 1
        if self.used == MOST_COUNTS:
            return NULL
        self.used += 1
        slot.bucket_ms, slot.client, slot.is_aborted = bucket_ms, self.client, self.is_aborted
        return slot


def _last_offset(aborted):
    return aborted[2]
