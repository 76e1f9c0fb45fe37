"""Reader and Writer of the protocol's types; see `wire.pyx` for the format."""
from cpython.buffer cimport Py_buffer
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t


cdef class Reader:
    cdef Py_buffer view
    cdef bint has_view                  # `view` is acquired and must be released
    cdef const uint8_t *buf             # first byte of the buffer, valid while `is_open`
    cdef readonly Py_ssize_t pos        # next byte to read, pos <= end
    cdef readonly Py_ssize_t end        # end of the bytes that may be read
    cdef object source                  # the buffer itself, which record slices pin
    cdef Py_ssize_t elements_left       # limit of the array elements and tagged fields that are still allowed

    cdef int need(self, Py_ssize_t size) except -1
    cdef int claim(self, Py_ssize_t count, Py_ssize_t element_size) except -1
    cdef Py_ssize_t read_length(self, bint compact, bint is_string) except -2
    cdef Py_ssize_t read_count(self, bint compact, bint nullable, Py_ssize_t element_size) except -2
    cdef int refuse_null(self, str what) except -1
    cpdef int8_t read_int8(self) except? -1
    cpdef bint read_bool(self) except? -1
    cpdef int16_t read_int16(self) except? -1
    cpdef uint16_t read_uint16(self) except? 65535
    cpdef int32_t read_int32(self) except? -1
    cpdef uint32_t read_uint32(self) except? 4294967295
    cpdef int64_t read_int64(self) except? -1
    cpdef double read_float64(self) except? -1
    cpdef uint32_t read_unsigned_varint(self) except? 4294967295
    cpdef bytes read_uuid(self)
    cpdef str read_string(self, bint compact)
    cpdef str read_nullable_string(self, bint compact)
    cpdef bytes read_bytes(self, bint compact)
    cpdef bytes read_nullable_bytes(self, bint compact)
    cpdef object read_records(self, bint compact)
    cpdef object read_nullable_records(self, bint compact)
    cpdef Py_ssize_t read_array_length(self, bint compact) except -2
    cpdef Py_ssize_t read_nullable_array_length(self, bint compact) except -2
    cpdef list read_int8_array(self, bint compact, bint nullable)
    cpdef list read_int16_array(self, bint compact, bint nullable)
    cpdef list read_int32_array(self, bint compact, bint nullable)
    cpdef list read_int64_array(self, bint compact, bint nullable)
    cpdef list read_uuid_array(self, bint compact, bint nullable)
    cpdef list read_string_array(self, bint compact, bint nullable)
    cpdef bint read_present(self) except? -1
    cpdef bint read_tagged_present(self) except? -1
    cpdef Py_ssize_t read_tag_count(self) except -1
    cpdef uint32_t read_tag(self) except? 4294967295
    cpdef Py_ssize_t read_tag_end(self) except -1
    cpdef int finish_tag(self, Py_ssize_t end) except -1
    cpdef bytes read_raw(self, Py_ssize_t end)
    cpdef tuple read_unknown_tags(self)
    cpdef int finish(self) except -1


cdef class Writer:
    cdef uint8_t *buf                   # owned
    cdef readonly Py_ssize_t size       # bytes written so far, without the separate chunks
    cdef Py_ssize_t capacity            # bytes allocated, size <= capacity
    cdef list cuts                      # (position in buf, object) of each separate chunk; None until the first

    cdef uint8_t *reserve(self, Py_ssize_t size) except NULL
    cdef int write_length(self, Py_ssize_t length, bint compact, bint is_string) except -1
    cdef int copy(self, value, Py_ssize_t size) except -1
    cdef bint begin_array(self, elements, bint compact, bint nullable) except -1
    cpdef int write_int8(self, int8_t value) except -1
    cpdef int write_bool(self, bint value) except -1
    cpdef int write_int16(self, int16_t value) except -1
    cpdef int write_uint16(self, uint16_t value) except -1
    cpdef int write_int32(self, int32_t value) except -1
    cpdef int write_uint32(self, uint32_t value) except -1
    cpdef int write_int64(self, int64_t value) except -1
    cpdef int write_float64(self, double value) except -1
    cpdef int write_unsigned_varint(self, uint32_t value) except -1
    cpdef int write_raw(self, value) except -1
    cpdef int write_uuid(self, value) except -1
    cpdef int write_string(self, str value, bint compact) except -1
    cpdef int write_nullable_string(self, str value, bint compact) except -1
    cpdef int write_bytes(self, value, bint compact) except -1
    cpdef int write_nullable_bytes(self, value, bint compact) except -1
    cpdef int write_records(self, value, bint compact) except -1
    cpdef int write_nullable_records(self, value, bint compact) except -1
    cpdef int write_array_length(self, elements, bint compact) except -1
    cpdef int write_nullable_array_length(self, elements, bint compact) except -1
    cpdef int write_int8_array(self, elements, bint compact, bint nullable) except -1
    cpdef int write_int16_array(self, elements, bint compact, bint nullable) except -1
    cpdef int write_int32_array(self, elements, bint compact, bint nullable) except -1
    cpdef int write_int64_array(self, elements, bint compact, bint nullable) except -1
    cpdef int write_uuid_array(self, elements, bint compact, bint nullable) except -1
    cpdef int write_string_array(self, elements, bint compact, bint nullable) except -1
    cpdef int write_present(self, value) except -1
    cpdef int write_tagged_present(self, value) except -1
    cpdef Py_ssize_t begin_tag(self, uint32_t tag) except -1
    cpdef int end_tag(self, Py_ssize_t mark) except -1
    cpdef Py_ssize_t write_unknown_tags_below(self, unknown, Py_ssize_t index, int64_t below) except -1
    cpdef int write_unknown_tags(self, unknown) except -1
    cpdef bytes getvalue(self)
    cpdef list chunks(self)
