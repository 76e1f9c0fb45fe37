"""Finds the functions of the compression libraries in the shared objects that Python's own modules link or contain."""

from importlib.util import find_spec

from kafkapy._core.bytes.codecs cimport CODEC_GZIP, CODEC_LZ4, CODEC_ZSTD

cdef extern from "<dlfcn.h>" nogil:
    enum:
        RTLD_LAZY
    void *dlopen(const char *path, int flags)
    void *dlsym(void *handle, const char *name)

# Where the functions may be, by codec: the modules that contain them, then the systems' libraries.
PLACES = {
    CODEC_GZIP: (("zlib",), "libz.so.1"),
    CODEC_LZ4: (("lz4.frame._frame",), "liblz4.so.1"),
    CODEC_ZSTD: (("zstandard._cffi",), "libzstd.so.1"),
}

cdef CodecFunctions functions
tried = set()


cdef CodecFunctions *codec_functions() noexcept nogil:
    return &functions


def find_codec_functions(int codec):
    """Whether the codec can be decompressed without the interpreter lock. Looks for its functions once."""
    if codec in PLACES and codec not in tried:
        tried.add(codec)
        modules, library = PLACES[codec]
        for path in [*[shared_object(name) for name in modules], library]:
            if find_in(codec, path):
                break
    return (functions.has_gzip and codec == CODEC_GZIP or functions.has_lz4 and codec == CODEC_LZ4
            or functions.has_zstd and codec == CODEC_ZSTD)


def shared_object(str name):
    """The file of a module, or None for the program itself: some Pythons have zlib built in."""
    spec = find_spec(name)
    return spec.origin if spec is not None and spec.has_location else None


cdef bint find_in(int codec, object path) except -1:
    """Takes the codec's functions from the shared object, which stays open; False if they are not all there."""
    cdef bytes encoded = b"" if path is None else path.encode()
    cdef char *name = encoded
    cdef void *handle = dlopen(name if path is not None else NULL, RTLD_LAZY)
    if handle == NULL:
        return False
    if codec == CODEC_GZIP:
        return find_gzip(handle)
    return find_lz4(handle) if codec == CODEC_LZ4 else find_zstd(handle)


cdef bint find_gzip(void *handle) noexcept nogil:
    functions.zlib_version = <ZlibVersion> dlsym(handle, "zlibVersion")
    functions.inflate_init = <InflateInit> dlsym(handle, "inflateInit2_")
    functions.inflate = <Inflate> dlsym(handle, "inflate")
    functions.inflate_reset = <InflateReset> dlsym(handle, "inflateReset")
    functions.inflate_end = <InflateReset> dlsym(handle, "inflateEnd")
    functions.has_gzip = (functions.zlib_version != NULL and functions.inflate_init != NULL
                          and functions.inflate != NULL and functions.inflate_reset != NULL
                          and functions.inflate_end != NULL)
    return functions.has_gzip


cdef bint find_lz4(void *handle) noexcept nogil:
    functions.lz4_create = <Lz4Create> dlsym(handle, "LZ4F_createDecompressionContext")
    functions.lz4_decompress = <Lz4Decompress> dlsym(handle, "LZ4F_decompress")
    functions.lz4_free = <Lz4Free> dlsym(handle, "LZ4F_freeDecompressionContext")
    functions.has_lz4 = (functions.lz4_create != NULL and functions.lz4_decompress != NULL
                         and functions.lz4_free != NULL)
    return functions.has_lz4


cdef bint find_zstd(void *handle) noexcept nogil:
    functions.zstd_create = <ZstdCreate> dlsym(handle, "ZSTD_createDCtx")
    functions.zstd_decompress = <ZstdDecompress> dlsym(handle, "ZSTD_decompressStream")
    functions.zstd_reset = <ZstdReset> dlsym(handle, "ZSTD_DCtx_reset")
    functions.zstd_set = <ZstdSet> dlsym(handle, "ZSTD_DCtx_setParameter")
    functions.zstd_free = <ZstdFree> dlsym(handle, "ZSTD_freeDCtx")
    functions.zstd_is_error = <ZstdIsError> dlsym(handle, "ZSTD_isError")
    functions.has_zstd = (functions.zstd_create != NULL and functions.zstd_decompress != NULL
                          and functions.zstd_reset != NULL and functions.zstd_set != NULL
                          and functions.zstd_free != NULL and functions.zstd_is_error != NULL)
    return functions.has_zstd
