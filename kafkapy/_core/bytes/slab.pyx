"""Pooled memory for bytes that are received from sockets or sent to them.

A slab is a block of memory with an atomic reference count. Its pool *owns* it. Each caller of `slab_retain` *pins* it,
for a request, the unparsed bytes of a connection, or a response that is being sent. The last `slab_release` pushes the
slab on the pool's stack of returned slabs, on any thread; only the thread that owns the pool takes slabs from there, so
no lock is needed. The pool exists until its owner and its last slab are released.

Sizes are powers of two. Only a slab with exactly one pin may grow, such as the slab of a large frame that is still
arriving.
"""

from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy
from posix.mman cimport MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, mmap, munmap

cdef extern from "<sys/mman.h>" nogil:
    """
    #ifndef MREMAP_MAYMOVE
    #define MREMAP_MAYMOVE 1
    extern void *mremap(void *old_address, size_t old_size, size_t new_size, int flags, ...);
    #endif
    #define atomic_add_int(pointer, value) __atomic_add_fetch((pointer), (value), __ATOMIC_ACQ_REL)
    #define atomic_add_long(pointer, value) __atomic_add_fetch((pointer), (value), __ATOMIC_RELAXED)
    #define atomic_exchange_pointer(pointer, value) __atomic_exchange_n((pointer), (value), __ATOMIC_ACQ_REL)
    #define atomic_load_pointer(pointer) __atomic_load_n((pointer), __ATOMIC_ACQUIRE)
    #define atomic_swap_if(pointer, expected, value) __atomic_compare_exchange_n( \
        (pointer), (expected), (value), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
    """
    int MREMAP_MAYMOVE
    void *mremap(void *address, size_t old_size, size_t new_size, int flags)
    int atomic_add_int(int *pointer, int value)
    long long atomic_add_long(long long *pointer, long long value)
    Slab *atomic_exchange_pointer(Slab **pointer, Slab *value)
    Slab *atomic_load_pointer(Slab **pointer)
    int atomic_swap_if(Slab **pointer, Slab **expected, Slab *value)


cdef int class_of(size_t capacity) noexcept nogil:
    """Returns the index of the smallest size class for `capacity` bytes, or -1 if there is none."""
    cdef int index = 0
    while index < SLAB_CLASSES and (<size_t> 1 << (SLAB_SMALLEST_SHIFT + index)) < capacity:
        index += 1
    return index if index < SLAB_CLASSES else -1


cdef uint8_t *memory_allocate(size_t size) noexcept nogil:
    cdef void *address
    if size < SLAB_MAPPED_BYTES:
        return <uint8_t *> malloc(size)
    address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    return NULL if address == MAP_FAILED else <uint8_t *> address


cdef void memory_free(uint8_t *data, size_t size) noexcept nogil:
    if size < SLAB_MAPPED_BYTES:
        free(data)
    else:
        munmap(data, size)


cdef void pool_unreference(SlabPool *pool) noexcept nogil:
    if atomic_add_int(&pool.references, -1) == 0:
        free(pool)


cdef void slab_destroy(Slab *slab) noexcept nogil:
    cdef SlabPool *pool = slab.pool
    atomic_add_long(&pool.allocated_bytes, -<long long> slab.capacity)
    memory_free(slab.data, slab.capacity)
    free(slab)
    pool_unreference(pool)


cdef SlabPool *slab_pool_create(size_t cache_limit) noexcept nogil:
    """Creates a pool, *owned* by the caller until `slab_pool_destroy`; returns NULL without enough memory."""
    cdef SlabPool *pool = <SlabPool *> calloc(1, sizeof(SlabPool))
    if pool != NULL:
        pool.cache_limit = cache_limit
        pool.references = 1
    return pool


cdef void slab_pool_destroy(SlabPool *pool) noexcept nogil:
    """Frees the pool and its cached slabs; a slab that is pinned is freed when its last pin is released."""
    slab_pool_trim(pool, 0)
    pool.cache_limit = 0
    # From here on no thread empties the returned stack: a mark makes the last release free its slab at once.
    cdef Slab *stack = atomic_exchange_pointer(&pool.returned, <Slab *> <size_t> 1)
    cdef Slab *following
    while stack != NULL:
        following = stack.next
        slab_destroy(stack)
        stack = following
    pool_unreference(pool)


cdef void collect_returned(SlabPool *pool) noexcept nogil:
    """Makes the slabs that other threads have released available again, and frees those beyond the cache limit.

    Only the thread that owns the pool may call it.
    """
    cdef Slab *slab
    cdef Slab *following
    if atomic_load_pointer(&pool.returned) == NULL:
        return
    slab = atomic_exchange_pointer(&pool.returned, NULL)
    while slab != NULL:
        following = slab.next
        if pool.cached_bytes + slab.capacity > pool.cache_limit:
            slab_destroy(slab)
        else:
            slab.next = pool.free[slab.size_class]
            pool.free[slab.size_class] = slab
            pool.cached_bytes += slab.capacity
        slab = following


