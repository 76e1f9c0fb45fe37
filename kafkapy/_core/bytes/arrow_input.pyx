"""Reads a table through Arrow's C stream interface, or a batch through its C data interface.

The structs come from another library. Each count, offset and pointer is compared with what the struct declares before
it is used; the sizes of most buffers are not declared, so that a buffer that is shorter than its offsets cannot be
detected.
"""
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.pycapsule cimport PyCapsule_GetPointer
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT32_MAX, INT64_MAX, int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from kafkapy._core.bytes.arrow_batch cimport ArrowArray, ArrowSchema
from kafkapy._core.bytes.arrow_stream cimport ArrowArrayStream

from kafkapy.errors import ApiError, Error

# The columns that records are made of; others are ignored.
INPUT_COLUMNS = ("key", "value", "partition", "timestamp", "headers")

cdef enum:
    KEY_PLACE = 0
    VALUE_PLACE = 1
    PARTITION_PLACE = 2
    TIMESTAMP_PLACE = 3
    HEADERS_PLACE = 4

    MOST_COLUMNS = 1 << 20
    INLINE_BYTES = 12                    # a view contains a value of up to this size
    VIEW_WIDTH = 16

cdef int64_t MOST_ROWS = <int64_t>1 << 47  # of a batch; positions in its buffers then fit an int64

# Widths in bytes of Arrow's integers, signed and unsigned.
_INTEGERS = {"c": (1, True), "C": (1, False), "s": (2, True), "S": (2, False), "i": (4, True), "I": (4, False),
             "l": (8, True), "L": (8, False)}
# Multiplier and divisor that turn a timestamp into ms, by its unit.
_UNITS = {"s": (1000, 1), "m": (1, 1), "u": (1, 1000), "n": (1, 1_000_000)}


