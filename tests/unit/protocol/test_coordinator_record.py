"""Keys and values of the coordinators' topics."""

import pytest

from kafkapy.errors import ProtocolViolation
from kafkapy.protocol.coordinator_record import (
    Coordinator,
    decode_coordinator_key,
    decode_coordinator_value,
    encode_coordinator,
)
from kafkapy.protocol.messages.coordinator_records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareUpdateKey,
    TransactionLogKey,
    TransactionLogValue,
)
from kafkapy.protocol.record_frame import UnknownRecordError


def test_offset_commits_have_the_bytes_of_kafka():
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    data = bytes.fromhex("0001 0001 67 0001 74 00000003")
    assert encode_coordinator(key) == data
    assert decode_coordinator_key(data) == key
    value = OffsetCommitValue(offset=42, leader_epoch=7, metadata="m", commit_timestamp=1000)
    written = bytes.fromhex("0003 000000000000002a 00000007 0001 6d 00000000000003e8")
    assert encode_coordinator(value, 3) == written
    assert decode_coordinator_value(OffsetCommitKey.API_KEY, written) == value


def test_group_metadata_has_the_bytes_of_kafka():
    key = GroupMetadataKey(group="g")
    assert encode_coordinator(key) == bytes.fromhex("0002 0001 67")
    member = GroupMetadataValue.MemberMetadata(member_id="m-1", client_id="c", client_host="/127.0.0.1")
    value = GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="m-1", members=[member])
    assert decode_coordinator_value(2, encode_coordinator(value, 3)) == value


def test_key_is_preceded_by_its_type_whatever_version_is_given():
    assert encode_coordinator(ConsumerGroupMetadataKey(group_id="g"), 0) == bytes.fromhex("0003 0001 67")
    assert decode_coordinator_key(bytes.fromhex("0003 0001 67")) == ConsumerGroupMetadataKey(group_id="g")


def test_types_are_counted_per_coordinator():
    key = TransactionLogKey(transactional_id="t")
    assert decode_coordinator_key(encode_coordinator(key), Coordinator.TRANSACTION) == key
    value = TransactionLogValue(producer_id=1000, producer_epoch=1, transaction_timeout_ms=60000)
    assert decode_coordinator_value(0, encode_coordinator(value, 1), Coordinator.TRANSACTION) == value
    share = ShareUpdateKey(group_id="g", partition=1)
    assert decode_coordinator_key(encode_coordinator(share), Coordinator.SHARE) == share


def test_what_we_do_not_know_is_named():
    with pytest.raises(UnknownRecordError, match="group coordinator record of unknown type 9"):
        decode_coordinator_key(bytes.fromhex("0009 0001 67"))
    with pytest.raises(UnknownRecordError, match="OffsetCommitValue in unknown version 77"):
        decode_coordinator_value(1, bytes.fromhex("004d"))
    with pytest.raises(ProtocolViolation):
        decode_coordinator_key(bytes.fromhex("0003 0005 67"))
