"""The comparison of replicas."""

from __future__ import annotations

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.client.admin.replicas import ReplicaBatches
from kafkapy.tools.replica_verification import ReplicaComparison
from kafkapy.types import TopicPartition

PARTITION = TopicPartition("t", 0)


def replica(*values: bytes, start: int = 0, high_watermark: int = 100) -> ReplicaBatches:
    """Returns a replica with one batch for each value."""
    batches = []
    for number, value in enumerate(values):
        builder = RecordBatchBuilder(start + number)
        builder.append(1000, None, value)
        batches.append(builder.build())
    return ReplicaBatches(b"".join(batches), high_watermark)


def compare(comparison: ReplicaComparison, *replicas: ReplicaBatches) -> list[str]:
    return list(comparison.compare(PARTITION, dict(enumerate(replicas, 1))))


def test_equal_replicas_have_no_lag() -> None:
    comparison = ReplicaComparison({PARTITION: 0})
    assert compare(comparison, replica(b"a", b"b", high_watermark=2), replica(b"a", b"b", high_watermark=2)) == []
    assert comparison.report() == "max lag is 0 for partition t-0 at offset 2 among 1 partitions"


def test_a_replica_that_lacks_batches_is_compared_later() -> None:
    comparison = ReplicaComparison({PARTITION: 0})
    assert compare(comparison, replica(b"a", b"b", high_watermark=2), replica(b"a", high_watermark=1)) == []
    assert comparison.report() == "max lag is 1 for partition t-0 at offset 1 among 1 partitions"
    assert compare(comparison, replica(b"b", start=1), replica(b"b", start=1)) == []
    assert comparison.offsets == {PARTITION: 2}


def test_different_content_is_reported() -> None:
    (line,) = compare(ReplicaComparison({PARTITION: 0}), replica(b"a"), replica(b"x"))
    assert line.startswith("partition t-0 has unmatched checksum at offset 0; replica 1's checksum ")


def test_different_offsets_are_reported() -> None:
    lines = compare(ReplicaComparison({PARTITION: 0}), replica(b"a"), replica(b"a", start=1))
    assert lines == ["partition t-0: replica 1's offset 0 doesn't match replica 2's offset 1"]
