# A fetch request as the gate reads it.
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

cdef enum:
    CONSUMER = -1                        # the replica id of a consumer
    REPLICA_STATE_BYTES = 16             # of a tag section that holds just a replica state

cdef enum FetchMoment:
    FETCH_ON_ARRIVAL = 0                 # in phase 1; the position of a follower is recorded
    FETCH_BEFORE_HOLDING = 1             # once more in phase 2, after the appends of the same wake-up; from here on the
                                         # partitions note that the fetch waits
    FETCH_WHILE_HELD = 2                 # after an append, or a rise of the high watermark, of one of its partitions
    FETCH_AT_DEADLINE = 3                # answered with the available data

cdef struct FetchRequest:
    int16_t version
    int32_t correlation_id
    int32_t min_bytes
    int64_t remaining                    # bytes that the answer may still hold
    bint min_one_message                 # nothing was found yet, so the first batch may be larger than the limits
    bint is_committed                    # isolation level read_committed
    FetchMoment moment
    bint must_not_wait                   # a log has rolled to another segment, or ends below the offset
    bint has_unnoted_batch               # a batch is larger than its partition's limit, which Python has to note
    int64_t found                        # bytes that the answer will hold
    int64_t readable                     # bytes up to the end of the segments, limited per partition only
    int32_t topic_count
    int32_t session_id
    int32_t session_epoch
    int32_t replica_id                   # of the follower that fetches, or CONSUMER
    int64_t replica_epoch                # its broker epoch
    bint leads                           # this broker leads a partition that was read
    const uint8_t *rack                  # of the consumer
    int32_t rack_length
