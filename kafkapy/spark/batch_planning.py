"""Plans the offset ranges that a batch query reads.

A range has the offsets of one partition from the query's start to its end. It is limited to the offsets that the log
holds, then narrowed by filters and divided into tasks.
"""

from __future__ import annotations

from kafkapy.spark.data_loss import log
from kafkapy.spark.limits import divide
from kafkapy.spark.log_bounds import unknown_topics, within_log
from kafkapy.spark.options import ReadOptions
from kafkapy.spark.row_filters import RowFilters
from kafkapy.spark.source_cluster import SourceCluster
from kafkapy.spark.start_and_end import resolve
from kafkapy.spark.stream_offset import OffsetRange
from kafkapy.types import TopicPartition


def plan(cluster: SourceCluster, options: ReadOptions, filters: RowFilters) -> list[OffsetRange]:
    """Returns the ranges of offsets that the tasks read, one range for each task.

    Raises ApiError for a topic that does not exist, DataLossError for missing records, and ConfigError for a starting
    or ending position that does not fit the partitions.
    """
    found = cluster.partitions()
    if found.missing:
        raise unknown_topics(found.missing)
    starts = resolve(options.starting, found.partitions, cluster.look_up)
    ends = resolve(options.ending, found.partitions, cluster.look_up)
    ranges = [OffsetRange(partition, starts[partition], ends[partition]) for partition in found.partitions]
    for each in ranges:
        if each.start > each.end:
            log.warning("Partition %s starts at offset %d, after its end %d: nothing is read from it", *each)
    ranges = within_log(cluster, ranges, fails=options.fail_on_data_loss)
    return divide(_narrow(cluster, ranges, filters), options.min_partitions, options.max_records_per_partition)


def _narrow(cluster: SourceCluster, ranges: list[OffsetRange], filters: RowFilters) -> list[OffsetRange]:
    kept = [
        OffsetRange(each.partition, max(each.start, filters.first_offset), min(each.end, filters.end_offset))
        for each in ranges
        if filters.keeps(each.partition)
    ]
    if filters.first_ms is None or not kept:
        return [each for each in kept if each.size]
    wanted: dict[TopicPartition, int] = {each.partition: filters.first_ms for each in kept if each.size}
    by_time = cluster.look_up(wanted)
    late = []
    for each in kept:
        first = by_time.get(each.partition)
        if each.size and first is not None:
            late.append(OffsetRange(each.partition, max(each.start, first), each.end))
    return [each for each in late if each.size]
