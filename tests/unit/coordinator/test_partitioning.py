"""The partition of a group, as Java and Apache Kafka compute it."""

import pytest

from kafkapy.coordinator.partitioning import coordinator_partition, java_string_hash


@pytest.mark.parametrize(
    ("group", "java_hash", "partition"),
    [
        ("new-consumer-test", 212774556, 6),
        ("old-consumer-test", -586368285, 35),
        ("mirror", -1073910849, 49),
        ("DemoConsumer", -128014567, 17),
        ("groupb", -1237460541, 41),
        ("words-top-search", -1244785980, 30),
        ("kafka-flume-hdfs", -1428740202, 2),
        # The partitions in which Apache Kafka 4.3 stored these groups.
        ("g-classic", java_string_hash("g-classic"), 18),
        ("simple", java_string_hash("simple"), 26),
        ("", 0, 0),
    ],
)
def test_groups_are_in_the_partitions_of_apache_kafka(group: str, java_hash: int, partition: int) -> None:
    assert java_string_hash(group) == java_hash
    assert coordinator_partition(group, 50) == partition


def test_the_smallest_hash_counts_as_zero() -> None:
    assert java_string_hash("polygenelubricants") == -(1 << 31)
    assert coordinator_partition("polygenelubricants", 50) == 0


def test_hash_counts_utf16_units() -> None:
    # Java: "\uD83D\uDE00".hashCode()
    assert java_string_hash("\U0001f600") == 0xD83D * 31 + 0xDE00
