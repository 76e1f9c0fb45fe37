"""Compresses record batches as Apache Kafka's clients do, and decompresses them in bounded chunks.

    1 gzip    RFC 1952; several members; anything after the last is ignored
    2 snappy  blocks after the 16-byte header of xerial's snappy-java (Java clients), or one raw block (librdkafka)
    3 lz4     one frame (KIP-57), blocks of 64 KiB; anything after it is ignored
    4 zstd    RFC 8878; several frames and nothing after them

The libraries are imported when a codec is first used. Memory: a chunk, plus the window of zstd (128 MiB at most), a
block of lz4 (4 MiB at most), or a block of snappy (at most 22 times its compressed size, checked beforehand).
"""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcmp

from kafkapy._core.bytes.batch_layout cimport BATCH_OVERHEAD, HEADER_OK, BatchHeader, parse_batch_header
from kafkapy._core.bytes.codecs cimport (
    CODEC_GZIP, CODEC_LZ4, CODEC_MASK, CODEC_NONE, CODEC_SNAPPY, CODEC_ZSTD, GZIP_COST, GZIP_WINDOW, LZ4_COST,
    LZ4_FLAGS_AT, LZ4_INDEPENDENT_BLOCKS, SNAPPY_COST, XERIAL_HEADER_BYTES, XERIAL_MAGIC_BYTES, XERIAL_VERSION_AT,
    ZSTD_COST)
from kafkapy._core.bytes.primitives cimport load_int32, read_unsigned_varint
from kafkapy._core.bytes.snappy_block cimport SNAPPY_SLACK, snappy_claim, snappy_decompress

NONE, GZIP, SNAPPY, LZ4, ZSTD = CODEC_NONE, CODEC_GZIP, CODEC_SNAPPY, CODEC_LZ4, CODEC_ZSTD
ATTRIBUTES_MASK = CODEC_MASK
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
CHUNK_BYTES = 65536
# The default limit of a decompressed batch.
LARGEST_DECOMPRESSED_BYTES = 256 * 1024 * 1024

cdef enum:
    PIECE_BYTES = 16384                  # compressed bytes passed to a library at a time
    LARGEST_ZSTD_WINDOW = 1 << 27
    ZSTD_MAGIC = 0xfd2fb528
    SKIPPABLE_MAGIC = 0x184d2a50         # and the next 15 numbers
    XERIAL_BLOCK_BYTES = 32768           # snappy-java's default
    SNAPPY_ROOM = 65536                  # of a chunk into which several small blocks are decompressed
    LARGEST_LZ4_RATIO = 255
    LARGEST_GZIP_RATIO = 1032            # the largest ratio of deflate
    LARGEST_ZSTD_BLOCK = 131072
    KAFKA_LZ4_DEFAULT_LEVEL = 9          # Kafka uses this number for lz4's fast mode

cdef const uint8_t *MAGIC_OF_XERIAL = b"\x82SNAPPY\x00"
XERIAL_MAGIC = (<const char *>MAGIC_OF_XERIAL)[:XERIAL_MAGIC_BYTES]
XERIAL_HEADER = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"


class DecompressionError(Exception):
    """The error that bytes are not valid data of their codec, or end early."""


class DecompressedTooLargeError(DecompressionError):
    """The error that bytes decompress to more than the caller allows."""


def compress(int codec, data, level=None):
    """Returns the compressed bytes, in the framing of Kafka's own clients.

    `level` is the value of `compression.<codec>.level`; None means the codec's default.
    """
    if codec == CODEC_NONE:
        return bytes(data)
    if codec == CODEC_GZIP:
        import zlib
        compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, GZIP_WINDOW)
        return compressor.compress(data) + compressor.flush()
    if codec == CODEC_SNAPPY:
        return compress_snappy(data)
    if codec == CODEC_LZ4:
        import lz4.frame
        fast = level is None or level == KAFKA_LZ4_DEFAULT_LEVEL
        return lz4.frame.compress(
            data, compression_level=0 if fast else level, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False,
            store_size=False)
    if codec == CODEC_ZSTD:
        import zstandard
        return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)
    raise ValueError(f"unknown compression codec {codec}")


def compress_snappy(data):
    import cramjam
    view = memoryview(data)
    parts = [XERIAL_HEADER]
    for start in range(0, len(view), XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start:start + XERIAL_BLOCK_BYTES]))
        parts.append(len(block).to_bytes(4, "big"))
        parts.append(block)
    return b"".join(parts)


