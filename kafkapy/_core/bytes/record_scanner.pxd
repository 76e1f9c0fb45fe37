"""Checks the records of a batch, in one piece or as a stream of decompressed chunks, without storing them.

    record: length varint | attributes int8 | timestamp delta varlong | offset delta varint
            | key length varint, key | value length varint, value | header count varint
            | per header: key length varint, key, value length varint, value        (-1: null; a header key is never)
"""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint64_t


cdef enum:
    RECORDS_OK = 0
    RECORDS_CUT_SHORT = 1                # the bytes end before `count` records
    RECORDS_LEFT_OVER = 2                # bytes follow the last record
    RECORD_BAD_LENGTH = 3                # the varint of a record's length is too long
    RECORD_MALFORMED = 4                 # the fields do not fill the record exactly, or are impossible
    RECORD_BAD_OFFSET_DELTA = 5          # not 0, 1, 2, ...

# Faults of well-formed records; the batch is still scanned to its end.
cdef enum:
    KEY_MISSING = 1
    TIMESTAMP_OUT_OF_RANGE = 2
    TIMESTAMP_TYPE_FORBIDDEN = 3

    RECORD_ERRORS_KEPT = 256

cdef struct RecordError:
    int32_t index
    int kind
    int64_t timestamp

cdef struct RecordCheck:
    int32_t count                        # in: the number of records
    int64_t base_timestamp               # in
    bint has_log_append_time             # in: whether all records have the timestamp of the next field
    int64_t log_append_time              # in
    bint keys_required                   # in: the topic is compacted
    bint timestamps_checked              # in: the topic uses the producers' timestamps
    int64_t lowest_timestamp             # in
    int64_t highest_timestamp            # in
    int64_t max_timestamp                # out: at least -1
    int32_t index_of_max_timestamp       # out: of the first record with the largest timestamp; -1 if none is above -1
    int64_t error_count                  # out: the number of records with a fault
    int64_t timestamp_error_count        # out: the number of records with a faulty timestamp
    RecordError errors[RECORD_ERRORS_KEPT]

cdef struct RecordStream:
    RecordCheck *check
    int state
    int32_t index                        # complete records seen
    int64_t left                         # bytes of the current record still to come
    int64_t skip                         # bytes of a key or value to skip
    int32_t headers_left
    int64_t timestamp
    uint64_t varint
    int shift


# Checks all records of `buf[pos:end]`. Returns a RECORDS_ or RECORD_ status; faults of single records are in `check`.
cdef int check_records(const uint8_t *buf, Py_ssize_t pos, Py_ssize_t end, RecordCheck *check) noexcept nogil
cdef void start_records(RecordStream *stream, RecordCheck *check) noexcept nogil
# Does the same for a stream: any number of chunks, then the end. A status other than RECORDS_OK is final.
cdef int feed_records(RecordStream *stream, const uint8_t *chunk, Py_ssize_t length) noexcept nogil
cdef int finish_records(RecordStream *stream) noexcept nogil
