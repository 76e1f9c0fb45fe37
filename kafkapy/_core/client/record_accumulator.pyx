"""A producer's unsent records: batches by partition, and the futures of their delivery.

All work per record is done here, without a lock of its own. The code that adds a record to a batch never releases the
interpreter lock, so that no other thread runs while a record is added. Steps that may run other code, such as an
allocation that collects garbage, precede this code, which therefore checks the state again.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free
from cpython.memoryview cimport PyMemoryView_FromObject
from libc.stdint cimport INT32_MAX, int16_t, int32_t, int64_t, uint8_t
from posix.time cimport CLOCK_MONOTONIC, CLOCK_REALTIME

from kafkapy._core.bytes.batch_layout cimport BATCH_OVERHEAD, TRANSACTIONAL_FLAG
from kafkapy._core.bytes.murmur2 cimport murmur2_of
from kafkapy._core.bytes.primitives cimport LARGEST_VARLONG, read_varint
from kafkapy._core.bytes.record_batch_builder cimport RecordBatchBuilder
from kafkapy._core.client.record_writer cimport (
    HeaderWriter, RecordContent, copy_record, size_of_content, write_record)
from kafkapy.errors import ApiError, Error

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

cdef enum:
    FIRST_BYTES = 32768                  # of a batch's memory


cdef struct Field:
    const uint8_t *data
    Py_ssize_t size                      # -1: null
    bint pinned
    Py_buffer view


cdef inline int open_field(object value, Field *field) except -1:
    """Sets `field` to the bytes of a key or a value, which is bytes-like, a str (encoded as UTF-8), or None for null.

    Raises TypeError for another type.
    """
    field.pinned = False
    if value is None:
        field.data, field.size = NULL, -1
    elif type(value) is bytes:
        field.data, field.size = <const uint8_t *>PyBytes_AS_STRING(value), PyBytes_GET_SIZE(value)
    elif type(value) is str:
        field.data = <const uint8_t *>PyUnicode_AsUTF8AndSize(value, &field.size)
    elif not PyObject_CheckBuffer(value):
        raise TypeError("the key and the value of a record must be bytes, str or None without key.serializer and "
                        f"value.serializer, not {type(value).__name__}")
    else:
        PyObject_GetBuffer(value, &field.view, PyBUF_SIMPLE)
        field.pinned = True
        field.data, field.size = <const uint8_t *>field.view.buf, field.view.len
    return 0


cdef inline void close_field(Field *field) noexcept:
    if field.pinned:
        PyBuffer_Release(&field.view)


cdef class RecordMetadata:
    """The partition and offset at which a record was written. The object does not change after its construction.

    `offset` is -1 with acks=0; `timestamp` is the record's timestamp in the log, in ms since 1970; the sizes are those
    of the serialized key and value in bytes, -1 for null.
    """

    def __repr__(self):
        return f"RecordMetadata({self.topic}-{self.partition}@{self.offset})"


cdef class ProducerBatch(RecordBatchBuilder):
    """The records of one partition that are sent together, and the outcome of sending them. An accumulator creates a
    batch, `send` fills it, and the sender then owns it. `complete` or `fail` sets its outcome once. A batch that was
    split has an outcome when both of its halves have one; its error is that of the first half that has failed."""

    def set_producer(self, int64_t producer_id, int16_t producer_epoch, int32_t base_sequence, bint is_transactional):
        """Sets the producer's id, its epoch, and the sequence of the first record, for idempotence and transactions.
        May be called again before the batch is sent again."""
        self.producer_id, self.producer_epoch, self.base_sequence = producer_id, producer_epoch, base_sequence
        self.attributes &= ~TRANSACTIONAL_FLAG
        if is_transactional:
            self.attributes |= TRANSACTIONAL_FLAG
        self.encoded = None
        self.has_header = False

    @property
    def has_sequence(self):
        return self.base_sequence >= 0

    @property
    def sequence(self):
        """The producer's sequence number of the first record; -1 for a producer without idempotence."""
        return self.base_sequence

    @property
    def epoch(self):
        return self.producer_epoch

    @property
    def is_part(self):
        """Returns whether the batch is one of the two into which another batch was split."""
        return self.whole is not None

    def encode(self):
        """Returns the batch's bytes, which are made at the first call; if the batch is not compressed, they are not
        copied. No record may be added afterwards."""
        if self.compression:
            if self.encoded is None:
                self.encoded = self.build()
            return self.encoded
        if not self.has_header:
            if self.record_count == 0:
                raise ValueError("a record batch has at least one record")
            self.write_header(self.memory, BATCH_OVERHEAD + self.length)
            self.has_header = True
        return PyMemoryView_FromObject(self)

    @property
    def compression_ratio(self):
        """The compressed size of the records divided by their size; 1 if the batch is not compressed or not encoded."""
        if self.encoded is None or self.length == 0:
            return 1.0
        return (len(self.encoded) - BATCH_OVERHEAD) / <double>self.length

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        if not self.has_header:
            raise BufferError("the batch is not encoded, or done")
        PyBuffer_FillInfo(buffer, self, self.memory, BATCH_OVERHEAD + self.length, True, flags)
        self.readers += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self.readers -= 1
        if self.is_done:
            self.free_memory()

    cdef void free_memory(self) noexcept:
        """Frees the memory of the records of a finished batch, because its futures may keep the batch alive for long.
        """
        self.has_header = False
        if self.readers == 0:
            PyMem_Free(self.memory)
            self.memory = self.records = NULL
            self.capacity = 0

    def complete(self, int64_t base_offset, int64_t log_append_time):
        """Completes the batch, which was written at `base_offset` (-1 if that is unknown).

        The records get `log_append_time` as their timestamp; with -1 they keep their own timestamps.
        """
        self.assigned_offset, self.log_append_time = base_offset, log_append_time
        self.finish()

    def fail(self, error):
        self.error = error
        self.finish()

    cdef int finish(self) except -1:
        self.is_done = True
        self.encoded = None
        self.free_memory()
        self.accumulator.memory_used -= self.reserved_bytes
        self.reserved_bytes = 0
        if self.whole is not None:
            if self.whole.error is None:
                self.whole.error = self.error
            self.whole.unfinished_parts -= 1
            if self.whole.unfinished_parts == 0:
                self.whole.finish()
        return 0

    def take_callbacks(self):
        """Removes and returns the objects to notify of the batch's outcome, such as the futures that have a callback.

        The two halves of a split batch have no such objects. When both halves are done, the first call for one of them
        returns the objects of the batch that was split; until then the result is empty.
        """
        if self.whole is not None:
            return self.whole.take_callbacks() if self.whole.is_done else ()
        taken, self.callbacks = self.callbacks or (), None
        return taken

    def outcomes(self):
        """Returns the outcomes of the finished batch's records: a list of (first index, end index, error or None).

        The list has more than one element only if the batch was split.
        """
        if self.parts is None:
            return [(0, self.record_count, self.error)]
        first, second = self.parts
        start = (<ProducerBatch>first).record_count
        return first.outcomes() + [(start + begin, start + end, error) for begin, end, error in second.outcomes()]

    def split(self):
        """Returns two batches with about half of the bytes each, to be sent instead of this batch.

        Each record keeps its producer id and its sequence. The two batches count as never sent, as in Java's client.
        Raises ValueError if there are fewer than two records.
        """
        if self.record_count < 2:
            raise ValueError("a batch of one record cannot be split")
        cdef ProducerBatch first = self.make_part(), second = self.make_part(), part = first
        cdef Py_ssize_t pos = 0
        cdef int32_t length = 0, index
        for index in range(self.record_count):
            pos = read_varint(self.records, pos, self.length, &length)
            if index > 0 and (index == self.record_count - 1 or pos + length > self.length // 2):
                part = second
            copy_record(self, part, pos, pos + length)
            pos += length
        if self.base_sequence >= 0:
            second.base_sequence = <int32_t>((<int64_t>self.base_sequence + first.record_count) & INT32_MAX)
        self.parts = first, second
        self.unfinished_parts = 2
        self.encoded = None
        return [first, second]

    cdef ProducerBatch make_part(self):
        cdef ProducerBatch part = ProducerBatch(compression=self.compression, level=self.level)
        part.accumulator, part.queue, part.whole = self.accumulator, self.queue, self
        part.created_ms = self.created_ms
        part.assigned_offset = part.log_append_time = -1
        part.producer_id, part.producer_epoch = self.producer_id, self.producer_epoch
        part.base_sequence, part.attributes = self.base_sequence, self.attributes
        return part

    cdef bint watch(self, object listener) except -1:
        if self.is_done:
            return False
        self.callbacks.append(listener)
        return True


@cython.freelist(1024)
cdef class DeliveryFuture:
    """The future outcome of sending one record: the record's metadata, or the error with which the delivery has failed.

    Any thread may use it. The outcome itself is stored in the record's batch.
    """

    def __repr__(self):
        queue = self.batch.queue
        if not self.batch.is_done:
            return f"<DeliveryFuture {queue.topic}-{queue.partition} pending>"
        error = self.error()
        if error is not None:
            return f"<DeliveryFuture {queue.topic}-{queue.partition} failed: {error}>"
        return f"<DeliveryFuture {queue.topic}-{queue.partition}@{self.metadata().offset} delivered>"

    def done(self):
        """Returns whether the record is delivered or has failed. Does not block."""
        return self.batch.is_done

    def result(self, timeout=None):
        """Returns the RecordMetadata; blocks until the record is delivered, at most `timeout` seconds (None: without
        limit). Raises RequestTimedOut (a TimeoutError) after `timeout` seconds, or the error of a failed delivery."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return self.metadata()

    def exception(self, timeout=None):
        """Returns the error of the delivery, or None if it succeeded; blocks until one of them is known. Raises
        RequestTimedOut (a TimeoutError) after `timeout` seconds; None means without limit."""
        if not self.batch.is_done:
            self.batch.accumulator._wait_for_batch(self.batch, timeout)
        return self.error()

    def add_done_callback(self, callback):
        """Registers `callback(metadata, error)`, called once when the outcome is known, or at once if it is known.

        One of the arguments is None. Any thread of the producer may call the callback, which must not block.
        """
        first = None

        def both(metadata, error):
            first(metadata, error)
            callback(metadata, error)
        # Making the function may have run other code, which may have finished the batch. No other code runs from here
        # until the callback is registered.
        if self.batch.is_done:
            callback(self.metadata(), self.error())
        elif self.on_delivery is None:
            self.on_delivery = callback
            self.batch.watch(self)
        else:
            first = self.on_delivery
            self.on_delivery = both

    def notify(self):
        """Calls `on_delivery`, the callback of the record, with the outcome. The caller handles exceptions of the
        callback."""
        self.on_delivery(self.metadata(), self.error())

    cdef ProducerBatch sent_in(self, int32_t *index):
        """Returns the batch in which the record was finally sent, which is another one if its first batch was split.
        Sets `index` to the index of the record in the batch."""
        cdef ProducerBatch batch = self.batch, first
        index[0] = self.index
        while batch.parts is not None:
            first = <ProducerBatch>batch.parts[0]
            if index[0] < first.record_count:
                batch = first
            else:
                index[0] -= first.record_count
                batch = <ProducerBatch>batch.parts[1]
        return batch

    cdef object error(self):
        cdef int32_t index = 0
        return self.sent_in(&index).error

    cdef RecordMetadata metadata(self):
        """Returns the metadata, or None if the delivery has failed."""
        cdef int32_t index = 0
        cdef ProducerBatch batch = self.sent_in(&index)
        if batch.error is not None:
            return None
        cdef RecordMetadata made = RecordMetadata.__new__(RecordMetadata)
        made.topic, made.partition = batch.queue.topic, batch.queue.partition
        made.offset = -1 if batch.assigned_offset < 0 else batch.assigned_offset + index
        made.timestamp = self.sent_timestamp if batch.log_append_time < 0 else batch.log_append_time
        made.serialized_key_size, made.serialized_value_size = self.key_size, self.value_size
        return made


cdef class PartitionQueue:
    """The unsent batches of a partition: full batches in order, and one that still accepts records."""

    def __init__(self, str topic not None, int32_t partition):
        self.topic = topic
        self.partition = partition
        self.closed = []

    @property
    def open_since_ms(self):
        """The monotonic time in ms of the open batch's first record; -1 if no batch is open."""
        return -1 if self.open is None else self.open.created_ms

    @property
    def batch_count(self):
        return len(self.closed) + (self.open is not None)

    @property
    def closed_count(self):
        return len(self.closed)

    def first(self):
        """Returns the oldest batch, which may still accept records, or None if the queue is empty."""
        return self.closed[0] if self.closed else self.open

    def take(self):
        """Removes and returns the oldest batch, which then accepts no more records; None if the queue is empty."""
        if self.closed:
            return self.closed.pop(0)
        taken, self.open = self.open, None
        return taken

    def put_back(self, ProducerBatch batch not None):
        """Puts a batch back to be sent again, before batches with higher sequences and batches that were never sent."""
        cdef Py_ssize_t at = 0
        while at < len(self.closed) and 0 <= (<ProducerBatch>self.closed[at]).base_sequence < batch.base_sequence:
            at += 1
        self.closed.insert(at, batch)
        self.active = True
        batch.accumulator.active[self] = None

    def all_batches(self):
        return [*self.closed, self.open] if self.open is not None else list(self.closed)


cdef class TopicQueues:
    """The queues of a topic's partitions. `sticky` is the partition to which records without a key are sent at present;
    -1 if it must be chosen first."""

    def __init__(self, str topic not None, int32_t partition_count):
        self.topic = topic
        self.queues = []
        self.sticky = -1
        self.grow(partition_count)

    def grow(self, int32_t partition_count):
        """Adds queues until there are `partition_count`; a topic never loses partitions."""
        while len(self.queues) < partition_count:
            self.queues.append(PartitionQueue(self.topic, <int32_t>len(self.queues)))

    cdef void count_record(self, int64_t partition, Py_ssize_t key_size, Py_ssize_t value_size) noexcept:
        if partition == self.sticky:
            self.sticky_bytes += key_size + value_size + 8

    def count(self, DeliveryFuture future not None):
        """Adds the size of a sent record to `sticky_bytes`, if its partition is the present sticky partition.

        After enough bytes, the producer chooses another sticky partition.
        """
        self.count_record(future.batch.queue.partition, future.key_size, future.value_size)


cdef class RecordAccumulator:
    """The queues of all partitions of a producer, limited to `buffer.memory` bytes in total.

    Any thread may call `send`. The other methods are called by the sender, by one thread at a time. Operations that may
    block are methods of the Python subclass: `_send_slowly`, `_choose_sticky`, `_on_batch_closed`, `_on_queue_opened`
    and `_wait_for_batch`. For example, `_send_slowly` sends a record to a topic that is not known yet, or when no
    memory is left.
    """

    def __init__(self, *, int64_t memory_limit, Py_ssize_t batch_size, Py_ssize_t max_record_bytes, int codec=0,
                 level=None, bint ignore_keys=False, monotonic_ms=None):
        self.memory_limit, self.batch_size, self.max_record_bytes = memory_limit, batch_size, max_record_bytes
        self.codec, self.level, self.ignore_keys = codec, level, ignore_keys
        self.topics, self.active = {}, {}
        self.monotonic_ms = monotonic_ms

    def send(self, str topic not None, value=None, key=None, *, partition=None, timestamp=None, headers=None,
             on_delivery=None):
        """Adds a record to its partition's batch and returns the future of its delivery. `key` and `value` are
        bytes-like, str (sent as UTF-8), None, or what the serializers accept. `timestamp` is in ms since 1970, by
        default now; `headers` are pairs of name and value, or a dict. `on_delivery(metadata, error)` is called when the
        outcome is known; one of the arguments is None. Blocks only while the topic's metadata are unknown or
        `buffer.memory` is used up, at most for `max.block.ms`. Raises RequestTimedOut after that time, TypeError for a
        key or value of another type, ApiError for a record that is too large, ValueError for a partition that does not
        exist, and ClientClosed after `close`."""
        return self.put_any(topic, value, key, partition, timestamp, headers, on_delivery)

    def send_many(self, str topic not None, values, keys=None, *, partition=None, timestamp=None):
        """Sends a record for each of `values`, with the key at the same index of `keys`; returns their futures.

        Blocks and raises as `send` does; `partition` and `timestamp` apply to all records.
        """
        cdef list futures = []
        when = milliseconds(CLOCK_REALTIME) if timestamp is None else timestamp
        if keys is None:
            for value in values:
                futures.append(self.put_any(topic, value, None, partition, when, None, None))
        else:
            for value, key in zip(values, keys, strict=True):
                futures.append(self.put_any(topic, value, key, partition, when, None, None))
        return futures

    cdef DeliveryFuture put_any(self, str topic, object value, object key, object partition, object timestamp,
                                object headers, object on_delivery):
        cdef int64_t closed = self.closed_batches
        cdef DeliveryFuture future = None
        if self.takes_plain_records:
            future = self.put_quickly(topic, value, key, partition, timestamp, headers, on_delivery)
        if future is None:
            future = self._send_slowly(topic, value, key, partition, timestamp, headers, on_delivery)
        if self.closed_batches != closed:
            self._on_batch_closed()
        return future

    cdef DeliveryFuture put_quickly(self, str topic, object value, object key, object partition, object timestamp,
                                    object headers, object on_delivery):
        """Adds a record without blocking and returns its future. Returns None if that is not possible, for example
        because the topic is unknown; then `_send_slowly` has to send it."""
        cdef TopicQueues queues = self.topics.get(topic)
        cdef Field field
        cdef int64_t index
        if queues is None:
            return None
        if partition is not None:
            index = partition
        else:
            index = self.partition_of(queues, key)
        if index < 0 or index >= len(queues.queues):
            return None
        future = self.put(<PartitionQueue>queues.queues[index], milliseconds(CLOCK_REALTIME) if timestamp is None
                          else <int64_t>timestamp, key, value, headers, on_delivery)
        if future is not None:
            queues.count_record(index, future.key_size, future.value_size)
        return future

    cpdef int64_t partition_of(self, TopicQueues queues, object key) except -1:
        """Returns the partition of a record whose serialized key is `key`, as the default partitioner chooses it."""
        cdef Field field
        cdef int64_t index
        open_field(key, &field)
        try:
            index = self.choose_partition(queues, field.data, field.size)
        finally:
            close_field(&field)
        return index

    cdef int64_t choose_partition(self, TopicQueues queues, const uint8_t *key, Py_ssize_t key_size) except -1:
        if not queues.queues:
            raise ValueError(f"Topic {queues.topic} has no partitions")
        if key_size >= 0 and not self.ignore_keys:
            return (murmur2_of(key, key_size) & 0x7fffffff) % <int32_t>len(queues.queues)
        if queues.sticky < 0 or queues.sticky_bytes >= self.batch_size:
            self._choose_sticky(queues)
        return queues.sticky

    def append(self, PartitionQueue queue not None, int64_t timestamp, key, value, headers=None, on_delivery=None):
        """Adds a record to a queue and returns its future; None if `buffer.memory` has no room for another batch.
        `timestamp` is in ms since 1970; a negative one means now."""
        if timestamp < 0:
            timestamp = milliseconds(CLOCK_REALTIME)
        return self.put(queue, timestamp, key, value, headers, on_delivery)

    cdef DeliveryFuture put(self, PartitionQueue queue, int64_t timestamp, object key, object value, object headers,
                            object on_delivery):
        cdef Field key_field, value_field
        cdef RecordContent content
        cdef HeaderWriter encoded = None
        cdef bint was_active
        cdef DeliveryFuture future = DeliveryFuture.__new__(DeliveryFuture)
        content.headers, content.headers_size = NULL, 0
        if headers:
            encoded = HeaderWriter.__new__(HeaderWriter)
            encoded.put_all(headers)
            content.headers, content.headers_size = encoded.memory, encoded.size
        open_field(key, &key_field)
        try:
            open_field(value, &value_field)
        except BaseException:
            close_field(&key_field)
            raise
        content.key, content.key_size = key_field.data, key_field.size
        content.value, content.value_size = value_field.data, value_field.size
        try:
            was_active = queue.active
            batch = self.add(queue, timestamp, &content)
            if batch is None:
                return None
            # This precedes the closing of the fields, which may run other code, and so may finish the batch.
            future.batch, future.index, future.sent_timestamp = batch, batch.record_count - 1, timestamp
            future.key_size, future.value_size = content.key_size, content.value_size
            if on_delivery is not None:
                future.on_delivery = on_delivery
                batch.watch(future)
        finally:
            close_field(&key_field)
            close_field(&value_field)
        if not was_active:
            self._on_queue_opened()
        return future

    cdef ProducerBatch add(self, PartitionQueue queue, int64_t timestamp, const RecordContent *content):
        cdef Py_ssize_t rest = size_of_content(content)
        # Until the record's bytes are written only `batch_for` may run other code; it checks the state again
        # afterwards.
        cdef ProducerBatch batch = self.batch_for(queue, timestamp, rest)
        if batch is not None:
            write_record(batch, timestamp, content, rest)
            self.records_appended += 1
        return batch

    cdef ProducerBatch batch_for(self, PartitionQueue queue, int64_t timestamp, Py_ssize_t rest):
        """Returns the open batch of a queue if it has room for `rest` bytes of a record, or else a new batch. Returns
        None if `buffer.memory` has no room for another batch. Raises ApiError with MESSAGE_TOO_LARGE if no batch can
        have room."""
        cdef ProducerBatch batch = queue.open, fresh = None
        cdef Py_ssize_t size = rest + LARGEST_VARLONG * 2
        cdef int64_t reserved = max(self.batch_size, BATCH_OVERHEAD + size)
        if BATCH_OVERHEAD + size > self.max_record_bytes or reserved > self.memory_limit:
            raise ApiError(Error.MESSAGE_TOO_LARGE, f"The message is {BATCH_OVERHEAD + size} bytes when serialized, "
                           f"more than max.request.size ({self.max_record_bytes}) or buffer.memory")
        while batch is None or batch.readers or batch.has_header or (
                BATCH_OVERHEAD + batch.length + size > self.batch_size and batch.record_count):
            if self.memory_used + reserved > self.memory_limit:
                return None
            if fresh is None:
                fresh = ProducerBatch(compression=self.codec, level=self.level)
                fresh.reserve(min(self.batch_size, FIRST_BYTES))
                fresh.callbacks = []
                fresh.created_ms = milliseconds(CLOCK_MONOTONIC) if self.monotonic_ms is None else self.monotonic_ms()
                if queue.open is not batch:
                    batch = queue.open
                    continue
            if batch is not None:
                queue.closed.append(batch)
                self.closed_batches += 1
            fresh.accumulator, fresh.queue, fresh.reserved_bytes = self, queue, reserved
            fresh.assigned_offset = fresh.log_append_time = -1
            self.memory_used += reserved
            queue.open = batch = fresh
            if not queue.active:
                queue.active = True
                self.active[queue] = None
        return batch

    def retire(self, PartitionQueue queue not None):
        """Removes an empty queue from `active`, the queues that hold batches."""
        if queue.open is None and not queue.closed:
            queue.active = False
            self.active.pop(queue, None)

    def add_topic(self, str topic not None, int32_t partition_count):
        """Returns the queues of a topic, one for each of its `partition_count` partitions; creates those that do not
        exist."""
        cdef TopicQueues queues = self.topics.get(topic)
        if queues is None:
            self.topics[topic] = queues = TopicQueues(topic, partition_count)
        queues.grow(partition_count)
        return queues
