"""Records of `__consumer_offsets`, byte for byte as Apache Kafka 4.3 wrote them."""

from __future__ import annotations

from kafkapy.coordinator.group.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.classic_member import ClassicMember
from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.group_records import (
    classic_group_from,
    group_metadata_record,
    group_tombstone,
    offset_record,
    offset_tombstone,
)
from kafkapy.protocol.coordinator_record import decode_coordinator_value
from kafkapy.types import uuid_from_string

# Read from the log of a broker that served one static member of librdkafka.
KAFKA_GROUP_KEY = "00020009672d636c6173736963"
KAFKA_EMPTY_GROUP_VALUE = "0003000000000000ffffffff000001a1fdd2980f00000000"
KAFKA_GROUP_VALUE = (
    "00030008636f6e73756d657200000001000572616e6765002a696e7374312d30313764616366632d353130652d346364382d"
    "393533332d343766653730366663363566000001a1fdd2982600000001002a696e7374312d30313764616366632d35313065"
    "2d346364382d393533332d3437666537303666633635660005696e737431000772646b61666b61000a2f3132372e302e302e"
    "31000493e00000afc80000001b000300000001000566697273740000000000000000ffffffff00000000001d000000000001"
    "0005666972737400000002000000000000000100000000"
)
KAFKA_OFFSET_KEY = "00010009672d636c61737369630005666972737400000000"
KAFKA_OFFSET_VALUE = "000400000000000000040000000001000001a1fdd298f1010010bf77dd1478b647159f935b4cada61fb1"


def test_group_value_survives_and_is_written_the_same() -> None:
    stored = decode_coordinator_value(2, bytes.fromhex(KAFKA_GROUP_VALUE))
    group = classic_group_from("g-classic", stored, 0)
    assert group.state is GroupState.STABLE
    assert group.protocol_name == "range"
    assert group.subscribed_topics == {"first"}
    (member,) = group.members.values()
    assert (member.group_instance_id, member.client_id, member.client_host) == ("inst1", "rdkafka", "/127.0.0.1")
    assert (member.rebalance_timeout_ms, member.session_timeout_ms) == (300000, 45000)
    record = group_metadata_record(group, {member.member_id: member.assignment})
    assert record.key.hex() == KAFKA_GROUP_KEY
    assert record.value is not None
    assert record.value.hex() == KAFKA_GROUP_VALUE


def test_empty_group() -> None:
    stored = decode_coordinator_value(2, bytes.fromhex(KAFKA_EMPTY_GROUP_VALUE))
    group = classic_group_from("g-classic", stored, 0)
    assert group.state is GroupState.EMPTY
    assert group.protocol_type is None
    record = group_metadata_record(group, {})
    assert record.value is not None
    assert record.value.hex() == KAFKA_EMPTY_GROUP_VALUE


def test_offset_commit() -> None:
    committed = CommittedOffset(
        4, 0, "", commit_timestamp_ms=1795259799793, topic_id=uuid_from_string("v3fdFHi2RxWfk1tMraYfsQ")
    )
    record = offset_record("g-classic", "first", 0, committed)
    assert record.key.hex() == KAFKA_OFFSET_KEY
    assert record.value is not None
    assert record.value.hex() == KAFKA_OFFSET_VALUE


def test_offset_value_versions() -> None:
    def version(committed: CommittedOffset) -> int:
        record = offset_record("g", "t", 0, committed)
        assert record.value is not None
        return int.from_bytes(record.value[:2], "big")

    assert version(CommittedOffset(1)) == 4
    assert version(CommittedOffset(1, topic_id=b"x" * 16)) == 4
    # Only version 1 holds an expiry; it has no room for a leader epoch.
    assert version(CommittedOffset(1, leader_epoch=4, expire_timestamp_ms=5, topic_id=b"x" * 16)) == 1


def test_tombstones_have_the_keys_of_what_they_delete() -> None:
    assert group_tombstone("g-classic") == (bytes.fromhex(KAFKA_GROUP_KEY), None)
    assert offset_tombstone("g-classic", "first", 0) == (bytes.fromhex(KAFKA_OFFSET_KEY), None)


def test_a_group_without_the_voted_protocol_keeps_its_members_bytes() -> None:
    group = ClassicGroup("g", 5)
    group.add(ClassicMember("m", None, "c", "/h", 1, 2, "connect", [("v1", b"one"), ("v2", b"two")]))
    group.transition_to(GroupState.PREPARING_REBALANCE, 6)
    group.init_next_generation(7)
    record = group_metadata_record(group, {})
    stored = decode_coordinator_value(2, record.value)
    again = classic_group_from("g", stored, 0)
    assert again.members["m"].metadata("v1") == b"one"
    assert again.subscribed_topics is None
    assert again.state_timestamp_ms == 7
