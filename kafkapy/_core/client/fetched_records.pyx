"""The fetched records of a partition, which a consumer reads one by one or as columns."""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.type cimport PyType_IsSubtype
from libc.stdint cimport INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint64_t

from kafkapy._core.bytes.arrow_batch cimport ArrowBatch
from kafkapy._core.bytes.batch_layout cimport HEADER_OK, BatchHeader, parse_batch_header
from kafkapy._core.bytes.arrow_columns cimport RecordColumns, reserve_data
from kafkapy._core.client.arrow_records cimport (
    ROWS_DAMAGED, ROWS_FULL, ROWS_NO_MEMORY, ROWS_OK, ROWS_REACHED_END, put_constants, put_records, put_row,
    reserve_row)
from kafkapy._core.client.fetched_batches cimport (
    AT_END, AT_RECORD, DAMAGED_BATCH, DAMAGED_RECORD, FetchedBatches)
from kafkapy._core.bytes.primitives cimport read_varint, read_varlong
from kafkapy.errors import ApiError, Error

cdef extern from "string.h" nogil:
    void *memmem(const void *haystack, size_t size, const void *needle, size_t needle_size)

cdef extern from "Python.h":
    ctypedef struct PyObject
    ctypedef struct PyTypeObject:
        object (*tp_new)(PyTypeObject *kind, PyObject *arguments, PyObject *keywords)
    bint PyType_IS_GC(type kind)
    void PyObject_GC_UnTrack(void *made)

# The reasons to stop filling columns, in addition to those of fetched_batches.
cdef enum:
    NO_MORE_ROWS = 100
    NO_MORE_BYTES = 101
    NO_MEMORY = 102


@cython.freelist(1024)
@cython.no_gc  # created by the million; a deserializer's result must not refer back to its record
cdef class ConsumerRecord:
    """One record as a consumer sees it. The object does not change after its construction.

    `timestamp` is in ms since 1970; `timestamp_type` is 0 for the producer's time and 1 for the broker's append time.
    The key, the value and the headers' values are bytes or None, or the deserializers' results. `delivery_count` is
    the number of times that a share group has delivered the record, this time included; 0 outside of share groups.
    """

    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int32_t leader_epoch
    cdef readonly int64_t offset, timestamp
    cdef readonly int8_t timestamp_type
    cdef readonly int16_t delivery_count
    cdef readonly object key, value
    cdef readonly tuple headers

    def with_content(self, key, value):
        """Returns the same record with another key and value."""
        cdef ConsumerRecord made = ConsumerRecord.__new__(ConsumerRecord)
        made.topic, made.partition, made.leader_epoch = self.topic, self.partition, self.leader_epoch
        made.offset, made.timestamp, made.timestamp_type = self.offset, self.timestamp, self.timestamp_type
        made.delivery_count = self.delivery_count
        made.key, made.value, made.headers = key, value, self.headers
        return made

    def __repr__(self):
        return (f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
                f"timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})")


@cython.no_gc
cdef class AcquiredOffsets:
    """The offsets of one partition that a share consumer has acquired, and its position among them. Not thread-safe.

    `ranges` has the first offset, the last offset and the delivery count of each range, in the order of offsets; an
    offset that an earlier range contains is ignored. `gaps` collects the first and last offsets of the acquired
    offsets that have no record.
    """

    cdef list ranges
    cdef Py_ssize_t next_range
    cdef int64_t next_offset, last_offset    # of the current range; next_offset is INT64_MAX behind all ranges
    cdef int16_t delivery_count
    cdef public list gaps

    def __init__(self, ranges):
        self.ranges, self.gaps = list(ranges), []
        self.next_range, self.next_offset, self.last_offset = 0, -1, -1
        self.advance(0)

    @property
    def first_offset(self):
        """The acquired offset at the position; None if the position is after the last range."""
        return None if self.next_offset == INT64_MAX else self.next_offset

    cdef int advance(self, int64_t offset) except -1:
        """Moves the position to `offset`; if `offset` is in no range, to the first acquired offset after it."""
        while offset > self.last_offset:
            if self.next_range == len(self.ranges):
                self.next_offset = self.last_offset = INT64_MAX
                return 0
            first, last, self.delivery_count = self.ranges[self.next_range]
            self.next_range += 1
            offset, self.last_offset = max(offset, first), max(self.last_offset, last)
        self.next_offset = offset
        return 0

    cdef list skip_to(self, int64_t offset):
        """Moves the position to the first acquired offset at or after `offset`.

        Returns the ranges (first offset, last offset) of the acquired offsets that it passes.
        """
        cdef list skipped = []
        cdef int64_t last
        while self.next_offset < offset:
            last = min(offset - 1, self.last_offset)
            skipped.append((self.next_offset, last))
            self.advance(last + 1)
        return skipped

    def skip_rest(self):
        """Moves the position to the end of all ranges.

        Returns the ranges (first offset, last offset) of the acquired offsets that it passes.
        """
        return self.skip_to(INT64_MAX)


