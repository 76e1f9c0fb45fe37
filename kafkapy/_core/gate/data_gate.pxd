# The data gate: serves the usual Produce and Fetch requests without the interpreter lock.
from libc.stdint cimport int32_t, int64_t

from kafkapy._core.broker_state.partition_state cimport PartitionState
from kafkapy._core.gate.fetch_request cimport FetchMoment
from kafkapy._core.gate.gate_context cimport GateContext
from kafkapy._core.reactor.reactor_connection cimport Request

cdef class DataGate(GateContext):
    cdef object reactor                  # the reactor that it is attached to
    cdef readonly set shut_by            # the reasons for which no request may pass
    cdef object on_appended              # called with a watched partition that the gate appended to
    cdef object on_append_failed         # called with a partition and the errno of the gate's failed append
    cdef public object on_produce_failed # completes the answer to a waiting produce request that has an error
    cdef object timer                    # the reactor's entry for `expire_awaited`, or None
    cdef dict topic_numbers              # topic -> [number, its partitions in the gate]
    cdef int32_t last_topic_number

    cdef int complete_failed(self) except -1
    cdef int number_partition(self, PartitionState partition, str topic) except -1
    cdef int set_timer(self, int64_t deadline_ms) except -1
    cdef int present(self, Request request, FetchMoment moment) except -1
