"""Records as columns for any library that reads Arrow (pyarrow, Spark, pandas), without a copy and without pyarrow."""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free

from kafkapy._core.bytes.arrow_columns cimport (
    BYTES_COLUMN, FIXED_COLUMN, LIST_COLUMN, STRUCT_COLUMN, adopt_column, close_column, drop_column, hold_column,
    new_column)

# All columns, with the names of Spark's Kafka source.
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")

cdef enum:
    NULLABLE = 2                         # ARROW_FLAG_NULLABLE
    MOST_COLUMNS = 8
    MOST_ROWS = 1 << 23                  # so that offsets into the topic names fit an int32

cdef struct ExportedArray:
    ArrowColumn *column
    const void *buffers[3]
    ArrowArray *children[MOST_COLUMNS]

cdef struct ExportedSchema:
    ArrowSchema *children[MOST_COLUMNS]


cdef class ArrowBatch:
    """A table of records, whose columns have the same number of rows.

    `FetchedRecords.fill` adds rows. A batch may be exported any number of times; the readers share its memory, and no
    rows can be added after the first export. Not thread-safe; exported columns are immutable.

    `columns` names some of COLUMNS, in any order:

        key, value      binary                  timestamp       timestamp[us or ms, UTC]; -1 ms if there is none
        topic           string                  timestampType   int32: 0 create, 1 log append, -1 no timestamp
        partition       int32                   headers         list<struct<key: string, value: binary>>, null
        offset          int64                                   without headers; keys are made valid UTF-8

    All columns are nullable. The batch accepts at most `max_rows` rows and about `max_bytes` bytes of keys, values and
    headers; it always accepts the first batch of records. Raises ValueError for an unknown column.

    With a `needle`, `fill` adds records whose key, value or headers may contain these bytes, and skips most others
    before they are decoded; the caller searches the added rows again. A fill then also stops when about `max_rows`
    records were searched.
    """

    def __cinit__(self, columns=COLUMNS[:7], *, int64_t max_rows=65_536, int64_t max_bytes=64 << 20,
                  str timestamp_unit not None="us", bytes needle not None=b""):
        self.columns = tuple(columns)
        if timestamp_unit not in ("us", "ms"):
            raise ValueError(f"timestamps are in us or in ms, not in {timestamp_unit}")
        if len(set(self.columns)) != len(self.columns) or not set(self.columns) <= set(COLUMNS):
            given = ", ".join(map(str, self.columns))
            raise ValueError(f"columns are some of {', '.join(COLUMNS)}, each once; not {given}")
        if max_rows <= 0:
            raise ValueError(f"max_rows is {max_rows}; at least one row is needed")
        self.timestamp_unit = timestamp_unit
        self.content.row_limit = min(max_rows, MOST_ROWS)
        self.content.byte_limit = max_bytes
        self.content.timestamp_factor = 1000 if timestamp_unit == "us" else 1
        self.needle = needle
        if needle:
            self.content.needle = <const uint8_t *>PyBytes_AS_STRING(needle)
            self.content.needle_size = <size_t>PyBytes_GET_SIZE(needle)
        for name in self.columns:
            self.place_of(name)[0] = self.make_column(name)

    def __dealloc__(self):
        drop_column(self.content.key)
        drop_column(self.content.value)
        drop_column(self.content.topic)
        drop_column(self.content.partition)
        drop_column(self.content.offset)
        drop_column(self.content.timestamp)
        drop_column(self.content.timestamp_type)
        drop_column(self.content.headers)

    @property
    def row_count(self):
        return self.content.rows

    @property
    def scanned(self):
        """The number of records that were read, including those that were skipped because they do not contain
        `needle`."""
        return self.content.scanned if self.needle else self.content.rows

    @property
    def max_rows(self):
        return self.content.row_limit

    def __len__(self):
        return self.content.rows

    def __repr__(self):
        return f"ArrowBatch({self.content.rows} rows: {', '.join(self.columns)})"

    cdef ArrowColumn **place_of(self, str name) except NULL:
        if name == "key":
            return &self.content.key
        if name == "value":
            return &self.content.value
        if name == "topic":
            return &self.content.topic
        if name == "partition":
            return &self.content.partition
        if name == "offset":
            return &self.content.offset
        if name == "timestamp":
            return &self.content.timestamp
        if name == "timestampType":
            return &self.content.timestamp_type
        return &self.content.headers

    cdef ArrowColumn *make_column(self, str name) except NULL:
        cdef ArrowColumn *made = NULL
        if name == "key":
            made = new_column("key", "z", BYTES_COLUMN, 0, True)
        elif name == "value":
            made = new_column("value", "z", BYTES_COLUMN, 0, True)
        elif name == "topic":
            made = new_column("topic", "u", BYTES_COLUMN, 0, False)
        elif name == "partition":
            made = new_column("partition", "i", FIXED_COLUMN, 4, False)
        elif name == "offset":
            made = new_column("offset", "l", FIXED_COLUMN, 8, False)
        elif name == "timestamp":
            made = new_column(
                "timestamp", "tsu:UTC" if self.timestamp_unit == "us" else "tsm:UTC", FIXED_COLUMN, 8, False)
        elif name == "timestampType":
            made = new_column("timestampType", "i", FIXED_COLUMN, 4, False)
        else:
            made = make_headers()
        if made == NULL:
            raise MemoryError()
        return made

    cdef int begin_filling(self) except -1:
        if self.is_frozen or self.is_busy:
            raise RuntimeError("a batch that has been given out, or is being filled, cannot be filled")
        self.is_busy = True
        return 0

    cdef void end_filling(self) noexcept:
        self.is_busy = False

    cdef int freeze(self) except -1:
        if self.is_busy:
            raise RuntimeError("the batch is being filled")
        if not self.is_frozen:
            self.is_frozen = True
            for name in self.columns:
                close_column(self.place_of(name)[0], self.content.rows)
        return 0

    def __arrow_c_schema__(self):
        """Returns the columns' names and types as a capsule of an ArrowSchema (Arrow's PyCapsule interface)."""
        cdef ArrowSchema *schema = <ArrowSchema *>calloc(1, sizeof(ArrowSchema))
        if schema == NULL:
            raise MemoryError()
        capsule = PyCapsule_New(schema, "arrow_schema", free_schema_capsule)
        if not begin_schema(schema, "", "+s", <int>len(self.columns)):
            raise MemoryError()
        for index, name in enumerate(self.columns):
            if not export_schema(schema.children[index], self.place_of(name)[0]):
                raise MemoryError()
        return capsule

    def __arrow_c_array__(self, requested_schema=None):
        """Returns a pair of capsules, of the ArrowSchema and of the ArrowArray with the rows.

        No rows can be added afterwards. `requested_schema` is ignored, as Arrow's PyCapsule interface allows.
        """
        cdef ArrowArray *array
        self.freeze()
        schema = self.__arrow_c_schema__()
        array = <ArrowArray *>calloc(1, sizeof(ArrowArray))
        if array == NULL:
            raise MemoryError()
        capsule = PyCapsule_New(array, "arrow_array", free_array_capsule)
        if not begin_array(array, <int>len(self.columns)):
            raise MemoryError()
        array.length = self.content.rows
        array.n_buffers = 1              # a row as a whole is never null
        for index, name in enumerate(self.columns):
            if not export_column(array.children[index], self.place_of(name)[0]):
                raise MemoryError()
        return schema, capsule


