"""Metrics of the traffic of each topic and the size of each partition's log."""

from __future__ import annotations

from collections.abc import Iterator

from kafkapy._core.broker_state.metrics_page import (
    END_OFFSET,
    FILLED_COLUMNS,
    SEGMENTS,
    SIZE,
    START_OFFSET,
    PartitionRows,
)
from kafkapy._core.broker_state.topic_counters import COUNTER_NAMES
from kafkapy.metadata.internal_topics import INTERNAL_TOPICS
from kafkapy.metrics import table
from kafkapy.metrics.metric import Metric, format_labels
from kafkapy.metrics.page import Page
from kafkapy.metrics.topic_counters import OTHER
from kafkapy.replica.partition import Partition
from kafkapy.server.services import Services
from kafkapy.types import TopicPartition

TOPIC_FAMILIES: dict[str, Metric] = {
    "messages_in": table.MESSAGES_IN,
    "bytes_in": table.BYTES_IN,
    "bytes_out": table.BYTES_OUT,
    "produce_requests": table.PRODUCE_REQUESTS,
    "failed_produce_requests": table.FAILED_PRODUCE_REQUESTS,
    "fetch_requests": table.FETCH_REQUESTS,
    "failed_fetch_requests": table.FAILED_FETCH_REQUESTS,
}
REPLICAS, ISR, UNDER_REPLICATED, UNDER_MIN_ISR, COLUMNS = range(FILLED_COLUMNS, FILLED_COLUMNS + 5)
PARTITION_FAMILIES: dict[int, Metric] = {
    START_OFFSET: table.LOG_START_OFFSET,
    END_OFFSET: table.LOG_END_OFFSET,
    SIZE: table.LOG_SIZE,
    SEGMENTS: table.LOG_SEGMENTS,
    REPLICAS: table.PARTITION_REPLICAS,
    ISR: table.PARTITION_ISR,
    UNDER_REPLICATED: table.PARTITION_UNDER_REPLICATED,
    UNDER_MIN_ISR: table.PARTITION_UNDER_MIN_ISR,
}
# The number of partitions between two checks of the clock, which take much less than 0.1 ms.
STEP = 32


class TopicMetrics:
    """Writes the metrics of topics and partitions, and stores the partitions' encoded labels between pages. Used by
    one thread."""

    def __init__(self, services: Services, limit: int) -> None:
        self._replica_manager = services.replica_manager
        self._limit = limit
        self._labels: dict[TopicPartition, bytes] = {}

    def write(self, page: Page) -> None:
        counters = self._replica_manager.topic_counters.listed()
        for index, name in enumerate(COUNTER_NAMES):
            page.topics(TOPIC_FAMILIES[name], counters, index)
        partitions = self._ordered(page)
        rows = self._rows(page, partitions)
        lags = ReplicaLags(self._replica_manager.context.clock.monotonic_ms())
        leaders, producers, at_min_isr = self._collect(page, partitions, rows, lags)
        for column, metric in PARTITION_FAMILIES.items():
            page.partitions(metric, rows, column)
        context = self._replica_manager.context
        page.one(table.PARTITIONS, len(partitions))
        page.one(table.LEADERS, leaders)
        page.one(table.UNDER_REPLICATED, rows.sum(UNDER_REPLICATED))
        page.one(table.UNDER_MIN_ISR, rows.sum(UNDER_MIN_ISR))
        page.one(table.AT_MIN_ISR, at_min_isr)
        page.one(table.OFFLINE_REPLICAS, len(self._replica_manager.hosted.offline))
        page.one(table.ISR_SHRINKS, context.isr_shrinks)
        page.one(table.ISR_EXPANDS, context.isr_expands)
        page.one(table.PRODUCERS, producers)
        page.family(table.REPLICA_LAG, [((broker,), each) for broker, each in sorted(lags.records.items())])
        page.family(table.REPLICA_LAG_MS, [((broker,), each) for broker, each in sorted(lags.times_ms.items())])

    def _ordered(self, page: Page) -> list[Partition]:
        """Returns the partitions of this broker. Internal topics are last, because their partitions alone could use up
        the limit of series."""
        hosted: list[Partition] = list(self._replica_manager.partitions.values())
        ordered: list[Partition] = []
        internal: list[Partition] = []
        for begin in _steps(len(hosted)):
            for partition in hosted[begin : begin + STEP]:
                (internal if partition.topic_partition.topic in INTERNAL_TOPICS else ordered).append(partition)
            page.pace()
        return ordered + internal

    def _rows(self, page: Page, partitions: list[Partition]) -> PartitionRows:
        """Returns empty rows of the page: one for each partition up to the limit of series, and one for all further
        partitions together."""
        known = self._labels
        if len(known) > 2 * len(partitions) + 64:
            known.clear()  # most stored labels belong to deleted topics
        labels: list[bytes] = []
        for partition in partitions[: self._limit]:
            found = known.get(partition.topic_partition)
            if found is None:
                found = format_labels(("topic", "partition"), partition.topic_partition).encode()
                known[partition.topic_partition] = found
                page.pace()
            labels.append(found)
        if len(partitions) > self._limit:
            labels.append(format_labels(("topic", "partition"), (OTHER, "")).encode())
        return PartitionRows(labels, COLUMNS)

    def _collect(
        self, page: Page, partitions: list[Partition], rows: PartitionRows, lags: ReplicaLags
    ) -> tuple[int, int, int]:
        """Adds the values of the partitions to `rows`, and the values of their followers to `lags`.

        Returns the number of partitions that this broker leads, the number of producers of all partitions, and the
        number of led partitions whose ISR has exactly the minimum size.
        """
        leaders = producers = at_min_isr = 0
        for begin in _steps(len(partitions)):
            end = min(begin + STEP, len(partitions))
            rows.fill(partitions, begin, end)
            for number in range(begin, end):
                partition = partitions[number]
                producers += len(partition.log.producers.entries)
                rows.put(number, REPLICAS, len(partition.replicas))
                if not partition.is_leader:
                    continue
                leaders += 1
                if partition.remote_replicas:
                    lags.add(partition)
                in_sync = len(partition.isr_state.isr)
                rows.put(number, ISR, in_sync)
                rows.put(number, UNDER_REPLICATED, in_sync < len(partition.replicas))
                minimum = partition.effective_min_isr
                rows.put(number, UNDER_MIN_ISR, in_sync < minimum)
                at_min_isr += in_sync == minimum
            page.pace()
        return leaders, producers, at_min_isr


class ReplicaLags:
    """The largest lags, in records and in milliseconds, of each follower over the partitions that this broker leads, by
    the follower's broker id.
    """

    def __init__(self, monotonic_ms: int) -> None:
        self._monotonic_ms = monotonic_ms
        self.records: dict[int, int] = {}
        self.times_ms: dict[int, int] = {}

    def add(self, partition: Partition) -> None:
        """Adds the followers of a partition that this broker leads. A follower that has not fetched yet lacks the whole
        log."""
        log = partition.log
        end_offset = log.log_end_offset
        for replica in partition.remote_replicas.copy().values():
            broker = replica.broker_id
            records = end_offset - max(replica.log_end_offset, log.log_start_offset)
            # A follower that has all records has no lag in time, even if its last fetch was long ago.
            caught_up_ms = max(replica.last_caught_up_ms, 0)
            time_ms = max(self._monotonic_ms - caught_up_ms, 0) if records > 0 else 0
            self.records[broker] = max(self.records.get(broker, 0), records)
            self.times_ms[broker] = max(self.times_ms.get(broker, 0), time_ms)


def _steps(count: int) -> Iterator[int]:
    return iter(range(0, count, STEP))
