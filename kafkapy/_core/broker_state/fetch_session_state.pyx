"""The fields of fetch sessions and of their partitions, as C fields that are read without the interpreter lock.

The gate reads them: the compiled code in `_core/gate` that serves usual Produce and Fetch requests.
"""


cdef class FetchPartitionState(Linked):
    """Base of FetchPartition: the C fields of one partition of a fetch. Used only by the thread that owns it.

    It has the fields of the client's last Fetch request for the partition, such as the fetch offset, and the high
    watermark and log start offset that were sent last.
    """

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
        """Stores the fields of a Fetch request for the partition.

        An epoch, or the log start offset, is -1 if the request did not give it.
        """
        self.place.fetch_offset = fetch_offset
        self.place.max_bytes = max_bytes
        self.place.current_leader_epoch = current_leader_epoch
        self.place.last_fetched_epoch = last_fetched_epoch
        self.place.log_start_offset = log_start_offset


cdef inline bytes key_bytes(topic_key):
    return topic_key if isinstance(topic_key, bytes) else topic_key.encode()


cdef class SessionPartitions(LinkedOrder):
    """The partitions of one session, in the order in which they are read.

    A key is a pair: the id or the name of the topic, and the partition number. Only the thread that owns the object may
    use it. Invariant: the ordered list has the same partitions as `table`, the hash table that finds a partition by its
    key.
    """

    def __init__(self, keyed=()):
        """Creates the collection from the dictionary `keyed`, whose order becomes the order of the partitions.

        A key is a pair (topic's id or name, partition number).
        """
        self.table = PartitionTable()
        for key in keyed:
            self[key] = keyed[key]

    cdef PyObject *find(self, const uint8_t *topic_key, Py_ssize_t length, int32_t index) noexcept nogil:
        return self.table.find(topic_key, length, index)

    def get(self, key):
        """Returns the partition with this key, (topic's id or name, partition number); None if there is none."""
        cdef bytes topic_key = key_bytes(key[0])
        cdef PyObject *found = self.table.find(topic_key, len(topic_key), key[1])
        return None if found == NULL else <object> found

    def __setitem__(self, key, FetchPartitionState partition not None):
        """Adds a partition at the end of the order. If the key has a partition already, removes that partition
        first."""
        self.pop(key)
        partition.topic_key = key_bytes(key[0])
        partition.topic = partition.topic_key
        partition.topic_length = len(partition.topic_key)
        partition.index = key[1]
        self.table.put(partition.topic_key, partition.index, partition)
        self.append(partition)

    def pop(self, key):
        """Removes the partition with this key, (topic's id or name, partition number), if there is one."""
        cdef FetchPartitionState partition = self.get(key)
        if partition is not None:
            self.take_out(partition)
            self.table.drop(partition.topic_key, partition.index)

    def to_end(self, FetchPartitionState partition not None):
        """Moves the partition to the end of the order, unless it was removed."""
        self.move_to_end(partition)

    def values(self):
        """Returns all partitions, in order."""
        return self.members()

    def listed(self):
        """Returns all partitions, in no particular order. Any thread may call this method.

        It does not read the order of the partitions, because the compiled request path (the gate) changes the order
        without the interpreter lock.
        """
        return self.table.listed()

    def __len__(self):
        return len(self.table)


cdef class FetchSessionState(Linked):
    """Base of FetchSession: the id, epoch and partitions of one session. Used only by the thread that owns it."""

    def __init__(self, int32_t session_id, SessionPartitions partitions not None):
        self.session_id = session_id
        self.partitions = partitions


cdef class FetchSessionTable(LinkedOrder):
    """Base of FetchSessionCache: sessions by id, and in the order of their last use. Used only by the thread that owns
    it."""

    def __cinit__(self, *arguments, **keywords):
        self.table = PartitionTable()

    cdef PyObject *find(self, int32_t session_id) noexcept nogil:
        return self.table.find(b"", 0, session_id)

    cdef void use(self, FetchSessionState session, int64_t monotonic_ms) noexcept nogil:
        session.last_used_ms = monotonic_ms
        self.move_to_end(session)

    def get(self, int32_t session_id):
        """Returns the session with this id; None if there is none."""
        cdef PyObject *found = self.find(session_id)
        return None if found == NULL else <object> found

    def add(self, FetchSessionState session not None):
        """Adds a new session as the most recently used one."""
        self.table.put(b"", session.session_id, session)
        self.append(session)

    def remove(self, int32_t session_id):
        """Removes the session, if it exists."""
        cdef FetchSessionState session = self.get(session_id)
        if session is not None:
            self.take_out(session)
            self.table.drop(b"", session_id)

    def touch(self, FetchSessionState session not None, int64_t monotonic_ms):
        """Makes the session the most recently used one, and stores `monotonic_ms` as the time of its last use."""
        self.use(session, monotonic_ms)

    def sessions(self):
        """Returns all sessions, least recently used first."""
        return self.members()

    def listed(self):
        """Returns all sessions, in no particular order. Any thread may call this method."""
        return self.table.listed()

    def __len__(self):
        return len(self.table)
