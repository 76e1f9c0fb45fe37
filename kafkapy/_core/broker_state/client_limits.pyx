"""The quotas of a client: the sensors that measure what its requests spend of each quota."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy


cdef class ClientLimits:
    """The quota sensors for one user and client id, shared by their connections. Used by the owner thread only.

    `generation` counts the changes of quotas in the gate; the limits must not be used after it has changed there.
    """

    def __init__(self, int64_t generation, bytes client_id not None, *, QuotaSensor produce=None,
                 QuotaSensor fetch=None, QuotaSensor request=None, QuotaSensor exempt=None,
                 int64_t fetch_window_bytes=0):
        """Stores the sensors; one that is None means no limit.

        `exempt` measures the time of requests that `request` does not limit, unless it is None. `fetch_window_bytes`
        limits the bytes in the response to a fetch, if `fetch` is given.
        """
        self.generation = generation
        self.client_id = client_id
        self.id_bytes = client_id
        self.id_length = <int32_t> len(client_id)
        if self.id_length <= SHORT_ID_BYTES:
            memcpy(self.short_id, self.id_bytes, <size_t> self.id_length)
            self.id_bytes = self.short_id
        self.produce = produce
        self.fetch = fetch
        self.request = request
        self.exempt = exempt
        self.limits_produce = produce is not None
        self.limits_fetch = fetch is not None
        self.limits_request = request is not None
        self.measures_exempt = exempt is not None
        self.fetch_window_bytes = fetch_window_bytes
