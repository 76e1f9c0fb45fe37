"""A page of metrics in Prometheus's text format 0.0.4, and a table of the partitions' values for this page.

    MetricsPage    text                            lines that Python has rendered
                   topic_family, partition_family  one line for each topic or partition: name, labels, number
    PartitionRows  labels[n] -> values[n * columns : (n + 1) * columns]

The families with a line for each topic or partition are written without the interpreter lock, in 10 to 20 ns for each
line. The rows point into the texts of the list of labels that the caller passes, and keep this list alive.
"""

from cpython.buffer cimport Py_buffer, PyBuffer_FillInfo
from cpython.ref cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from kafkapy._core.broker_state.log_state cimport LogState, SegmentsState, SegmentState
from kafkapy._core.broker_state.partition_state cimport PartitionState
from kafkapy._core.broker_state.topic_counters cimport TOPIC_COUNTERS, TopicCounters

cdef enum:
    SMALLEST_CAPACITY = 65536
    LONGEST_NUMBER = 24                  # bytes, with the space before the number and the end of the line


# The columns of PartitionRows that `fill` writes; the caller writes the columns after these with `put`.
START_OFFSET, END_OFFSET, SIZE, SEGMENTS, FILLED_COLUMNS = range(5)


cdef Py_ssize_t put_number(char *at, int64_t value) noexcept nogil:
    """Writes a space, `value` as decimal digits, and a line feed to `at`; returns the number of bytes written."""
    cdef char digits[24]
    cdef uint64_t rest = <uint64_t> value if value >= 0 else <uint64_t> 0 - <uint64_t> value
    cdef int count = 0
    cdef Py_ssize_t pos = 1
    at[0] = 32
    if value < 0:
        at[pos] = 45
        pos += 1
    while True:
        digits[count] = <char> (48 + rest % 10)
        count += 1
        rest //= 10
        if rest == 0:
            break
    while count:
        count -= 1
        at[pos] = digits[count]
        pos += 1
    at[pos] = 10
    return pos + 1


cdef class MetricsPage:
    """A page of metrics, to which families are appended as text. Used by one thread."""

    def __dealloc__(self):
        free(self.data)

    cdef int reserve(self, size_t more) noexcept nogil:
        """Makes room for `more` bytes after the text of the page. Returns 0, or -1 if memory is short."""
        cdef size_t capacity = self.capacity if self.capacity else SMALLEST_CAPACITY
        cdef void *grown
        while capacity - self.used < more:
            capacity *= 2
        if capacity == self.capacity:
            return 0
        grown = realloc(self.data, capacity)
        if grown == NULL:
            return -1
        self.data = <char *> grown
        self.capacity = capacity
        return 0

    def text(self, bytes text not None):
        """Appends lines that are already in the format of the page."""
        cdef const char *begin = text
        cdef size_t size = <size_t> len(text)
        self.check_room(size)
        memcpy(self.data + self.used, begin, size)
        self.used += size

    def check_room(self, size_t more):
        if self.exports:
            raise BufferError("the page is being sent")
        if self.reserve(more):
            raise MemoryError()

    def topic_family(self, bytes name not None, list topics not None, int counter):
        """Appends a line for each TopicCounters in `topics`: `name`, its labels, and its counter at index `counter`.

        No thread may change the list during the call.
        """
        cdef const char *begin = name
        cdef size_t length = <size_t> len(name)
        cdef size_t room = 0
        cdef Py_ssize_t index, count = len(topics)
        cdef TopicCounters counters
        cdef PyObject **pinned
        if not 0 <= counter < TOPIC_COUNTERS:
            raise IndexError(counter)
        pinned = <PyObject **> malloc(<size_t> (count or 1) * sizeof(PyObject *))
        if pinned == NULL:
            raise MemoryError()
        try:
            for index in range(count):
                counters = topics[index]
                room += length + counters.label_length + LONGEST_NUMBER
                pinned[index] = <PyObject *> counters
            self.check_room(room)
            with nogil:
                for index in range(count):
                    self.used += put_topic(self.data + self.used, begin, length, <TopicCounters> pinned[index], counter)
        finally:
            free(pinned)

    def partition_family(self, bytes name not None, PartitionRows rows not None, int column):
        """Appends a line for each row of `rows`: `name`, the row's labels, and its value in `column`."""
        cdef const char *begin = name
        cdef size_t length = <size_t> len(name)
        cdef Py_ssize_t index
        if not 0 <= column < rows.columns:
            raise IndexError(column)
        self.check_room(<size_t> rows.rows * (length + LONGEST_NUMBER) + rows.label_bytes)
        with nogil:
            for index in range(rows.rows):
                self.used += put_line(self.data + self.used, begin, length, rows.texts[index], rows.lengths[index],
                                      rows.values[index * rows.columns + column])

    def __len__(self):
        return self.used

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, <Py_ssize_t> self.used, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self.exports -= 1