cdef void slab_pool_trim(SlabPool *pool, size_t keep_bytes) noexcept nogil:
    """Frees cached slabs, largest first, until at most `keep_bytes` are cached. Only the thread that owns the pool may
    call it."""
    cdef int index = SLAB_CLASSES - 1
    cdef Slab *slab
    collect_returned(pool)
    while index >= 0 and pool.cached_bytes > keep_bytes:
        slab = pool.free[index]
        if slab == NULL:
            index -= 1
            continue
        pool.free[index] = slab.next
        pool.cached_bytes -= slab.capacity
        slab_destroy(slab)


cdef Slab *take_free(SlabPool *pool, int index) noexcept nogil:
    cdef Slab *slab = pool.free[index]
    if slab != NULL:
        pool.free[index] = slab.next
        pool.cached_bytes -= slab.capacity
        slab.next = NULL
        slab.used = 0
        slab.references = 1
    return slab


cdef Slab *slab_take_cached(SlabPool *pool, size_t capacity) noexcept nogil:
    """Returns a cached slab of the smallest size class for `capacity` bytes, pinned once; NULL if none is cached.

    Only the thread that owns the pool may call it.
    """
    cdef int index = class_of(capacity)
    if index < 0:
        return NULL
    collect_returned(pool)
    return take_free(pool, index)


cdef Slab *slab_take(SlabPool *pool, size_t capacity) noexcept nogil:
    """Returns a slab of at least `capacity` bytes, pinned once; NULL if there is not enough memory.

    Only the thread that owns the pool may call it.
    """
    cdef Slab *slab = slab_take_cached(pool, capacity)
    cdef int index
    if slab != NULL:
        return slab
    index = class_of(capacity)
    if index < 0:
        return NULL
    slab = <Slab *> calloc(1, sizeof(Slab))
    if slab == NULL:
        return NULL
    slab.capacity = <size_t> 1 << (SLAB_SMALLEST_SHIFT + index)
    slab.data = memory_allocate(slab.capacity)
    if slab.data == NULL:
        free(slab)
        return NULL
    slab.size_class = index
    slab.references = 1
    slab.pool = pool
    atomic_add_int(&pool.references, 1)
    atomic_add_long(&pool.allocated_bytes, <long long> slab.capacity)
    return slab


cdef int slab_grow(Slab *slab, size_t capacity) noexcept nogil:
    """Enlarges a slab that only the caller pins to `capacity` bytes, and keeps its contents.

    Returns 0, or -1 without enough memory.
    """
    cdef int index = class_of(capacity)
    cdef size_t wanted
    cdef void *data
    if index < 0:
        return -1
    wanted = <size_t> 1 << (SLAB_SMALLEST_SHIFT + index)
    if wanted <= slab.capacity:
        return 0
    if slab.capacity >= SLAB_MAPPED_BYTES:
        data = mremap(slab.data, slab.capacity, wanted, MREMAP_MAYMOVE)
        if data == MAP_FAILED:
            return -1
    elif wanted < SLAB_MAPPED_BYTES:
        data = realloc(slab.data, wanted)
        if data == NULL:
            return -1
    else:
        data = memory_allocate(wanted)
        if data == NULL:
            return -1
        memcpy(data, slab.data, slab.capacity)
        free(slab.data)
    atomic_add_long(&slab.pool.allocated_bytes, <long long> (wanted - slab.capacity))
    slab.data = <uint8_t *> data
    slab.capacity = wanted
    slab.size_class = index
    return 0


cdef void slab_retain(Slab *slab) noexcept nogil:
    atomic_add_int(&slab.references, 1)


cdef bint slab_is_sole(Slab *slab) noexcept nogil:
    """Returns whether only the caller pins `slab`."""
    return atomic_add_int(&slab.references, 0) == 1


cdef void slab_release(Slab *slab) noexcept nogil:
    """Releases one pin, on any thread; the release of the last pin returns the slab to its pool."""
    cdef SlabPool *pool = slab.pool
    cdef Slab *head
    if atomic_add_int(&slab.references, -1) != 0:
        return
    head = atomic_load_pointer(&pool.returned)
    while True:
        if <size_t> head == 1:  # the pool's owner has destroyed it
            slab_destroy(slab)
            return
        slab.next = head
        if atomic_swap_if(&pool.returned, &head, slab):
            return
