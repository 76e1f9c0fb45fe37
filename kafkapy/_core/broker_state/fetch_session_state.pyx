"""Sessions, their partitions, and how both are found and ordered with or without the interpreter lock."""


cdef class FetchPartitionState(Linked):
    """Base of FetchPartition. Owner thread only."""

    def __cinit__(self, *arguments, **keywords):
        self.sent_high_watermark = self.sent_log_start_offset = -1

    @property
    def fetch_offset(self):
        return self.place.fetch_offset

    @property
    def max_bytes(self):
        return self.place.max_bytes

    @property
    def log_start_offset(self):
        return self.place.log_start_offset

    @property
    def current_leader_epoch(self):
        return self.place.current_leader_epoch

    @property
    def last_fetched_epoch(self):
        return self.place.last_fetched_epoch

    def move(self, int64_t fetch_offset, int64_t max_bytes, int32_t current_leader_epoch, int32_t last_fetched_epoch,
             int64_t log_start_offset):
        """The client is here now; -1 stands for "not given" in both epochs and the log start offset."""
        self.place.fetch_offset = fetch_offset
        self.place.max_bytes = max_bytes
        self.place.current_leader_epoch = current_leader_epoch
        self.place.last_fetched_epoch = last_fetched_epoch
        self.place.log_start_offset = log_start_offset


cdef inline bytes key_bytes(topic_key):
    return topic_key if isinstance(topic_key, bytes) else topic_key.encode()


cdef class SessionPartitions(LinkedOrder):
    """The partitions of one session by (topic's id or name, number), in the order in which they are read.

    Owner thread only. Invariant: exactly the partitions of `table` are in the order.
    """

    def __init__(self, keyed=()):
        """`keyed` is a dictionary of partitions, in order."""
        self.table = PartitionTable()
        for key in keyed:
            self[key] = keyed[key]

    cdef PyObject *find(self, const uint8_t *topic_key, Py_ssize_t length, int32_t index) noexcept nogil:
        return self.table.find(topic_key, length, index)

    def get(self, key):
        """The partition of this key, or None."""
        cdef bytes topic_key = key_bytes(key[0])
        cdef PyObject *found = self.table.find(topic_key, len(topic_key), key[1])
        return None if found == NULL else <object> found

    def __setitem__(self, key, FetchPartitionState partition not None):
        """A new partition, at the end."""
        self.pop(key)
        partition.topic_key = key_bytes(key[0])
        partition.topic = partition.topic_key
        partition.topic_length = len(partition.topic_key)
        partition.index = key[1]
        self.table.put(partition.topic_key, partition.index, partition)
        self.append(partition)

    def pop(self, key):
        """Takes out the partition of this key, if there is one."""
        cdef FetchPartitionState partition = self.get(key)
        if partition is not None:
            self.take_out(partition)
            self.table.drop(partition.topic_key, partition.index)

    def to_end(self, FetchPartitionState partition not None):
        """It is read last from now on; nothing if it was taken out meanwhile."""
        self.move_to_end(partition)

    def values(self):
        """A list of all, in order."""
        return self.members()

    def __len__(self):
        return len(self.table)


cdef class FetchSessionState(Linked):
    """Base of FetchSession. Owner thread only."""

    def __init__(self, int32_t session_id, SessionPartitions partitions not None):
        self.session_id = session_id
        self.partitions = partitions


cdef class FetchSessionTable(LinkedOrder):
    """Base of FetchSessionCache: sessions by id, and in the order of their last use. Owner thread only."""

    def __cinit__(self, *arguments, **keywords):
        self.table = PartitionTable()

    cdef PyObject *find(self, int32_t session_id) noexcept nogil:
        return self.table.find(b"", 0, session_id)

    cdef void use(self, FetchSessionState session, int64_t now_ms) noexcept nogil:
        session.last_used_ms = now_ms
        self.move_to_end(session)

    def get(self, int32_t session_id):
        """The session, or None."""
        cdef PyObject *found = self.find(session_id)
        return None if found == NULL else <object> found

    def add(self, FetchSessionState session not None):
        """A new session, used last."""
        self.table.put(b"", session.session_id, session)
        self.append(session)

    def remove(self, int32_t session_id):
        """Nothing if it is not there."""
        cdef FetchSessionState session = self.get(session_id)
        if session is not None:
            self.take_out(session)
            self.table.drop(b"", session_id)

    def touch(self, FetchSessionState session not None, int64_t now_ms):
        """The session was used now."""
        self.use(session, now_ms)

    def sessions(self):
        """A list of all, least recently used first."""
        return self.members()

    def __len__(self):
        return len(self.table)