@cython.binding(False)  # a method that is no Cython function is called in half the time
@cython.no_gc  # created with each record; what a view shows must not refer back to the view
cdef class RecordView:
    """The base of a class whose methods return the fields of a record, like the Message of confluent-kafka.

    Subclasses declare no slots and no `__init__`. `_record` is the ConsumerRecord, or an object with the same
    attributes. `_error` and `_latency` belong to the subclass; they are None in a view of a record. This class has the
    methods that programs call for each record, because they are faster in compiled code.
    """

    cdef public object _record, _error, _latency

    def topic(self):
        """Returns the topic; None for an error of the consumer that concerns no topic."""
        if type(self._record) is ConsumerRecord:
            return (<ConsumerRecord>self._record).topic
        return self._record.topic

    def partition(self):
        """Returns the number of the partition; None for an error of the consumer that concerns no partition."""
        if type(self._record) is ConsumerRecord:
            return (<ConsumerRecord>self._record).partition
        return self._record.partition

    def offset(self):
        """Returns the offset; None for a record that was not delivered, and for an error that concerns no offset."""
        if type(self._record) is ConsumerRecord:
            return (<ConsumerRecord>self._record).offset
        return self._record.offset

    def key(self):
        """Returns the key, or None if the record has no key."""
        if type(self._record) is ConsumerRecord:
            return (<ConsumerRecord>self._record).key
        return self._record.key

    def value(self):
        """Returns the value of the record, which may be None. For an error of the consumer, returns the error's text in
        UTF-8."""
        if type(self._record) is ConsumerRecord:
            return (<ConsumerRecord>self._record).value
        return self._record.value

    def error(self):
        """Returns the error, or None if this is the view of a record."""
        return self._error


def record_view(type view, ConsumerRecord record not None):
    """Returns a view of one record. Raises TypeError if `view` is not a subclass of RecordView."""
    check_view(view)
    return new_view(view, record)


def record_views(type view, list records, dict last_offsets):
    """Returns a list with a view of each ConsumerRecord in `records`, and with all other elements of `records`
    unchanged.

    Sets `last_offsets[topic][partition]` to the offset of the last record of each partition. Raises TypeError if `view`
    is not a subclass of RecordView.
    """
    cdef list views = []
    cdef ConsumerRecord record, last = None
    check_view(view)
    for each in records:
        if type(each) is not ConsumerRecord:
            views.append(each)
            continue
        record = <ConsumerRecord>each
        if last is not None and (record.partition != last.partition or record.topic is not last.topic):
            note_offset(last, last_offsets)
        last = record
        views.append(new_view(view, record))
    if last is not None:
        note_offset(last, last_offsets)
    return views


cdef tuple NO_ARGUMENTS = ()


cdef RecordView new_view(type view, ConsumerRecord record):
    """Returns a view that the garbage collector does not track.

    The collector tracks the instances of a class that is defined in Python, although it does not track instances of
    RecordView. To visit each view several times would take longer than to make the view. Calls `tp_new` directly,
    because `RecordView.__new__(view)` would look up an attribute and make a new tuple for each record.
    """
    cdef PyTypeObject *kind = <PyTypeObject *>view
    cdef RecordView made = <RecordView>kind.tp_new(kind, <PyObject *>NO_ARGUMENTS, NULL)
    made._record = record
    if PyType_IS_GC(view):
        PyObject_GC_UnTrack(<void *>made)
    return made