cdef class ArrowInput:
    """The rows of a table, batch by batch. Used by one thread at a time.

    `source` is any object with `__arrow_c_stream__` or `__arrow_c_array__`, such as a Table or RecordBatch of pyarrow,
    a DataFrame of Polars or pandas, or a relation of DuckDB. These columns are read, by their names:

        key, value      binary or text; the table must have the column value
        partition       integer
        timestamp       timestamp, or an integer in ms since 1970
        headers         list of structs of key (text or binary) and value (binary or text), or a map

    Raises TypeError for another object or a column of another type, and ValueError for an invalid table.
    """

    def __cinit__(self, source):
        if hasattr(source, "__arrow_c_stream__"):
            self.take_stream(source.__arrow_c_stream__())
        elif hasattr(source, "__arrow_c_array__"):
            self.take_array(source.__arrow_c_array__())
        else:
            raise TypeError("a table with Arrow's interface is needed, such as a DataFrame of pandas or Polars, not "
                            f"{type(source).__name__}")
        self.find_columns()

    def __dealloc__(self):
        release_array(&self.batch)
        if self.schema.release != NULL:
            self.schema.release(&self.schema)
        if self.stream.release != NULL:
            self.stream.release(&self.stream)

    cdef int take_stream(self, object capsule) except -1:
        cdef ArrowArrayStream *stream = <ArrowArrayStream *>PyCapsule_GetPointer(capsule, "arrow_array_stream")
        cdef int code
        if stream.release == NULL or stream.get_schema == NULL or stream.get_next == NULL:
            raise ValueError("the Arrow stream was released")
        self.stream = stream[0]
        stream.release = NULL                # marks the struct as moved: its content now belongs to this object
        self.has_stream = True
        with nogil:
            code = self.stream.get_schema(&self.stream, &self.schema)
        if code:
            self.schema.release = NULL
            raise ValueError(f"the Arrow stream has no schema: {failure_of(self, code)}")
        return 0

    cdef int take_array(self, object capsules) except -1:
        schema_capsule, array_capsule = capsules
        cdef ArrowSchema *schema = <ArrowSchema *>PyCapsule_GetPointer(schema_capsule, "arrow_schema")
        cdef ArrowArray *array = <ArrowArray *>PyCapsule_GetPointer(array_capsule, "arrow_array")
        self.schema, self.batch = schema[0], array[0]
        schema.release = NULL                # marks the structs as moved: their content now belongs to this object
        array.release = NULL
        if self.batch.release == NULL:
            raise ValueError("the Arrow array was released")
        return 0

    cdef int find_columns(self) except -1:
        """Finds the columns by their names and checks their types."""
        cdef int64_t at
        cdef int index
        if self.schema.release == NULL:
            raise ValueError("the Arrow schema was released")
        check_children(&self.schema, "the table", MOST_COLUMNS)
        if text_of(self.schema.format) != "+s":
            raise TypeError("a table with columns is needed, not an Arrow array of the type "
                            f"{text_of(self.schema.format)}")
        self.places = [-1, -1, -1, -1, -1]
        for at in range(self.schema.n_children):
            name = text_of(self.schema.children[at].name)
            if name not in INPUT_COLUMNS:
                continue
            index = INPUT_COLUMNS.index(name)
            if self.places[index] >= 0:
                raise ValueError(f"the table has two columns {name}")
            self.places[index] = <int>at
        if self.places[VALUE_PLACE] < 0:
            raise ValueError("the table has no column value")
        read_bytes_type(self.column_schema(KEY_PLACE), &self.key, "key")
        read_bytes_type(self.column_schema(VALUE_PLACE), &self.value, "value")
        read_number_type(self.column_schema(PARTITION_PLACE), &self.partition, "partition")
        read_number_type(self.column_schema(TIMESTAMP_PLACE), &self.timestamp, "timestamp")
        read_headers_type(self.column_schema(HEADERS_PLACE), &self.headers)
        return 0

    cdef const ArrowSchema *column_schema(self, int index) except NULL:
        """Returns the schema of the column with this index in INPUT_COLUMNS.

        If the table lacks the column, returns a schema with an empty type.
        """
        return &absent_column if self.places[index] < 0 else self.schema.children[self.places[index]]

    def next_batch(self):
        """Reads the next batch of rows; returns False at the end. Raises ValueError if the table cannot be read.

        The library that has made the table may compute the rows during this call, which releases the interpreter lock.
        """
        cdef int code
        self.rows_before += self.rows
        self.rows = 0
        if self.has_stream:
            release_array(&self.batch)
            memset(&self.batch, 0, sizeof(ArrowArray))
            with nogil:
                code = self.stream.get_next(&self.stream, &self.batch)
            if code:
                self.batch.release = NULL
                raise ValueError(f"the Arrow stream cannot be read: {failure_of(self, code)}")
        elif self.rows_before:
            release_array(&self.batch)
        if self.batch.release == NULL:
            return False
        self.open_batch()
        if not self.has_stream and self.rows == 0:
            release_array(&self.batch)
            return False
        return True

    cdef int open_batch(self) except -1:
        cdef const ArrowArray *table = &self.batch
        cdef int64_t row
        check_array(table, 1, self.schema.n_children, table.length, "the table")
        if table.buffers[0] != NULL and table.null_count:
            for row in range(table.offset, table.offset + table.length):
                if not is_valid(<const uint8_t *>table.buffers[0], row):
                    raise ValueError(f"row {self.rows_before + row - table.offset} of the table is null as a whole")
        if self.key.layout:
            open_bytes(table.children[self.places[KEY_PLACE]], table, &self.key, "the column key")
        if self.value.layout:
            open_bytes(table.children[self.places[VALUE_PLACE]], table, &self.value, "the column value")
        if self.partition.width:
            open_numbers(table.children[self.places[PARTITION_PLACE]], table, &self.partition, "the column partition")
        if self.timestamp.width:
            open_numbers(table.children[self.places[TIMESTAMP_PLACE]], table, &self.timestamp, "the column timestamp")
        if self.headers.width:
            open_headers(table.children[self.places[HEADERS_PLACE]], table, &self.headers)
        self.rows = table.length
        return 0

    def row(self, int64_t index):
        """Returns a row of the current batch as (key, value, partition, timestamp in ms, headers). A null is None.

        Text is a str, binary is bytes; headers are pairs of a name and a value. Raises IndexError for a row that does
        not exist, and ValueError if the batch is invalid.
        """
        if not 0 <= index < self.rows:
            raise IndexError(f"there is no row {index}")
        cdef int64_t start = -1, end = -1
        key = content_at(&self.key, index, self, index, "key")
        value = content_at(&self.value, index, self, index, "value")
        partition = number_at(&self.partition, self, index, "partition")
        timestamp = number_at(&self.timestamp, self, index, "timestamp")
        check_status(read_headers(&self.headers, index, &start, &end), self, index, "headers")
        if start < 0:
            return key, value, partition, timestamp, None
        headers = []
        for at in range(start, end):
            name = content_at(&self.headers.name, at, self, index, "headers")
            headers.append((name, content_at(&self.headers.content, at, self, index, "headers")))
        return key, value, partition, timestamp, headers