def decompress(int codec, data, int64_t max_bytes):
    """Returns all decompressed bytes.

    Raises DecompressionError for invalid data, and DecompressedTooLargeError if there are more than `max_bytes`. Then
    at most one chunk more than `max_bytes` was decompressed.
    """
    chunks = []
    cdef int64_t total = 0
    for chunk in decompress_chunks(codec, data):
        total += len(chunk)
        if total > max_bytes:
            raise DecompressedTooLargeError(f"more than {max_bytes} bytes of {CODEC_NAMES[codec]}")
        chunks.append(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def decompress_chunks(int codec, data):
    """Returns an iterator over the decompressed bytes, in non-empty chunks of at most CHUNK_BYTES.

    The iterator raises DecompressionError if the data are invalid.
    """
    view = memoryview(data).cast("B")
    if codec == CODEC_NONE:
        return plain_chunks(view)
    if codec == CODEC_GZIP:
        return gzip_chunks(view)
    if codec == CODEC_SNAPPY:
        return snappy_chunks(view)
    if codec == CODEC_LZ4:
        return lz4_chunks(view)
    if codec == CODEC_ZSTD:
        return zstd_chunks(view)
    raise ValueError(f"unknown compression codec {codec}")


def largest_decompressed_size(int codec, data):
    """Returns an upper bound of the decompressed size in bytes, without decompressing.

    For damaged data the bound covers only the part before the damage.
    """
    cdef Py_buffer view
    cdef int64_t size
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        size = view.len
        if codec == CODEC_GZIP:
            size *= LARGEST_GZIP_RATIO
        elif codec == CODEC_SNAPPY:
            size = largest_snappy_size(<const uint8_t *>view.buf, view.len)
        elif codec == CODEC_LZ4:
            size = largest_lz4_size(<const uint8_t *>view.buf, view.len)
        elif codec == CODEC_ZSTD:
            size = largest_zstd_size(<const uint8_t *>view.buf, view.len)
        return size
    finally:
        PyBuffer_Release(&view)


def work_to_open(records):
    """Estimates how much work it is to decompress the first batch of `records` (bytes-like), without decompressing it.

    The result is an upper bound that can be compared between codecs: the number of bytes that lz4 decompresses in the
    same time. Returns 0 if the batch is not compressed, not of magic 2, or incomplete.
    """
    cdef Py_buffer view
    cdef BatchHeader header
    cdef bint is_whole
    PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
    try:
        is_whole = parse_batch_header(<const uint8_t *>view.buf, 0, view.len, &header) == HEADER_OK
    finally:
        PyBuffer_Release(&view)
    if not is_whole:
        return 0
    cdef int codec = header.attributes & CODEC_MASK
    cdef int cost = cost_of(codec)
    return cost * largest_decompressed_size(codec, memoryview(records)[BATCH_OVERHEAD:header.size]) if cost else 0


cdef int cost_of(int codec) noexcept nogil:
    if codec == CODEC_GZIP:
        return GZIP_COST
    if codec == CODEC_SNAPPY:
        return SNAPPY_COST
    if codec == CODEC_LZ4:
        return LZ4_COST
    return ZSTD_COST if codec == CODEC_ZSTD else 0


cdef int64_t largest_lz4_size(const uint8_t *buf, Py_ssize_t end) noexcept nogil:
    """Returns an upper bound of the decompressed size of an lz4 frame, the sum of the bounds of its blocks.

    A block is at most as large as the frame's header says, and at most 255 times its compressed size.
    """
    cdef int64_t size = 0, block, of_block, largest
    cdef Py_ssize_t pos = LZ4_FLAGS_AT + 3
    if end < pos:
        return 0
    largest = <int64_t>1 << (8 + 2 * ((buf[LZ4_FLAGS_AT + 1] >> 4) & 7))
    pos += (8 if buf[LZ4_FLAGS_AT] & 0x08 else 0) + (4 if buf[LZ4_FLAGS_AT] & 0x01 else 0)
    while end - pos >= 4:
        block = load_little(buf + pos) & 0x7fffffff
        if block == 0:
            break
        of_block = block if buf[pos + 3] & 0x80 else block * LARGEST_LZ4_RATIO
        size += min(of_block, largest)
        if block > end - pos - 4:
            break
        pos += 4 + <Py_ssize_t>block + (4 if buf[LZ4_FLAGS_AT] & 0x10 else 0)
    return size


cdef int64_t largest_zstd_size(const uint8_t *buf, Py_ssize_t end) noexcept nogil:
    cdef Py_ssize_t pos = 0
    cdef int64_t blocks = 0
    while 0 <= pos < end:
        pos = pass_zstd_frame(buf, pos, end, &blocks)
    return blocks * LARGEST_ZSTD_BLOCK


cdef int64_t largest_snappy_size(const uint8_t *buf, Py_ssize_t end) noexcept nogil:
    """Returns the sum of the decompressed sizes in the headers of the snappy blocks.

    It is an upper bound, because a block that decompresses to more is refused.
    """
    cdef int64_t size = 0, length
    cdef Py_ssize_t pos = XERIAL_HEADER_BYTES
    if not begins_xerial(buf, 0, end):
        return claim_of(buf, end)
    while end - pos >= 4:
        if begins_xerial(buf, pos, end):
            pos += XERIAL_HEADER_BYTES
            continue
        length = load_int32(buf + pos)
        if length < 0:
            break
        pos += 4
        size += claim_of(buf + pos, min(<Py_ssize_t>length, end - pos))
        pos += <Py_ssize_t>length
    return size


cdef inline bint begins_xerial(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end) noexcept nogil:
    return end - pos >= XERIAL_MAGIC_BYTES and memcmp(buf + pos, MAGIC_OF_XERIAL, XERIAL_MAGIC_BYTES) == 0


cdef inline int64_t claim_of(const uint8_t *block, Py_ssize_t size) noexcept nogil:
    """Returns the decompressed length that a raw snappy block claims, or 0 if the length cannot be read."""
    cdef uint32_t length = 0
    return length if read_unsigned_varint(block, 0, size, &length) >= 0 else 0


def plain_chunks(view):
    for start in range(0, len(view), CHUNK_BYTES):
        yield bytes(view[start:start + CHUNK_BYTES])


def gzip_chunks(view):
    import zlib
    start, end = 0, len(view)
    while True:
        inflater = zlib.decompressobj(GZIP_WINDOW)
        while not inflater.eof:
            if start >= end:
                raise DecompressionError("gzip: the stream ends early")
            piece = view[start:start + PIECE_BYTES]
            start += len(piece)
            while True:
                try:
                    chunk = inflater.decompress(piece, CHUNK_BYTES)
                except zlib.error as error:
                    raise DecompressionError(f"gzip: {error}") from None
                if chunk:
                    yield chunk
                piece = inflater.unconsumed_tail
                if inflater.eof or (not piece and len(chunk) < CHUNK_BYTES):
                    break
        start -= len(inflater.unused_data)
        # Java reads on only if the header of another member follows; anything else is ignored.
        if end - start < 18 or view[start:start + 3] != b"\x1f\x8b\x08":
            return


def lz4_chunks(view):
    import lz4.frame
    # No client in Java can read such a frame, so Kafka refuses it as well.
    if len(view) > LZ4_FLAGS_AT and not view[LZ4_FLAGS_AT] & LZ4_INDEPENDENT_BLOCKS:
        raise DecompressionError("lz4: dependent blocks are not supported")
    decompressor = lz4.frame.LZ4FrameDecompressor()
    for start in range(0, len(view), PIECE_BYTES):
        piece = view[start:start + PIECE_BYTES]
        while True:
            try:
                chunk = decompressor.decompress(piece, CHUNK_BYTES)
            except RuntimeError as error:
                raise DecompressionError(f"lz4: {error}") from None
            if chunk:
                yield chunk
            if decompressor.eof:
                return
            if decompressor.needs_input:
                break
            piece = b""
    raise DecompressionError("lz4: the frame ends early")


def zstd_chunks(view):
    import zstandard
    # The library accepts a truncated stream as complete.
    check_zstd_frames(view)
    decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_ZSTD_WINDOW)
    reader = decompressor.stream_reader(view, read_across_frames=True)
    while True:
        try:
            chunk = reader.read(CHUNK_BYTES)
        except zstandard.ZstdError as error:
            raise DecompressionError(f"zstd: {error}") from None
        if not chunk:
            return
        yield chunk