cdef ArrowColumn *make_headers() noexcept nogil:
    cdef ArrowColumn *headers = new_column("headers", "+l", LIST_COLUMN, 0, True)
    cdef ArrowColumn *pair = new_column("element", "+s", STRUCT_COLUMN, 0, False)
    cdef bint whole = adopt_column(pair, new_column("key", "u", BYTES_COLUMN, 0, False))
    whole = adopt_column(pair, new_column("value", "z", BYTES_COLUMN, 0, True)) and whole
    whole = adopt_column(headers, pair) and whole
    if not whole:
        drop_column(headers)
        return NULL
    return headers


# Each exported struct has memory of its own and owns a share of its column.

cdef bint begin_schema(ArrowSchema *schema, const char *name, const char *format, int children) noexcept nogil:
    """Sets the fields of `schema`, and allocates `children` empty schemas as its children.

    Returns False if there is not enough memory; then the caller has to release the schema.
    """
    cdef ExportedSchema *own = <ExportedSchema *>calloc(1, sizeof(ExportedSchema))
    cdef int index
    if own == NULL:
        return False
    schema.name, schema.format, schema.flags = name, format, NULLABLE
    schema.private_data, schema.children, schema.release = own, own.children, release_schema
    for index in range(children):
        own.children[index] = <ArrowSchema *>calloc(1, sizeof(ArrowSchema))
        if own.children[index] == NULL:
            return False
        schema.n_children += 1
    return True


