"""Appends the batches that a follower has fetched to its log, without the interpreter lock.

`examine_fetched` in storage/follower_appends does the same in Python, and is the reference.

    examine      one pass over the bytes: framing | epoch | CRC | order of the offsets
    append_to    one pwritev | index entries
    account_for  the producers of the batches

Between the passes only totals are stored: each pass reads the batch headers again, which are in the processor's cache.
The bytes are written as the leader sent them. Python updates the producer of a batch that begins or ends a transaction
or is the first of its producer. Python also appends batches that do not fit into one segment, and messages of magic 0
or 1. The property test test_follower_append_twin compares the logs that compiled code and Python write.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport PyObject
from libc.stdint cimport INT64_MAX

from kafkapy._core.broker_state.log_state cimport LARGEST_RELATIVE_OFFSET, ProducersState
from kafkapy._core.broker_state.producer_table cimport ProducedBatch, ProducerEntry
from kafkapy._core.bytes.batch_layout cimport (
    CONTROL_FLAG, HEADER_INCOMPLETE, HEADER_OK, HEADER_OLD_MAGIC, NO_TIMESTAMP, TRANSACTIONAL_FLAG, BatchHeader,
    last_sequence_of, parse_batch_header)
from kafkapy._core.bytes.batch_validation cimport BatchSummary, crc_is_valid
from kafkapy._core.bytes.segment_file cimport iovec

import os

from kafkapy.errors import ApiError, Error

cdef enum:
    EXAMINED = 0
    FOUND_DAMAGE = 1
    FOUND_DISORDER = 2
    FOUND_OLD_FORMAT = 3


def end_of_fetched(records, int32_t leader_epoch):
    """Returns the offset after the last whole batch of an epoch up to `leader_epoch`, and the leader epoch of this
    batch.

    Returns None if there is no such batch, if an append would refuse the bytes, or if only the Python path can append
    them. Reads only the headers, and does not verify the checksums.
    """
    cdef Py_buffer view
    cdef BatchHeader header
    cdef Py_ssize_t pos = 0
    cdef int status
    cdef int64_t next_offset = -1
    cdef int32_t epoch = -1
    PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
    try:
        while pos < view.len:
            status = parse_batch_header(<const uint8_t *> view.buf, pos, view.len, &header)
            if status == HEADER_INCOMPLETE:
                break
            if status != HEADER_OK:
                return None
            if header.partition_leader_epoch > leader_epoch:
                break
            if (header.base_offset < next_offset or header.base_offset < 0 or header.last_offset_delta < 0
                    or header.base_offset > INT64_MAX - header.last_offset_delta - 1):
                return None
            next_offset = header.base_offset + header.last_offset_delta + 1
            epoch = header.partition_leader_epoch
            pos += <Py_ssize_t> header.size
    finally:
        PyBuffer_Release(&view)
    return None if next_offset < 0 else (next_offset, epoch)


cdef class FetchedBatches:
    """The batches that a follower fetched for one partition, to be appended to its log.

    *Pins* the bytes until it is deallocated. Only the thread that owns it may use it.
    """

    def __init__(self, records, int32_t leader_epoch):
        """Examines the whole batches of the bytes-like object `records`, without the interpreter lock.

        Ignores the first batch of an epoch above `leader_epoch`, and all batches after it. Raises ApiError with
        CORRUPT_MESSAGE for a damaged batch, and with OFFSET_OUT_OF_RANGE if the offsets do not ascend.
        """
        PyObject_GetBuffer(records, &self.view, PyBUF_SIMPLE)
        self.has_view = True
        self.records = records
        with nogil:
            self.status = self.examine(leader_epoch)
        if self.status == FOUND_DAMAGE:
            raise ApiError(Error.CORRUPT_MESSAGE, "Found a damaged batch in fetched records")
        if self.status == FOUND_DISORDER:
            raise ApiError(Error.OFFSET_OUT_OF_RANGE, "Out of order offsets in fetched records")

    def __dealloc__(self):
        if self.has_view:
            PyBuffer_Release(&self.view)

    cdef int examine(self, int32_t leader_epoch) noexcept nogil:
        """Sets the totals of the batches to append; returns EXAMINED, or the constant FOUND_ of the first fault.

        The faults are FOUND_DAMAGE, FOUND_DISORDER (offsets that do not ascend) and FOUND_OLD_FORMAT (magic 0 or 1).
        The batches to append end before the first one that is incomplete or of an epoch above `leader_epoch`.
        """
        cdef const uint8_t *data = <const uint8_t *> self.view.buf
        cdef BatchHeader header
        cdef Py_ssize_t pos = 0
        cdef int status
        self.max_timestamp = NO_TIMESTAMP
        self.highest_epoch = -1
        while pos < self.view.len:
            status = parse_batch_header(data, pos, self.view.len, &header)
            if status == HEADER_INCOMPLETE:
                break
            if status == HEADER_OLD_MAGIC:
                return FOUND_OLD_FORMAT
            if status != HEADER_OK:
                return FOUND_DAMAGE
            if header.partition_leader_epoch > leader_epoch:
                break
            if (header.base_offset < 0 or header.last_offset_delta < 0
                    or header.base_offset > INT64_MAX - header.last_offset_delta - 1
                    or not crc_is_valid(data, &header)):
                return FOUND_DAMAGE
            if self.batch_count == 0:
                self.base_offset = header.base_offset
                self.first_batch_end = header.base_offset + header.last_offset_delta + 1
            elif header.base_offset < self.next_offset:
                return FOUND_DISORDER
            self.next_offset = header.base_offset + header.last_offset_delta + 1
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
            if header.partition_leader_epoch > self.highest_epoch:
                self.highest_epoch = header.partition_leader_epoch
            if header.producer_id >= 0:
                self.has_producers = True
            self.batch_count += 1
            pos += <Py_ssize_t> header.size
        self.size = pos
        return EXAMINED

    def is_one_run(self, LogLimits limits not None):
        """Returns whether the batches, which may be none, are all of magic 2 and fit into one segment.

        If not, the Python path must append them.
        """
        return (self.status == EXAMINED and self.size <= limits.segment_bytes
                and (self.batch_count == 0 or self.next_offset - 1 - self.base_offset <= LARGEST_RELATIVE_OFFSET))

    def epochs_after(self, int32_t epoch):
        """Returns (epoch, start offset) of the leader epochs above `epoch` that begin in these batches, in order."""
        cdef BatchHeader header
        cdef Py_ssize_t pos = 0
        cdef list found = []
        if self.highest_epoch <= epoch:
            return found
        while pos < self.size and parse_batch_header(
                <const uint8_t *> self.view.buf, pos, self.view.len, &header) == HEADER_OK:
            if header.partition_leader_epoch > epoch:
                epoch = header.partition_leader_epoch
                found.append((epoch, header.base_offset))
            pos += <Py_ssize_t> header.size
        return found

    def append_to(self, SegmentState segment not None, LogLimits limits not None):
        """Writes the batches to a segment that is open for append, and indexes them; releases the interpreter lock.

        Raises OSError if the write fails; then the segment has none of the batches.
        """
        cdef iovec vector
        cdef int64_t position = segment.size
        cdef int status
        if segment._file.size != position:
            raise AssertionError(f"{segment} has {segment._file.size} bytes")
        vector.iov_base = self.view.buf
        vector.iov_len = <size_t> self.size
        with nogil:
            status = segment._file.append_vectors(&vector, 1, self.size)
            if status == 0:
                status = self.index_all(segment, limits, position)
                if status:
                    segment.cut_to(position)
        if status:
            raise OSError(-status, os.strerror(-status))
        segment.size = position + self.size

    cdef int index_all(self, SegmentState segment, LogLimits limits, int64_t position) noexcept nogil:
        cdef const uint8_t *data = <const uint8_t *> self.view.buf
        cdef BatchHeader header
        cdef Py_ssize_t pos = 0
        cdef int64_t interval
        cdef int status
        while pos < self.size and parse_batch_header(data, pos, self.view.len, &header) == HEADER_OK:
            interval = limits.index_interval_bytes
            if not (segment._offset_index.has_room(1) and segment._time_index.has_room(1)):
                interval = INT64_MAX  # a full index gets no entry
            status = segment.index_one(interval, position + pos, header.size,
                                       header.base_offset + header.last_offset_delta, header.max_timestamp)
            if status:
                return status
            pos += <Py_ssize_t> header.size
        return 0

    def account_for(self, ProducersState producers not None, account_for_batch):
        """Adds the batches to the state of their producers.

        Calls `account_for_batch(summary, records)` for each batch that only Python can add, in order; `summary` is a
        BatchSummary, and `records` are the bytes of all batches, in which the summary has the batch's position.
        """
        cdef BatchHeader header
        cdef Py_ssize_t pos = 0
        if not self.has_producers:
            return
        while pos < self.size and parse_batch_header(
                <const uint8_t *> self.view.buf, pos, self.view.len, &header) == HEADER_OK:
            if header.producer_id >= 0 and not account_here(producers, &header):
                self.handed_over += 1
                account_for_batch(BatchSummary.of(&header, pos), self.records)
            pos += <Py_ssize_t> header.size


cdef bint account_here(ProducersState producers, const BatchHeader *header) noexcept:
    """Adds a batch to the state of its producer.

    Returns False, and changes nothing, if the producer is not known or the batch begins or ends a transaction.
    """
    cdef ProducedBatch produced
    cdef PyObject *found
    cdef ProducerEntry entry
    if header.attributes & CONTROL_FLAG:
        return False
    found = producers.entries.find(header.producer_id)
    if found == NULL:
        return False
    entry = <ProducerEntry> found
    if header.attributes & TRANSACTIONAL_FLAG and entry.transaction_first_offset < 0:
        return False
    if header.producer_epoch != entry.producer_epoch:
        entry.count = 0
        entry.producer_epoch = header.producer_epoch
    produced.first_sequence = header.base_sequence
    produced.last_sequence = last_sequence_of(header)
    produced.first_offset = header.base_offset
    produced.last_offset = header.base_offset + header.last_offset_delta
    produced.timestamp = header.max_timestamp
    entry.push(&produced)
    return True
