"""The gate's memory between gathering requests and finishing them. The reactor's thread runs no Python code in between.

    requests[n] -> batches[first_batch : first_batch + batch_count]      in the order of the request
    partition   -> batches[first_gathered] -> next -> next               in the order of their offsets
"""
from cpython.ref cimport PyObject
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from kafkapy._core.broker_state.fetch_session_state cimport FetchSessionTable
from kafkapy._core.broker_state.partition_state cimport AwaitedOffset, PartitionState, PartitionTable
from kafkapy._core.reactor.reactor_state cimport ConnectionState, DeferredAnswer, ReactorState
from kafkapy._core.bytes.record_decompressor cimport RecordDecompressor
from kafkapy._core.bytes.record_scanner cimport RecordCheck
from kafkapy._core.bytes.segment_file cimport iovec
from kafkapy._core.bytes.slab cimport Slab

cdef enum:
    UUID_BYTES = 16                      # of a topic's id

cdef struct GatheredBatch:
    PyObject *partition                  # borrowed PartitionState; only Python code removes a partition
    PyObject *producer                   # borrowed ProducerEntry, or NULL
    uint8_t *data                        # in the request's slab
    int64_t size
    int64_t base_offset
    int64_t max_timestamp                # the largest of its records
    int32_t last_offset_delta
    int32_t base_sequence
    int32_t last_sequence
    int32_t partition_index
    const uint8_t *topic                 # name or id, in the slab; NULL: the same topic as the batch before
    int32_t topic_length
    int32_t topic_partitions             # number of the request's batches that belong to the topic
    int next_gathered                    # index of the partition's next batch; -1: none
    bint failed                          # it could not be appended
    int32_t error_at                     # position of its error code in the answer

cdef struct GatheredRequest:
    ConnectionState *connection
    Slab *slab                           # pinned
    int32_t correlation_id
    int16_t version
    int16_t acks
    int32_t timeout_ms
    int32_t topic_count
    int first_batch
    int batch_count
    bint is_replicated                   # one of its partitions has followers
    int64_t received_us

# A produce request that waits for the high watermark of its partitions, or for an earlier answer of its connection. One
# allocation holds the struct, its parts and the answer, whose error codes are filled in at the end.
cdef struct AwaitedProduce:
    DeferredAnswer deferred              # first, since the reactor's pointers refer to it
    AwaitedProduce *earlier
    AwaitedProduce *later
    AwaitedProduce *next_failed          # in the list of answers that Python completes
    AwaitedOffset *parts
    uint8_t *answer                      # with its size prefix
    int64_t answer_size
    int64_t deadline_ms
    int16_t version
    int part_count
    int open_parts                       # parts that wait; 0: it is complete
    bint has_error                       # Python completes the answer
    bint is_listed                       # in the list of `first_failed`

cdef struct FetchedPartition:
    PyObject *partition                  # borrowed PartitionState
    PyObject *asked                      # borrowed FetchPartitionState of a session; NULL: no session
    PyObject *segment                    # borrowed SegmentState; NULL: nothing read
    PyObject *replica                    # borrowed ReplicaState of the follower that fetches; NULL: a consumer
    int64_t fetch_offset
    int64_t follower_start_offset        # the follower's log start offset
    int64_t position                     # where the records begin in the segment's file
    int64_t length
    int64_t available                    # bytes from `position` to the end of the segment
    int32_t partition_index
    const uint8_t *topic                 # as in GatheredBatch
    int32_t topic_length
    int32_t topic_partitions


cdef class GateContext:
    cdef ReactorState *shared            # state of the reactor that the gate is attached to
    cdef PartitionTable by_name
    cdef PartitionTable by_id
    cdef bint is_shut                    # Python has to serve every request
    cdef bint is_authorizing             # an authorizer decides what clients may do
    cdef bint is_limiting                # there are quotas
    cdef readonly int64_t rights_generation  # only rights of this generation are valid
    cdef readonly int64_t limits_generation
    cdef PyObject *rights                # borrowed ClientRights of the request that is read; NULL: all is allowed
    cdef PyObject *limits                # borrowed ClientLimits of the request; NULL: nothing is limited
    cdef bint is_over_time               # the client of the request has exceeded its quota of time
    cdef PyObject **timed                # borrowed sensors with work in the present span (`ReactorState.span_from_us`)
    cdef int timed_count
    cdef int timed_capacity
    cdef RecordCheck check               # scratch space of one batch
    cdef RecordDecompressor decompressor
    cdef GatheredRequest *requests
    cdef int request_count
    cdef int request_capacity
    cdef GatheredBatch *batches
    cdef iovec *vectors                  # room for as many as batches
    cdef int batch_count
    cdef int batch_capacity
    cdef PyObject **touched              # partitions with gathered batches
    cdef PyObject **waking               # partitions that Python has to be notified of; room for all of them twice
    cdef int touched_count
    cdef int waking_count
    cdef int waking_capacity
    cdef FetchedPartition *reads         # scratch space of one fetch
    cdef int read_capacity
    cdef int read_count                  # partitions of the fetch that got GATE_WAITS last
    cdef int32_t read_replica_id         # the follower that sent the same fetch, or CONSUMER
    cdef readonly bint has_lost_partition  # the fetch presented last names a partition that is not served here
    cdef int32_t max_wait_ms             # limit of the fetch that was read last
    cdef int32_t fetch_max_bytes
    cdef bytes own_rack                  # None: consumers always read from the leader
    cdef const uint8_t *rack             # the bytes of `own_rack`; NULL without it
    cdef int32_t rack_length
    cdef AwaitedProduce *oldest_awaited
    cdef AwaitedProduce *newest_awaited
    cdef AwaitedProduce *first_failed    # complete with an error, and first on their connections
    cdef readonly int awaited_count     # produce requests that wait
    cdef int64_t timer_ms                # when Python calls `expire_awaited`; 0: never
    cdef int64_t wanted_timer_ms         # an earlier time to which Python has to move the timer; 0: none
    cdef FetchSessionTable sessions      # shared with the Python fetch sessions
    cdef int64_t serial                  # number of the request that is read
    cdef int64_t batches_gated           # counters since the start
    cdef int64_t bytes_gated
    cdef int64_t fetches_gated           # with and without sessions
    cdef int64_t session_fetches_gated
    cdef int64_t follower_fetches_gated
    cdef int64_t produces_awaited
    cdef int64_t rights_used             # permissions that were found without asking the authorizer
    cdef readonly int64_t expired_count  # produce requests that waited until their deadline

    # Each makes room for one more. Returns 0, or -1 if memory is short.
    cdef int reserve_batch(self) noexcept nogil
    cdef int reserve_request(self) noexcept nogil
    cdef int reserve_read(self, int count) noexcept nogil
    # Notifies Python of the partition in phase 2 of this wake-up.
    cdef void wake(self, PartitionState partition) noexcept nogil
    cdef list take_waking(self)
    cdef int forget_waking(self, PartitionState partition) except -1
