"""The classes of a producer's unsent records, for the extensions that add records to them."""
from libc.stdint cimport int32_t, int64_t, uint8_t
from posix.time cimport clock_gettime, timespec

from kafkapy._core.bytes.record_batch_builder cimport RecordBatchBuilder
from kafkapy._core.client.record_writer cimport HeaderWriter, RecordContent


cdef class ProducerBatch(RecordBatchBuilder):
    cdef readonly RecordAccumulator accumulator
    cdef readonly PartitionQueue queue
    cdef readonly int64_t created_ms         # monotonic, in ms
    cdef readonly int64_t reserved_bytes
    cdef public int64_t retry_at_ms          # monotonic, in ms; the batch is not sent before
    cdef public int64_t sent_ms              # monotonic, in ms
    cdef public int32_t attempts
    cdef readonly bint is_done
    cdef readonly int64_t assigned_offset, log_append_time
    cdef readonly object error
    cdef list callbacks                      # the watching objects; None once they were taken
    cdef bytes encoded                       # the batch, if it is compressed
    cdef bint has_header                     # if not: the memory in which it was written and from which it is sent
    cdef int readers                         # size of the memory
    cdef tuple parts                         # the two batches that replace it; None if it was not split
    cdef ProducerBatch whole                 # the batch that it is a part of
    cdef int32_t unfinished_parts

    cdef void free_memory(self) noexcept
    cdef int finish(self) except -1
    cdef ProducerBatch make_part(self)
    # Adds an object whose method `notify` is called once, when the outcome of the batch is known; returns False instead
    # if it is known already. Runs no other code.
    cdef bint watch(self, object listener) except -1


cdef class DeliveryFuture:
    cdef readonly ProducerBatch batch
    cdef readonly int32_t index              # index in the batch
    cdef int64_t sent_timestamp
    cdef readonly Py_ssize_t key_size, value_size
    cdef object on_delivery

    cdef ProducerBatch sent_in(self, int32_t *index)
    cdef object error(self)
    cdef RecordMetadata metadata(self)


cdef class RecordMetadata:
    cdef readonly str topic
    cdef readonly int32_t partition
    cdef readonly int64_t offset, timestamp
    cdef readonly Py_ssize_t serialized_key_size, serialized_value_size


cdef class PartitionQueue:
    cdef readonly str topic
    cdef readonly int32_t partition
    cdef ProducerBatch open
    cdef list closed
    cdef bint active
    cdef public object state                 # for the sender


cdef class TopicQueues:
    cdef readonly str topic
    cdef readonly list queues
    cdef public int32_t sticky               # partition of records without a key; -1: to be chosen
    cdef public int64_t sticky_bytes

    # Adds a record to the bytes that were sent to the present sticky partition, if it is the record's partition.
    cdef void count_record(self, int64_t partition, Py_ssize_t key_size, Py_ssize_t value_size) noexcept


cdef class RecordAccumulator:
    cdef readonly int64_t memory_limit, memory_used
    cdef readonly Py_ssize_t batch_size, max_record_bytes
    cdef int codec
    cdef object level
    cdef public bint takes_plain_records
    cdef bint ignore_keys
    cdef readonly dict topics
    cdef readonly dict active
    cdef readonly int64_t closed_batches     # since the accumulator was created
    cdef readonly int64_t records_appended
    cdef object monotonic_ms                 # injected by tests; None: the system's clock

    cdef DeliveryFuture put_any(self, str topic, object value, object key, object partition, object timestamp,
                                object headers, object on_delivery)
    cdef DeliveryFuture put_quickly(self, str topic, object value, object key, object partition, object timestamp,
                                    object headers, object on_delivery)
    cpdef int64_t partition_of(self, TopicQueues queues, object key) except -1
    # Returns the partition of a record for which the application has chosen none: by the key, or the sticky partition.
    cdef int64_t choose_partition(self, TopicQueues queues, const uint8_t *key, Py_ssize_t key_size) except -1
    cdef DeliveryFuture put(self, PartitionQueue queue, int64_t timestamp, object key, object value, object headers,
                            object on_delivery)
    # Adds a record and returns its batch, in which it is the last one; None if `buffer.memory` has no room for another
    # batch. The caller calls `_on_queue_opened` if the queue was not active before.
    cdef ProducerBatch add(self, PartitionQueue queue, int64_t timestamp, const RecordContent *content)
    cdef ProducerBatch batch_for(self, PartitionQueue queue, int64_t timestamp, Py_ssize_t rest)


cdef inline int64_t milliseconds(int clock) noexcept nogil:
    cdef timespec now
    clock_gettime(clock, &now)
    return <int64_t>now.tv_sec * 1000 + now.tv_nsec // 1000000