cdef object content_at(const BytesColumn *column, int64_t at, ArrowInput rows, int64_t row, str name):
    cdef const uint8_t *data = NULL
    cdef Py_ssize_t size = -1
    check_status(read_bytes(column, at, &data, &size), rows, row, name)
    if size < 0:
        return None
    return PyUnicode_DecodeUTF8(<const char *>data, size, NULL) if column.is_text else (
        PyBytes_FromStringAndSize(<const char *>data, size))


cdef object number_at(const NumberColumn *column, ArrowInput rows, int64_t row, str name):
    cdef int64_t number = 0
    cdef int status = read_number(column, row, &number)
    check_status(status, rows, row, name)
    return None if status == ROW_NULL else number


cdef ArrowSchema absent_column
absent_column.format = "n"


cdef void release_array(ArrowArray *array) noexcept:
    if array.release != NULL:
        array.release(array)
        array.release = NULL


cdef str failure_of(ArrowInput rows, int code):
    """Returns the text of the stream's last error. If the error has no text, returns "error" and `code`, its errno."""
    cdef const char *message = NULL
    if rows.stream.get_last_error != NULL:
        message = rows.stream.get_last_error(&rows.stream)
    return f"error {code}" if message == NULL else (<bytes>message).decode("utf-8", "replace")


cdef str text_of(const char *text):
    return "" if text == NULL else (<bytes>text).decode("utf-8", "replace")


# Types

cdef int check_children(const ArrowSchema *schema, str what, int64_t most) except -1:
    """Raises ValueError unless a schema has a format and at most `most` children, each with a format."""
    cdef int64_t at
    if schema.format == NULL:
        raise ValueError(f"{what} has no Arrow type")
    if schema.n_children < 0 or schema.n_children > most or (schema.n_children and schema.children == NULL):
        raise ValueError(f"{what} has {schema.n_children} children, which is invalid")
    for at in range(schema.n_children):
        if schema.children[at] == NULL or schema.children[at].format == NULL:
            raise ValueError(f"a child of {what} has no Arrow type")
    return 0


cdef str format_of(const ArrowSchema *schema, str name):
    """Returns the type of a column as Arrow's format string.

    Raises TypeError for a dictionary-encoded (categorical) column.
    """
    if schema.dictionary != NULL:
        raise TypeError(f"the column {name} is dictionary-encoded; cast it to its values")
    return text_of(schema.format)


cdef object refusal(str name, str found, str expected):
    return TypeError(f"the column {name} has the Arrow type {found}; it must be {expected}")


cdef int read_bytes_type(const ArrowSchema *schema, BytesColumn *column, str name) except -1:
    found = format_of(schema, name)
    column.is_text = found in ("u", "U", "vu")
    column.width = 0
    if found == "n":
        column.layout = NO_LAYOUT
    elif found in ("z", "u"):
        column.layout = OFFSETS_32
    elif found in ("Z", "U"):
        column.layout = OFFSETS_64
    elif found in ("vz", "vu"):
        column.layout = VIEWS
    elif found.startswith("w:") and found[2:].isdecimal() and int(found[2:]) <= INT32_MAX:
        column.layout, column.width = FIXED_BYTES, int(found[2:])
    else:
        raise refusal(name, found, "binary or text")
    return 0


