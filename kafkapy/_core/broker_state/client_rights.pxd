# What the gate knows about the permissions of a client: the answers of the authorizer that allow something.
from libc.stdint cimport int32_t, int64_t, uint8_t

cdef enum:
    MAY_READ = 1                         # bits of RightsSlot.allowed
    MAY_WRITE = 2

cdef struct RightsSlot:
    int32_t topic                        # PartitionState.topic_number; 0: empty
    uint8_t allowed


cdef class ClientRights:
    cdef object __weakref__
    cdef readonly int64_t generation     # the gate's generation of rights when the authorizer was asked
    cdef readonly bint may_follow        # ClusterAction: the client is a broker of the cluster
    cdef RightsSlot *slots
    cdef int capacity                    # a power of two, or 0
    cdef int used

    # Returns whether the authorizer has allowed the operation of the bit; False if it has not been asked.
    cdef bint may(self, int32_t topic, uint8_t bit) noexcept nogil
    cdef void place(self, int32_t topic, uint8_t allowed) noexcept nogil
    cdef int reserve(self) except -1
