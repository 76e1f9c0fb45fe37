# What goes into a topic and comes out of it, counted where it happens: by the gate without the interpreter lock, by the
# Python way through the methods. Written by the owner thread only, read by any.
from libc.stdint cimport int64_t

cdef enum:
    MESSAGES_IN = 0
    BYTES_IN = 1                         # of batches, as they came
    BYTES_OUT = 2                        # of batches, as they were answered
    PRODUCE_REQUESTS = 3                 # one for each partition of a request, as in Kafka; so are the next three
    FAILED_PRODUCE_REQUESTS = 4
    FETCH_REQUESTS = 5
    FAILED_FETCH_REQUESTS = 6
    TOPIC_COUNTERS = 7


cdef class TopicCounters:
    cdef int64_t values[TOPIC_COUNTERS]
    cdef TopicCounters total             # of all topics, which counts along; nobody counts for it alone
    cdef int64_t *sums                   # its values
    cdef readonly bytes labels           # of its lines on a metrics page: b'{topic="..."}'
    cdef const char *label_text          # the same, for those who have no interpreter lock
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
