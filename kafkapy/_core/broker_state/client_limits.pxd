# The quotas of the requests that a client sends on a connection under one client id.
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.broker_state.quota_sensor cimport QuotaSensor


cdef enum:
    SHORT_ID_BYTES = 24


cdef class ClientLimits:
    cdef readonly int64_t generation     # the gate's generation of quotas when these were looked up
    cdef const uint8_t *id_bytes         # of `client_id`; in `short_id` if they fit, near what is read with them
    cdef int32_t id_length
    cdef bint limits_request
    cdef bint limits_produce
    cdef bint limits_fetch
    # A sensor is None, and its flag is not set, if nothing limits the client.
    cdef readonly QuotaSensor request
    cdef readonly QuotaSensor produce
    cdef readonly QuotaSensor fetch
    cdef uint8_t short_id[SHORT_ID_BYTES]
    cdef readonly int64_t fetch_window_bytes  # the largest response to a fetch
    cdef bint measures_exempt
    cdef readonly QuotaSensor exempt     # the time of followers' fetches; one sensor for all clients
    cdef readonly bytes client_id        # as the header of a request has it; b"" for null
    cdef object __weakref__
