# cython: language_level=3
"""Reader and Writer of the protocol's types: big-endian numbers, and strings, bytes and arrays with their lengths.

A Reader decodes the fields of a request, but returns record bytes as a slice of the received bytes. A length has two
encodings: plain (int16 for a string, int32 otherwise, -1 is null) and compact (KIP-482: an unsigned varint of
length + 1, 0 is null).

    tagged fields:  count | tag | size | size bytes | tag | size | ...        all unsigned varints, tags ascending

A Reader trusts no input: it compares each length and count with the remaining bytes before it allocates anything, and
limits the number of elements of one message (`MAX_ELEMENTS`), because an object in memory takes many times its bytes on
the wire. Invalid input raises ProtocolViolation. A Reader pins its buffer until it is closed. A Writer owns a growing
buffer; large record bytes and file ranges are separate chunks that are never copied. Neither class is thread-safe.
"""
cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_CheckBuffer, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_Realloc
from libc.string cimport memcpy, memmove

from kafkapy._core.bytes.primitives cimport (
    load_int16,
    load_int32,
    load_int64,
    load_uint32,
    read_unsigned_varint as load_unsigned_varint,
    size_of_unsigned_varlong,
    store_int16,
    store_int32,
    store_int64,
    store_uint32,
    write_unsigned_varlong,
)

from kafkapy.errors import ProtocolViolation

cdef extern from "Python.h":
    str PyUnicode_DecodeUTF8(const char *text, Py_ssize_t size, const char *errors)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL

# The limit for all arrays and tag sections of one message together.
MAX_ELEMENTS = 2_000_000
cdef Py_ssize_t DEFAULT_ELEMENTS = MAX_ELEMENTS
# Kafka's own limit for strings, in the compact encoding too.
cdef Py_ssize_t MAX_STRING = 0x7FFF
# Record bytes of this size or more become a separate chunk; copying fewer bytes costs less than sending another piece.
cdef Py_ssize_t OWN_CHUNK_BYTES = 1024


class EncodeError(ValueError):
    """The error that a message cannot be written in the requested version.

    The version does not exist or lacks a field that is set, a field that must not be null is null, or a value is
    outside of the range of its type.
    """


class AbsentFieldError(EncodeError):
    """The error that a message has a value in a field that the requested version of the message does not have."""