cdef int read_number_type(const ArrowSchema *schema, NumberColumn *column, str name) except -1:
    found = format_of(schema, name)
    column.multiplier = column.divisor = 1
    column.is_signed = True
    if found == "n":
        column.width = 0
    elif found in _INTEGERS:
        column.width, column.is_signed = _INTEGERS[found]
    elif name == "timestamp" and found[:2] == "ts" and found[2:3] in _UNITS and found[3:4] == ":":
        column.width = 8
        column.multiplier, column.divisor = _UNITS[found[2:3]]
    else:
        raise refusal(name, found, "a timestamp or an integer" if name == "timestamp" else "an integer")
    return 0


cdef int read_headers_type(const ArrowSchema *schema, HeadersColumn *column) except -1:
    expected = "a list of structs of key and value"
    found = format_of(schema, "headers")
    column.width = 0
    if found == "n":
        return 0
    if found not in ("+l", "+L", "+m"):
        raise refusal("headers", found, expected)
    check_children(schema, "the column headers", 1)
    if schema.n_children != 1 or format_of(schema.children[0], "headers") != "+s":
        raise refusal("headers", "list of another type", expected)
    cdef const ArrowSchema *pair = schema.children[0]
    check_children(pair, "the column headers", 2)
    if pair.n_children != 2 or (found != "+m" and (
            text_of(pair.children[0].name), text_of(pair.children[1].name)) != ("key", "value")):
        raise refusal("headers", "list of other structs", expected)
    read_bytes_type(pair.children[0], &column.name, "headers")
    read_bytes_type(pair.children[1], &column.content, "headers")
    column.width = 8 if found == "+L" else 4
    return 0


# Batches

cdef int check_array(const ArrowArray *array, int64_t buffers, int64_t children, int64_t rows, str what) except -1:
    """Raises ValueError unless an array has at least `rows` rows, and exactly these numbers of buffers and children."""
    cdef int64_t at
    if array == NULL:
        raise ValueError(f"{what} is missing in a batch")
    if array.length < 0 or array.offset < 0 or array.offset > MOST_ROWS - min(array.length, MOST_ROWS) or (
            array.length > MOST_ROWS):
        raise ValueError(f"{what} declares {array.length} rows from row {array.offset} on, which is invalid")
    if array.length < rows:
        raise ValueError(f"{what} has {array.length} rows where {rows} are needed")
    if array.n_buffers != buffers or (buffers and array.buffers == NULL):
        raise ValueError(f"{what} has {array.n_buffers} buffers instead of {buffers}")
    if array.n_children != children or (children and array.children == NULL):
        raise ValueError(f"{what} has {array.n_children} children instead of {children}")
    for at in range(children):
        if array.children[at] == NULL:
            raise ValueError(f"a child of {what} is missing in a batch")
    if buffers and array.null_count > 0 and array.buffers[0] == NULL:
        raise ValueError(f"{what} declares {array.null_count} nulls and has no validity bitmap")
    return 0


cdef int need_buffer(const void *buffer, bint is_needed, str what) except -1:
    if is_needed and buffer == NULL:
        raise ValueError(f"a buffer of {what} is missing")
    return 0


