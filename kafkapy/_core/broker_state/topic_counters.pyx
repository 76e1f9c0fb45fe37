"""Counters of topics, as plain C fields: the gate and the Python way count into the same ones."""

# The names by which Python asks for a counter, in the order of the enumeration.
COUNTER_NAMES = (
    "messages_in", "bytes_in", "bytes_out", "produce_requests", "failed_produce_requests", "fetch_requests",
    "failed_fetch_requests",
)


cdef class TopicCounters:
    """What has happened to one topic since the broker began to host it. Owner thread counts, any thread reads."""

    def __init__(self, bytes labels=b"", TopicCounters total=None):
        """`total` counts along; without one nobody does."""
        self.labels = labels
        self.label_text = labels
        self.label_length = <size_t> len(labels)
        self.total = TopicCounters.__new__(TopicCounters) if total is None else total
        self.sums = &self.total.values[0]

    def count_append(self, int64_t messages, int64_t size):
        """A partition took `messages` records in `size` bytes of batches."""
        count_append(self, messages, size)

    def count_failed_append(self):
        count_failed_append(self)

    def count_fetch(self, int64_t size):
        """A consumer was answered `size` bytes of batches of a partition, perhaps none."""
        count_fetch(self, size)

    def count_failed_fetch(self):
        count_failed_fetch(self)

    def as_dict(self):
        """All counters by name."""
        return {name: self.values[index] for index, name in enumerate(COUNTER_NAMES)}