def check_zstd_frames(data):
    """Raises DecompressionError unless the data consists of whole zstd frames and nothing else. Does not decompress."""
    cdef Py_buffer view
    cdef Py_ssize_t pos = 0
    cdef int64_t blocks = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        while 0 <= pos < view.len:
            pos = pass_zstd_frame(<const uint8_t *>view.buf, pos, view.len, &blocks)
    finally:
        PyBuffer_Release(&view)
    if pos < 0:
        raise DecompressionError("zstd: no whole frames")


cdef inline uint32_t load_little(const uint8_t *at) noexcept nogil:
    return <uint32_t>at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24


cdef Py_ssize_t pass_zstd_frame(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, int64_t *blocks) noexcept nogil:
    """Returns the end of the zstd frame at `pos` (RFC 8878, 3.1), or -1 if it is invalid.

    Adds the number of its blocks to `blocks`.
    """
    cdef uint32_t magic, block
    cdef uint8_t descriptor
    cdef int64_t size
    if end - pos < 8:
        return -1
    magic = load_little(buf + pos)
    if magic & 0xfffffff0u == SKIPPABLE_MAGIC:
        size = load_little(buf + pos + 4)
        return pos + 8 + size if size <= end - pos - 8 else -1
    if magic != ZSTD_MAGIC:
        return -1
    descriptor = buf[pos + 4]
    pos += 5
    pos += 0 if descriptor & 0x20 else 1                                             # window descriptor
    pos += (1 << (descriptor & 3)) >> 1                                              # dictionary id: 0, 1, 2, 4 bytes
    pos += (1 << (descriptor >> 6)) if descriptor >> 6 else (descriptor >> 5) & 1    # content size
    while True:
        if end - pos < 3:
            return -1
        block = buf[pos] | <uint32_t>buf[pos + 1] << 8 | <uint32_t>buf[pos + 2] << 16
        if (block >> 1) & 3 == 3:
            return -1
        blocks[0] += 1
        pos += 3 + (1 if (block >> 1) & 3 == 1 else <Py_ssize_t>(block >> 3))
        if pos > end:
            return -1
        if block & 1:
            break
    pos += 4 if descriptor & 4 else 0                                                # checksum
    return pos if pos <= end else -1


