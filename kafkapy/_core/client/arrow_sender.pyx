"""Adds the rows of a table to a producer's batches, without a Python object for each row.

Like `RecordAccumulator`, it has no lock of its own. The code that adds a row never releases the interpreter lock, so
that no other thread runs while a row is added.
"""
from cpython cimport array
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport UINT32_MAX, int32_t, int64_t, uint8_t, uint32_t
from posix.time cimport CLOCK_REALTIME

from kafkapy._core.bytes.arrow_input cimport (
    ROW_NULL, ArrowInput, check_status, read_bytes, read_headers, read_number)
from kafkapy._core.client.record_accumulator cimport (
    DeliveryFuture, PartitionQueue, ProducerBatch, RecordAccumulator, TopicQueues, milliseconds)
from kafkapy._core.client.record_writer cimport HeaderWriter, RecordContent

from array import array as make_array

from kafkapy.errors import ApiError, Error

cdef enum:
    FIRST_PLACES = 64

# A row of a table: its number minus that of the first row in the same batch, and its index in the batch.
cdef struct RowPlace:
    uint32_t row
    int32_t index


cdef class BatchRows:
    """The rows of one table that are in one batch of a producer.

    When the batch has an outcome, the object reports it once to `delivery`, as ArrowSender describes.
    """

    cdef readonly ProducerBatch batch
    cdef object delivery
    cdef bint is_reported
    cdef int64_t first_row
    cdef RowPlace *places
    cdef Py_ssize_t count, capacity

    def __dealloc__(self):
        PyMem_Free(self.places)

    cdef int reserve(self) except -1:
        """Reserves memory for one more row."""
        cdef RowPlace *grown
        if self.count == self.capacity:
            grown = <RowPlace *>PyMem_Realloc(self.places, max(self.capacity * 2, FIRST_PLACES) * sizeof(RowPlace))
            if grown == NULL:
                raise MemoryError()
            self.places, self.capacity = grown, max(self.capacity * 2, FIRST_PLACES)
        return 0

    cdef void add(self, int64_t row, int32_t index) noexcept:
        """Adds a row, for which memory was reserved."""
        self.places[self.count].row = <uint32_t>(row - self.first_row)
        self.places[self.count].index = index
        self.count += 1

    def notify(self):
        if not self.is_reported:
            self.is_reported = True
            self.delivery.finish(self, self.count)

    def failures(self):
        """Returns pairs (numbers of rows, error) of the rows that were not delivered. Called when the batch is done."""
        found = []
        for first_index, end_index, error in self.batch.outcomes():
            numbers = self.rows_between(first_index, end_index) if error is not None else None
            if numbers:
                found.append((numbers, error))
        return found

    cdef array.array rows_between(self, int64_t first_index, int64_t end_index):
        """Returns the numbers of the rows with an index in the batch from `first_index` to `end_index` - 1."""
        cdef array.array numbers = make_array("q")
        cdef Py_ssize_t at
        for at in range(self.count):
            if first_index <= self.places[at].index < end_index:
                numbers.append(self.first_row + self.places[at].row)
        return numbers


