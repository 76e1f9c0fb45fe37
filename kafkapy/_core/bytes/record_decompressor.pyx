"""Decompresses batches chunk by chunk into memory that is reused."""

from libc.limits cimport UINT_MAX
from libc.stdint cimport INT64_MAX, int32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcmp, memset

from kafkapy._core.bytes.batch_layout cimport BATCH_OVERHEAD, HEADER_OK, BatchHeader, parse_batch_header
from kafkapy._core.bytes.batch_validation cimport BatchLimits, prepare_check
from kafkapy._core.bytes.codec_functions cimport ZstdInput, ZstdOutput, codec_functions
from kafkapy._core.bytes.codecs cimport (
    CODEC_GZIP, CODEC_LZ4, CODEC_MASK, CODEC_SNAPPY, CODEC_ZSTD, GZIP_COST, GZIP_WINDOW, LZ4_COST, LZ4_FLAGS_AT,
    LZ4_INDEPENDENT_BLOCKS, SNAPPY_COST, XERIAL_HEADER_BYTES, XERIAL_MAGIC_BYTES, XERIAL_VERSION_AT, ZSTD_COST)
from kafkapy._core.bytes.primitives cimport load_int32
from kafkapy._core.bytes.record_scanner cimport RECORDS_OK, feed_records, finish_records, start_records
from kafkapy._core.bytes.snappy_block cimport SNAPPY_SLACK, snappy_claim, snappy_decompress

cdef enum:
    WAKE_UP_ALLOWANCE = 64 << 20         # of lz4's output, at 3 GB/s: at most 30 ms in one wake-up

    CHUNK_BYTES = 256 * 1024
    LARGEST_SNAPPY_BLOCK = 8 << 20       # of a raw block, which is decompressed as a whole
    ZLIB_OK = 0
    ZLIB_STREAM_END = 1
    LZ4F_VERSION = 100
    ZSTD_WINDOW_LOG_MAX = 100            # ZSTD_d_windowLogMax
    LARGEST_WINDOW_LOG = 23              # 8 MiB of memory, which the context keeps
    ZSTD_RESET_SESSION = 1

cdef const uint8_t *XERIAL_MAGIC = b"\x82SNAPPY\x00"