@cython.final
@cython.freelist(8)
@cython.no_gc  # excluded from garbage collection, which could release the memoryview before its buffer
cdef class Reader:
    """Reads the types of the protocol from `buffer[pos:end]`. Not thread-safe.

    Every method raises ProtocolViolation if the bytes end early or are not valid for the requested type.
    """

    def __cinit__(self, buffer, Py_ssize_t pos=0, end=None, *, max_elements=None):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.has_view = True
        self.source = buffer
        self.buf = <const uint8_t *>self.view.buf
        self.end = self.view.len if end is None else <Py_ssize_t>end
        self.pos = pos
        self.elements_left = DEFAULT_ELEMENTS if max_elements is None else <Py_ssize_t>max_elements
        if not 0 <= pos <= self.end <= self.view.len:
            raise ValueError(f"range {pos}..{self.end} is not within a buffer of {self.view.len} bytes")

    def __dealloc__(self):
        if self.has_view:
            PyBuffer_Release(&self.view)

    @property
    def remaining(self):
        return self.end - self.pos

    cdef int need(self, Py_ssize_t size) except -1:
        if size > self.end - self.pos:
            raise ProtocolViolation(f"{size} bytes expected at {self.pos}, {self.end - self.pos} are left")
        return 0

    cdef int claim(self, Py_ssize_t count, Py_ssize_t element_size) except -1:
        if count > (self.end - self.pos) // element_size:
            raise ProtocolViolation(f"{count} elements announced at {self.pos}, {self.end - self.pos} bytes are left")
        if count > self.elements_left:
            raise ProtocolViolation(f"{count} elements announced at {self.pos}, more than one message may hold")
        self.elements_left -= count
        return 0

    cdef Py_ssize_t read_length(self, bint compact, bint is_string) except -2:
        """Reads the length of a string or of bytes; returns it, or -1 for null.

        If `compact`, the length is a varint. Raises ProtocolViolation if fewer bytes are left, or a string is too long.
        """
        cdef Py_ssize_t length
        if compact:
            length = <Py_ssize_t>self.read_unsigned_varint() - 1
        elif is_string:
            length = self.read_int16()
        else:
            length = self.read_int32()
        if length < -1 or length > self.end - self.pos or (is_string and length > MAX_STRING):
            raise ProtocolViolation(f"length {length} at {self.pos}, {self.end - self.pos} bytes are left")
        return length

    cdef Py_ssize_t read_count(self, bint compact, bint nullable, Py_ssize_t element_size) except -2:
        """Reads the number of elements of an array; returns it, or -1 for null.

        Raises ProtocolViolation for null unless `nullable` is set, and if the elements, of at least `element_size`
        bytes each, do not fit the remaining bytes.
        """
        cdef Py_ssize_t count = self.read_length(compact, False)
        if count > 0:
            self.claim(count, element_size)
        elif count < 0 and not nullable:
            self.refuse_null("an array")
        return count

    cdef int refuse_null(self, str what) except -1:
        raise ProtocolViolation(f"null before {self.pos} for {what} that cannot be null")

    cpdef int8_t read_int8(self) except? -1:
        self.need(1)
        self.pos += 1
        return <int8_t>self.buf[self.pos - 1]

    cpdef bint read_bool(self) except? -1:
        return self.read_int8() != 0

    cpdef int16_t read_int16(self) except? -1:
        self.need(2)
        self.pos += 2
        return load_int16(self.buf + self.pos - 2)

    cpdef uint16_t read_uint16(self) except? 65535:
        return <uint16_t>self.read_int16()

    cpdef int32_t read_int32(self) except? -1:
        self.need(4)
        self.pos += 4
        return load_int32(self.buf + self.pos - 4)

    cpdef uint32_t read_uint32(self) except? 4294967295:
        self.need(4)
        self.pos += 4
        return load_uint32(self.buf + self.pos - 4)

    cpdef int64_t read_int64(self) except? -1:
        self.need(8)
        self.pos += 8
        return load_int64(self.buf + self.pos - 8)

    cpdef double read_float64(self) except? -1:
        cdef int64_t bits = self.read_int64()
        cdef double value
        memcpy(&value, &bits, 8)
        return value

    cpdef uint32_t read_unsigned_varint(self) except? 4294967295:
        cdef uint32_t value = 0
        cdef Py_ssize_t pos
        if self.pos < self.end and self.buf[self.pos] < 0x80:
            self.pos += 1
            return self.buf[self.pos - 1]
        pos = load_unsigned_varint(self.buf, self.pos, self.end, &value)
        if pos < 0:
            raise ProtocolViolation(f"unsigned varint at {self.pos} is cut short or longer than 32 bits")
        self.pos = pos
        return value

    cpdef bytes read_uuid(self):
        self.need(16)
        self.pos += 16
        return PyBytes_FromStringAndSize(<const char *>self.buf + self.pos - 16, 16)

    cpdef str read_string(self, bint compact):
        text = self.read_nullable_string(compact)
        if text is None:
            self.refuse_null("a string")
        return text

    cpdef str read_nullable_string(self, bint compact):
        cdef Py_ssize_t length = self.read_length(compact, True)
        if length < 0:
            return None
        self.pos += length
        try:
            return PyUnicode_DecodeUTF8(<const char *>self.buf + self.pos - length, length, NULL)
        except UnicodeDecodeError as error:
            raise ProtocolViolation(f"string before {self.pos} is not UTF-8: {error}") from None

    cpdef bytes read_bytes(self, bint compact):
        value = self.read_nullable_bytes(compact)
        if value is None:
            self.refuse_null("bytes")
        return value

    cpdef bytes read_nullable_bytes(self, bint compact):
        cdef Py_ssize_t length = self.read_length(compact, False)
        if length < 0:
            return None
        self.pos += length
        return PyBytes_FromStringAndSize(<const char *>self.buf + self.pos - length, length)

    cpdef object read_records(self, bint compact):
        records = self.read_nullable_records(compact)
        if records is None:
            self.refuse_null("records")
        return records

    cpdef object read_nullable_records(self, bint compact):
        """Reads record bytes; returns a memoryview of this part of the buffer, which it *pins*, or None for null."""
        cdef Py_ssize_t length = self.read_length(compact, False)
        cdef Py_ssize_t pos = self.pos
        if length < 0:
            return None
        self.pos = pos + length
        return memoryview(self.source)[pos : pos + length]

    cpdef Py_ssize_t read_array_length(self, bint compact) except -2:
        return self.read_count(compact, False, 1)

    cpdef Py_ssize_t read_nullable_array_length(self, bint compact) except -2:
        """Reads the number of elements of an array; returns it, or -1 for null.

        Raises ProtocolViolation if fewer bytes than elements are left.
        """
        return self.read_count(compact, True, 1)

    cpdef list read_int8_array(self, bint compact, bint nullable):
        cdef Py_ssize_t count = self.read_count(compact, nullable, 1)
        return None if count < 0 else [self.read_int8() for _ in range(count)]

    cpdef list read_int16_array(self, bint compact, bint nullable):
        cdef Py_ssize_t count = self.read_count(compact, nullable, 2)
        return None if count < 0 else [self.read_int16() for _ in range(count)]

    cpdef list read_int32_array(self, bint compact, bint nullable):
        cdef Py_ssize_t count = self.read_count(compact, nullable, 4)
        return None if count < 0 else [self.read_int32() for _ in range(count)]

    cpdef list read_int64_array(self, bint compact, bint nullable):
        cdef Py_ssize_t count = self.read_count(compact, nullable, 8)
        return None if count < 0 else [self.read_int64() for _ in range(count)]

    cpdef list read_uuid_array(self, bint compact, bint nullable):
        cdef Py_ssize_t count = self.read_count(compact, nullable, 16)
        return None if count < 0 else [self.read_uuid() for _ in range(count)]

    cpdef list read_string_array(self, bint compact, bint nullable):
        cdef Py_ssize_t count = self.read_count(compact, nullable, 1 if compact else 2)
        return None if count < 0 else [self.read_string(compact) for _ in range(count)]

    cpdef bint read_present(self) except? -1:
        """Reads the byte before a nullable struct; returns False if the struct is null."""
        return self.read_int8() >= 0

    cpdef bint read_tagged_present(self) except? -1:
        """Reads the varint before a nullable struct in a tagged field; returns False if the struct is null."""
        return self.read_unsigned_varint() != 0

    cpdef Py_ssize_t read_tag_count(self) except -1:
        cdef Py_ssize_t count = self.read_unsigned_varint()
        if count:
            self.claim(count, 2)
        return count

    cpdef uint32_t read_tag(self) except? 4294967295:
        return self.read_unsigned_varint()

    cpdef Py_ssize_t read_tag_end(self) except -1:
        """Reads the size of a tagged field and returns the position at which it ends."""
        cdef Py_ssize_t size = self.read_unsigned_varint()
        self.need(size)
        return self.pos + size

    cpdef int finish_tag(self, Py_ssize_t end) except -1:
        if self.pos != end:
            raise ProtocolViolation(f"tagged field should end at {end} and ends at {self.pos}")
        return 0

    cpdef bytes read_raw(self, Py_ssize_t end):
        """Returns the bytes from the reader's position up to the position `end`, and moves the reader to `end`."""
        cdef Py_ssize_t pos = self.pos
        if end < pos or end > self.end:
            raise ProtocolViolation(f"cannot read from {pos} to {end}, the message ends at {self.end}")
        self.pos = end
        return PyBytes_FromStringAndSize(<const char *>self.buf + pos, end - pos)

    cpdef tuple read_unknown_tags(self):
        """Reads a tag section without any known field; returns its fields as a tuple of pairs (tag, bytes)."""
        cdef Py_ssize_t count = self.read_tag_count()
        cdef list unknown
        if count == 0:
            return ()
        unknown = []
        for _ in range(count):
            tag = self.read_tag()
            unknown.append((tag, self.read_raw(self.read_tag_end())))
        return tuple(unknown)

    cpdef int finish(self) except -1:
        """Raises ProtocolViolation unless everything up to the reader's end has been read."""
        if self.pos != self.end:
            raise ProtocolViolation(f"{self.end - self.pos} bytes are left over at {self.pos}")
        return 0


