"""Batches of the metadata log, byte for byte as Apache Kafka 4.3 wrote them."""

import pytest

from kafkapy._core.bytes.record_batch import RecordBatch, RecordBatchBuilder
from kafkapy.protocol.messages import metadata_records as records
from kafkapy.protocol.messages.data_records import LeaderChangeMessage
from kafkapy.protocol.record_frame import decode_metadata_record, encode_metadata_record
from kafkapy.quorum.metadata_batch import (
    MAX_RECORDS_PER_BATCH,
    control_batch,
    decode_control_batch,
    decode_metadata_batch,
    metadata_batches,
)
from kafkapy.quorum.voters import ControllerListener, single_voter

LEADER_CHANGE = (
    "00000000000000000000004f00000001020071d39d002000000000000001a1fd5e1ee3000001a1fd5e1ee3"
    "ffffffffffffffffffffffffffff000000013a0000000800000002260000000000010200000001000200000001000000"
)
NO_OP = (
    "000000000000000d0000003c0000000102f1ae7e47000000000000000001a1fd5e2171000001a1fd5e2171"
    "ffffffffffffffffffffffffffff000000011400000001080114000000"
)
TOPIC_ID = bytes.fromhex("c4829c8a4e924ee7a2a05c15b8b0d20c")
DIRECTORY_ID = bytes(range(16))
T, D = TOPIC_ID.hex(), DIRECTORY_ID.hex()


def change(**fields):
    return records.PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields)


def broker_change(**fields):
    return records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, **fields)


VECTORS = [
    (records.BeginTransactionRecord(name="Bootstrap records"), 0, "01170001001212426f6f747374726170207265636f726473"),
    (records.EndTransactionRecord(), 0, "01180000"),
    (
        records.FeatureLevelRecord(name="metadata.version", feature_level=30),
        0,
        "010c00116d657461646174612e76657273696f6e001e00",
    ),
    (
        records.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
        0,
        "0104000401146d696e2e696e73796e632e7265706c69636173023100",
    ),
    (records.TopicRecord(name="first", topic_id=TOPIC_ID), 0, f"010200066669727374{T}00"),
    (
        records.PartitionRecord(
            partition_id=0, topic_id=TOPIC_ID, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0,
            directories=[DIRECTORY_ID],
        ),
        2,
        f"01030200000000{T}02000000010200000001010100000001000000000000000002{D}00",
    ),
    (
        change(isr=[], leader=-1, eligible_leader_replicas=[1], last_known_elr=[1]),
        2,
        f"01050200000000{T}040001010104ffffffff0605020000000107050200000001",
    ),
    (
        change(isr=[1], leader=1, leader_recovery_state=1, last_known_elr=[]),
        2,
        f"01050200000000{T}0400050200000001010400000001050101070101",
    ),
    (change(directories=[DIRECTORY_ID]), 2, f"01050200000000{T}01081102{D}"),
    (broker_change(fenced=-1), 0, "01110000000001000000000000000b010001ff"),
    (broker_change(fenced=1), 0, "01110000000001000000000000000b01000101"),
    (broker_change(in_controlled_shutdown=1), 1, "01110100000001000000000000000b01010101"),
    (
        records.ProducerIdsRecord(broker_id=1, broker_epoch=11, next_producer_id=1000),
        0,
        "010f0000000001000000000000000b00000000000003e800",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("message", "version", "expected"), VECTORS)
def test_records_are_encoded_as_apache_kafka_encodes_them(message, version, expected):
    assert encode_metadata_record(message, version).hex() == expected
    assert decode_metadata_record(bytes.fromhex(expected)) == message


def test_a_leader_change_is_encoded_as_apache_kafka_encodes_it():
    voter = LeaderChangeMessage.Voter(voter_id=1)
    message = LeaderChangeMessage(version=0, leader_id=1, voters=[voter], granting_voters=[voter])
    batch = RecordBatch(bytes.fromhex(LEADER_CHANGE))
    assert control_batch(0, 1, batch.max_timestamp, [message]).hex() == LEADER_CHANGE
    assert decode_control_batch(batch) == [message]


def test_a_batch_is_encoded_as_apache_kafka_encodes_it():
    batch = RecordBatch(bytes.fromhex(NO_OP))
    encoded, end = metadata_batches(13, 1, batch.max_timestamp, [(records.NoOpRecord(), 0)])
    assert [each.hex() for each in encoded] == [NO_OP] and end == 14
    assert decode_metadata_batch(batch) == [records.NoOpRecord()]


def test_voters_are_encoded_as_apache_kafka_encodes_them():
    version, voters = single_voter(1, DIRECTORY_ID, ControllerListener("CONTROLLER", "localhost", 19093)).records()
    assert version.encode(0).hex() == "0000000100"
    assert voters.encode(0).hex() == (
        f"00000200000001{D}020b434f4e54524f4c4c45520a6c6f63616c686f73744a950000000001000000"
    )


def test_many_records_go_into_several_batches():
    count = MAX_RECORDS_PER_BATCH * 2 + 1
    encoded, end = metadata_batches(5, 3, 1000, ((records.NoOpRecord(), 0) for _ in range(count)))
    batches = [RecordBatch(each) for each in encoded]
    assert [each.base_offset for each in batches] == [5, 5 + MAX_RECORDS_PER_BATCH, 5 + 2 * MAX_RECORDS_PER_BATCH]
    assert end == batches[-1].next_offset == 5 + count
    assert {each.partition_leader_epoch for each in batches} == {3}


def test_unknown_control_records_are_named():
    builder = RecordBatchBuilder(7, is_control=True)
    builder.append(0, b"\x00\x00\x00\x63", b"\x00\x00")
    with pytest.raises(ValueError, match=r"key 00000063.*offset 7"):
        decode_control_batch(RecordBatch(builder.build()))
