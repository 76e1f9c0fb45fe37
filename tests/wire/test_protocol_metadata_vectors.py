"""Bytes that Apache Kafka 4.3.0 wrote into its metadata log: they decode to the expected messages, which encode to the
same bytes."""

import pytest

from kafkapy.protocol.messages.data_records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from kafkapy.protocol.messages.metadata_records import (
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
)
from kafkapy.protocol.record_frame import decode_metadata_record, encode_metadata_record

TOPIC_ID = bytes.fromhex("c4829c8a4e924ee7a2a05c15b8b0d20c")
DIRECTORY_ID = bytes.fromhex("00112233445566778899aabbccddeeff")
T, D = TOPIC_ID.hex(), DIRECTORY_ID.hex()

RECORDS = [
    ("NoOp", 0, "01140000", NoOpRecord()),
    ("begin", 0, "01170001001212426f6f747374726170207265636f726473", BeginTransactionRecord(name="Bootstrap records")),
    ("end", 0, "01180000", EndTransactionRecord()),
    (
        "metadata.version",
        0,
        "010c00116d657461646174612e76657273696f6e001e00",
        FeatureLevelRecord(name="metadata.version", feature_level=30),
    ),
    (
        "broker default",
        0,
        "0104000401146d696e2e696e73796e632e7265706c69636173023100",
        ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
    ),
    ("topic", 0, f"010200066669727374{T}00", TopicRecord(name="first", topic_id=TOPIC_ID)),
    (
        "partition",
        2,
        f"01030200000000{T}02000000010200000001010100000001000000000000000002{D}00",
        PartitionRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[DIRECTORY_ID],
        ),
    ),
    (
        "clean stop",
        2,
        f"01050200000000{T}040001010104ffffffff06050200000001" + "07050200000001",
        PartitionChangeRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            isr=[],
            leader=-1,
            eligible_leader_replicas=[1],
            last_known_elr=[1],
        ),
    ),
    (
        "unclean election",
        2,
        f"01050200000000{T}0400050200000001010400000001" + "050101070101",
        PartitionChangeRecord(
            partition_id=0,
            topic_id=TOPIC_ID,
            isr=[1],
            leader=1,
            leader_recovery_state=1,
            last_known_elr=[],
        ),
    ),
    (
        "new directory",
        2,
        f"01050200000000{T}01081102{D}",
        PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, directories=[DIRECTORY_ID]),
    ),
    (
        "unfence",
        0,
        "01110000000001000000000000000b010001ff",
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, fenced=-1),
    ),
    (
        "fence",
        0,
        "01110000000001000000000000000b01000101",
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, fenced=1),
    ),
    (
        "controlled shutdown",
        1,
        "01110100000001000000000000000b01010101",
        BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=11, in_controlled_shutdown=1),
    ),
    (
        "producer ids",
        0,
        "010f0000000001000000000000000b00000000000003e800",
        ProducerIdsRecord(broker_id=1, broker_epoch=11, next_producer_id=1000),
    ),
]


@pytest.mark.parametrize(("version", "value", "message"), [row[1:] for row in RECORDS], ids=[row[0] for row in RECORDS])
def test_metadata_record(version, value, message):
    data = bytes.fromhex(value)
    assert decode_metadata_record(data) == message
    assert encode_metadata_record(message, version) == data


CONTROL_VALUES = [
    (
        "00000000000102000000010002000000010000",
        LeaderChangeMessage(
            version=0,
            leader_id=1,
            voters=[LeaderChangeMessage.Voter(voter_id=1)],
            granting_voters=[LeaderChangeMessage.Voter(voter_id=1)],
        ),
    ),
    ("0000000100", KRaftVersionRecord(version=0, kraft_version=1)),
    (
        f"00000200000001{D}020b434f4e54524f4c4c45520a6c6f63616c686f73744a950000000001000000",
        VotersRecord(
            version=0,
            voters=[
                VotersRecord.Voter(
                    voter_id=1,
                    voter_directory_id=DIRECTORY_ID,
                    endpoints=[VotersRecord.Endpoint(name="CONTROLLER", host="localhost", port=19093)],
                    kraft_version_feature=VotersRecord.KRaftVersionFeature(
                        min_supported_version=0, max_supported_version=1
                    ),
                )
            ],
        ),
    ),
    ("0000000001a1fd5e1ee300", SnapshotHeaderRecord(version=0, last_contained_log_timestamp=0x01A1FD5E1EE3)),
    ("000000", SnapshotFooterRecord(version=0)),
]


@pytest.mark.parametrize(("value", "message"), CONTROL_VALUES, ids=[type(row[1]).__name__ for row in CONTROL_VALUES])
def test_control_value(value, message):
    """The value of a control record begins with its version, which is a field of the message."""
    data = bytes.fromhex(value)
    assert type(message).decode(data, 0) == message
    assert message.encode(0) == data
