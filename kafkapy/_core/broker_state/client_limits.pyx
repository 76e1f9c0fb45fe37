"""The quotas of a client: the sensors that measure how much of each quota its requests use."""

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy


cdef class ClientLimits:
    """The quota sensors for one user and client id, shared by their connections. Used only by the thread that owns it.

    The gate, the compiled code that serves usual requests, counts the changes of quotas. `generation` is the value of
    this count when the limits were looked up. The gate does not use the limits if its count has changed since then.
    """

    def __init__(self, int64_t generation, bytes client_id not None, *, QuotaSensor produce=None,
                 QuotaSensor fetch=None, QuotaSensor request=None, QuotaSensor exempt=None,
                 int64_t fetch_window_bytes=0):
        """Stores the sensors of the quotas; a sensor that is None means that the quota does not exist.

        `request` limits the time of requests (KIP-124); `exempt` only measures the time of the requests that `request`
        does not limit. If `fetch` is given, the response to a fetch has at most `fetch_window_bytes` bytes.
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