cdef class RecordDecompressor:
    """Decompresses batches without the interpreter lock, and reuses its memory. Used by one thread at a time."""

    def __cinit__(self):
        self.allowance = WAKE_UP_ALLOWANCE

    def __dealloc__(self):
        free(self.output)
        if self.lz4 != NULL:
            codec_functions().lz4_free(self.lz4)
        if self.zstd != NULL:
            codec_functions().zstd_free(self.zstd)
        if self.gzip != NULL:
            codec_functions().inflate_end(self.gzip)
            free(self.gzip)

    def largest_timestamp(self, batch):
        """Returns the largest timestamp (ms) of the records of a compressed batch, or -1 if they have none.

        Returns None if the batch is invalid, takes more than the allowed work to decompress, or is of a kind that only
        Python can decompress. Each call has its full allowance of work. Any timestamp is accepted. *Borrows* `batch`, a
        bytes-like object.
        """
        cdef BatchHeader header
        cdef BatchLimits limits
        cdef RecordCheck check
        cdef const uint8_t[::1] data = batch
        cdef bint good
        if data.shape[0] == 0 or parse_batch_header(&data[0], 0, data.shape[0], &header) != HEADER_OK:
            return None
        memset(&limits, 0, sizeof(limits))
        limits.before_max_ms = limits.after_max_ms = INT64_MAX
        prepare_check(&check, &header, &limits, 0)
        with nogil:
            self.renew()
            good = self.check_records(header.attributes & CODEC_MASK, &data[0] + BATCH_OVERHEAD,
                                      <Py_ssize_t> header.size - BATCH_OVERHEAD, &check)
        return check.max_timestamp if good else None

    cdef void renew(self) noexcept nogil:
        self.allowance = WAKE_UP_ALLOWANCE

    cdef bint check_records(self, int codec, const uint8_t *data, Py_ssize_t size, RecordCheck *check) noexcept nogil:
        start_records(&self.stream, check)
        return self.pass_codec(codec, data, size) and finish_records(&self.stream) == RECORDS_OK

    cdef bint pass_codec(self, int codec, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        if not self.reserve(CHUNK_BYTES):
            return False
        if codec == CODEC_LZ4 and codec_functions().has_lz4:
            return self.check_lz4(data, size)
        if codec == CODEC_ZSTD and codec_functions().has_zstd:
            return self.check_zstd(data, size)
        if codec == CODEC_GZIP and codec_functions().has_gzip:
            return self.check_gzip(data, size)
        return codec == CODEC_SNAPPY and self.check_snappy(data, size)

    cdef bint reserve(self, Py_ssize_t size) noexcept nogil:
        """Makes the memory for output at least `size` bytes large, which may drop earlier output.

        Returns False if there is not enough memory.
        """
        if size <= self.output_size:
            return True
        free(self.output)
        self.output = <uint8_t *> malloc(<size_t> size)
        self.output_size = size if self.output != NULL else 0
        return self.output != NULL

    cdef bint feed(self, Py_ssize_t length, int cost) noexcept nogil:
        """Passes the `length` bytes in the output memory to the record scanner.

        Returns False for an invalid record, or if the allowed work is used up; each byte counts as `cost` bytes of
        work.
        """
        self.allowance -= <int64_t> length * cost
        return self.allowance > 0 and feed_records(&self.stream, self.output, length) == RECORDS_OK

    cdef bint check_lz4(self, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        """Decompresses the data, which must be one lz4 frame of independent blocks, and checks its records.

        Returns False if the data is anything else or a record is invalid. Clients in Java cannot read a frame of
        dependent blocks.
        """
        if size <= LZ4_FLAGS_AT or not data[LZ4_FLAGS_AT] & LZ4_INDEPENDENT_BLOCKS:
            return False
        if self.lz4 == NULL and codec_functions().lz4_create(&self.lz4, LZ4F_VERSION) != 0:
            self.lz4 = NULL
            return False
        if self.pass_lz4_frame(data, size):
            return True
        # A context is reusable only after the end of a frame, because its own reset does not clear the content size.
        codec_functions().lz4_free(self.lz4)
        self.lz4 = NULL
        return False

    cdef bint pass_lz4_frame(self, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        cdef size_t made, taken, wanted = 1
        cdef Py_ssize_t pos = 0
        while wanted != 0:
            made = CHUNK_BYTES
            taken = <size_t> (size - pos)
            wanted = codec_functions().lz4_decompress(self.lz4, self.output, &made, data + pos, &taken, NULL)
            if wanted > <size_t> -1024 or (made == 0 and taken == 0):  # an error code, or cut short
                return False
            pos += <Py_ssize_t> taken
            if not self.feed(<Py_ssize_t> made, LZ4_COST):
                return False
        return pos == size

    cdef bint check_zstd(self, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        """Decompresses the data, which must be whole zstd frames, and checks its records.

        Returns False if the data is anything else or a record is invalid.
        """
        cdef ZstdInput source
        cdef ZstdOutput target
        cdef size_t wanted, taken
        if self.zstd == NULL:
            self.zstd = codec_functions().zstd_create()
            if self.zstd == NULL:
                return False
            codec_functions().zstd_set(self.zstd, ZSTD_WINDOW_LOG_MAX, LARGEST_WINDOW_LOG)
        codec_functions().zstd_reset(self.zstd, ZSTD_RESET_SESSION)
        source.src, source.size, source.pos = data, <size_t> size, 0
        while True:
            taken = source.pos
            target.dst, target.size, target.pos = self.output, CHUNK_BYTES, 0
            wanted = codec_functions().zstd_decompress(self.zstd, &target, &source)
            if codec_functions().zstd_is_error(wanted):
                return False
            if not self.feed(<Py_ssize_t> target.pos, ZSTD_COST):
                return False
            if wanted == 0 and source.pos == source.size:
                return True
            if target.pos == 0 and source.pos == taken:
                return False  # cut short

    cdef bint check_gzip(self, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        """Decompresses the data, which must be one gzip member, and checks its records.

        Returns False if the data is anything else or a record is invalid.
        """
        cdef int status = ZLIB_OK
        if <size_t> size > UINT_MAX or not self.open_gzip():
            return False
        self.gzip.next_in = data
        self.gzip.avail_in = <unsigned int> size
        while status != ZLIB_STREAM_END:
            self.gzip.next_out = self.output
            self.gzip.avail_out = CHUNK_BYTES
            status = codec_functions().inflate(self.gzip, 0)
            if status != ZLIB_OK and status != ZLIB_STREAM_END:  # damaged, or cut short
                return False
            if not self.feed(CHUNK_BYTES - <Py_ssize_t> self.gzip.avail_out, GZIP_COST):
                return False
        return self.gzip.avail_in == 0

    cdef bint open_gzip(self) noexcept nogil:
        if self.gzip != NULL:
            return codec_functions().inflate_reset(self.gzip) == ZLIB_OK
        self.gzip = <ZlibStream *> calloc(1, sizeof(ZlibStream))
        if self.gzip != NULL and codec_functions().inflate_init(
                self.gzip, GZIP_WINDOW, codec_functions().zlib_version(), <int> sizeof(ZlibStream)) != ZLIB_OK:
            free(self.gzip)
            self.gzip = NULL
        return self.gzip != NULL

    cdef bint check_snappy(self, const uint8_t *data, Py_ssize_t size) noexcept nogil:
        """Decompresses the data, one raw snappy block or blocks in xerial's framing, and checks its records.

        Returns False if the data is anything else or a record is invalid.
        """
        cdef Py_ssize_t pos = XERIAL_HEADER_BYTES
        cdef int32_t length
        if size < XERIAL_MAGIC_BYTES or memcmp(data, XERIAL_MAGIC, XERIAL_MAGIC_BYTES) != 0:
            return self.check_snappy_block(data, size)
        if size < XERIAL_HEADER_BYTES or load_int32(data + XERIAL_VERSION_AT) < 1:
            return False
        while size - pos >= 4:
            length = load_int32(data + pos)  # negative if these bytes begin the header of another stream
            pos += 4
            if length < 0 or length > size - pos or not self.check_snappy_block(data + pos, length):
                return False
            pos += length
        return pos == size

    cdef bint check_snappy_block(self, const uint8_t *block, Py_ssize_t size) noexcept nogil:
        cdef int64_t claim = snappy_claim(block, size)
        if claim < 0 or claim > LARGEST_SNAPPY_BLOCK or not self.reserve(<Py_ssize_t> claim + SNAPPY_SLACK):
            return False
        return snappy_decompress(block, size, self.output) and self.feed(<Py_ssize_t> claim, SNAPPY_COST)
