"""Records of committed offsets in `__consumer_offsets`, in the versions that Apache Kafka 4.3 writes."""

from __future__ import annotations

from kafkapy.coordinator.group.committed_offset import CommittedOffset
from kafkapy.coordinator.record import CoordinatorRecord
from kafkapy.protocol.coordinator_record import encode_coordinator
from kafkapy.protocol.messages.coordinator_records import OffsetCommitKey, OffsetCommitValue

# Record types, written in front of the key; 0 is the offset commit of brokers before 0.8.2.
OFFSET_COMMIT_KEY = 1
OFFSET_COMMIT_KEYS = (0, OFFSET_COMMIT_KEY)


def offset_key(group_id: str, topic: str, partition: int) -> bytes:
    return encode_coordinator(OffsetCommitKey(group=group_id, topic=topic, partition=partition))


def offset_tombstone(group_id: str, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(offset_key(group_id, topic, partition), None)


def offset_record(group_id: str, topic: str, partition: int, committed: CommittedOffset) -> CoordinatorRecord:
    value = OffsetCommitValue(
        offset=committed.offset,
        leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        commit_timestamp=committed.commit_timestamp_ms,
        expire_timestamp=committed.expire_timestamp_ms,
        topic_id=committed.topic_id,
    )
    encoded = encode_coordinator(value, _offset_value_version(committed))
    return CoordinatorRecord(offset_key(group_id, topic, partition), encoded)


def _offset_value_version(committed: CommittedOffset) -> int:
    """Returns the version in which the OffsetCommitValue is written: 1 for an offset with an expiry time, because no
    later version has this field; otherwise 4, the first version with a topic id."""
    return 4 if committed.expire_timestamp_ms == -1 else 1


def committed_offset_from(value: OffsetCommitValue, log_offset: int) -> CommittedOffset:
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=value.expire_timestamp,
        topic_id=value.topic_id,
        log_offset=log_offset,
    )
