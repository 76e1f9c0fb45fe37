"""Searches the batch headers of a log file by offset or by timestamp, or reads all of them. Reads by pread.

All formats have the same framing, so the same functions read magic 0, 1 and 2:

    0 offset int64 | 8 size int32 (bytes after this field) | ... | 16 magic int8
    magic 2:  12 partition leader epoch int32 | 23 last offset delta int32 | 35 max timestamp int64
    magic 1:  18 timestamp int64                      (the offset of a compressed wrapper is its last record's)
"""
from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint8_t
from posix.types cimport off_t

from kafkapy._core.bytes.batch_layout cimport BATCH_OVERHEAD, LOG_OVERHEAD, SMALLEST_LENGTH
from kafkapy._core.bytes.primitives cimport load_int32, load_int64

cdef extern from "<unistd.h>" nogil:
    ssize_t pread(int fd, void *buf, size_t count, off_t offset)

cdef enum:
    SCAN_CHUNK = 8192
    OLD_HEADER = 26

cdef enum Step:
    STEP_OK
    STEP_END          # no complete batch left before the end
    STEP_CORRUPT      # an impossible size or magic
    STEP_ERROR        # pread failed: errno


cdef struct Walk:
    int fd
    int64_t position       # of the current batch
    int64_t end            # exclusive
    int64_t chunk_position
    int64_t chunk_length
    int64_t base_offset
    int64_t last_offset
    int64_t max_timestamp
    int64_t size           # of the current batch, with its framing
    int32_t leader_epoch
    int magic
    uint8_t chunk[SCAN_CHUNK]


cdef Step ensure(Walk *walk, int64_t length) noexcept nogil:
    """Loads the `length` bytes at `walk.position` into the buffer, unless they are there already.

    `length` is at most SCAN_CHUNK, and the bytes do not extend beyond `walk.end`. Returns STEP_OK, or another STEP_
    status if the bytes cannot be read.
    """
    cdef int64_t have = walk.chunk_position + walk.chunk_length - walk.position
    cdef int64_t want
    cdef ssize_t got
    if walk.position >= walk.chunk_position and have >= length:
        return STEP_OK
    want = walk.end - walk.position
    if want > SCAN_CHUNK:
        want = SCAN_CHUNK
    walk.chunk_position = walk.position
    walk.chunk_length = 0
    while walk.chunk_length < length:
        got = pread(walk.fd, &walk.chunk[walk.chunk_length], <size_t>(want - walk.chunk_length),
                    <off_t>(walk.position + walk.chunk_length))
        if got < 0:
            if errno == EINTR:
                continue
            return STEP_ERROR
        if got == 0:
            return STEP_END
        walk.chunk_length += got
    return STEP_OK


cdef Step current(Walk *walk) noexcept nogil:
    """Reads the header of the batch at `walk.position` into `walk`; returns STEP_OK.

    Returns another STEP_ status if no complete batch is left, the bytes are not a batch, or they cannot be read.
    """
    cdef const uint8_t *header
    cdef int64_t remaining = walk.end - walk.position
    cdef int32_t size
    cdef Step step
    if remaining < LOG_OVERHEAD + SMALLEST_LENGTH:
        return STEP_END
    step = ensure(walk, BATCH_OVERHEAD if remaining >= BATCH_OVERHEAD else remaining)
    if step != STEP_OK:
        return step
    header = &walk.chunk[walk.position - walk.chunk_position]
    size = load_int32(header + 8)
    walk.magic = header[16]
    if walk.magic > 2 or size < (BATCH_OVERHEAD - LOG_OVERHEAD if walk.magic == 2 else SMALLEST_LENGTH):
        return STEP_CORRUPT
    walk.size = LOG_OVERHEAD + <int64_t>size
    if walk.size > remaining:
        return STEP_END
    walk.base_offset = load_int64(header)
    walk.last_offset = walk.base_offset
    walk.max_timestamp = -1
    walk.leader_epoch = -1
    if walk.magic == 2:
        walk.leader_epoch = load_int32(header + 12)
        walk.last_offset += load_int32(header + 23)
        walk.max_timestamp = load_int64(header + 35)
    elif walk.magic == 1 and walk.size >= OLD_HEADER:
        walk.max_timestamp = load_int64(header + 18)
    return STEP_OK