cdef int open_bytes(const ArrowArray *array, const ArrowArray *parent, BytesColumn *column, str what) except -1:
    """Sets the buffers of `column` to those of `array`, a child of `parent`.

    The first row of `column` is the row of `array` that belongs to the first row of `parent`. Raises ValueError, which
    names the column as `what`, if the array is invalid.
    """
    cdef int64_t rows = parent.length, buffers = 3
    if array != NULL and column.layout == VIEWS:
        buffers = max(array.n_buffers, 3)
        if buffers > INT32_MAX:
            raise ValueError(f"{what} has {buffers} buffers, which is invalid")
    elif column.layout == FIXED_BYTES:
        buffers = 2
    check_array(array, buffers, 0, parent.offset + rows, what)
    column.first = array.offset + parent.offset
    column.validity = <const uint8_t *>array.buffers[0]
    column.positions = column.data = NULL
    column.data_start = column.data_end = 0
    if column.layout == FIXED_BYTES:
        column.data = <const uint8_t *>array.buffers[1]
        need_buffer(column.data, rows and column.width, what)
        if column.width and column.first + rows > INT64_MAX // column.width:
            raise ValueError(f"{what} declares {column.first + rows} values of {column.width} bytes, which is invalid")
        return 0
    column.positions = <const uint8_t *>array.buffers[1]
    need_buffer(column.positions, rows > 0, what)
    if column.layout == VIEWS:
        column.view_count = buffers - 3
        column.view_buffers = array.buffers + 2
        column.view_sizes = <const uint8_t *>array.buffers[buffers - 1]
        need_buffer(column.view_sizes, column.view_count > 0, what)
        return 0
    column.data = <const uint8_t *>array.buffers[2]
    if rows:
        column.data_start = offset_at(column, column.first)
        column.data_end = offset_at(column, column.first + rows)
    if column.data_start < 0 or column.data_end < column.data_start:
        raise ValueError(f"the offsets of {what} are invalid: {column.data_start} to {column.data_end}")
    need_buffer(column.data, column.data_end > column.data_start, what)
    return 0


cdef int open_numbers(const ArrowArray *array, const ArrowArray *parent, NumberColumn *column, str what) except -1:
    check_array(array, 2, 0, parent.offset + parent.length, what)
    column.first = array.offset + parent.offset
    column.validity = <const uint8_t *>array.buffers[0]
    column.values = <const uint8_t *>array.buffers[1]
    need_buffer(column.values, parent.length > 0, what)
    return 0


cdef int open_headers(const ArrowArray *array, const ArrowArray *parent, HeadersColumn *column) except -1:
    cdef const ArrowArray *pairs
    check_array(array, 2, 1, parent.offset + parent.length, "the column headers")
    column.first = array.offset + parent.offset
    column.validity = <const uint8_t *>array.buffers[0]
    column.offsets = <const uint8_t *>array.buffers[1]
    need_buffer(column.offsets, parent.length > 0, "the column headers")
    pairs = array.children[0]
    check_array(pairs, 1, 2, pairs.length, "the pairs of the column headers")
    column.element_count, column.first_element = pairs.length, pairs.offset
    column.element_validity = <const uint8_t *>pairs.buffers[0]
    if column.name.layout:
        open_bytes(pairs.children[0], pairs, &column.name, "the keys of the column headers")
    if column.content.layout:
        open_bytes(pairs.children[1], pairs, &column.content, "the values of the column headers")
    return 0


# Rows

cdef inline bint is_valid(const uint8_t *validity, int64_t at) noexcept nogil:
    return validity == NULL or validity[at >> 3] >> (at & 7) & 1


cdef inline int64_t load_int64_at(const uint8_t *buffer, int64_t at) noexcept nogil:
    cdef int64_t number
    memcpy(&number, buffer + at * 8, 8)
    return number


cdef inline int32_t load_int32_at(const uint8_t *buffer, int64_t at) noexcept nogil:
    cdef int32_t number
    memcpy(&number, buffer + at * 4, 4)
    return number


cdef inline int64_t offset_at(const BytesColumn *column, int64_t at) noexcept nogil:
    return load_int64_at(column.positions, at) if column.layout == OFFSETS_64 else load_int32_at(column.positions, at)