def snappy_chunks(view):
    if view[:XERIAL_MAGIC_BYTES] != XERIAL_MAGIC:
        yield from snappy_block_chunks(view)
        return
    stream_version = int.from_bytes(view[XERIAL_VERSION_AT:XERIAL_VERSION_AT + 4], "big", signed=True)
    if len(view) < XERIAL_HEADER_BYTES or stream_version < 1:
        raise DecompressionError("snappy: bad header")
    start = XERIAL_HEADER_BYTES
    while len(view) - start >= 4:
        chunk, start = open_small_blocks(view, start)
        if chunk:
            yield chunk
        if len(view) - start < 4:
            return
        length = int.from_bytes(view[start:start + 4], "big", signed=True)
        start += 4
        if length < 0 or length > len(view) - start:
            raise DecompressionError("snappy: a block ends early")
        yield from snappy_block_chunks(view[start:start + length])
        start += length


cdef tuple open_small_blocks(const uint8_t[::1] view, Py_ssize_t start):
    """Decompresses the snappy blocks from the position `start` on.

    Stops when a chunk is full, and before a block that is large or damaged. Returns the decompressed bytes, which may
    be none, and the position of the next block. A batch may consist of hundreds of thousands of tiny blocks, for each
    of which Python would take a microsecond or more.
    """
    cdef bytes room = PyBytes_FromStringAndSize(NULL, SNAPPY_ROOM + SNAPPY_SLACK)
    cdef uint8_t *out = <uint8_t *>PyBytes_AS_STRING(room)
    cdef Py_ssize_t end = view.shape[0], made = 0, pos = start
    cdef int32_t length
    cdef int64_t claim
    with nogil:
        while end - pos >= 4:
            if begins_xerial(&view[0], pos, end):
                pos += XERIAL_HEADER_BYTES
                continue
            length = load_int32(&view[pos])
            if length < 0 or length > end - pos - 4:
                break
            claim = snappy_claim(&view[pos] + 4, length)
            if claim < 0 or claim > SNAPPY_ROOM - made or not snappy_decompress(&view[pos] + 4, length, out + made):
                break
            made += <Py_ssize_t>claim
            pos += 4 + length
    return room[:made], pos


def snappy_block_chunks(view):
    import cramjam
    claimed = snappy_length(view)
    # No element of the format turns 3 bytes into more than 64.
    if claimed < 0 or claimed > len(view) * 64 // 3 + 64:
        raise DecompressionError("snappy: impossible length")
    try:
        block = memoryview(cramjam.snappy.decompress_raw(view))
    except cramjam.DecompressionError as error:
        raise DecompressionError(f"snappy: {error}") from None
    for start in range(0, len(block), CHUNK_BYTES):
        yield bytes(block[start:start + CHUNK_BYTES])


def snappy_length(data):
    """Returns the decompressed length that a raw snappy block claims, or -1 if the length cannot be read."""
    cdef Py_buffer view
    cdef uint32_t length = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        if read_unsigned_varint(<const uint8_t *>view.buf, 0, view.len, &length) < 0:
            return -1
        return length
    finally:
        PyBuffer_Release(&view)
