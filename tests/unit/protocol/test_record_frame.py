"""Frames around metadata records and version-prefixed values."""

import pytest

from kafkapy.errors import ProtocolViolation
from kafkapy.protocol.messages.data_records import ConsumerProtocolSubscription, EndTxnMarker
from kafkapy.protocol.messages.metadata_records import TopicRecord
from kafkapy.protocol.record_frame import (
    UnknownRecordError,
    decode_metadata_record,
    decode_version_prefixed,
    encode_metadata_record,
    encode_version_prefixed,
)

TOPIC = TopicRecord(name="first", topic_id=bytes(range(16)))


def test_metadata_record_there_and_back():
    value = encode_metadata_record(TOPIC, 0)
    assert value == bytes.fromhex("010200 06") + b"first" + bytes(range(16)) + b"\x00"
    assert decode_metadata_record(value) == TOPIC
    assert decode_metadata_record(memoryview(value)) == TOPIC


@pytest.mark.parametrize(
    ("value", "named"),
    [("020200", "frame version 2"), ("016300", "api key 99"), ("010205", "TopicRecord .* version 5")],
)
def test_what_we_do_not_know_is_named(value, named):
    with pytest.raises(UnknownRecordError, match=named):
        decode_metadata_record(bytes.fromhex(value))


def test_damaged_metadata_record():
    value = encode_metadata_record(TOPIC, 0)
    for damaged in (b"", value[:-1], value + b"\x00", value[:3]):
        with pytest.raises(ProtocolViolation):
            decode_metadata_record(damaged)


def test_not_a_metadata_record():
    with pytest.raises(UnknownRecordError, match="EndTxnMarker"):
        encode_metadata_record(EndTxnMarker(), 0)


def test_version_prefixed_there_and_back():
    marker = EndTxnMarker(coordinator_epoch=5)
    assert encode_version_prefixed(marker, 0) == bytes.fromhex("0000 00000005")
    assert decode_version_prefixed(EndTxnMarker, bytes.fromhex("0000 00000005")) == marker

    subscription = ConsumerProtocolSubscription(topics=["a"], generation_id=3)
    assert (
        decode_version_prefixed(ConsumerProtocolSubscription, encode_version_prefixed(subscription, 2)) == subscription
    )
    with pytest.raises(UnknownRecordError, match="version 9"):
        decode_version_prefixed(ConsumerProtocolSubscription, b"\x00\x09")
    with pytest.raises(ProtocolViolation):
        decode_version_prefixed(ConsumerProtocolSubscription, b"\x00")
