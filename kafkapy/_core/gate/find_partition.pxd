"""The search for a partition in the gate's tables, by the topic's id or by its name."""

from cpython.ref cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from kafkapy._core.broker_state.fetch_session_state cimport FetchPartitionState
from kafkapy._core.gate.gate_context cimport GateContext


cdef inline PyObject *find_partition(GateContext gate, bint by_id, const uint8_t *topic, int32_t topic_length,
                                     int32_t partition) noexcept nogil:
    """Returns the PartitionState of a partition, *borrowed*; NULL if this broker does not host it. `topic` is the id of
    the topic if `by_id`, else its name."""
    if by_id:
        return gate.by_id.find(topic, topic_length, partition)
    return gate.by_name.find(topic, topic_length, partition)


cdef inline PyObject *find_asked(GateContext gate, bint by_id, FetchPartitionState asked) noexcept nogil:
    """Returns what `find_partition` returns for a partition of a fetch session. Searches the table only if it has
    changed since the last search: a follower's session may have thousands of partitions, and each fetch reads all."""
    cdef int64_t changes = gate.by_id.changes if by_id else gate.by_name.changes
    if asked.found == NULL or asked.found_at != changes:
        asked.found = find_partition(gate, by_id, asked.topic, asked.topic_length, asked.index)
        asked.found_at = changes
    return asked.found
