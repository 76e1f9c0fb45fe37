"""Functions of the C libraries behind lz4, zstandard and zlib, for decompression without the interpreter lock.

The libraries are those that Python's modules contain or link, so that building kafkapy needs neither headers nor
libraries. Only functions that the libraries declare stable are called, and only the structs of zlib's binary interface
are used. A codec is available after `find_codec_functions` has found all of its functions, and stays available.
"""
from libc.stdint cimport uint8_t

cdef struct ZlibStream:                  # z_stream
    const uint8_t *next_in
    unsigned int avail_in
    unsigned long total_in
    uint8_t *next_out
    unsigned int avail_out
    unsigned long total_out
    const char *msg
    void *state
    void *zalloc
    void *zfree
    void *opaque
    int data_type
    unsigned long adler
    unsigned long reserved

cdef struct ZstdInput:                   # ZSTD_inBuffer
    const void *src
    size_t size
    size_t pos

cdef struct ZstdOutput:                  # ZSTD_outBuffer
    void *dst
    size_t size
    size_t pos

ctypedef const char *(*ZlibVersion)() noexcept nogil
ctypedef int (*InflateInit)(ZlibStream *, int window_bits, const char *version, int stream_size) noexcept nogil
ctypedef int (*Inflate)(ZlibStream *, int flush) noexcept nogil
ctypedef int (*InflateReset)(ZlibStream *) noexcept nogil
ctypedef size_t (*Lz4Create)(void **context, unsigned int version) noexcept nogil
ctypedef size_t (*Lz4Decompress)(void *context, void *dst, size_t *dst_size, const void *src, size_t *src_size,
                                 const void *options) noexcept nogil
ctypedef size_t (*Lz4Free)(void *context) noexcept nogil
ctypedef void *(*ZstdCreate)() noexcept nogil
ctypedef size_t (*ZstdDecompress)(void *context, ZstdOutput *output, ZstdInput *input) noexcept nogil
ctypedef size_t (*ZstdReset)(void *context, int directive) noexcept nogil
ctypedef size_t (*ZstdSet)(void *context, int parameter, int value) noexcept nogil
ctypedef size_t (*ZstdFree)(void *context) noexcept nogil
ctypedef unsigned int (*ZstdIsError)(size_t code) noexcept nogil

cdef struct CodecFunctions:
    bint has_gzip
    bint has_lz4
    bint has_zstd
    ZlibVersion zlib_version
    InflateInit inflate_init
    Inflate inflate
    InflateReset inflate_reset
    InflateReset inflate_end
    Lz4Create lz4_create
    Lz4Decompress lz4_decompress
    Lz4Free lz4_free
    ZstdCreate zstd_create
    ZstdDecompress zstd_decompress
    ZstdReset zstd_reset
    ZstdSet zstd_set
    ZstdFree zstd_free
    ZstdIsError zstd_is_error

# The functions of this process; written under the interpreter lock, each `has_` field last.
cdef CodecFunctions *codec_functions() noexcept nogil
