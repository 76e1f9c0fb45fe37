# Pooled memory for receiving and sending: reference counts, size classes, growth.
from libc.stdint cimport uint8_t

cdef enum:
    SLAB_SMALLEST_SHIFT = 12        # 4 KiB
    SLAB_CLASSES = 20               # up to 2 GiB
    SHARED_SLAB_BYTES = 65536       # a slab that many small frames share
    SLAB_MAPPED_BYTES = 65536       # from this size on, memory comes from mmap and grows by mremap

cdef struct Slab:
    uint8_t *data
    size_t capacity                 # a power of two
    size_t used                     # bytes used from the front (shared slabs)
    int references                  # atomic: any thread may release a slice
    int size_class
    SlabPool *pool
    Slab *next                      # in a free list or in the pool's returned stack

cdef struct SlabPool:
    Slab *free[SLAB_CLASSES]        # used only by the thread that owns the pool
    Slab *returned                  # atomic stack: pushed by any thread, emptied by the owner
    size_t cached_bytes             # memory in the free lists
    size_t cache_limit
    long long allocated_bytes       # atomic: memory of all existing slabs, cached ones included
    int references                  # atomic: one for the owner and one for each existing slab

cdef SlabPool *slab_pool_create(size_t cache_limit) noexcept nogil
cdef void slab_pool_destroy(SlabPool *pool) noexcept nogil
cdef void slab_pool_trim(SlabPool *pool, size_t keep_bytes) noexcept nogil

cdef Slab *slab_take(SlabPool *pool, size_t capacity) noexcept nogil
cdef Slab *slab_take_cached(SlabPool *pool, size_t capacity) noexcept nogil
cdef int slab_grow(Slab *slab, size_t capacity) noexcept nogil
cdef void slab_retain(Slab *slab) noexcept nogil
cdef void slab_release(Slab *slab) noexcept nogil
cdef bint slab_is_sole(Slab *slab) noexcept nogil