@cython.final
@cython.freelist(8)
cdef class Writer:
    """Writes the types of the protocol one after another. Not thread-safe. `capacity` is the initial size in bytes.

    A method raises EncodeError, OverflowError or TypeError for a value that its type cannot carry.
    """

    def __cinit__(self, Py_ssize_t capacity=256):
        self.capacity = max(capacity, 16)
        self.buf = <uint8_t *>PyMem_Malloc(self.capacity)
        if self.buf == NULL:
            raise MemoryError()
        self.size = 0
        self.cuts = None

    def __dealloc__(self):
        PyMem_Free(self.buf)

    cdef uint8_t *reserve(self, Py_ssize_t size) except NULL:
        """Returns a pointer to space for `size` more bytes, which count as written; the caller fills them.

        The pointer is valid until the next call. Raises MemoryError.
        """
        cdef Py_ssize_t at = self.size
        cdef Py_ssize_t capacity
        cdef uint8_t *grown
        if size > self.capacity - at:
            capacity = max(self.capacity * 2, at + size)
            grown = <uint8_t *>PyMem_Realloc(self.buf, capacity)
            if grown == NULL:
                raise MemoryError()
            self.buf = grown
            self.capacity = capacity
        self.size = at + size
        return self.buf + at

    cdef int write_length(self, Py_ssize_t length, bint compact, bint is_string) except -1:
        """Writes the length of a string or of bytes; -1 means null. `compact` selects a varint."""
        if length > 0x7FFFFFFE or (is_string and length > MAX_STRING):
            raise EncodeError(f"{length} bytes or elements are too many for their type")
        if compact:
            self.write_unsigned_varint(<uint32_t>(length + 1))
        elif is_string:
            store_int16(self.reserve(2), <int16_t>length)
        else:
            store_int32(self.reserve(4), <int32_t>length)
        return 0

    cdef int copy(self, value, Py_ssize_t size) except -1:
        cdef Py_buffer view
        PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)
        try:
            if view.len != size:
                raise EncodeError(f"{view.len} bytes where {size} were announced")
            if size:
                memcpy(self.reserve(size), view.buf, size)
        finally:
            PyBuffer_Release(&view)
        return 0

    cpdef int write_int8(self, int8_t value) except -1:
        self.reserve(1)[0] = <uint8_t>value
        return 0

    cpdef int write_bool(self, bint value) except -1:
        self.reserve(1)[0] = 1 if value else 0
        return 0

    cpdef int write_int16(self, int16_t value) except -1:
        store_int16(self.reserve(2), value)
        return 0

    cpdef int write_uint16(self, uint16_t value) except -1:
        store_int16(self.reserve(2), <int16_t>value)
        return 0

    cpdef int write_int32(self, int32_t value) except -1:
        store_int32(self.reserve(4), value)
        return 0

    cpdef int write_uint32(self, uint32_t value) except -1:
        store_uint32(self.reserve(4), value)
        return 0

    cpdef int write_int64(self, int64_t value) except -1:
        store_int64(self.reserve(8), value)
        return 0

    cpdef int write_float64(self, double value) except -1:
        cdef int64_t bits
        memcpy(&bits, &value, 8)
        store_int64(self.reserve(8), bits)
        return 0

    cpdef int write_unsigned_varint(self, uint32_t value) except -1:
        cdef uint8_t *at
        if value < 0x80:
            self.reserve(1)[0] = <uint8_t>value
        else:
            at = self.reserve(size_of_unsigned_varlong(value))
            write_unsigned_varlong(at, 0, value)
        return 0

    cpdef int write_raw(self, value) except -1:
        """Writes a bytes-like object without a length."""
        return self.copy(value, len(value))

    cpdef int write_uuid(self, value) except -1:
        return self.copy(value, 16)

    cpdef int write_string(self, str value, bint compact) except -1:
        if value is None:
            raise EncodeError("null for a string that cannot be null")
        return self.write_nullable_string(value, compact)

    cpdef int write_nullable_string(self, str value, bint compact) except -1:
        cdef Py_ssize_t length
        cdef const char *text
        if value is None:
            return self.write_length(-1, compact, True)
        text = PyUnicode_AsUTF8AndSize(value, &length)
        self.write_length(length, compact, True)
        if length:
            memcpy(self.reserve(length), text, length)
        return 0

    cpdef int write_bytes(self, value, bint compact) except -1:
        if value is None:
            raise EncodeError("null for bytes that cannot be null")
        return self.write_nullable_bytes(value, compact)

    cpdef int write_nullable_bytes(self, value, bint compact) except -1:
        cdef Py_ssize_t length
        if value is None:
            return self.write_length(-1, compact, False)
        length = len(value)
        self.write_length(length, compact, False)
        return self.copy(value, length)

    cpdef int write_records(self, value, bint compact) except -1:
        if value is None:
            raise EncodeError("null for records that cannot be null")
        return self.write_nullable_records(value, compact)

    cpdef int write_nullable_records(self, value, bint compact) except -1:
        """Writes the length and the record bytes, a bytes-like object or a file range; None is written as null.

        A file range is any object with a length and `read()`. Large record bytes and file ranges are not copied. The
        writer and the result of `chunks` refer to them, so that they are not freed as long as one of the two exists.
        """
        cdef Py_ssize_t length
        if value is None:
            return self.write_length(-1, compact, False)
        length = len(value)
        self.write_length(length, compact, False)
        if length < OWN_CHUNK_BYTES and PyObject_CheckBuffer(value):
            return self.copy(value, length)
        if self.cuts is None:
            self.cuts = []
        self.cuts.append((self.size, value))
        return 0

    cpdef int write_array_length(self, elements, bint compact) except -1:
        if elements is None:
            raise EncodeError("null for an array that cannot be null")
        return self.write_length(len(elements), compact, False)

    cpdef int write_nullable_array_length(self, elements, bint compact) except -1:
        return self.write_length(-1 if elements is None else len(elements), compact, False)

    cpdef int write_int8_array(self, elements, bint compact, bint nullable) except -1:
        if not self.begin_array(elements, compact, nullable):
            return 0
        for element in elements:
            self.write_int8(element)
        return 0

    cpdef int write_int16_array(self, elements, bint compact, bint nullable) except -1:
        if not self.begin_array(elements, compact, nullable):
            return 0
        for element in elements:
            self.write_int16(element)
        return 0

    cpdef int write_int32_array(self, elements, bint compact, bint nullable) except -1:
        if not self.begin_array(elements, compact, nullable):
            return 0
        for element in elements:
            self.write_int32(element)
        return 0

    cpdef int write_int64_array(self, elements, bint compact, bint nullable) except -1:
        if not self.begin_array(elements, compact, nullable):
            return 0
        for element in elements:
            self.write_int64(element)
        return 0

    cpdef int write_uuid_array(self, elements, bint compact, bint nullable) except -1:
        if not self.begin_array(elements, compact, nullable):
            return 0
        for element in elements:
            self.write_uuid(element)
        return 0

    cpdef int write_string_array(self, elements, bint compact, bint nullable) except -1:
        if not self.begin_array(elements, compact, nullable):
            return 0
        for element in elements:
            self.write_string(element, compact)
        return 0

    cdef bint begin_array(self, elements, bint compact, bint nullable) except -1:
        """Writes the number of elements, or null; returns False for null, which has no elements to write."""
        if elements is None and nullable:
            self.write_length(-1, compact, False)
            return False
        self.write_array_length(elements, compact)
        return True

    cpdef int write_present(self, value) except -1:
        """Writes the byte before a nullable struct, which is -1 if `value` is None, otherwise 1."""
        return self.write_int8(-1 if value is None else 1)

    cpdef int write_tagged_present(self, value) except -1:
        """Writes the varint before a nullable struct in a tagged field: 0 if `value` is None, otherwise 1."""
        return self.write_unsigned_varint(0 if value is None else 1)

    cpdef Py_ssize_t begin_tag(self, uint32_t tag) except -1:
        """Starts a tagged field; returns the position of its size, for `end_tag`."""
        self.write_unsigned_varint(tag)
        self.write_int8(0)
        return self.size - 1

    cpdef int end_tag(self, Py_ssize_t mark) except -1:
        """Writes the size of the tagged field that `begin_tag` started; `mark` is its result.

        A tagged field never contains record bytes.
        """
        cdef Py_ssize_t size = self.size - mark - 1
        cdef int width = size_of_unsigned_varlong(size)
        if width > 1:
            self.reserve(width - 1)
            memmove(self.buf + mark + width, self.buf + mark + 1, size)
        write_unsigned_varlong(self.buf, mark, size)
        return 0

    cpdef Py_ssize_t write_unknown_tags_below(self, unknown, Py_ssize_t index, int64_t below) except -1:
        """Writes the unknown tagged fields that precede the known field with the tag `below`, since tags ascend.

        `unknown` has pairs (tag, bytes) in ascending order; writes those from the index `index` on whose tag is less
        than `below`. Returns the index of the first field that was not written.
        Raises EncodeError if a field has the tag `below`, which is that of a known field.
        """
        cdef int64_t number
        cdef Py_ssize_t total = len(unknown)
        while index < total:
            tag, value = unknown[index]
            number = tag
            if number == below:
                raise EncodeError(f"tag {number} is a known field and cannot be given as an unknown one")
            if number > below:
                break
            self.write_unsigned_varint(tag)
            self.write_unsigned_varint(len(value))
            self.write_raw(value)
            index += 1
        return index

    cpdef int write_unknown_tags(self, unknown) except -1:
        """Writes a tag section with the fields in `unknown`, pairs (tag, bytes) in ascending order of the tags."""
        self.write_unsigned_varint(len(unknown))
        if unknown:
            self.write_unknown_tags_below(unknown, 0, <int64_t>1 << 32)
        return 0

    cpdef bytes getvalue(self):
        """Returns everything that was written as one bytes object; copies record bytes and reads file ranges."""
        if self.cuts is None:
            return PyBytes_FromStringAndSize(<const char *>self.buf, self.size)
        return b"".join([chunk if PyObject_CheckBuffer(chunk) else chunk.read() for chunk in self.chunks()])

    cpdef list chunks(self):
        """Returns everything that was written as a list of chunks, in order.

        The chunks are bytes objects, and the large record bytes and file ranges as they were passed to the writer.
        """
        cdef Py_ssize_t start = 0
        cdef Py_ssize_t position
        cdef list pieces = []
        for position, chunk in self.cuts or ():
            if position > start:
                pieces.append(PyBytes_FromStringAndSize(<const char *>self.buf + start, position - start))
            if len(chunk):
                pieces.append(chunk)
            start = position
        if self.size > start:
            pieces.append(PyBytes_FromStringAndSize(<const char *>self.buf + start, self.size - start))
        return pieces
