"""The codecs of record batches and message sets: numbers in the attributes, framing, and costs of decompression."""

cdef enum:
    CODEC_MASK = 0x07                    # of the attributes, in every magic
    CODEC_NONE = 0
    CODEC_GZIP = 1
    CODEC_SNAPPY = 2
    CODEC_LZ4 = 3
    CODEC_ZSTD = 4
    LARGEST_CODEC = 4

    # Relative cost of one decompressed byte: lz4 yields 1 GB/s through the library's Python interface and 3 GB/s in C.
    LZ4_COST = 1
    SNAPPY_COST = 2
    ZSTD_COST = 2
    GZIP_COST = 8

    GZIP_WINDOW = 31                     # zlib: 32 KiB window, gzip header and trailer
    LZ4_FLAGS_AT = 4
    LZ4_INDEPENDENT_BLOCKS = 0x20

    # xerial's snappy-java: magic, version and oldest reader's version (int32 each), then blocks, each after its length.
    XERIAL_MAGIC_BYTES = 8
    XERIAL_VERSION_AT = 12
    XERIAL_HEADER_BYTES = 16
