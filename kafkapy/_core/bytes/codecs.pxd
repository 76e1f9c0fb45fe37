"""The codecs of record batches and message sets: their numbers in the attributes, their frames, what they cost to open."""

cdef enum:
    CODEC_MASK = 0x07                    # of the attributes, of every magic
    CODEC_NONE = 0
    CODEC_GZIP = 1
    CODEC_SNAPPY = 2
    CODEC_LZ4 = 3
    CODEC_ZSTD = 4
    LARGEST_CODEC = 4

    # What a byte of what comes out costs, about: lz4 gives 1 GB/s in the library's Python form and 3 GB/s in C.
    LZ4_COST = 1
    SNAPPY_COST = 2
    ZSTD_COST = 2
    GZIP_COST = 8

    GZIP_WINDOW = 31                     # zlib: 32 KiB window, gzip header and trailer
    LZ4_FLAGS_AT = 4
    LZ4_INDEPENDENT_BLOCKS = 0x20

    # xerial's snappy-java: magic, version and oldest reader's version (int32 each), then blocks behind their lengths.
    XERIAL_MAGIC_BYTES = 8
    XERIAL_VERSION_AT = 12
    XERIAL_HEADER_BYTES = 16
