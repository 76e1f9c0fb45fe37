"""Counters of topics as plain C fields.

Python counts in them, and so does the gate: the compiled code that serves usual requests without the interpreter lock.
"""

# The names of the counters in Python, in the order of the enumeration.
COUNTER_NAMES = (
    "messages_in", "bytes_in", "bytes_out", "produce_requests", "failed_produce_requests", "fetch_requests",
    "failed_fetch_requests",
)


cdef class TopicCounters:
    """The counters of one topic since the broker began to host it. Written by the reactor's thread, read by any
    thread."""

    def __init__(self, bytes labels=b"", TopicCounters total=None):
        """Creates counters with the value 0. `labels` is the text that names the topic on the page of metrics.

        Each event is also counted in `total`, the counters of all topics, unless it is None.
        """
        self.labels = labels
        self.label_text = labels
        self.label_length = <size_t> len(labels)
        self.total = TopicCounters.__new__(TopicCounters) if total is None else total
        self.sums = &self.total.values[0]

    def count_append(self, int64_t messages, int64_t size):
        """Counts an append of `messages` records in `size` bytes of batches."""
        count_append(self, messages, size)

    def count_failed_append(self):
        count_failed_append(self)

    def count_fetch(self, int64_t size):
        """Counts a consumer's read of `size` bytes of batches, which may be 0."""
        count_fetch(self, size)

    def count_failed_fetch(self):
        count_failed_fetch(self)

    def as_dict(self):
        """Returns the values of all counters by the counter's name."""
        return {name: self.values[index] for index, name in enumerate(COUNTER_NAMES)}
