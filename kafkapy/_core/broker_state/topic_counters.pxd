# Counters of the records and requests of a topic. The gate counts by the functions below without the interpreter lock,
# the Python path by the methods. Only the reactor's thread writes; any thread reads.
from libc.stdint cimport int64_t

cdef enum:
    MESSAGES_IN = 0
    BYTES_IN = 1                         # bytes of batches as they were received
    BYTES_OUT = 2                        # bytes of batches as they were sent
    PRODUCE_REQUESTS = 3                 # this and the next three count each partition of a request, as in Kafka
    FAILED_PRODUCE_REQUESTS = 4
    FETCH_REQUESTS = 5
    FAILED_FETCH_REQUESTS = 6
    TOPIC_COUNTERS = 7


cdef class TopicCounters:
    cdef int64_t values[TOPIC_COUNTERS]
    cdef TopicCounters total             # the sum of all topics, increased with this one
    cdef int64_t *sums                   # the values of `total`
    cdef readonly bytes labels           # labels of its lines on a metrics page: b'{topic="..."}'
    cdef const char *label_text          # the bytes of `labels`, read without the interpreter lock
    cdef size_t label_length


cdef inline void count_append(TopicCounters counters, int64_t messages, int64_t size) noexcept nogil:
    counters.values[PRODUCE_REQUESTS] += 1
    counters.values[MESSAGES_IN] += messages
    counters.values[BYTES_IN] += size
    counters.sums[PRODUCE_REQUESTS] += 1
    counters.sums[MESSAGES_IN] += messages
    counters.sums[BYTES_IN] += size


cdef inline void count_failed_append(TopicCounters counters) noexcept nogil:
    counters.values[PRODUCE_REQUESTS] += 1
    counters.values[FAILED_PRODUCE_REQUESTS] += 1
    counters.sums[PRODUCE_REQUESTS] += 1
    counters.sums[FAILED_PRODUCE_REQUESTS] += 1


cdef inline void count_fetch(TopicCounters counters, int64_t size) noexcept nogil:
    counters.values[FETCH_REQUESTS] += 1
    counters.values[BYTES_OUT] += size
    counters.sums[FETCH_REQUESTS] += 1
    counters.sums[BYTES_OUT] += size


cdef inline void count_failed_fetch(TopicCounters counters) noexcept nogil:
    counters.values[FETCH_REQUESTS] += 1
    counters.values[FAILED_FETCH_REQUESTS] += 1
    counters.sums[FETCH_REQUESTS] += 1
    counters.sums[FAILED_FETCH_REQUESTS] += 1
