"""The state of logs and segments, as C fields that Python and the gate share. The .pxd file shows the structure.

The gate is the compiled code in `_core/gate` that serves usual Produce and Fetch requests without the interpreter lock.
"""

from cpython.ref cimport PyObject
from libc.errno cimport EIO
from libc.stdlib cimport free, realloc

from kafkapy._core.bytes.index_file cimport INDEX_OK, INDEX_UNCHANGED
from kafkapy._core.bytes.segment_file cimport segment_file_cut


cdef class DirectoryState:
    """Base of LogDirectory, with the field that is set while the directory can be used. Read by any thread."""


cdef class LogLimits:
    """Base of LogConfig: the limits that every append is checked against. Immutable after construction."""


cdef class SegmentState:
    """Base of LogSegment, with the fields that change with each append: the end, the timestamps and the open files."""

    def __cinit__(self, *arguments, **keywords):
        self._first_timestamp = TIMESTAMP_NOT_LOADED
        self._max_timestamp = TIMESTAMP_NOT_LOADED
        self._offset_of_max_timestamp = -1

    cdef bint certainly_fits(self, LogLimits limits, int64_t position, int64_t pending, int64_t size,
                             int64_t max_timestamp, int64_t last_offset) noexcept nogil:
        """Returns whether new batches certainly fit into the segment at `position`, so that no roll is necessary.

        `size` is the size of the new batches in bytes, `max_timestamp` their largest timestamp (ms), and `last_offset`
        their last offset. `pending` is the number of earlier batches that have no index entries yet. If the result is
        False, the caller has to call LogSegment.should_roll, which also reads the clock and the file.
        """
        return (self.is_open_for_append
                and position > 0
                and size <= limits.segment_bytes
                and position <= limits.segment_bytes - size
                and last_offset - self.base_offset <= LARGEST_RELATIVE_OFFSET
                and self._first_timestamp >= 0
                and max_timestamp >= 0
                and max_timestamp - self._first_timestamp <= limits.segment_ms - self.roll_jitter_ms
                and self._offset_index.has_room(pending + 1)
                and self._time_index.has_room(pending + 1))

    cdef int index_one(self, int64_t interval_bytes, int64_t position, int64_t size, int64_t last_offset,
                       int64_t max_timestamp) noexcept nogil:
        cdef int status
        if max_timestamp > self._max_timestamp:
            self._max_timestamp = max_timestamp
            self._offset_of_max_timestamp = last_offset
        if self.bytes_since_last_index_entry > interval_bytes:
            status = self._offset_index.append_entry(last_offset, position)
            if status == INDEX_OK and self._max_timestamp >= 0:
                status = self._time_index.append_entry(self._max_timestamp, self._offset_of_max_timestamp, False)
            if status != INDEX_OK and status != INDEX_UNCHANGED:
                return status if status < 0 else -EIO
            self.bytes_since_last_index_entry = 0
        self.bytes_since_last_index_entry += size
        return 0

    cdef void cut_to(self, int64_t position) noexcept nogil:
        segment_file_cut(self._file, position)
        self.size = position


cdef class SegmentsState:
    """Base of LogSegments: the segments of a log in ascending order, in a C array.

    Code without the interpreter lock reads the array.
    """

    def __dealloc__(self):
        free(self.ordered)

    def _set_segments(self, list segments not None):
        """Sets all segments, in the order of their base offsets.

        This object does not keep the segments alive: the caller must keep a reference to the list. The caller must call
        this function again whenever the list changes.
        """
        cdef Py_ssize_t index, count = len(segments)
        cdef void *grown = realloc(self.ordered, <size_t> (count or 1) * sizeof(PyObject *))
        cdef SegmentState segment = None
        if grown == NULL:
            raise MemoryError()
        self.ordered = <PyObject **> grown
        for index in range(count):
            segment = segments[index]
            self.ordered[index] = <PyObject *> segment
        self.count = count
        self.active = segment

    cdef Py_ssize_t place_of(self, int64_t offset) noexcept nogil:
        cdef Py_ssize_t low = 0, high = self.count, middle
        while low < high:
            middle = (low + high) // 2
            if (<SegmentState> self.ordered[middle]).base_offset <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1