cdef bint export_schema(ArrowSchema *schema, const ArrowColumn *column) noexcept nogil:
    cdef int index
    if not begin_schema(schema, column.name, column.format, column.child_count):
        return False
    for index in range(column.child_count):
        if not export_schema(schema.children[index], column.children[index]):
            return False
    return True


cdef void release_schema(ArrowSchema *schema) noexcept nogil:
    """Releases a schema and its children; any thread may call it.

    A child without a release callback is left alone: the library that reads the schema has moved it out and owns it.
    """
    cdef int64_t index
    for index in range(schema.n_children):
        if schema.children[index].release != NULL:
            schema.children[index].release(schema.children[index])
        free(schema.children[index])
    free(schema.private_data)
    schema.release = NULL


cdef bint begin_array(ArrowArray *array, int children) noexcept nogil:
    cdef ExportedArray *own = <ExportedArray *>calloc(1, sizeof(ExportedArray))
    cdef int index
    if own == NULL:
        return False
    array.private_data, array.buffers, array.children = own, own.buffers, own.children
    array.release = release_array
    for index in range(children):
        own.children[index] = <ArrowArray *>calloc(1, sizeof(ArrowArray))
        if own.children[index] == NULL:
            return False
        array.n_children += 1
    return True


cdef bint export_column(ArrowArray *array, ArrowColumn *column) noexcept nogil:
    cdef ExportedArray *own
    cdef int index
    if not begin_array(array, column.child_count):
        return False
    own = <ExportedArray *>array.private_data
    own.column = hold_column(column)
    array.length, array.null_count = column.length, column.null_count
    own.buffers[0] = column.validity if column.null_count else NULL
    own.buffers[1] = column.values
    own.buffers[2] = column.data
    array.n_buffers = 1 if column.kind == STRUCT_COLUMN else 3 if column.kind == BYTES_COLUMN else 2
    for index in range(column.child_count):
        if not export_column(array.children[index], column.children[index]):
            return False
    return True


cdef void release_array(ArrowArray *array) noexcept nogil:
    """Releases an array and its children; any thread may call it.

    A child without a release callback is left alone: the library that reads the array has moved it out and owns it.
    """
    cdef ExportedArray *own = <ExportedArray *>array.private_data
    cdef int64_t index
    for index in range(array.n_children):
        if array.children[index].release != NULL:
            array.children[index].release(array.children[index])
        free(array.children[index])
    drop_column(own.column)
    free(own)
    array.release = NULL


cdef void free_schema_capsule(object capsule) noexcept:
    cdef ArrowSchema *schema = <ArrowSchema *>PyCapsule_GetPointer(capsule, "arrow_schema")
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef void free_array_capsule(object capsule) noexcept:
    cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(capsule, "arrow_array")
    if array.release != NULL:
        array.release(array)
    free(array)