cdef class ArrowSender:
    """Sends the rows of a table to one topic. Used by one thread at a time.

    The method `begin` of `delivery` is called for each new batch, and `finish(rows, count)` when the batch has an
    outcome; `rows` is its BatchRows, and `count` the number of its rows. If the accumulator does not accept encoded
    records, for example because it has serializers, each row is passed to its method `send`.
    """

    cdef RecordAccumulator accumulator
    cdef ArrowInput source
    cdef TopicQueues queues
    cdef object delivery
    cdef readonly int64_t row            # the number of rows that were sent
    cdef int64_t next_index              # of the next row in the present batch of the table
    cdef int64_t now_ms                  # the timestamp of rows that have none
    cdef bint is_complete
    cdef list open_rows                  # the BatchRows of each partition's newest batch, or None
    cdef BatchRows spare
    cdef HeaderWriter header_writer

    def __init__(self, RecordAccumulator accumulator not None, ArrowInput source not None, TopicQueues queues not None,
                 delivery):
        self.accumulator, self.source, self.queues, self.delivery = accumulator, source, queues, delivery
        self.open_rows = []
        self.header_writer = HeaderWriter.__new__(HeaderWriter)

    def advance(self):
        """Sends rows; returns True when all are sent, or False when `buffer.memory` has no room for the next row.

        Raises TypeError, ValueError or ApiError for a row that cannot be sent, with the row's number in the message,
        and the other errors of `RecordAccumulator.send`.
        """
        cdef int64_t closed
        self.now_ms = milliseconds(CLOCK_REALTIME)
        while not self.is_complete:
            if self.next_index == self.source.rows:
                self.next_index = 0
                self.is_complete = not self.source.next_batch()
                self.now_ms = milliseconds(CLOCK_REALTIME)
                continue
            closed = self.accumulator.closed_batches
            if not self.send_row(self.next_index):
                return False
            self.next_index += 1
            self.row += 1
            if self.accumulator.closed_batches != closed:
                self.accumulator._on_batch_closed()
        self.open_rows.clear()
        return True

    def send_refused_row(self):
        """Sends the row for which `advance` found no memory; returns True, or None if there is still no memory.

        Raises the same errors as `advance`. Unlike `advance`, this method never calls the library that has made the
        table.
        """
        if not self.send_row(self.next_index):
            return None
        self.next_index += 1
        self.row += 1
        return True

    cdef bint send_row(self, int64_t index) except -1:
        """Sends a row of the table's current batch; returns False if `buffer.memory` has no room for the row."""
        cdef RecordContent content
        cdef int64_t timestamp = 0, partition = 0
        cdef int status
        if not self.accumulator.takes_plain_records:
            if not self.accumulator._takes_encoded_records():
                self.send_slowly(index)
                return True
        check_status(read_bytes(&self.source.key, index, &content.key, &content.key_size), self.source, index, "key")
        check_status(read_bytes(&self.source.value, index, &content.value, &content.value_size), self.source, index,
                     "value")
        status = read_number(&self.source.timestamp, index, &timestamp)
        check_status(status, self.source, index, "timestamp")
        if status == ROW_NULL:
            timestamp = self.now_ms
        elif timestamp < 0:
            raise ValueError(f"Row {self.row}: invalid timestamp {timestamp}")
        self.encode_headers(index, &content)
        status = read_number(&self.source.partition, index, &partition)
        check_status(status, self.source, index, "partition")
        if status == ROW_NULL:
            partition = self.accumulator.choose_partition(self.queues, content.key, content.key_size)
        elif partition < 0 or partition >= len(self.queues.queues):
            self.accumulator._add_partitions(self.queues.topic)
        if partition < 0 or partition >= len(self.queues.queues):
            raise ValueError(f"Row {self.row}: topic {self.queues.topic} has no partition {partition}: it has "
                             f"{len(self.queues.queues)} partitions")
        try:
            if not self.add(partition, timestamp, &content):
                return False
        except ApiError as error:
            raise ApiError(error.error, f"Row {self.row}: {error.message}") from error
        self.queues.count_record(partition, content.key_size, content.value_size)
        return True

    cdef int encode_headers(self, int64_t index, RecordContent *content) except -1:
        """Sets the headers of a row; they stay valid until the next call."""
        cdef int64_t start = -1, end = -1, at
        cdef const uint8_t *data = NULL
        cdef Py_ssize_t size = -1
        content.headers, content.headers_size = NULL, 0
        check_status(read_headers(&self.source.headers, index, &start, &end), self.source, index, "headers")
        if start == end:
            return 0
        self.header_writer.begin(end - start)
        for at in range(start, end):
            check_status(read_bytes(&self.source.headers.name, at, &data, &size), self.source, index, "headers")
            if size < 0:
                raise ValueError(f"Row {self.row}: the key of a header is not null")
            self.header_writer.put(data, size)
            check_status(read_bytes(&self.source.headers.content, at, &data, &size), self.source, index, "headers")
            self.header_writer.put(data, size)
        content.headers, content.headers_size = self.header_writer.memory, self.header_writer.size
        return 0

    cdef bint add(self, int64_t partition, int64_t timestamp, const RecordContent *content) except -1:
        """Adds a record to a partition's batch, and the row to the BatchRows of the batch."""
        cdef PartitionQueue queue = <PartitionQueue>self.queues.queues[partition]
        cdef bint was_active
        # Everything that may run other code comes before the record is added: then nothing can finish the batch before
        # its row is in a BatchRows.
        cdef BatchRows rows = self.prepare(partition)
        was_active = queue.active
        cdef ProducerBatch batch = self.accumulator.add(queue, timestamp, content)
        if batch is None:
            return False
        self.note(rows, batch, partition, batch.record_count - 1)
        if not was_active:
            self.accumulator._on_queue_opened()
        return True

    cdef BatchRows prepare(self, int64_t partition):
        """Returns the BatchRows of a partition's newest batch; None if no row was sent to the partition yet.

        Reserves memory for one more row in this object, and makes a spare BatchRows in case the row begins a new batch,
        so that `note` allocates no memory.
        """
        cdef BatchRows rows
        while len(self.open_rows) <= partition:
            self.open_rows.append(None)
        if self.spare is None:
            self.spare = BatchRows.__new__(BatchRows)
            self.spare.delivery = self.delivery
            self.spare.reserve()
        rows = <BatchRows>self.open_rows[partition]
        if rows is not None:
            rows.reserve()
        return rows

    cdef int note(self, BatchRows rows, ProducerBatch batch, int64_t partition, int32_t index) except -1:
        """Records that the present row of the table has this index in the batch; `rows` is the result of `prepare`."""
        if rows is not None and rows.batch is batch and not rows.is_reported and (
                self.row - rows.first_row <= UINT32_MAX):
            rows.add(self.row, index)
            return 0
        rows, self.spare = self.spare, None
        rows.batch, rows.first_row = batch, self.row
        rows.add(self.row, index)
        self.open_rows[partition] = rows
        self.delivery.begin()
        if not batch.watch(rows):
            rows.notify()
        return 0

    cdef int send_slowly(self, int64_t index) except -1:
        """Sends a row of the present batch of the table as Python objects, by the accumulator's method `send`.

        It is needed if the accumulator does not accept encoded records, for example because it has serializers.
        """
        cdef DeliveryFuture future
        cdef int64_t partition_index
        key, value, partition, timestamp, headers = self.source.row(index)
        try:
            future = self.accumulator.send(self.queues.topic, value, key, partition=partition, timestamp=timestamp,
                                           headers=headers)
        except TypeError as error:
            raise TypeError(f"Row {self.row}: {error}") from error
        except ValueError as error:
            raise ValueError(f"Row {self.row}: {error}") from error
        except ApiError as error:
            if error.error is not Error.MESSAGE_TOO_LARGE:
                raise
            raise ApiError(error.error, f"Row {self.row}: {error.message}") from error
        partition_index = future.batch.queue.partition
        self.note(self.prepare(partition_index), future.batch, partition_index, future.index)
        return 0
