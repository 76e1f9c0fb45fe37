# How many requests of an API were answered and how long each took. Leaf stratum; the reactor's thread only writes.
#
#   buckets[index]: 0..3 us one each, then four for each power of two; the last one takes all that is longer
from libc.stdint cimport int16_t, int64_t, uint64_t
from libc.stdlib cimport calloc

cdef enum:
    METER_BUCKETS = 104                  # up to 2**27 us
    METERS = 128                         # by API key; the last one for whatever has none
    OTHER_METER = 127

cdef struct RequestMeter:
    int64_t requests
    int64_t request_bytes
    int64_t time_us
    int64_t pending                      # answered in this wake-up without the interpreter lock, not yet in a bucket
    int64_t buckets[METER_BUCKETS]

cdef extern from *:
    int __builtin_clzll(unsigned long long) noexcept nogil


cdef inline int meter_bucket(int64_t elapsed_us) noexcept nogil:
    cdef int exponent, index
    if elapsed_us < 4:
        return <int> elapsed_us if elapsed_us > 0 else 0
    exponent = 63 - __builtin_clzll(<unsigned long long> elapsed_us)
    index = (exponent - 1) * 4 + (<int> (elapsed_us >> (exponent - 2)) & 3)
    return index if index < METER_BUCKETS else METER_BUCKETS - 1


cdef inline RequestMeter *meter_of(RequestMeter **meters, int api_key) noexcept nogil:
    """Of an API; made when it is first asked for. NULL: no memory, and then nothing is counted."""
    cdef int index = api_key if 0 <= api_key < OTHER_METER else OTHER_METER
    if meters[index] == NULL:
        meters[index] = <RequestMeter *> calloc(1, sizeof(RequestMeter))
    return meters[index]


cdef inline void meter_add(RequestMeter *meter, int64_t requests, int64_t elapsed_us) noexcept nogil:
    meter.requests += requests
    meter.time_us += requests * elapsed_us
    meter.buckets[meter_bucket(elapsed_us)] += requests


cdef inline void meter_settle(RequestMeter *meter, int64_t elapsed_us) noexcept nogil:
    """At the end of a wake-up: what the gate answered in it took this long at most."""
    if meter != NULL and meter.pending:
        meter_add(meter, meter.pending, elapsed_us)
        meter.pending = 0
