"""The batch filter of the log cleaner: selects the records of a batch and rewrites the batch."""
import os

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.errno cimport EINVAL
from libc.stdint cimport uint64_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

from kafkapy._core.bytes.batch_layout cimport (
    ATTRIBUTES_AT, BASE_TIMESTAMP_AT, BATCH_OVERHEAD, CONTROL_FLAG, CRC_AT, DELETE_HORIZON_FLAG,
    HEADER_INCOMPLETE, HEADER_OK, HEADER_OLD_MAGIC, LENGTH_AT, LOG_APPEND_TIME_FLAG, LOG_OVERHEAD,
    MAX_TIMESTAMP_AT, NO_TIMESTAMP, RECORD_COUNT_AT, TRANSACTIONAL_FLAG, parse_batch_header)
from kafkapy._core.bytes.batch_validation cimport crc_is_valid
from kafkapy._core.bytes.codecs cimport CODEC_MASK
from kafkapy._core.bytes.crc32c cimport crc32c_update
from kafkapy._core.broker_state.log_state cimport SegmentState
from kafkapy._core.bytes.offset_map cimport MAP_FULL
from kafkapy._core.bytes.primitives cimport (
    size_of_varlong, store_int16, store_int32, store_int64, store_uint32, write_varlong)
from kafkapy._core.bytes.record_fields cimport RecordFields, locate_record
from kafkapy._core.bytes.segment_file cimport iovec
from kafkapy._core.bytes.compression import compress

DONE, SPECIAL, CORRUPT, FULL = CHUNK_DONE, BATCH_IS_SPECIAL, BATCH_IS_CORRUPT, MAP_IS_FULL

cdef enum:
    SPECIAL_FLAGS = CODEC_MASK | TRANSACTIONAL_FLAG | CONTROL_FLAG
    RECORD_GROWTH = 15                   # bytes that a record's length and timestamp delta can grow by when rebuilt
    SMALLEST_RECORD = 7


class MalformedRecords(ValueError):
    """The error that the records of a batch are malformed: they end before or after the end of the batch."""


cdef inline int64_t timestamp_of(const BatchHeader *header, int64_t delta) noexcept nogil:
    if header.attributes & LOG_APPEND_TIME_FLAG:
        return header.max_timestamp
    return <int64_t>(<uint64_t>header.base_timestamp + <uint64_t>delta)


# -- the keys of a dirty segment -------------------------------------------------------------------------------------


cdef int collect_records(OffsetMap offsets, const BatchHeader *header, const uint8_t *records, Py_ssize_t length,
                         int64_t start_offset) noexcept nogil:
    cdef RecordFields fields
    cdef Py_ssize_t pos = 0
    cdef int32_t index
    cdef int64_t offset
    for index in range(header.record_count):
        if not locate_record(records, pos, length, &fields):
            return BATCH_IS_CORRUPT
        pos = fields.end
        offset = header.base_offset + fields.offset_delta
        if fields.key_length >= 0 and offset >= start_offset:
            if offsets.put_key(records + fields.key, fields.key_length, offset) == MAP_FULL:
                return MAP_IS_FULL
            offsets.latest_offset = max(offsets.latest_offset, offset)
    if pos != length:
        return BATCH_IS_CORRUPT
    if header.base_offset + header.last_offset_delta >= start_offset:
        offsets.latest_offset = max(offsets.latest_offset, header.base_offset + header.last_offset_delta)
    return CHUNK_DONE


cdef int look_at(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, BatchHeader *header) noexcept nogil:
    """Reads the header of the batch at `pos` into `header`, and verifies the CRC. Returns CHUNK_DONE for a plain batch.

    A plain batch is neither compressed nor transactional nor a control batch; for any other batch the result is
    BATCH_IS_SPECIAL or BATCH_IS_CORRUPT. CHUNK_DONE with a negative `header.size` means that no complete batch is left.
    """
    cdef int status = parse_batch_header(buf, pos, end, header)
    if status == HEADER_INCOMPLETE:
        header.size = -1
        return CHUNK_DONE
    if status == HEADER_OLD_MAGIC:
        return BATCH_IS_SPECIAL
    if status != HEADER_OK or not crc_is_valid(buf, header):
        return BATCH_IS_CORRUPT
    return BATCH_IS_SPECIAL if header.attributes & SPECIAL_FLAGS else CHUNK_DONE


