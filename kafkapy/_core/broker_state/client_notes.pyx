"""The client ids of appends to audited partitions. The audit needs them, and a log does not contain them.

    append --note--> ClientNotes: runs (ranges of offsets that one client wrote) --runs_between--> the audit's thread

Both ways to serve a Produce request note its client: the compiled code of `_core/gate`, and the handlers in Python.
"""

from libc.stdint cimport uint32_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memmove

cdef enum:
    SMALLEST_CAPACITY = 16
    UNNAMED = 0


cdef class ClientNames:
    """The client ids of requests to audited partitions. Each has a number. Used only by the thread that owns it."""

    def __cinit__(self):
        self.count = 1

    def __dealloc__(self):
        cdef int32_t number
        for number in range(1, self.count):
            free(self.names[number].text)

    def name(self, int32_t number):
        """Returns the client id with the number; "" for 0, which stands for all clients whose ids are not stored."""
        if number < 0 or number >= self.count:
            raise IndexError(f"There is no client id with the number {number}")
        return self.names[number].text[:self.names[number].length].decode(errors="replace") if number else ""

    cdef bint is_name(self, int32_t number, const uint8_t *text, int32_t length) noexcept nogil:
        return self.names[number].length == length and memcmp(self.names[number].text, text, <size_t> length) == 0

    cdef int32_t number_of(self, const uint8_t *text, int32_t length) noexcept nogil:
        cdef uint32_t at = 2166136261
        cdef int32_t index
        cdef uint8_t *copy
        if length <= 0 or length > LONGEST_CLIENT_ID:
            return UNNAMED
        for index in range(length):
            at = (at ^ text[index]) * 16777619
        at &= NAME_SLOTS - 1
        while self.slots[at] != 0:
            if self.is_name(self.slots[at], text, length):
                return self.slots[at]
            at = (at + 1) & (NAME_SLOTS - 1)
        if self.count == MOST_CLIENT_IDS:
            return UNNAMED
        copy = <uint8_t *> malloc(<size_t> length)
        if copy == NULL:
            return UNNAMED
        memcpy(copy, text, <size_t> length)
        self.names[self.count].text = copy
        self.names[self.count].length = length
        self.slots[at] = self.count
        self.count += 1
        return self.slots[at]


cdef class ClientNotes:
    """The clients of the appends to one partition, since this broker began to lead and audit it. Only the thread that
    owns it may use it.

    A run is a range of offsets that one client wrote. Runs are in the order of offsets, and adjacent runs have
    different clients. When there are `MOST_CLIENT_RUNS` runs, the client of all further offsets counts as unnamed
    until `forget_below` drops runs.
    """

    def __cinit__(self, ClientNames names not None):
        self.names = names

    def __dealloc__(self):
        free(self.runs)

    def __len__(self):
        return self.count

    def note_append(self, int64_t base_offset, client_id):
        """Notes that the client `client_id` (bytes) appends a batch at `base_offset`, which is the log end offset.

        If the append fails, the next call is for the same offset, and its note replaces this note.
        """
        cdef const uint8_t[::1] text = client_id
        self.note(base_offset, &text[0] if text.shape[0] else NULL, <int32_t> text.shape[0])

    cdef void note(self, int64_t base_offset, const uint8_t *client_id, int32_t length) noexcept nogil:
        cdef int32_t client
        while self.count and self.runs[self.count - 1].first_offset >= base_offset:
            self.count -= 1
        if self.count and length > 0 and self.names.is_name(self.runs[self.count - 1].client, client_id, length):
            return
        client = self.names.number_of(client_id, length)
        if self.count and self.runs[self.count - 1].client == client:
            return
        if self.count == self.capacity and not self.grow():
            if self.count:
                self.runs[self.count - 1].client = UNNAMED
            return
        self.runs[self.count].first_offset = base_offset
        self.runs[self.count].client = client
        self.count += 1

    cdef bint grow(self) noexcept nogil:
        """Makes room for more runs. A run is a range of offsets that one client wrote.

        Returns False if there are `MOST_CLIENT_RUNS` runs already, or if memory is short.
        """
        cdef Py_ssize_t capacity = self.capacity * 2 if self.capacity else SMALLEST_CAPACITY
        cdef void *grown
        if capacity > MOST_CLIENT_RUNS:
            return False
        grown = realloc(self.runs, <size_t> capacity * sizeof(ClientRun))
        if grown == NULL:
            return False
        self.runs = <ClientRun *> grown
        self.capacity = capacity
        return True

    cdef Py_ssize_t place_of(self, int64_t offset) noexcept nogil:
        """Returns the index of the run that contains `offset`. A run is a range of offsets that one client wrote.

        Returns -1 if `offset` is before the first run.
        """
        cdef Py_ssize_t low = 0, high = self.count, middle
        while low < high:
            middle = (low + high) // 2
            if self.runs[middle].first_offset <= offset:
                low = middle + 1
            else:
                high = middle
        return low - 1

    def runs_between(self, int64_t start_offset, int64_t end_offset):
        """Returns the clients of the offsets from `start_offset` up to, but not including, `end_offset`.

        The result is a list of pairs (first offset, number of the client). Each pair stands for a run, which is a range
        of offsets that one client wrote. `ClientNames.name` returns the client id for the number. The clients of
        offsets before the first run are not known.
        """
        cdef list found = []
        cdef Py_ssize_t index = max(self.place_of(start_offset), 0)
        while index < self.count and self.runs[index].first_offset < end_offset:
            found.append((self.runs[index].first_offset, self.runs[index].client))
            index += 1
        return found

    def forget_below(self, int64_t offset):
        """Drops the runs whose last offset is below `offset`. A run is a range of offsets that one client wrote."""
        cdef Py_ssize_t first = self.place_of(offset)
        if first > 0:
            self.count -= first
            memmove(self.runs, self.runs + first, <size_t> self.count * sizeof(ClientRun))
