"""Creates, grows and frees the memory of Arrow's columns."""

from libc.stdint cimport INT32_MAX
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memset

cdef extern from * nogil:
    enum:
        SEQUENTIAL "__ATOMIC_SEQ_CST"
    int atomic_add "__atomic_add_fetch" (int *at, int more, int order)
    int exchange "__atomic_exchange_n" (int *at, int value, int order)
    void store "__atomic_store_n" (int *at, int value, int order)
    int count_bits "__builtin_popcount" (unsigned int bits)

cdef enum:
    FIRST_ROWS = 64
    FIRST_BYTES = 1024
    OFFSET_WIDTH = 4

    MOST_SPARE = 32
    LARGEST_SPARE_BYTES = 64 << 20       # of all cached columns together

# Columns without owners keep their memory here for the next batch, because filling fresh pages costs more than copying
# the data into them. A caller that finds `spare_is_busy` set allocates instead, so that no thread waits.
cdef ArrowColumn *spare[MOST_SPARE]
cdef int spare_count = 0
cdef int64_t spare_bytes = 0
cdef int spare_is_busy = 0


cdef int64_t bytes_held(const ArrowColumn *column) noexcept nogil:
    return column.capacity * column.width + column.data_capacity


cdef ArrowColumn *take_spare(const char *name, const char *format) noexcept nogil:
    """Returns an unused column with this name and format from the cache, to be used again.

    Returns NULL if the cache has none, or another thread is using the cache.
    """
    cdef ArrowColumn *found = NULL
    cdef int at
    global spare_count, spare_bytes
    if exchange(&spare_is_busy, 1, SEQUENTIAL):
        return NULL
    for at in range(spare_count):
        if spare[at].name == name and spare[at].format == format:
            found = spare[at]
            spare_count -= 1
            spare[at] = spare[spare_count]
            spare_bytes -= bytes_held(found)
            break
    store(&spare_is_busy, 0, SEQUENTIAL)
    return found


cdef bint give_spare(ArrowColumn *column) noexcept nogil:
    """Puts a column that nothing uses any more into the cache.

    Returns False if the cache is full, or another thread is using it; then the caller has to free the column.
    """
    cdef bint taken = False
    global spare_count, spare_bytes
    if exchange(&spare_is_busy, 1, SEQUENTIAL):
        return False
    if spare_count < MOST_SPARE and spare_bytes + bytes_held(column) <= LARGEST_SPARE_BYTES:
        spare[spare_count] = column
        spare_count += 1
        spare_bytes += bytes_held(column)
        taken = True
    store(&spare_is_busy, 0, SEQUENTIAL)
    return taken


cdef ArrowColumn *new_column(const char *name, const char *format, int kind, int width, bint has_nulls) noexcept nogil:
    cdef ArrowColumn *column = take_spare(name, format)
    if column != NULL:
        column.owners, column.child_count, column.length, column.null_count = 1, 0, 0, 0
        if has_nulls:
            memset(column.validity, 0, <size_t>((column.capacity + 7) >> 3))
        return column
    column = <ArrowColumn *>calloc(1, sizeof(ArrowColumn))
    if column == NULL:
        return NULL
    column.owners = 1
    column.name, column.format, column.kind, column.has_nulls = name, format, kind, has_nulls
    column.width = OFFSET_WIDTH if kind == BYTES_COLUMN or kind == LIST_COLUMN else width
    # A consumer may read every buffer, even that of a column without rows.
    if reserve_rows(column, 0, FIRST_ROWS) != COLUMN_OK or (
            kind == BYTES_COLUMN and reserve_data(column, 0, FIRST_BYTES) != COLUMN_OK):
        drop_column(column)
        return NULL
    return column


cdef bint adopt_column(ArrowColumn *parent, ArrowColumn *child) noexcept nogil:
    if parent == NULL or child == NULL:
        drop_column(child)
        return False
    parent.children[parent.child_count] = child
    parent.child_count += 1
    return True


cdef ArrowColumn *hold_column(ArrowColumn *column) noexcept nogil:
    atomic_add(&column.owners, 1, SEQUENTIAL)
    return column


cdef void drop_column(ArrowColumn *column) noexcept nogil:
    cdef int index
    if column == NULL or atomic_add(&column.owners, -1, SEQUENTIAL) > 0:
        return
    for index in range(column.child_count):
        drop_column(column.children[index])
    if column.capacity and (column.data_capacity or column.kind != BYTES_COLUMN) and give_spare(column):
        return
    free(column.validity)
    free(column.values)
    free(column.data)
    free(column)


cdef bint grow(uint8_t **memory, int64_t size) noexcept nogil:
    cdef uint8_t *grown = <uint8_t *>realloc(memory[0], <size_t>size)
    if grown == NULL:
        return False
    memory[0] = grown
    return True


cdef int reserve_rows(ArrowColumn *column, int64_t rows, int64_t more) noexcept nogil:
    cdef int64_t wanted = rows + more, known = (column.capacity + 7) >> 3
    if wanted <= column.capacity:
        return COLUMN_OK
    if wanted > INT32_MAX:
        return COLUMN_FULL
    wanted = max(wanted, column.capacity * 2)
    if column.has_nulls:
        if not grow(&column.validity, (wanted + 7) >> 3):
            return COLUMN_NO_MEMORY
        memset(column.validity + known, 0, <size_t>(((wanted + 7) >> 3) - known))
    if column.width and not grow(&column.values, (wanted + 1) * column.width):
        return COLUMN_NO_MEMORY
    if column.capacity == 0 and column.width == OFFSET_WIDTH:
        offsets_of(column)[0] = 0
    column.capacity = wanted
    return COLUMN_OK


cdef int reserve_data(ArrowColumn *column, int64_t rows, int64_t more) noexcept nogil:
    cdef int64_t wanted = offsets_of(column)[rows] + more
    if wanted <= column.data_capacity:
        return COLUMN_OK
    if wanted > INT32_MAX:
        return COLUMN_FULL
    wanted = max(wanted, column.data_capacity * 2)
    if not grow(&column.data, wanted):
        return COLUMN_NO_MEMORY
    column.data_capacity = wanted
    return COLUMN_OK


cdef void close_column(ArrowColumn *column, int64_t rows) noexcept nogil:
    cdef int64_t at, valid = 0
    cdef int index
    if column == NULL:
        return
    column.length = rows
    if column.has_nulls:
        for at in range(rows >> 3):
            valid += count_bits(column.validity[at])
        for at in range(rows & ~<int64_t>7, rows):
            valid += column.validity[at >> 3] >> (at & 7) & 1
        column.null_count = rows - valid
    for index in range(column.child_count):
        close_column(column.children[index], offsets_of(column)[rows] if column.kind == LIST_COLUMN else rows)
