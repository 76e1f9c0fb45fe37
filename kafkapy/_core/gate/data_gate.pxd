# The gate that a reactor asks first: produce and fetch of plain partitions, without the interpreter lock.
from kafkapy._core.gate.gate_context cimport GateContext

cdef class DataGate(GateContext):
    cdef object reactor                  # attached to
    cdef readonly set shut_by            # reasons why no request may pass
    cdef object on_appended              # (partition): a watched partition grew
    cdef object on_append_failed         # (partition, errno)