cdef int check_view(type view) except -1:
    if not PyType_IsSubtype(view, RecordView):
        raise TypeError(f"{view.__name__} is not a subclass of RecordView")
    return 0


cdef int note_offset(ConsumerRecord record, dict last_offsets) except -1:
    """Sets the offset of the record's partition in `last_offsets`, {topic: {partition: offset}}."""
    offsets = last_offsets.get(record.topic)
    if offsets is None:
        offsets = last_offsets[record.topic] = {}
    offsets[record.partition] = record.offset
    return 0


@cython.no_gc  # like its base class
cdef class FetchedRecords(FetchedBatches):
    """The records in one partition's fetched bytes, from `next_offset` up to `until_offset`.

    Calls of `take` and `fill` may alternate. `is_exhausted` is true after the last record. Not thread-safe.
    """

    cdef bint is_filling                 # True while `fill` decodes without the interpreter lock

    def take(self, Py_ssize_t limit):
        """Returns up to `limit` records from `next_offset` on; fewer only at the end, or before a damaged batch.

        If the first batch to read is damaged, raises ApiError with CORRUPT_MESSAGE or INVALID_RECORD, and does so again
        in each further call.
        """
        cdef list records = []
        self.check_idle()
        try:
            while len(records) < limit:
                if self.span.remaining == 0 and not self.open_next():
                    break
                self.take_from_batch(limit, records)
        except ApiError:
            if not records:
                raise
        return records

    def take_acquired(self, Py_ssize_t limit, AcquiredOffsets acquired not None):
        """Returns the records of the next batches that are in `acquired`: whole batches, until `limit` is reached.

        Adds the ranges of acquired offsets without a record to `acquired.gaps`. If the first batch to read is damaged,
        raises ApiError with CORRUPT_MESSAGE or INVALID_RECORD, also in further calls unless `skip_batch` is called
        before.
        """
        cdef list records = []
        self.check_idle()
        try:
            while len(records) < limit and acquired.next_offset != INT64_MAX:
                if self.span.remaining == 0 and not self.open_next():
                    acquired.gaps += acquired.skip_to(INT64_MAX)
                    break
                self.take_acquired_from_batch(records, acquired)
        except ApiError:
            if not records:
                raise
        return records

    def skip_batch(self, AcquiredOffsets acquired not None):
        """Skips the batch that `take_acquired` found damaged; returns the ranges of its acquired offsets.

        If the end of the batch is unknown, skips all later bytes, too, and returns the ranges of all acquired offsets
        that are left. A range is (first offset, last offset).
        """
        cdef BatchHeader header
        cdef int64_t end = INT64_MAX
        if parse_batch_header(<const uint8_t *>self.view.buf, self.position, self.view.len, &header) == HEADER_OK:
            acquired.gaps += acquired.skip_to(header.base_offset)
            end = header.base_offset + header.last_offset_delta + 1
            self.header = header
            self.leave_batch()
        else:
            self.position = self.view.len
        return acquired.skip_to(end)

    cdef int take_acquired_from_batch(self, list records, AcquiredOffsets acquired) except -1:
        cdef ConsumerRecord record
        while self.span.remaining > 0:
            record = self.parse_record() if self.old_records is None else self.old_record(self.old_records.pop())
            self.span.remaining -= 1
            if record.offset < acquired.next_offset:
                continue
            if record.offset > acquired.next_offset:
                acquired.gaps += acquired.skip_to(record.offset)
                if record.offset != acquired.next_offset:
                    continue
            record.delivery_count = acquired.delivery_count
            records.append(record)
            acquired.advance(record.offset + 1)
        self.old_records = None
        self.leave_batch()
        return 0

    cdef int check_idle(self) except -1:
        if self.is_filling:
            raise RuntimeError("another thread reads these records")
        return 0

    cdef bint open_next(self) except -1:
        """Moves to the next batch with records to return, or the next messages of magic 0 or 1; returns False at the
        end."""
        cdef int status
        while self.span.remaining == 0:
            status = self.enter_batch()
            if status == AT_RECORD:
                status = self.open_batch()
            if status != AT_RECORD:
                status = self.open_by_python(status)
            if status == AT_END:
                return False
        return True

    cdef int take_from_batch(self, Py_ssize_t limit, list records) except -1:
        cdef ConsumerRecord record
        while self.span.remaining > 0 and len(records) < limit:
            record = self.parse_record() if self.old_records is None else self.old_record(self.old_records.pop())
            if record.offset >= self.until_offset:
                self.finish()
                return 0
            self.span.remaining -= 1
            if record.offset >= self.next_offset:
                records.append(record)
                self.next_offset = record.offset + 1
        if self.span.remaining == 0:
            self.old_records = None
            self.leave_batch()
        return 0

    cdef ConsumerRecord old_record(self, old):
        cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
        record.topic, record.partition, record.leader_epoch = self.topic, self.partition, -1
        record.offset, record.timestamp = old.offset, old.timestamp
        record.timestamp_type = old.timestamp_type if old.timestamp >= 0 else -1
        record.key, record.value, record.headers = old.key, old.value, ()
        return record

    cdef ConsumerRecord parse_record(self):
        cdef const uint8_t *buf = self.span.buf
        cdef Py_ssize_t end = self.span.end
        cdef int32_t length = 0, offset_delta = 0, headers = 0
        cdef int64_t timestamp_delta = 0
        cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
        cdef Py_ssize_t pos = read_varint(buf, self.span.pos, end, &length)
        if pos < 0 or length < 1 or length > end - pos:
            raise self.complaint(DAMAGED_RECORD)
        end = pos + length
        pos = read_varlong(buf, pos + 1, end, &timestamp_delta)
        if pos >= 0:
            pos = read_varint(buf, pos, end, &offset_delta)
        record.key = take_field(buf, &pos, end)
        record.value = take_field(buf, &pos, end)
        if pos >= 0:
            pos = read_varint(buf, pos, end, &headers)
        if pos < 0 or headers < 0 or headers > end - pos:
            raise self.complaint(DAMAGED_RECORD)
        record.headers = take_headers(buf, &pos, end, headers) if headers else ()
        if pos != end:
            raise self.complaint(DAMAGED_RECORD)
        self.span.pos = end
        record.topic, record.partition = self.topic, self.partition
        record.leader_epoch = self.header.partition_leader_epoch
        record.offset = self.span.base_offset + offset_delta
        if self.span.has_log_append_time:
            record.timestamp, record.timestamp_type = self.span.log_append_time, 1
        else:
            record.timestamp = <int64_t>(<uint64_t>self.span.base_timestamp + <uint64_t>timestamp_delta)
        return record

    def fill(self, ArrowBatch batch not None):
        """Adds a row to `batch` for each record from `next_offset` on; returns the number of rows added.

        Stops when `batch` has reached its limit of rows or bytes, after the last record, or before damaged records. If
        no row was added because the next records are damaged, raises ApiError with CORRUPT_MESSAGE or INVALID_RECORD.
        Raises ApiError with MESSAGE_TOO_LARGE for a record that does not fit into the empty columns of `batch`. Runs
        without the interpreter lock. Records of several partitions may be added to `batch` one after another.
        """
        cdef bytes topic = self.topic.encode("utf-8", "replace")
        cdef int64_t rows = batch.content.rows
        cdef int status
        self.check_idle()
        batch.begin_filling()
        self.is_filling = True
        self.defers_crcs = batch.content.needle != NULL
        try:
            batch.content.topic_size = PyBytes_GET_SIZE(topic)
            status = self.fill_to_the_end(batch, topic)
        except ApiError:
            if batch.content.rows == rows:
                raise
            batch.is_full = True
            return batch.content.rows - rows
        finally:
            self.is_filling = self.defers_crcs = False
            batch.end_filling()
        if status == NO_MEMORY:
            raise MemoryError()
        if status == NO_MORE_BYTES:
            batch.is_full = True
            if batch.content.rows == 0:
                raise ApiError(Error.MESSAGE_TOO_LARGE, f"The record at offset {self.next_offset} of {self.topic}-"
                               f"{self.partition} is too large for a column")
        return batch.content.rows - rows

    cdef int fill_to_the_end(self, ArrowBatch batch, bytes topic) except -1:
        """Adds rows until the columns are full or the records end; returns why it stopped.

        The result is AT_END, NO_MORE_ROWS, NO_MORE_BYTES or NO_MEMORY.
        """
        cdef const uint8_t *topic_bytes = <const uint8_t *>PyBytes_AS_STRING(topic)
        cdef int status = NO_MORE_BYTES if batch.is_full else AT_RECORD
        while status < NO_MORE_ROWS and status != AT_END:
            if self.old_records is not None:
                status = self.fill_old_records(&batch.content, topic_bytes)
            else:
                with nogil:
                    status = self.fill_batches(&batch.content, topic_bytes)
            if status < NO_MORE_ROWS:
                status = self.open_by_python(status)
        return status

    cdef int fill_batches(self, RecordColumns *columns, const uint8_t *topic) noexcept nogil:
        cdef int status
        if columns.value != NULL and columns.rows == 0:  # so that it need not grow; unused pages cost nothing
            reserve_data(columns.value, 0, min(self.view.len - self.position, columns.byte_limit))
        while columns.rows < columns.row_limit and columns.scanned < columns.row_limit:
            if self.span.remaining == 0:
                status = self.enter_batch()
                if status == AT_RECORD:
                    if self.count_batch(columns, topic):
                        continue
                    status = self.open_batch()
                if status != AT_RECORD:
                    return status
            if columns.needle != NULL and self.is_whole():
                status = self.fill_found(columns, topic)
            else:
                status = self.check_batch()
                if status == AT_RECORD:
                    status = self.fill_from_batch(columns, topic)
            if status != AT_RECORD:
                return status
        return NO_MORE_ROWS

    cdef bint is_whole(self) noexcept nogil:
        """Returns whether all records left in the current batch are within the offsets to read."""
        return self.header.base_offset + self.header.last_offset_delta < self.until_offset and (
            self.header.base_offset >= self.next_offset or self.span.pos > 0)

    cdef int fill_found(self, RecordColumns *columns, const uint8_t *topic) noexcept nogil:
        """Adds the next record of the batch that contains the needle, the bytes for which `fill` searches.

        Skips the rest of the batch if there is no such record. Returns AT_RECORD in both cases, or the status that says
        why the record cannot be added, such as NO_MORE_BYTES. Only the lengths of skipped records are decoded. The CRC
        of a batch without the needle is not checked, because that would take more time than the search.
        """
        cdef const uint8_t *buf = self.span.buf
        cdef const uint8_t *found = <const uint8_t *>memmem(
            buf + self.span.pos, <size_t>(self.span.end - self.span.pos), columns.needle, columns.needle_size)
        cdef Py_ssize_t at
        cdef int32_t length = 0
        cdef int64_t limit = columns.row_limit
        cdef int status
        if found == NULL:
            columns.scanned += self.span.remaining
            self.leave_batch()
            return AT_RECORD
        if self.check_batch() != AT_RECORD:
            return DAMAGED_BATCH
        while self.span.remaining > 1:
            at = read_varint(buf, self.span.pos, self.span.end, &length)
            if at < 0 or length < 1 or length > self.span.end - at:
                return DAMAGED_RECORD
            if buf + at + length > found:
                break
            self.span.pos = at + length
            self.span.remaining -= 1
            columns.scanned += 1
        columns.row_limit = columns.rows + 1
        status = self.fill_from_batch(columns, topic)
        columns.row_limit = limit
        return status

    cdef bint count_batch(self, RecordColumns *columns, const uint8_t *topic) noexcept nogil:
        """Adds the number of records of the batch to the number of rows, without reading the records; returns True.

        Changes nothing and returns False if a column is requested, if a record is outside of the offsets to read, or if
        the limit of rows would be exceeded.
        """
        cdef int64_t first = columns.rows
        if columns.key != NULL or columns.value != NULL or columns.offset != NULL or columns.headers != NULL or (
                columns.timestamp != NULL or columns.topic != NULL or columns.partition != NULL
                or columns.timestamp_type != NULL):
            return False
        if self.header.base_offset < self.next_offset or self.header.record_count > columns.row_limit - first or (
                self.header.base_offset + self.header.last_offset_delta >= self.until_offset):
            return False
        columns.rows += self.header.record_count
        self.leave_batch()
        return True

    cdef int fill_from_batch(self, RecordColumns *columns, const uint8_t *topic) noexcept nogil:
        cdef int64_t first = columns.rows
        cdef int status = put_records(columns, &self.span, &self.next_offset, self.until_offset)
        put_constants(columns, first, topic, self.partition, 1 if self.span.has_log_append_time else 0)
        if columns.needle != NULL:
            columns.scanned += columns.rows - first
        if status == ROWS_REACHED_END:
            self.finish()
        elif status == ROWS_FULL:
            return NO_MORE_BYTES
        elif status == ROWS_NO_MEMORY:
            return NO_MEMORY
        elif status == ROWS_DAMAGED:
            return DAMAGED_RECORD
        elif self.span.remaining == 0:
            self.leave_batch()
        return AT_RECORD

    cdef int fill_old_records(self, RecordColumns *columns, const uint8_t *topic) except -1:
        """Adds one row to the columns for each message in `old_records`, the messages of magic 0 or 1 that were decoded
        last.

        Returns 0 (AT_RECORD) if all messages have been added, so that the caller can go on to the next batch. If a row
        cannot be added, returns the reason: NO_MORE_ROWS, NO_MORE_BYTES or NO_MEMORY. The messages without a row then
        stay in `old_records`.
        """
        cdef int64_t key_size, value_size
        cdef int status
        while self.old_records:
            if columns.rows == columns.row_limit:
                return NO_MORE_ROWS
            old = self.old_records[len(self.old_records) - 1]
            key_size = -1 if old.key is None else len(old.key)
            value_size = -1 if old.value is None else len(old.value)
            status = reserve_row(columns, max(key_size, 0) + max(value_size, 0))
            if status != ROWS_OK:
                return NO_MORE_BYTES if status == ROWS_FULL else NO_MEMORY
            key, value = old.key or b"", old.value or b""
            put_row(columns, old.offset, old.timestamp, <const uint8_t *>PyBytes_AS_STRING(key), key_size,
                    <const uint8_t *>PyBytes_AS_STRING(value), value_size)
            put_constants(columns, columns.rows - 1, topic, self.partition,
                          -1 if old.timestamp < 0 else old.timestamp_type)
            self.next_offset = old.offset + 1
            self.span.remaining -= 1
            self.old_records.pop()
            columns.scanned += columns.needle != NULL
        self.old_records = None
        self.leave_batch()
        return AT_RECORD


cdef bytes take_field(const uint8_t *buf, Py_ssize_t *pos, Py_ssize_t end):
    """Returns the bytes after a length prefix, or None for null, and advances `pos` past them.

    If the bytes end early, returns None and sets `pos` to -1.
    """
    cdef int32_t length = 0
    if pos[0] < 0:
        return None
    pos[0] = read_varint(buf, pos[0], end, &length)
    if pos[0] < 0 or length < 0:
        return None
    if length > end - pos[0]:
        pos[0] = -1
        return None
    pos[0] += length
    return PyBytes_FromStringAndSize(<char *>buf + pos[0] - length, length)


cdef tuple take_headers(const uint8_t *buf, Py_ssize_t *pos, Py_ssize_t end, int32_t count):
    """Returns the headers as pairs of name and value; sets `pos` to -1 if they are malformed."""
    cdef list pairs = []
    cdef bytes name
    for _ in range(count):
        name = take_field(buf, pos, end)
        content = take_field(buf, pos, end)
        if name is None or pos[0] < 0:
            pos[0] = -1
            break
        pairs.append((name.decode("utf-8", "surrogateescape"), content))
    return tuple(pairs)
