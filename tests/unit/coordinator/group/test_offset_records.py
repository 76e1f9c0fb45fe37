"""Records of committed offsets, byte for byte as Apache Kafka 4.3 wrote them."""

from __future__ import annotations

from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.group.offset_records import offset_record, offset_tombstone
from kafkapy.types import uuid_from_string

# Read from the log of a broker that served one static member of librdkafka.
KAFKA_OFFSET_KEY = "00010009672d636c61737369630005666972737400000000"
KAFKA_OFFSET_VALUE = "000400000000000000040000000001000001a1fdd298f1010010bf77dd1478b647159f935b4cada61fb1"


def test_a_commit_is_written_as_apache_kafka_writes_it() -> None:
    committed = CommittedOffset(
        4, 0, "", commit_timestamp_ms=1795259799793, topic_id=uuid_from_string("v3fdFHi2RxWfk1tMraYfsQ")
    )
    record = offset_record("g-classic", "first", 0, committed)
    assert record.key.hex() == KAFKA_OFFSET_KEY
    assert record.value is not None
    assert record.value.hex() == KAFKA_OFFSET_VALUE


def test_the_version_depends_on_the_expiry() -> None:
    def version(committed: CommittedOffset) -> int:
        record = offset_record("g", "t", 0, committed)
        assert record.value is not None
        return int.from_bytes(record.value[:2], "big")

    assert version(CommittedOffset(1)) == 4
    assert version(CommittedOffset(1, topic_id=b"x" * 16)) == 4
    # Only version 1 has an expiry; it has no field for a leader epoch.
    assert version(CommittedOffset(1, leader_epoch=4, expire_timestamp_ms=5, topic_id=b"x" * 16)) == 1


def test_the_tombstone_has_the_key_of_the_offset() -> None:
    assert offset_tombstone("g-classic", "first", 0) == (bytes.fromhex(KAFKA_OFFSET_KEY), None)