cdef Py_ssize_t put_line(char *at, const char *name, size_t name_length, const char *labels, size_t labels_length,
                         int64_t value) noexcept nogil:
    memcpy(at, name, name_length)
    memcpy(at + name_length, labels, labels_length)
    return <Py_ssize_t> (name_length + labels_length) + put_number(at + name_length + labels_length, value)


cdef Py_ssize_t put_topic(char *at, const char *name, size_t length, TopicCounters counters,
                          int counter) noexcept nogil:
    return put_line(at, name, length, counters.label_text, counters.label_length, counters.values[counter])


cdef class PartitionRows:
    """A table of values such as offsets and sizes, with one row for each partition. Used by one thread.

    If there are more partitions than rows, the last row has the sums of its own partition and all later ones. The owner
    thread may change the partitions while `fill` reads them; each single value is read consistently.
    """

    def __init__(self, list labels not None, int columns):
        cdef Py_ssize_t index
        cdef bytes label
        if self.values != NULL:
            raise RuntimeError("already initialized")
        self.labels = labels
        self.rows = len(labels)
        self.columns = columns
        self.values = <int64_t *> calloc(<size_t> (self.rows or 1) * <size_t> columns, sizeof(int64_t))
        self.texts = <const char **> malloc(<size_t> (self.rows or 1) * sizeof(char *))
        self.lengths = <size_t *> malloc(<size_t> (self.rows or 1) * sizeof(size_t))
        if self.values == NULL or self.texts == NULL or self.lengths == NULL:
            raise MemoryError()
        for index in range(self.rows):
            label = labels[index]
            self.texts[index] = label
            self.lengths[index] = <size_t> len(label)
            self.label_bytes += self.lengths[index]

    def __dealloc__(self):
        free(self.values)
        free(self.texts)
        free(self.lengths)

    def fill(self, list partitions not None, Py_ssize_t begin, Py_ssize_t end):
        """Adds the offsets, sizes and segment counts of `partitions[begin:end]` to the table.

        The values of `partitions[n]` are added to row n, or to the last row if there is no row n.
        """
        cdef Py_ssize_t number
        cdef PartitionState partition
        if self.rows == 0 or self.columns < FILLED_COLUMNS:
            raise IndexError("no row for it")
        for number in range(begin, end):
            partition = partitions[number]
            self.fill_row(number if number < self.rows else self.rows - 1, partition.log)

    def fill_row(self, Py_ssize_t row, LogState log not None):
        cdef int64_t *values = &self.values[row * self.columns]
        cdef SegmentsState segments = log.segments
        cdef SegmentState segment
        cdef Py_ssize_t index
        values[0] += log.log_start_offset
        values[1] += log.log_end_offset
        for index in range(segments.count):
            segment = <SegmentState> segments.ordered[index]
            values[2] += segment.size
        values[3] += segments.count

    def put(self, Py_ssize_t row, int column, int64_t value):
        """Adds `value` to the value in `row` and `column`. If the table has no such row, the last row is used."""
        if not (0 <= row and 0 <= column < self.columns):
            raise IndexError(row)
        self.values[(row if row < self.rows else self.rows - 1) * self.columns + column] += value

    def sum(self, int column):
        """Returns the sum of the column over all rows."""
        cdef int64_t total = 0
        cdef Py_ssize_t row
        for row in range(self.rows):
            total += self.values[row * self.columns + column]
        return total
