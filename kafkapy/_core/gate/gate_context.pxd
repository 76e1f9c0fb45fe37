"""What the gate keeps between taking requests and finishing them, all within phase 1 of one wake-up.

    requests[n] -> batches[first_batch : first_batch + batch_count]      in the order of the request
    partition   -> batches[first_gathered] -> next -> next               in the order of their offsets
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kafkapy._core.broker_state.fetch_session_state cimport FetchSessionTable
from kafkapy._core.broker_state.partition_state cimport PartitionState, PartitionTable
from kafkapy._core.reactor.reactor_state cimport ConnectionState, ReactorState
from kafkapy._core.bytes.record_decompressor cimport RecordDecompressor
from kafkapy._core.bytes.record_scanner cimport RecordCheck
from kafkapy._core.bytes.segment_file cimport iovec
from kafkapy._core.bytes.slab cimport Slab

cdef struct GatheredBatch:
    PyObject *partition                  # borrowed PartitionState; the table keeps it until Python runs
    PyObject *producer                   # borrowed ProducerEntry, or NULL
    uint8_t *data                        # in the request's slab
    int64_t size
    int64_t base_offset
    int64_t max_timestamp                # of its records
    int32_t last_offset_delta
    int32_t base_sequence
    int32_t last_sequence
    int32_t partition_index
    const uint8_t *topic                 # name or id, in the slab; NULL: the topic of the batch before it
    int32_t topic_length
    int32_t topic_partitions             # how many of the request's batches belong to it
    int next_gathered                    # of the same partition; -1: the last
    bint failed                          # not in the log

cdef struct GatheredRequest:
    ConnectionState *connection
    Slab *slab                           # pinned
    int32_t correlation_id
    int16_t version
    int16_t acks
    int32_t topic_count
    int first_batch
    int batch_count

cdef struct FetchedPartition:
    PyObject *partition                  # borrowed PartitionState
    PyObject *asked                      # borrowed FetchPartitionState of a session; NULL: no session
    PyObject *segment                    # borrowed SegmentState; NULL: nothing read
    int64_t position                     # of the records in its file
    int64_t length
    int64_t available                    # from there to the end of the segment
    int32_t partition_index
    const uint8_t *topic                 # as in GatheredBatch
    int32_t topic_length
    int32_t topic_partitions


cdef class GateContext:
    cdef ReactorState *shared            # of the reactor that it is attached to
    cdef PartitionTable by_name
    cdef PartitionTable by_id
    cdef bint is_shut                    # every request goes to Python
    cdef RecordCheck check               # scratch
    cdef RecordDecompressor decompressor
    cdef GatheredRequest *requests
    cdef int request_count
    cdef int request_capacity
    cdef GatheredBatch *batches
    cdef iovec *vectors                  # as many as batches
    cdef int batch_count
    cdef int batch_capacity
    cdef PyObject **touched              # partitions with gathered batches
    cdef PyObject **waking               # partitions that Python has to hear of; both as many as batches
    cdef int touched_count
    cdef int waking_count
    cdef int waking_capacity
    cdef FetchedPartition *reads         # scratch of one fetch
    cdef int read_capacity
    cdef int read_count                  # of the fetch that waits
    cdef int32_t max_wait_ms             # of the fetch looked at last
    cdef int32_t fetch_max_bytes
    cdef FetchSessionTable sessions      # shared with Python's
    cdef int64_t serial                  # of the request that is looked at
    cdef int64_t batches_gated           # counters since the start
    cdef int64_t bytes_gated
    cdef int64_t fetches_gated
    cdef int64_t session_fetches_gated   # of these

    # Room for one more. 0, or -1: no memory.
    cdef int reserve_batch(self) noexcept nogil
    cdef int reserve_request(self) noexcept nogil
    cdef int reserve_read(self, int count) noexcept nogil
    # Python hears of the partition in this wake-up's phase 2.
    cdef void wake(self, PartitionState partition) noexcept nogil
    cdef list take_waking(self)
    cdef int forget_waking(self, PartitionState partition) except -1