def collect_keys(OffsetMap offsets not None, chunk, Py_ssize_t position, Py_ssize_t end, int64_t start_offset,
                 int64_t end_offset):
    """Puts the keys of the plain batches in `chunk[position:end]`, with their offsets, into the map `offsets`.

    Returns (position, reason): the position of the first batch that was not read, and the reason why the function
    stopped there. The keys of records below `start_offset` are left out.
    The reason is DONE if no complete batch is left, SPECIAL if the caller has to decompress the batch and call
    `collect_batch`, CORRUPT if the batch is damaged, and FULL if the map is full or the batch begins at or after
    `end_offset`. A plain batch is neither compressed nor transactional nor a control batch.
    """
    cdef Py_buffer view
    cdef BatchHeader header
    cdef int status
    PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
    try:
        if position < 0 or position > end or end > view.len:
            raise IndexError(f"[{position}, {end}) is outside the chunk of {view.len} bytes")
        with nogil:
            while True:
                status = look_at(<const uint8_t *>view.buf, position, end, &header)
                if status != CHUNK_DONE or header.size < 0:
                    break
                if header.base_offset >= end_offset:
                    status = MAP_IS_FULL
                    break
                status = collect_records(offsets, &header, <const uint8_t *>view.buf + position + BATCH_OVERHEAD,
                                         header.size - BATCH_OVERHEAD, start_offset)
                if status != CHUNK_DONE:
                    break
                position += header.size
    finally:
        PyBuffer_Release(&view)
    return position, status


def collect_batch(OffsetMap offsets not None, chunk, Py_ssize_t position, const uint8_t[::1] records not None,
                  int64_t start_offset):
    """Puts the keys of the batch at `position` of `chunk`, whose decompressed records are `records`, into the map.

    Leaves out the keys of records below `start_offset`. Returns False if the map is full. Raises MalformedRecords if
    the records do not fill `records` exactly.
    """
    cdef Py_buffer view
    cdef BatchHeader header
    cdef int status
    PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
    try:
        if parse_batch_header(<const uint8_t *>view.buf, position, view.len, &header) != HEADER_OK:
            raise ValueError(f"no batch at position {position}")
        with nogil:
            status = collect_records(
                offsets, &header, &records[0] if records.shape[0] else NULL, records.shape[0], start_offset)
    finally:
        PyBuffer_Release(&view)
    if status == BATCH_IS_CORRUPT:
        raise MalformedRecords(f"the batch at offset {header.base_offset} has malformed records")
    return status != MAP_IS_FULL


# -- the filter ------------------------------------------------------------------------------------------------------


