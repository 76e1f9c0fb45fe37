"""Message sets of magic 0 and 1 agree with the slow reference, in every kind of wrapper."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.bytes.message_set import build_message_set, iterate_messages, iterate_records
from tests.reference.message_set import decode_messages, encode_message

CONTENT = st.one_of(st.none(), st.binary(max_size=30))
MESSAGES = st.lists(st.tuples(st.integers(1, 5), st.integers(-1, 2**41), CONTENT, CONTENT), min_size=1, max_size=10)


def ascending(messages, base_offset):
    records, offset = [], base_offset
    for gap, timestamp, key, value in messages:
        records.append((offset, timestamp, key, value))
        offset += gap
    return records


@settings(max_examples=100, deadline=None)
@given(MESSAGES, st.integers(0, 2**40), st.integers(0, 1))
def test_uncompressed_sets_agree_with_the_reference(messages, base_offset, magic):
    records = ascending(messages, base_offset)
    data = build_message_set(records, magic=magic)
    assert data == b"".join(encode_message(*record, magic) for record in records)
    read = [(r.offset, r.timestamp, r.key, r.value, r.attributes) for r in iterate_messages(data)]
    assert read == decode_messages(data)
    assert all(record.is_valid() for record in iterate_records(data))


@settings(max_examples=100, deadline=None)
@given(MESSAGES, st.integers(0, 2**40), st.integers(0, 1), st.integers(1, 3), st.integers(0, 1))
def test_compressed_sets_agree_with_the_reference(messages, base_offset, magic, codec, timestamp_type):
    records = ascending(messages, base_offset)
    data = build_message_set(records, magic=magic, compression=codec, timestamp_type=timestamp_type)
    (wrapper,) = iterate_messages(data)
    assert (wrapper.offset, wrapper.compression, wrapper.key) == (records[-1][0], codec, None)
    latest = max(timestamp for _, timestamp, _, _ in records)
    expected = [
        (offset, -1 if magic == 0 else latest if timestamp_type else timestamp, key, value)
        for offset, timestamp, key, value in records
    ]
    assert [(r.offset, r.timestamp, r.key, r.value) for r in iterate_records(data)] == expected
