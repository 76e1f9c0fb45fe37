"""The fields and the memory of the gate, which the functions of the other modules of this package use."""

from libc.stdlib cimport free, realloc

cdef enum:
    SMALLEST_CAPACITY = 64


cdef class GateContext:
    """Base of DataGate, with the fields and the memory of the gate. Used only by the thread that owns it.

    Invariant: while this thread runs Python code, no produce request waits to be written to its log.
    """

    def __cinit__(self, *arguments, **keywords):
        self.by_name = PartitionTable()
        self.by_id = PartitionTable()
        self.decompressor = RecordDecompressor()

    def __dealloc__(self):
        cdef AwaitedProduce *following
        while self.oldest_awaited != NULL:
            following = self.oldest_awaited.later
            free(self.oldest_awaited)
            self.oldest_awaited = following
        free(self.requests)
        free(self.batches)
        free(self.vectors)
        free(self.touched)
        free(self.waking)
        free(self.reads)
        free(self.timed)

    cdef int reserve_batch(self) noexcept nogil:
        cdef size_t capacity
        cdef void *grown
        if self.batch_count < self.batch_capacity:
            return 0
        capacity = <size_t> self.batch_capacity * 2 if self.batch_capacity else SMALLEST_CAPACITY
        grown = realloc(self.batches, capacity * sizeof(GatheredBatch))
        if grown == NULL:
            return -1
        self.batches = <GatheredBatch *> grown
        grown = realloc(self.vectors, capacity * sizeof(iovec))
        if grown == NULL:
            return -1
        self.vectors = <iovec *> grown
        grown = realloc(self.touched, capacity * sizeof(PyObject *))
        if grown == NULL:
            return -1
        self.touched = <PyObject **> grown
        self.batch_capacity = <int> capacity
        return 0

    cdef int reserve_request(self) noexcept nogil:
        cdef size_t capacity
        cdef void *grown
        if self.request_count < self.request_capacity:
            return 0
        capacity = <size_t> self.request_capacity * 2 if self.request_capacity else SMALLEST_CAPACITY
        grown = realloc(self.requests, capacity * sizeof(GatheredRequest))
        if grown == NULL:
            return -1
        self.requests = <GatheredRequest *> grown
        self.request_capacity = <int> capacity
        return 0

    cdef int reserve_read(self, int count) noexcept nogil:
        """Makes room for the element with the index `count` in `reads`; returns 0, or -1 if memory is short."""
        cdef size_t capacity
        cdef void *grown
        if count < self.read_capacity:
            return 0
        capacity = <size_t> self.read_capacity * 2 if self.read_capacity else SMALLEST_CAPACITY
        grown = realloc(self.reads, capacity * sizeof(FetchedPartition))
        if grown == NULL:
            return -1
        self.reads = <FetchedPartition *> grown
        self.read_capacity = <int> capacity
        return 0

    cdef void wake(self, PartitionState partition) noexcept nogil:
        if partition.is_waking:
            return
        partition.is_waking = True
        self.waking[self.waking_count] = <PyObject *> partition
        self.waking_count += 1
        self.shared.gate_due = True

    cdef list take_waking(self):
        cdef list taken = []
        cdef PartitionState partition
        cdef int index
        for index in range(self.waking_count):
            partition = <PartitionState> self.waking[index]
            partition.is_waking = False
            taken.append(partition)
        self.waking_count = 0
        return taken

    cdef int forget_waking(self, PartitionState partition) except -1:
        """Removes a partition from the list of partitions that `notify_python` reports, before the partition is
        released."""
        cdef int index, kept = 0
        for index in range(self.waking_count):
            if self.waking[index] != <PyObject *> partition:
                self.waking[kept] = self.waking[index]
                kept += 1
        self.waking_count = kept
        partition.is_waking = False
        return 0
