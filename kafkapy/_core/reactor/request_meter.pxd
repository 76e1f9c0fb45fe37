# Counts the answered requests of each API and how long they took. Leaf functions; only the reactor's thread writes.
#
#   buckets[index]: one for each of 0..3 us, then four for each power of two; the last one has no upper end
from libc.stdint cimport int16_t, int64_t, uint64_t
from libc.stdlib cimport calloc

cdef enum:
    METER_BUCKETS = 104                  # up to 2**27 us
    METERS = 128                         # by API key, except the last two
    FOLLOWER_FETCH_METER = 126           # fetches of followers, which the meter of Fetch counts too
    OTHER_METER = 127                    # requests without a known API

cdef struct RequestMeter:
    int64_t requests
    int64_t request_bytes
    int64_t time_us
    int64_t pending                      # answered by the gate in this wake-up and not yet in a bucket
    int64_t postponed                    # of the pending requests: answered in a later wake-up, and counted then
    RequestMeter *next_pending           # meters with pending requests, from ReactorState.pending_meters
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


cdef inline RequestMeter *meter_at(RequestMeter **meters, int index) noexcept nogil:
    """Returns the meter at `index`, which its first use allocates; NULL if memory is short."""
    if meters[index] == NULL:
        meters[index] = <RequestMeter *> calloc(1, sizeof(RequestMeter))
    return meters[index]


cdef inline RequestMeter *meter_of(RequestMeter **meters, int api_key) noexcept nogil:
    """Returns the meter of an API, or that of all unknown APIs; NULL if memory is short, so that nothing is counted."""
    cdef int index = api_key if 0 <= api_key < FOLLOWER_FETCH_METER else OTHER_METER
    return meter_at(meters, index)


cdef inline void meter_add(RequestMeter *meter, int64_t requests, int64_t elapsed_us) noexcept nogil:
    meter.requests += requests
    meter.time_us += requests * elapsed_us
    meter.buckets[meter_bucket(elapsed_us)] += requests


cdef inline void meter_add_pending(RequestMeter **pending, RequestMeter *meter) noexcept nogil:
    """Counts a request whose time is known only at the end of the wake-up, the present pass of the reactor's loop.
    `pending` is the list of the meters with such requests.
    """
    if meter.pending == 0:
        meter.next_pending = pending[0]
        pending[0] = meter
    meter.pending += 1


cdef inline void meters_settle(RequestMeter **pending, int64_t elapsed_us) noexcept nogil:
    """Counts the pending requests as having taken `elapsed_us`, at the end of a wake-up (pass of the reactor's loop),
    and empties the list.
    """
    cdef RequestMeter *meter = pending[0]
    while meter != NULL:
        meter_add(meter, meter.pending - meter.postponed, elapsed_us)
        meter.pending = meter.postponed = 0
        meter = meter.next_pending
    pending[0] = NULL
