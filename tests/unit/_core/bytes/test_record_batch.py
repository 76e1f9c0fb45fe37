"""Record batches: bytes that Apache Kafka wrote, and the limits of builder, view, scan and assignment."""

import pytest

from kafkapy._core.bytes.record_batch import (
    Record,
    RecordBatch,
    RecordBatchBuilder,
    assign_offsets,
    iterate_batches,
    scan_batches,
    validate_batches,
)
from kafkapy.errors import ApiError, Error
from tests.reference.record_batch import encode_record, wrap_batch

# The body of a batch that Apache Kafka 4.3.0 stored for three records k -> v, gzip, at offset 57.
KAFKA_GZIP_BODY = bytes.fromhex("1f8b0800907f016b02ff1360606060ca662a631000d230060b98010036b4dd6b1b000000")


def built(base_offset=0, count=2, **options):
    builder = RecordBatchBuilder(base_offset, **options)
    for index in range(count):
        builder.append(1000 + index, b"k", None, [("h", b"1"), ("n", None)])
    return builder.build()


def test_reads_gzip_as_stored_by_kafka():
    batch = RecordBatch(wrap_batch(KAFKA_GZIP_BODY, base_offset=57, attributes=1, count=3, last_offset_delta=2))
    assert [(record.offset, record.key, record.value) for record in batch] == [
        (57, b"k", b"v"),
        (58, b"k", b"v"),
        (59, b"k", b"v"),
    ]


def test_properties_of_a_control_batch():
    batch = RecordBatch(built(5, 1, is_control=True, is_transactional=True, producer_id=3, producer_epoch=4))
    assert (batch.is_control, batch.is_transactional, batch.has_delete_horizon) == (True, True, False)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (3, 4, -1, -1)
    assert (batch.base_offset, batch.next_offset, batch.timestamp_type, batch.compression) == (5, 6, 0, 0)
    assert list(batch) == [Record(5, 1000, b"k", None, (("h", b"1"), ("n", None)))]


def test_log_append_time_is_the_timestamp_of_every_record():
    assert [record.timestamp for record in RecordBatch(built(timestamp_type=1))] == [1001, 1001]


def test_builder_offsets_may_have_gaps_but_ascend():
    builder = RecordBatchBuilder(10)
    assert builder.append(1, b"a", b"1", offset=12) == 12
    assert builder.append(2, b"b", b"2") == 13
    with pytest.raises(ValueError, match="does not follow"):
        builder.append(3, b"c", b"3", offset=13)
    batch = RecordBatch(builder.build())
    assert [record.offset for record in batch] == [12, 13]
    assert (batch.last_offset_delta, batch.record_count, len(builder)) == (3, 2, 2)


def test_builder_refuses_empty_batches_and_bad_arguments():
    with pytest.raises(ValueError, match="at least one"):
        RecordBatchBuilder().build()
    with pytest.raises(ValueError, match="codec"):
        RecordBatchBuilder(compression=5)
    with pytest.raises(ValueError, match="not null"):
        RecordBatchBuilder().append(1, b"", b"", [(None, b"")])
    with pytest.raises(TypeError):
        RecordBatchBuilder().append(1, "text", b"")


def test_header_keys_that_are_not_utf8_survive():
    builder = RecordBatchBuilder()
    builder.append(1, None, b"v", [(b"\xff\xfe", b"x")])
    (record,) = RecordBatch(builder.build())
    again = RecordBatchBuilder()
    again.append(record.timestamp, record.key, record.value, record.headers)
    assert again.build() == builder.build()


def test_last_sequence_wraps_to_zero():
    assert RecordBatch(built(count=3, producer_id=1, producer_epoch=0, base_sequence=2**31 - 2)).last_sequence == 0


def test_view_refuses_what_is_not_a_whole_batch():
    data = built()
    for bad in (b"", data[:60], data[:-1], data[:16] + b"\x01" + data[17:]):
        with pytest.raises(ApiError) as caught:
            RecordBatch(bad)
        assert caught.value.error is Error.CORRUPT_MESSAGE
    with pytest.raises(IndexError):
        RecordBatch(data, len(data) + 1)


