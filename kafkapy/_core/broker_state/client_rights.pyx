"""The permissions that the authorizer has granted so far to one principal at one address.

The gate, the compiled code that serves usual Produce and Fetch requests, reads them. Only permissions are stored. If an
operation is not stored, the authorizer has denied it or was not asked: the gate then leaves the request to Python,
which asks the authorizer.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset

cdef enum:
    SMALLEST_CAPACITY = 8
    LARGEST_CAPACITY = 16384             # of the slots of a client; half of them are used at most

READ = MAY_READ
WRITE = MAY_WRITE


cdef inline int home_of(int32_t topic, int capacity) noexcept nogil:
    return <int> ((<uint32_t> topic * <uint32_t> 2654435769u) >> 7) & (capacity - 1)


cdef class ClientRights:
    """The permissions of a client, in a hash table by the number of the topic. Used only by the thread that owns it.

    Connections with the same principal, address and listener share one table. `DataGate.topic_number` returns the
    number of a topic. The gate, the compiled code that serves usual requests, counts the changes of ACLs. `generation`
    is the value of this count when the permissions were read. If the count is higher now, the permissions must not be
    used before `renew` is called.
    """

    def __init__(self, int64_t generation):
        self.generation = generation

    def __dealloc__(self):
        free(self.slots)

    def renew(self, int64_t generation):
        """Removes all permissions, after a change of the ACLs.

        `generation` is the number of ACL changes so far. It applies to the permissions that are stored from now on.
        """
        self.generation = generation
        self.may_follow = False
        self.used = 0
        if self.capacity:
            memset(self.slots, 0, <size_t> self.capacity * sizeof(RightsSlot))

    def allow_following(self):
        """Stores that the client may send Fetch requests as a follower, for every partition."""
        self.may_follow = True

    def allow(self, int32_t topic, int operation):
        """Stores that `operation`, READ or WRITE, is allowed on a topic.

        `topic` is the number that `DataGate.topic_number` returns for the topic. If there is no room for another
        topic, the permissions on all other topics are removed.
        """
        if topic <= 0 or operation not in (MAY_READ, MAY_WRITE):
            raise ValueError("a topic's number is positive, and the operation READ or WRITE")
        self.reserve()
        self.place(topic, <uint8_t> operation)

    def allows(self, int32_t topic, int operation):
        """Returns whether `operation`, READ or WRITE, is stored as allowed on a topic.

        `topic` is the number that `DataGate.topic_number` returns for the topic.
        """
        return self.may(topic, <uint8_t> operation)

    def __len__(self):
        return self.used

    cdef bint may(self, int32_t topic, uint8_t bit) noexcept nogil:
        cdef int at
        if self.capacity == 0:
            return False
        at = home_of(topic, self.capacity)
        while self.slots[at].topic:
            if self.slots[at].topic == topic:
                return self.slots[at].allowed & bit != 0
            at = (at + 1) & (self.capacity - 1)
        return False

    cdef void place(self, int32_t topic, uint8_t allowed) noexcept nogil:
        cdef int at = home_of(topic, self.capacity)
        while self.slots[at].topic and self.slots[at].topic != topic:
            at = (at + 1) & (self.capacity - 1)
        if self.slots[at].topic == 0:
            self.slots[at].topic = topic
            self.used += 1
        self.slots[at].allowed |= allowed

    cdef int reserve(self) except -1:
        """Makes room for one more topic. If the table is full and may not grow, removes all permissions."""
        cdef RightsSlot *old = self.slots
        cdef int old_capacity = self.capacity
        cdef int capacity = old_capacity * 2 if old_capacity else SMALLEST_CAPACITY
        cdef int at
        if 2 * (self.used + 1) <= old_capacity:
            return 0
        if old_capacity == LARGEST_CAPACITY:
            self.used = 0
            memset(old, 0, <size_t> old_capacity * sizeof(RightsSlot))
            return 0
        self.slots = <RightsSlot *> calloc(<size_t> capacity, sizeof(RightsSlot))
        if self.slots == NULL:
            self.slots = old
            raise MemoryError()
        self.capacity = capacity
        self.used = 0
        for at in range(old_capacity):
            if old[at].topic:
                self.place(old[at].topic, old[at].allowed)
        free(old)
        return 0