cdef void begin(Walk *walk, int fd, int64_t position, int64_t end) noexcept nogil:
    walk.fd = fd
    walk.position = position
    walk.end = end
    walk.chunk_position = 0
    walk.chunk_length = 0


cdef int locate_batch(int fd, int64_t position, int64_t end, int64_t offset, int64_t *found_position,
                      int64_t *found_size) noexcept nogil:
    cdef Walk walk
    cdef Step step
    begin(&walk, fd, position, end)
    step = current(&walk)
    while step == STEP_OK and walk.last_offset < offset:
        walk.position += walk.size
        step = current(&walk)
    found_position[0] = walk.position
    found_size[0] = walk.size
    return 1 if step == STEP_OK else 0 if step == STEP_END else -1


cdef object finish(Walk *walk, Step step):
    if step == STEP_OK:
        return (walk.position, walk.size, walk.base_offset, walk.last_offset)
    if step == STEP_CORRUPT:
        raise ValueError(f"no batch header at position {walk.position}")
    if step == STEP_ERROR:
        raise OSError(errno, f"pread failed at position {walk.position}")
    return None


def find_batch(int fd, int64_t position, int64_t end, int64_t offset):
    """Returns (position, size, base offset, last offset) of the first batch whose last offset is at least `offset`.

    Returns None if there is no such batch. Starts at `position`, which must be the start of a batch. Raises ValueError
    for bytes that are no batch header.
    """
    cdef Walk walk
    cdef Step step
    with nogil:
        begin(&walk, fd, position, end)
        step = current(&walk)
        while step == STEP_OK and walk.last_offset < offset:
            walk.position += walk.size
            step = current(&walk)
    return finish(&walk, step)


def find_batch_by_timestamp(int fd, int64_t position, int64_t end, int64_t timestamp, int64_t offset):
    """Finds the first batch with a max timestamp >= `timestamp` (ms) and a last offset >= `offset`.

    Returns (position, size, base offset, last offset), or None if there is no such batch. Starts at `position`, which
    must be the start of a batch. Raises ValueError for bytes that are no batch header.
    """
    cdef Walk walk
    cdef Step step
    with nogil:
        begin(&walk, fd, position, end)
        step = current(&walk)
        while step == STEP_OK and (walk.max_timestamp < timestamp or walk.last_offset < offset):
            walk.position += walk.size
            step = current(&walk)
    return finish(&walk, step)


def scan_to_end(int fd, int64_t position, int64_t end):
    """Reads all batch headers from `position` up to the position `end`; stops at the last complete batch.

    Returns (position after the last complete batch, next offset, greatest timestamp, last offset of the batch with this
    timestamp, size of the last batch in bytes). If there is no batch, the next offset is -1. If the batches have no
    timestamps, the greatest timestamp and its offset are -1. Stops without an error at bytes that are no batch header;
    does not verify checksums. Raises OSError.
    """
    cdef Walk walk
    cdef Step step
    cdef int64_t next_offset = -1
    cdef int64_t max_timestamp = -1
    cdef int64_t offset_of_max_timestamp = -1
    cdef int64_t last_size = 0
    with nogil:
        begin(&walk, fd, position, end)
        step = current(&walk)
        while step == STEP_OK:
            next_offset = walk.last_offset + 1
            last_size = walk.size
            if walk.max_timestamp > max_timestamp:
                max_timestamp = walk.max_timestamp
                offset_of_max_timestamp = walk.last_offset
            walk.position += walk.size
            step = current(&walk)
    if step == STEP_ERROR:
        raise OSError(errno, f"pread failed at position {walk.position}")
    return walk.position, next_offset, max_timestamp, offset_of_max_timestamp, last_size


def first_batch_timestamp(int fd, int64_t end):
    """Returns the greatest timestamp (ms) of the first batch of the file; -1 if the batch has none or there is no
    batch."""
    cdef Walk walk
    cdef Step step
    with nogil:
        begin(&walk, fd, 0, end)
        step = current(&walk)
    return walk.max_timestamp if step == STEP_OK else -1
