"""Records of classic groups, byte for byte as Apache Kafka 4.3 wrote them."""

from __future__ import annotations

from kafkapy.coordinator.group.classic.classic_group import ClassicGroup, GroupState
from kafkapy.coordinator.group.classic.classic_member import ClassicMember
from kafkapy.coordinator.group.classic.classic_records import classic_group_from, group_metadata_record, group_tombstone
from kafkapy.protocol.coordinator_record import decode_coordinator_value

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


def test_an_empty_group_is_written_the_same() -> None:
    stored = decode_coordinator_value(2, bytes.fromhex(KAFKA_EMPTY_GROUP_VALUE))
    group = classic_group_from("g-classic", stored, 0)
    assert group.state is GroupState.EMPTY
    assert group.protocol_type is None
    record = group_metadata_record(group, {})
    assert record.value is not None
    assert record.value.hex() == KAFKA_EMPTY_GROUP_VALUE


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


def test_the_tombstone_has_the_key_of_the_group() -> None:
    assert group_tombstone("g-classic") == (bytes.fromhex(KAFKA_GROUP_KEY), None)
