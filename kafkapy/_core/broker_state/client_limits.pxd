# The quotas of the requests that a client sends on a connection under one client id.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.broker_state.quota_sensor cimport QuotaSensor


cdef class ClientLimits:
    cdef object __weakref__
    cdef readonly int64_t generation     # the gate's generation of quotas when these were looked up
    cdef readonly bytes client_id        # as the header of a request has it; b"" for null
    cdef const uint8_t *id_bytes         # of `client_id`
    cdef int32_t id_length
    # A sensor is None, and its flag below is not set, if nothing limits the client.
    cdef readonly QuotaSensor produce
    cdef readonly QuotaSensor fetch
    cdef readonly QuotaSensor request
    cdef readonly QuotaSensor exempt     # the time of followers' fetches; one sensor for all clients
    cdef bint limits_produce
    cdef bint limits_fetch
    cdef bint limits_request
    cdef bint measures_exempt
    cdef readonly int64_t fetch_window_bytes  # the largest response to a fetch