def test_damaged_records_are_refused_while_iterating():
    data = bytearray(built())
    data[70] ^= 0xFF
    with pytest.raises(ApiError) as caught:
        RecordBatch(data).ensure_valid()
    assert caught.value.error is Error.CORRUPT_MESSAGE
    for end in range(len(built()) - 61):
        body = built()[61 : 61 + end]
        with pytest.raises(ApiError):
            list(RecordBatch(wrap_batch(body, count=2, last_offset_delta=1)))
    with pytest.raises(ApiError):
        list(RecordBatch(wrap_batch(encode_record(0, 0, b"", b"") + b"\0", count=1)))


def test_decompression_is_bounded():
    builder = RecordBatchBuilder(compression=4)
    builder.append(1, None, bytes(1_000_000))
    with pytest.raises(ApiError, match="more than 1000 bytes"):
        list(RecordBatch(builder.build()).records(max_bytes=1000))
    with pytest.raises(ApiError, match="Failed to decompress"):
        list(RecordBatch(wrap_batch(b"garbage!", attributes=4)))


def test_iterate_batches_stops_at_an_incomplete_tail_and_raises_on_junk():
    data = built() + built(2)
    assert [batch.base_offset for batch in iterate_batches(data + data[:30])] == [0, 2]
    assert [batch.base_offset for batch in iterate_batches(memoryview(data))] == [0, 2]
    with pytest.raises(ApiError):
        list(iterate_batches(data + bytes(40)))


def test_scan_wants_ascending_offsets_and_stops_at_zeros():
    assert scan_batches(built(5) + built(0))[1] == len(built(5))
    assert scan_batches(built(5) + built(6))[1] == len(built(5))
    assert scan_batches(built(5) + built(9))[1] == 2 * len(built(5))
    assert scan_batches(built(5) + bytes(4096))[1] == len(built(5))
    assert scan_batches(b"") == ([], 0)
    damaged = bytearray(built())
    damaged[-1] ^= 1
    assert scan_batches(damaged)[1] == 0
    assert scan_batches(damaged, check_crc=False)[1] == len(damaged)


@pytest.mark.parametrize("compression", [0, 1])
def test_a_compacted_topic_takes_an_empty_key_but_no_null(compression):
    limits = {
        "max_message_bytes": 1000,
        "wall_ms": 0,
        "stamps_append_time": False,
        "before_max_ms": 2**62,
        "after_max_ms": 2**62,
        "compacted": True,
    }

    def batch_of(*keys):
        builder = RecordBatchBuilder(0, compression=compression)
        for key in keys:
            builder.append(1000, key, b"v")
        return builder.build()

    (summary,) = validate_batches(batch_of(b"", b"k"), **limits)
    assert summary.record_count == 2
    with pytest.raises(ApiError) as raised:
        validate_batches(batch_of(b"", None), **limits)
    assert raised.value.error == Error.INVALID_RECORD
    assert [index for index, _ in raised.value.record_errors] == [1]


def test_assign_refuses_what_it_cannot_write():
    data = bytearray(built())
    summaries = validate_batches(
        data,
        max_message_bytes=1000,
        wall_ms=0,
        stamps_append_time=False,
        before_max_ms=0,
        after_max_ms=2**62,
        compacted=False,
    )
    with pytest.raises(ValueError, match="does not lie"):
        assign_offsets(data[:20], summaries, 0, 0)
    with pytest.raises(BufferError):
        assign_offsets(bytes(data), summaries, 0, 0)


def test_records_with_the_time_of_their_append_have_the_timestamp_of_the_header():
    builder = RecordBatchBuilder(timestamp_type=1)
    for timestamp in (1000, 3000, 2000):
        builder.append(timestamp, None, b"value")
    (summary,) = validate_batches(
        builder.build(),
        max_message_bytes=1000,
        wall_ms=5000,
        stamps_append_time=False,
        before_max_ms=2500,
        after_max_ms=0,
        compacted=False,
        from_client=False,
    )
    assert summary.max_timestamp == 3000
