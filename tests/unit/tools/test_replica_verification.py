"""The comparison of replicas."""

from __future__ import annotations

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.client.admin.replicas import ReplicaBatches
from kafkapy.tools.option_parser import OptionParser
from kafkapy.tools.replica_verification import TOOL, ReplicaComparison, first_offsets
from kafkapy.types import TopicPartition
from tests.unit.tools.simulated_client import SimulatedAdmin

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


def test_replicas_with_different_offsets_end_the_comparison() -> None:
    comparison = ReplicaComparison({PARTITION: 0})
    compare(comparison, replica(b"a"), replica(b"x"))
    assert not comparison.has_diverged
    compare(comparison, replica(b"a", start=1), replica(b"a", start=2))
    assert comparison.has_diverged


def test_the_comparison_begins_at_a_time_in_milliseconds() -> None:
    arguments = OptionParser(TOOL.all_options).parse(["--time", "1700000000000"])
    assert arguments["time"] == 1_700_000_000_000


def test_a_partition_without_records_after_the_time_is_compared_from_its_end() -> None:
    admin = SimulatedAdmin({"t": [(5, 9)]}, times={1000: 7})
    assert first_offsets(admin, [PARTITION], 1000) == {PARTITION: 7}
    assert first_offsets(admin, [PARTITION], 2000) == {PARTITION: 9}
