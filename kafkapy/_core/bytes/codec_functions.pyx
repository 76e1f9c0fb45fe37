"""Finds the functions of the compression libraries in the shared objects that Python's modules contain or link."""

import sys

from kafkapy._core.bytes.codecs cimport CODEC_GZIP, CODEC_LZ4, CODEC_ZSTD

cdef extern from "<dlfcn.h>" nogil:
    enum:
        RTLD_LAZY
    void *dlopen(const char *path, int flags)
    void *dlsym(void *handle, const char *name)

# By codec: the name, the module whose shared object contains the functions, and the system's library.
LIBRARIES = {
    CODEC_GZIP: ("gzip", "zlib", "libz.so.1"),
    CODEC_LZ4: ("lz4", "lz4.frame._frame", "liblz4.so.1"),
    CODEC_ZSTD: ("zstd", "zstandard._cffi", "libzstd.so.1"),
}

cdef CodecFunctions functions
tried = set()


cdef CodecFunctions *codec_functions() noexcept nogil:
    return &functions


def find_codec_functions(int codec):
    """Returns whether the codec can be decompressed without the interpreter lock, by a library's functions.

    The first call for a codec searches for its functions.
    """
    if codec in LIBRARIES and codec not in tried:
        tried.add(codec)
        _, module, library = LIBRARIES[codec]
        for path in (shared_object(module), library):
            if load_functions(codec, path):
                break
    return bool(functions.has_gzip and codec == CODEC_GZIP or functions.has_lz4 and codec == CODEC_LZ4
                or functions.has_zstd and codec == CODEC_ZSTD)


def missing_codecs():
    """Returns the names of the codecs whose functions neither Python's modules nor the system's libraries contain."""
    return [name for codec, (name, _, _) in LIBRARIES.items() if not find_codec_functions(codec)]


def shared_object(str name):
    """Returns the path of a module's shared object, or None if there is none, as in a Python that has zlib built in.

    Does not import the packages that contain the module, because that takes time: 20 ms for zstandard alone.
    """
    spec, folders = None, None
    parts = name.split(".")
    for depth in range(len(parts)):
        package = ".".join(parts[:depth + 1])
        found = (finder.find_spec(package, folders) for finder in sys.meta_path if hasattr(finder, "find_spec"))
        spec = next((each for each in found if each is not None), None)
        if spec is None:
            return None
        folders = spec.submodule_search_locations
    return spec.origin if spec.has_location else None


def load_functions(int codec, object path):
    """Loads the codec's functions from the shared object at `path`; if `path` is None, from the running program itself.

    Returns whether all of them were found. The shared object stays open.
    """
    cdef bytes encoded = b"" if path is None else path.encode()
    cdef char *name = encoded
    cdef void *handle = dlopen(name if path is not None else NULL, RTLD_LAZY)
    if handle == NULL:
        return False
    if codec == CODEC_GZIP:
        return bool(find_gzip(handle))
    return bool(find_lz4(handle) if codec == CODEC_LZ4 else find_zstd(handle))


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