cdef class ProducersState:
    """Base of ProducerStateManager: the producers of a log, and the transactions that limit the last stable offset.

    The entries of the producers reflect every batch below `map_end_offset`.
    """

    def __cinit__(self, *arguments, **keywords):
        self.entries = ProducerTable()
        self.first_ongoing = -1

    def __dealloc__(self):
        free(self.ended)

    def set_transactions(self, int64_t first_ongoing, dict ended not None):
        """Sets the open and the ended transactions that limit the last stable offset.

        `first_ongoing` is the first offset of the earliest open transaction, or -1 if no transaction is open. `ended`
        maps the first offset of each ended transaction to the offset of its marker. An ended transaction limits the
        last stable offset as long as its marker is at or above the high watermark.
        """
        cdef Py_ssize_t index = 0
        cdef void *grown
        if len(ended) > self.ended_count:
            grown = realloc(self.ended, <size_t> len(ended) * sizeof(EndedTransaction))
            if grown == NULL:
                raise MemoryError()
            self.ended = <EndedTransaction *> grown
        self.first_ongoing = first_ongoing
        for first_offset, last_offset in ended.items():
            self.ended[index].first_offset = first_offset
            self.ended[index].last_offset = last_offset
            index += 1
        self.ended_count = index

    cdef int64_t last_stable(self, int64_t high_watermark) noexcept nogil:
        cdef int64_t stable = high_watermark
        cdef Py_ssize_t index
        if 0 <= self.first_ongoing < stable:
            stable = self.first_ongoing
        for index in range(self.ended_count):
            if self.ended[index].last_offset >= high_watermark and self.ended[index].first_offset < stable:
                stable = self.ended[index].first_offset
        return stable


cdef class EpochsState:
    """Base of LeaderEpochCache: the leader epochs of a log in ascending order, in a C array.

    Code without the interpreter lock reads the array.
    """

    def __cinit__(self, *arguments, **keywords):
        self.latest_epoch = -1

    def __dealloc__(self):
        free(self.starts)

    def _set_epochs(self, list entries not None):
        """Replaces the epochs by copies of `entries`, pairs (epoch, start offset), oldest first.

        LeaderEpochCache calls this function after every change of its epochs.
        """
        cdef Py_ssize_t index, count = len(entries)
        cdef void *grown
        if count > self.start_count:
            grown = realloc(self.starts, <size_t> count * sizeof(EpochStart))
            if grown == NULL:
                raise MemoryError()
            self.starts = <EpochStart *> grown
        for index in range(count):
            self.starts[index].epoch, self.starts[index].start_offset = entries[index]
        self.start_count = count
        self.latest_epoch = self.starts[count - 1].epoch if count else -1

    cdef bint certainly_contain(self, int32_t last_epoch, int64_t end_offset, int64_t log_end_offset) noexcept nogil:
        """Returns whether another log, which ends at `end_offset` in `last_epoch`, is certainly a prefix of this log.

        The other log is that of a follower or consumer, and its last batch has the leader epoch `last_epoch`.
        `log_end_offset` is the end of this log. If the result is False, this function cannot decide, and
        Partition._diverging_epoch has to.
        """
        cdef Py_ssize_t low = 0, high = self.start_count, middle
        if last_epoch == self.latest_epoch:
            return end_offset <= log_end_offset
        while low < high:
            middle = (low + high) // 2
            if self.starts[middle].epoch <= last_epoch:
                low = middle + 1
            else:
                high = middle
        if low == self.start_count or (low > 0 and self.starts[low - 1].epoch != last_epoch):
            return False
        return end_offset <= self.starts[low].start_offset


cdef class LogState:
    """Base of Log, with the fields that an append changes: the offsets, the segments, the producers and the epochs."""
