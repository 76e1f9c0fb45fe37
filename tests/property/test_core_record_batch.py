"""Building, reading, validating and assigning record batches agree with the slow reference, in every codec."""

import zlib
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.compression import compress
from kafkapy._core.bytes.record_batch import (
    RecordBatch,
    RecordBatchBuilder,
    assign_offsets,
    iterate_batches,
    scan_batches,
    validate_batches,
)
from kafkapy.errors import ApiError
from tests.reference.record_batch import (
    PlainRecord,
    decode_records,
    encode_batch,
    encode_record,
    wrap_batch,
)

TIMESTAMPS = st.one_of(st.integers(-1, 10), st.integers(0, 2**41), st.sampled_from([2**61, -(2**61)]))
CONTENT = st.one_of(st.none(), st.binary(max_size=20), st.just(b"x" * 300))
NAMES = st.text(st.characters(codec="utf-8"), max_size=5)
RECORDS = st.lists(
    st.tuples(TIMESTAMPS, CONTENT, CONTENT, st.lists(st.tuples(NAMES, CONTENT), max_size=3)), min_size=1, max_size=8
)
LIMITS = {
    "max_message_bytes": 2**31 - 1,
    "wall_ms": 0,
    "stamps_append_time": False,
    "before_max_ms": 2**63 - 1,
    "after_max_ms": 2**63 - 1,
    "compacted": False,
}


def plain(records, base_offset=0):
    return [
        PlainRecord(base_offset + index, timestamp, key, value, tuple(headers))
        for index, (timestamp, key, value, headers) in enumerate(records)
    ]


@settings(max_examples=60, deadline=None)
@given(RECORDS, st.integers(0, 4), st.integers(0, 2**40), st.booleans(), st.integers(-1, 5))
def test_builder_and_view_agree_with_the_reference(records, codec, base_offset, is_transactional, producer_id):
    expected = plain(records, base_offset)
    sequence = 0 if producer_id >= 0 else -1
    builder = RecordBatchBuilder(
        base_offset,
        compression=codec,
        producer_id=producer_id,
        producer_epoch=sequence,
        base_sequence=sequence,
        is_transactional=is_transactional,
        partition_leader_epoch=7,
    )
    for record in expected:
        assert builder.append(*record[1:]) == record.offset
    data = builder.build()
    assert data == encode_batch(
        expected,
        base_offset=base_offset,
        partition_leader_epoch=7,
        attributes=codec | (0x10 if is_transactional else 0),
        producer_id=producer_id,
        producer_epoch=sequence,
        base_sequence=sequence,
        compress=lambda body: compress(codec, body),
    )
    batch = RecordBatch(b"??" + data, 2)
    assert batch.is_valid()
    assert [tuple(record) for record in batch] == expected
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (
        base_offset,
        expected[-1].offset,
        len(records),
    )
    assert batch.max_timestamp == max(-1, *(record.timestamp for record in expected))
    assert batch.last_sequence == (len(records) - 1 if producer_id >= 0 else -1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(RECORDS, st.integers(0, 4)), min_size=1, max_size=3), st.integers(0, 2**50), st.booleans())
