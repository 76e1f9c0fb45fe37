"""Messages of records as Kafka's JSON: versions, tagged defaults, uuids, bytes, nested structs, null."""

from __future__ import annotations

from kafkapy.protocol.message_json import json_text, message_json
from kafkapy.protocol.messages.coordinator_records import (
    ConsumerGroupMemberMetadataValue,
    GroupMetadataValue,
    OffsetCommitValue,
    TransactionLogValue,
)


def test_fields_are_those_of_the_version():
    value = OffsetCommitValue(offset=3, leader_epoch=1, metadata="é", commit_timestamp=5, topic_id=bytes(15) + b"\1")
    assert list(message_json(value, 0)) == ["offset", "metadata", "commitTimestamp"]
    assert list(message_json(value, 1)) == ["offset", "metadata", "commitTimestamp", "expireTimestamp"]
    assert json_text(message_json(value, 4)) == (
        '{"offset":3,"leaderEpoch":1,"metadata":"é","commitTimestamp":5,"topicId":"AAAAAAAAAAAAAAAAAAAAAQ"}'
    )


def test_tagged_fields_with_their_default_are_left_out():
    value = TransactionLogValue(producer_id=1, next_producer_id=7, transaction_partitions=None)
    shown = message_json(value, 1)
    assert shown["nextProducerId"] == 7
    assert "previousProducerId" not in shown and "clientTransactionVersion" not in shown
    assert shown["transactionPartitions"] is None


def test_structs_and_bytes():
    member = GroupMetadataValue.MemberMetadata(member_id="m", subscription=b"\0\1", assignment=b"")
    shown = message_json(GroupMetadataValue(protocol_type="consumer", members=[member]), 3)
    assert shown["members"][0]["subscription"] == "AAE="
    assert shown["members"][0]["groupInstanceId"] is None
    assert "classicMemberMetadata" not in message_json(ConsumerGroupMemberMetadataValue(), 0)