cdef int read_view(const BytesColumn *column, int64_t at, const uint8_t **data, Py_ssize_t *size) noexcept nogil:
    """Sets the bytes of the value at index `at` of a column of views; returns ROW_OK or ROW_BROKEN.

    A view begins with the length of the value. The value itself follows if it is short; otherwise its place in a buffer
    follows.
    """
    cdef const uint8_t *view = column.positions + at * VIEW_WIDTH
    cdef int32_t length = load_int32_at(view, 0), index, offset
    if length < 0:
        return ROW_BROKEN
    size[0] = length
    if length <= INLINE_BYTES:
        data[0] = view + 4
        return ROW_OK
    index, offset = load_int32_at(view, 2), load_int32_at(view, 3)
    if index < 0 or index >= column.view_count or offset < 0 or column.view_buffers[index] == NULL or (
            load_int64_at(column.view_sizes, index) - offset < length):
        return ROW_BROKEN
    data[0] = <const uint8_t *>column.view_buffers[index] + offset
    return ROW_OK


cdef int read_bytes(const BytesColumn *column, int64_t row, const uint8_t **data, Py_ssize_t *size) noexcept nogil:
    cdef int64_t at = column.first + row, start, end
    data[0], size[0] = NULL, -1
    if column.layout == NO_LAYOUT or not is_valid(column.validity, at):
        return ROW_OK
    if column.layout == VIEWS:
        return read_view(column, at, data, size)
    if column.layout == FIXED_BYTES:
        data[0], size[0] = column.data + at * column.width, column.width
        return ROW_OK
    start, end = offset_at(column, at), offset_at(column, at + 1)
    if start < column.data_start or end < start or end > column.data_end:
        return ROW_BROKEN
    if end - start > INT32_MAX:
        return ROW_TOO_LARGE
    data[0], size[0] = column.data + start, end - start
    return ROW_OK


cdef int read_number(const NumberColumn *column, int64_t row, int64_t *number) noexcept nogil:
    cdef int64_t at = column.first + row, found = 0
    cdef int8_t byte = 0
    cdef int16_t short_number = 0
    cdef int32_t word = 0
    if column.width == 0 or not is_valid(column.validity, at):
        return ROW_NULL
    if column.width == 8:
        found = load_int64_at(column.values, at)
        if found < 0 and not column.is_signed:
            return ROW_TOO_LARGE
    elif column.width == 4:
        word = load_int32_at(column.values, at)
        found = <int64_t>word if column.is_signed else <int64_t><uint32_t>word
    elif column.width == 2:
        memcpy(&short_number, column.values + at * 2, 2)
        found = <int64_t>short_number if column.is_signed else <int64_t><uint16_t>short_number
    else:
        byte = <int8_t>column.values[at]
        found = <int64_t>byte if column.is_signed else <int64_t><uint8_t>byte
    if column.multiplier > 1 and (found > INT64_MAX // column.multiplier or found < -(INT64_MAX // column.multiplier)):
        return ROW_TOO_LARGE
    # Division in C rounds toward 0; a negative timestamp is refused by the caller and must stay negative.
    number[0] = -1 if found < 0 and column.divisor > 1 else found * column.multiplier // column.divisor
    return ROW_OK


cdef int read_headers(const HeadersColumn *column, int64_t row, int64_t *start, int64_t *end) noexcept nogil:
    cdef int64_t at = column.first + row, index
    start[0] = end[0] = -1
    if column.width == 0 or not is_valid(column.validity, at):
        return ROW_OK
    if column.width == 8:
        start[0], end[0] = load_int64_at(column.offsets, at), load_int64_at(column.offsets, at + 1)
    else:
        start[0], end[0] = load_int32_at(column.offsets, at), load_int32_at(column.offsets, at + 1)
    if start[0] < 0 or end[0] < start[0] or end[0] > column.element_count:
        return ROW_BROKEN
    if column.element_validity != NULL:
        for index in range(start[0], end[0]):
            if not is_valid(column.element_validity, column.first_element + index):
                return ROW_BROKEN
    return ROW_OK


cdef int check_status(int status, ArrowInput rows, int64_t row, str column) except -1:
    if status == ROW_BROKEN:
        raise ValueError(f"row {rows.rows_before + row} of the column {column} is invalid")
    if status == ROW_TOO_LARGE:
        raise ApiError(Error.MESSAGE_TOO_LARGE, f"Row {rows.rows_before + row} of the column {column} is too large")
    return 0