def test_validate_and_assign(batches, base_offset, log_append_time):
    data, expected, at = bytearray(), [], base_offset
    for records, codec in batches:
        data += encode_batch(plain(records), attributes=codec, compress=lambda body, codec=codec: compress(codec, body))
        expected += [record._replace(offset=at + record.offset) for record in plain(records)]
        at += len(records)
    summaries = validate_batches(data, **(LIMITS | {"stamps_append_time": log_append_time}))
    assert [summary.record_count for summary in summaries] == [len(records) for records, _ in batches]
    assert assign_offsets(data, summaries, base_offset, 9, 1234 if log_append_time else -1) == at
    if log_append_time:
        expected = [record._replace(timestamp=1234) for record in expected]
    read = [tuple(record) for batch in iterate_batches(data) for record in batch]
    assert read == expected
    for summary, batch in zip(summaries, iterate_batches(data), strict=True):
        assert batch.is_valid()
        assert batch.partition_leader_epoch == 9
        assert summary.base_offset == batch.base_offset
        assert summary.max_timestamp == batch.max_timestamp
        of_batch = [record for record in expected if summary.base_offset <= record.offset <= summary.last_offset]
        first = next((r for r in of_batch if r.timestamp == summary.max_timestamp), of_batch[0])
        assert summary.offset_of_max_timestamp == first.offset
    scanned, valid = scan_batches(data, 1000)
    assert valid == len(data)
    assert [(s.position - 1000, s.size, s.last_offset) for s in scanned] == [
        (s.position, s.size, s.last_offset) for s in summaries
    ]


def test_batches_that_were_numbered_are_numbered_again() -> None:
    records = [PlainRecord(offset, 1000 + offset % 3, None, b"v", ()) for offset in range(5)]
    data = bytearray(encode_batch(records))
    summaries = validate_batches(data, **LIMITS)
    for base_offset in (70, 7):
        assert assign_offsets(data, summaries, base_offset, 9, -1) == base_offset + 5
        assert (summaries[0].base_offset, summaries[0].offset_of_max_timestamp) == (base_offset, base_offset + 2)


def accepted(body: bytes, count: int, codec: int) -> bool:
    try:
        validate_batches(wrap_batch(body, attributes=codec, count=count, last_offset_delta=count - 1), **LIMITS)
    except ApiError:
        return False
    return True


def gzip_pieces(body: bytes, cuts: list[int]) -> bytes:
    """Writes one gzip member per piece, so that the scanner receives the body in chunks that end exactly there."""
    edges = [0, *sorted(cut for cut in cuts if 0 < cut < len(body)), len(body)]
    stream = b""
    for start, end in pairwise(edges):
        member = zlib.compressobj(wbits=31)
        stream += member.compress(body[start:end]) + member.flush()
    return stream


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-300, 300), CONTENT, st.lists(st.tuples(NAMES, CONTENT), max_size=2)),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 40),
    st.binary(min_size=1, max_size=3),
    st.booleans(),
    st.lists(st.integers(0, 60), max_size=8),
    st.integers(-1, 1),
)
def test_plain_and_streamed_scanning_accept_what_the_reference_reads(records, at, mutation, mutate, cuts, more):
    body = b"".join(
        encode_record(delta, index, value, value, headers) for index, (delta, value, headers) in enumerate(records)
    )
    if mutate:
        body = body[:at] + mutation + body[at + len(mutation) :]
    count = max(1, len(records) + more)
    try:
        decoded = decode_records(body, 0, 0, count)
        expected = [record.offset for record in decoded] == list(range(count))
    except ValueError:
        expected = False
    assert accepted(body, count, 0) == expected
    assert accepted(gzip_pieces(body, cuts), count, 1) == expected
    assert accepted(compress(4, body), count, 4) == expected


@settings(max_examples=50, deadline=None)
@given(st.lists(RECORDS, min_size=1, max_size=4), st.data())
def test_scan_stops_at_the_first_bad_byte(batches, data):
    whole, edges, at = b"", [0], 0
    for records in batches:
        whole += encode_batch(plain(records, at), base_offset=at)
        edges.append(len(whole))
        at += len(records)
    cut = data.draw(st.integers(0, len(whole)))
    summaries, valid = scan_batches(whole[:cut])
    assert valid == max(edge for edge in edges if edge <= cut)
    assert len(summaries) == edges.index(valid)
    flip = data.draw(st.integers(0, len(whole) - 1))
    broken = bytearray(whole)
    broken[flip] ^= 0x40
    start = max(edge for edge in edges if edge <= flip)
    _, valid = scan_batches(broken)
    assert valid == start or flip - start < 16  # the checksum does not cover base offset and epoch