cdef class BatchFilter:
    """Selects the batches and records that one pass of the log cleaner retains, and stores them (the output).

    Used by one thread. The offset map has the newest offset of each key.
    """

    def __init__(self, OffsetMap offsets not None, *, int64_t wall_ms, int64_t delete_retention_ms, int64_t round_end,
                 last_data_offsets=()):
        """Creates the filter; `wall_ms` is the present time, and `round_end` the offset at which this pass ends.

        `last_data_offsets` has (last offset of the newest data batch, producer id) of each active producer. The newest
        data batch of a producer is retained, without records if necessary, since it has the producer's last sequence.
        The last batch before `round_end` is also retained, without records if necessary. A tombstone is removed
        `delete_retention_ms` after the first pass that found it to be the last record of its key.
        """
        cdef Py_ssize_t index
        self.offsets = offsets
        self.wall_ms = wall_ms
        self.delete_retention_ms = delete_retention_ms
        self.round_end = round_end
        pairs = sorted(last_data_offsets)
        self.last_offsets = <int64_t *>malloc((len(pairs) + 1) * sizeof(int64_t))
        self.last_producers = <int64_t *>malloc((len(pairs) + 1) * sizeof(int64_t))
        if self.last_offsets == NULL or self.last_producers == NULL:
            raise MemoryError()
        for index, (offset, producer_id) in enumerate(pairs):
            self.last_offsets[index] = offset
            self.last_producers[index] = producer_id
        self.last_count = len(pairs)

    def __dealloc__(self):
        free(self.last_offsets)
        free(self.last_producers)
        free(self.kept)
        free(self.output)

    cdef bint reserve(self, Py_ssize_t more) noexcept nogil:
        cdef Py_ssize_t wanted = self.output_length + more
        cdef uint8_t *grown
        if wanted <= self.output_capacity:
            return True
        wanted = max(wanted, self.output_capacity + self.output_capacity // 2)
        grown = <uint8_t *>realloc(self.output, <size_t>wanted)
        if grown == NULL:
            return False
        self.output = grown
        self.output_capacity = wanted
        return True

    cdef bint is_last_of_producer(self, const BatchHeader *header) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.last_count, middle
        cdef int64_t offset = header.base_offset + header.last_offset_delta
        if header.producer_id < 0:
            return False
        while low < high:
            middle = (low + high) // 2
            if self.last_offsets[middle] < offset:
                low = middle + 1
            else:
                high = middle
        return (low < self.last_count and self.last_offsets[low] == offset
                and self.last_producers[low] == header.producer_id)

    cdef bint retains(self, const BatchHeader *header, int64_t offset, const uint8_t *key, int32_t key_length,
                      int32_t value_length) noexcept nogil:
        if offset > self.offsets.latest_offset:
            return True
        if key_length < 0:
            self.keyless_records += 1
            return False
        if offset < self.offsets.offset_of(key, key_length):
            return False
        return (value_length >= 0 or not header.attributes & DELETE_HORIZON_FLAG
                or self.wall_ms < header.base_timestamp)

    cdef int choose_records(self, const BatchHeader *header, const uint8_t *records, Py_ssize_t length, bint discard,
                            Retained *retained) noexcept nogil:
        """Marks in the array `self.kept` which of the batch's records are retained.

        Sets `retained` to the count and the timestamps of the retained records. If `discard` is set, no record is
        retained. Returns KEEP_AS_IT_IS if all records are retained, REBUILD if some are, NOTHING_LEFT if none is,
        RECORDS_MALFORMED if the batch is damaged, or NO_MEMORY if memory is short.
        """
        cdef RecordFields fields
        cdef Py_ssize_t pos = 0
        cdef int32_t index
        cdef uint8_t *grown
        retained.count = 0
        retained.has_tombstone = False
        retained.max_timestamp = NO_TIMESTAMP
        if header.record_count < 0 or header.record_count > length // SMALLEST_RECORD:
            return RECORDS_MALFORMED
        if header.record_count > self.kept_capacity:
            grown = <uint8_t *>realloc(self.kept, <size_t>header.record_count)
            if grown == NULL:
                return NO_MEMORY
            self.kept = grown
            self.kept_capacity = header.record_count
        for index in range(header.record_count):
            if not locate_record(records, pos, length, &fields):
                return RECORDS_MALFORMED
            pos = fields.end
            self.kept[index] = not discard and (
                header.attributes & CONTROL_FLAG != 0
                or self.retains(header, header.base_offset + fields.offset_delta, records + fields.key,
                                fields.key_length, fields.value_length))
            if self.kept[index]:
                if retained.count == 0:
                    retained.first_timestamp = timestamp_of(header, fields.timestamp_delta)
                retained.count += 1
                retained.has_tombstone = retained.has_tombstone or fields.value_length < 0
                retained.max_timestamp = max(
                    retained.max_timestamp, timestamp_of(header, fields.timestamp_delta))
        if pos != length:
            return RECORDS_MALFORMED
        self.records_read += header.record_count
        self.records_kept += retained.count
        if retained.count == 0:
            return NOTHING_LEFT
        return KEEP_AS_IT_IS if retained.count == header.record_count else REBUILD

    cdef void put_records(self, const BatchHeader *header, const uint8_t *records, Py_ssize_t length,
                          int64_t base_timestamp) noexcept nogil:
        """Appends the records marked in `self.kept` to the output, which the caller has made large enough.

        Their timestamps are made relative to `base_timestamp`.
        """
        cdef RecordFields fields
        cdef Py_ssize_t pos = 0, at = self.output_length, rest
        cdef int64_t delta
        cdef int32_t index
        for index in range(header.record_count):
            locate_record(records, pos, length, &fields)
            pos = fields.end
            if not self.kept[index]:
                continue
            delta = <int64_t>(
                <uint64_t>timestamp_of(header, fields.timestamp_delta) - <uint64_t>base_timestamp)
            rest = fields.end - fields.rest
            at = write_varlong(self.output, at, 1 + size_of_varlong(delta) + rest)
            self.output[at] = records[fields.body]
            at = write_varlong(self.output, at + 1, delta)
            memcpy(self.output + at, records + fields.rest, <size_t>rest)
            at += rest
        self.output_length = at

    cdef void put_header(self, const uint8_t *batch, Py_ssize_t at, int attributes, int64_t base_timestamp,
                         int64_t max_timestamp, int32_t count) noexcept nogil:
        """Writes a copy of the header of `batch` to position `at` of the output, with the values given and a new CRC.

        The `count` records must already be in the output after the header, up to its end.
        """
        cdef uint8_t *header = self.output + at
        cdef Py_ssize_t size = self.output_length - at
        memcpy(header, batch, BATCH_OVERHEAD)
        store_int32(header + LENGTH_AT, <int32_t>(size - LOG_OVERHEAD))
        store_int16(header + ATTRIBUTES_AT, <short>attributes)
        store_int64(header + BASE_TIMESTAMP_AT, base_timestamp)
        store_int64(header + MAX_TIMESTAMP_AT, max_timestamp)
        store_int32(header + RECORD_COUNT_AT, count)
        store_uint32(header + CRC_AT, crc32c_update(0, header + ATTRIBUTES_AT, <size_t>(size - ATTRIBUTES_AT)))

    cdef bint put_empty(self, const uint8_t *batch, const BatchHeader *header) noexcept nogil:
        cdef Py_ssize_t at = self.output_length
        if not self.reserve(BATCH_OVERHEAD):
            return False
        self.output_length += BATCH_OVERHEAD
        self.put_header(batch, at, header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG), NO_TIMESTAMP,
                        header.max_timestamp, 0)
        return True

    cdef int64_t plain_batch(self, const uint8_t *batch, const BatchHeader *header) noexcept nogil:
        """Appends a plain batch, or the records of it that are retained, to the output.

        Returns BATCH_IS_CORRUPT if the records are malformed, NO_MEMORY if memory is short, and otherwise CHUNK_DONE,
        even if nothing is retained.
        """
        cdef const uint8_t *records = batch + BATCH_OVERHEAD
        cdef Py_ssize_t length = header.size - BATCH_OVERHEAD, at = self.output_length
        cdef Retained retained
        cdef int64_t base_timestamp
        cdef int attributes = header.attributes
        cdef int outcome = self.choose_records(header, records, length, False, &retained)
        if outcome == RECORDS_MALFORMED:
            return BATCH_IS_CORRUPT
        if outcome == NO_MEMORY:
            return NO_MEMORY
        if outcome == NOTHING_LEFT:
            if (self.is_last_of_producer(header)
                    or header.base_offset + header.last_offset_delta + 1 == self.round_end):
                return CHUNK_DONE if self.put_empty(batch, header) else NO_MEMORY
            return CHUNK_DONE
        if not self.reserve(header.size + RECORD_GROWTH * <Py_ssize_t>retained.count):
            return NO_MEMORY
        if retained.has_tombstone and not attributes & DELETE_HORIZON_FLAG:
            attributes |= DELETE_HORIZON_FLAG
            base_timestamp = self.wall_ms + self.delete_retention_ms
        elif outcome == KEEP_AS_IT_IS:
            memcpy(self.output + at, batch, <size_t>header.size)
            self.output_length += header.size
            return CHUNK_DONE
        else:
            base_timestamp = (
                header.base_timestamp if attributes & DELETE_HORIZON_FLAG else retained.first_timestamp)
        self.output_length += BATCH_OVERHEAD
        self.put_records(header, records, length, base_timestamp)
        self.put_header(batch, at, attributes, base_timestamp, retained.max_timestamp, retained.count)
        return CHUNK_DONE

    def filter_plain(self, chunk, Py_ssize_t position, Py_ssize_t end):
        """Filters the plain batches in `chunk[position:end]` into the output; returns (position, reason).

        The position is that of the first batch that was not filtered. The reason is DONE if no complete batch is left,
        SPECIAL if the caller has to decompress the batch and call `filter_batch`, and CORRUPT if the batch is damaged.
        """
        cdef Py_buffer view
        cdef BatchHeader header
        cdef int64_t status
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            if position < 0 or position > end or end > view.len:
                raise IndexError(f"[{position}, {end}) is outside the chunk of {view.len} bytes")
            with nogil:
                while True:
                    status = look_at(<const uint8_t *>view.buf, position, end, &header)
                    if status != CHUNK_DONE or header.size < 0:
                        break
                    status = self.plain_batch(<const uint8_t *>view.buf + position, &header)
                    if status != CHUNK_DONE:
                        break
                    position += header.size
        finally:
            PyBuffer_Release(&view)
        if status == NO_MEMORY:
            raise MemoryError()
        return position, status

    def filter_batch(self, chunk, Py_ssize_t position, const uint8_t[::1] records not None, *, bint discard,
                     bint keep_empty, bint begin_horizon):
        """Filters the batch at `position` of `chunk` into the output. The caller has checked its CRC.

        `records` are its decompressed records. `discard` removes all of them, for an aborted transaction. `keep_empty`
        retains the batch even if no record is retained. `begin_horizon` sets the batch's delete horizon if it has none
        yet; it is for a transaction marker whose transaction has no records any more. Raises MalformedRecords.
        """
        cdef Py_buffer view
        cdef BatchHeader header
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            if parse_batch_header(<const uint8_t *>view.buf, position, view.len, &header) != HEADER_OK:
                raise ValueError(f"no batch at position {position}")
            self._filter_opened(<const uint8_t *>view.buf + position, &header, records, discard,
                                keep_empty, begin_horizon)
        finally:
            PyBuffer_Release(&view)

    cdef object _filter_opened(self, const uint8_t *batch, const BatchHeader *header, const uint8_t[::1] records,
                               bint discard, bint keep_empty, bint begin_horizon):
        cdef const uint8_t *data = &records[0] if records.shape[0] else NULL
        cdef Py_ssize_t length = records.shape[0], at = self.output_length
        cdef Retained retained
        cdef int attributes = header.attributes, outcome
        cdef int64_t base_timestamp
        with nogil:
            outcome = self.choose_records(header, data, length, discard, &retained)
        if outcome == RECORDS_MALFORMED:
            raise MalformedRecords(f"the batch at offset {header.base_offset} has malformed records")
        if outcome == NO_MEMORY:
            raise MemoryError()
        if outcome == NOTHING_LEFT:
            if keep_empty and not self.put_empty(batch, header):
                raise MemoryError()
            return
        if not self.reserve(BATCH_OVERHEAD + length + header.size + RECORD_GROWTH * <Py_ssize_t>retained.count):
            raise MemoryError()
        if (retained.has_tombstone or begin_horizon) and not attributes & DELETE_HORIZON_FLAG:
            attributes |= DELETE_HORIZON_FLAG
            base_timestamp = self.wall_ms + self.delete_retention_ms
        elif outcome == KEEP_AS_IT_IS:
            memcpy(self.output + at, batch, <size_t>header.size)
            self.output_length += header.size
            return
        else:
            base_timestamp = (
                header.base_timestamp if attributes & DELETE_HORIZON_FLAG else retained.first_timestamp)
        self.output_length += BATCH_OVERHEAD
        with nogil:
            self.put_records(header, data, length, base_timestamp)
        if attributes & CODEC_MASK:
            self._compress_output(at + BATCH_OVERHEAD, attributes & CODEC_MASK)
        self.put_header(batch, at, attributes, base_timestamp, retained.max_timestamp, retained.count)

    def _compress_output(self, Py_ssize_t start, int codec):
        """Compresses the part of the output from position `start` on with the codec."""
        plain = PyBytes_FromStringAndSize(<char *>self.output + start, self.output_length - start)
        cdef bytes packed = compress(codec, plain)
        self.output_length = start
        if not self.reserve(len(packed)):
            raise MemoryError()
        memcpy(self.output + start, <const char *>packed, len(packed))
        self.output_length = start + len(packed)

    def keeps_empty(self, chunk, Py_ssize_t position):
        """Returns whether the data batch at `position` is retained even without records.

        That is the case if the batch holds a producer's last sequence, or is the last batch that this pass may clean.
        """
        cdef Py_buffer view
        cdef BatchHeader header
        PyObject_GetBuffer(chunk, &view, PyBUF_SIMPLE)
        try:
            if parse_batch_header(<const uint8_t *>view.buf, position, view.len, &header) != HEADER_OK:
                raise ValueError(f"no batch at position {position}")
        finally:
            PyBuffer_Release(&view)
        return (self.is_last_of_producer(&header)
                or header.base_offset + header.last_offset_delta + 1 == self.round_end)

    def retains_old(self, int64_t offset, key, bint has_value, bint keeps_tombstones):
        """Returns whether the cleaner retains the message of magic 0 or 1 at `offset`.

        A message at an offset above all offsets in the offset map is retained. Any other message is retained if it has
        a key, the map has no newer offset for this key, and the message has a value or `keeps_tombstones` is True. A
        message without a value is a tombstone; `keeps_tombstones` is True if the segment is younger than
        `delete.retention.ms`.
        """
        if offset > self.offsets.latest_offset:
            return True
        if key is None:
            self.keyless_records += 1
            return False
        return offset >= self.offsets.get(key) and (has_value or keeps_tombstones)

    def put(self, bytes batch not None):
        """Appends `batch`, which has messages of magic 0 or 1, to the output unchanged."""
        if not self.reserve(len(batch)):
            raise MemoryError()
        memcpy(self.output + self.output_length, <const char *>batch, len(batch))
        self.output_length += len(batch)

    def take_output(self):
        """Returns the output so far, and empties it. For tests, and for batches of magic 0 and 1."""
        taken = PyBytes_FromStringAndSize(<char *>self.output, self.output_length)
        self.output_length = 0
        return taken

    def write_to(self, SegmentState segment not None, int64_t index_interval_bytes):
        """Appends the output, which has batches of magic 2 only, to a segment, and adds index entries for it.

        Returns the number of bytes written. The segment must be open for append, and not be part of a log yet. Raises
        OSError.
        """
        cdef iovec vector
        cdef int status = 0
        cdef int64_t position = segment.size
        cdef Py_ssize_t at = 0
        cdef BatchHeader header
        written = self.output_length
        if not written:
            return 0
        with nogil:
            vector.iov_base = self.output
            vector.iov_len = <size_t>self.output_length
            status = segment._file.append_vectors(&vector, 1, self.output_length)
            while status == 0 and at < self.output_length:
                if parse_batch_header(self.output, at, self.output_length, &header) != HEADER_OK:
                    status = -EINVAL
                    break
                if not (segment._offset_index.has_room(1) and segment._time_index.has_room(1)):
                    segment.bytes_since_last_index_entry = -header.size
                status = segment.index_one(index_interval_bytes, position + at, header.size,
                                           header.base_offset + header.last_offset_delta, header.max_timestamp)
                at += header.size
        if status:
            raise OSError(-status, os.strerror(-status), segment._file.path)
        segment.size = position + written
        self.output_length = 0
        return written
