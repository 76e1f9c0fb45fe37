"""The position of a streaming query. Spark asks it, on the driver, for the range of every micro-batch."""

from __future__ import annotations

from typing import Any

from kafkapy.errors import ConfigError
from kafkapy.spark.data_loss import report_loss
from kafkapy.spark.limits import TriggerDelay, divide, limit_offsets
from kafkapy.spark.log_bounds import unknown_topics, within_log
from kafkapy.spark.options import ReadOptions
from kafkapy.spark.source_cluster import SourceCluster, SourcePartitions
from kafkapy.spark.start_and_end import resolve
from kafkapy.spark.stream_offset import OffsetRange, StreamOffset, plan_micro_batch
from kafkapy.spark.topic_partitions import nest
from kafkapy.types import Clock, SystemClock, TopicPartition


class StreamPosition:
    """The position of one streaming query, which owns the connection to the cluster. For one thread.

    The initial offset is determined once, because Spark asks for it twice and must get the same offset. All other
    results depend on the offsets that Spark passes.
    """

    def __init__(
        self, options: ReadOptions, *, cluster: SourceCluster | None = None, clock: Clock | None = None
    ) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._cluster = cluster or SourceCluster(options, clock=clock)
        self._delay = TriggerDelay(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
        self._initial: StreamOffset | None = None
        self._target: dict[TopicPartition, int] | None = None  # the ends of a run with Trigger.AvailableNow
        self._latest: dict[TopicPartition, int] | None = None
        self._last: StreamOffset | None = None
        # What `next_end` has found for the batch that it has planned; None if `ranges` repeats an earlier batch.
        self._found: SourcePartitions | None = None

    def close(self) -> None:
        self._cluster.close()

    def initial(self) -> StreamOffset:
        """Returns the offset at which a new query begins.

        Raises ApiError for a topic that does not exist, and ConfigError for a starting position that does not fit the
        partitions.
        """
        if self._initial is None:
            found = self._cluster.partitions()
            if found.missing:
                raise unknown_topics(found.missing)
            positions = resolve(self._options.starting, found.partitions, self._cluster.look_up)
            self._initial = self._last = StreamOffset(
                positions, found.ids, is_initial=True, owner=self._options.checkpoint_owner
            )
        return self._initial

    def stop_at_latest(self) -> None:
        """Makes the present ends of the partitions the end of the query: no batch reads later records.

        This is for Spark's trigger availableNow.
        """
        self._target = self._cluster.latest(self._cluster.partitions().partitions)

    def latest_seen(self) -> dict[str, dict[str, int]] | None:
        """Returns the ends of the partitions at the last call of `next_end`; None before the first call."""
        return None if self._latest is None else nest(self._latest)

    def next_end(self, start_json: dict[str, Any] | None, *, is_unlimited: bool) -> StreamOffset:
        """Returns the end of the batch that begins at `start_json`, or the start if the batch has to wait or is empty.

        Spark before 4.2 passes None as the start, which means the end of the last batch. If `is_unlimited` is True,
        the options do not limit the batch. Raises DataLossError if records are missing and failOnDataLoss is true, and
        ConfigError if the start names another owner than the option checkpointOwner.
        """
        start = self._start_offset(start_json)
        found = self._found = self._cluster.partitions()
        latest = self._cluster.latest(found.partitions)
        self._latest = latest
        starts = self._starts(start, found)
        readable_ends = self._until_target(latest)
        ends = self._checked_ends(start, found, starts, readable_ends)
        if not is_unlimited and self._options.max_offsets_per_trigger is not None:
            ends = limit_offsets(self._options.max_offsets_per_trigger, starts, ends)
        unread = sum(max(readable_ends[partition] - starts[partition], 0) for partition in found.partitions)
        if not is_unlimited and self._target is None and self._delay.holds_back(unread, self._clock.monotonic_ms()):
            return start
        new_starts = {
            partition: offset for partition, offset in starts.items() if self._is_new(start, found, partition)
        }
        if start.is_initial:
            new_starts = starts
        ids = {**{topic: start.ids[topic] for topic in found.missing if topic in start.ids}, **found.ids}
        end = StreamOffset(ends, ids, new_starts, owner=self._options.checkpoint_owner or start.owner)
        if not start.is_initial and not new_starts and ends == start.positions and ids == start.ids:
            return start  # the same object: Spark compares the JSON text of offsets
        self._last = end
        return end

    def ranges(self, start: dict[str, Any], end: dict[str, Any]) -> list[OffsetRange]:
        """Returns the ranges that the tasks of the batch between two offsets read.

        A repeated batch has the same ranges, without those of topics that have been deleted since. Raises DataLossError
        if records are missing and failOnDataLoss is true, and ConfigError if an offset names another owner than the
        option checkpointOwner.
        """
        first, last = self._own(StreamOffset.from_json(start)), self._own(StreamOffset.from_json(end))
        self._last = last
        fails = self._options.fail_on_data_loss
        plan = plan_micro_batch(first, last)
        for loss in plan.losses:
            report_loss(loss, fails=fails)
        found, self._found = self._found or self._cluster.partitions(), None
        wanted = [*plan.unknown, *(each.partition for each in plan.ranges)]
        if not frozenset(wanted) <= frozenset(found.partitions):
            found = self._cluster.partitions()  # a broker that has just started may not have known all topics
        present = self._present(wanted, last, found)
        starts = self._cluster.earliest([each for each in plan.unknown if each in present])
        ranges = [each for each in plan.ranges if each.partition in present]
        for partition, offset in starts.items():
            if offset > 0:
                self._report_late(partition, offset)
            ranges.append(OffsetRange(partition, offset, last.positions[partition]))
        ranges = within_log(self._cluster, [each for each in ranges if each.size], fails=fails)
        return divide(ranges, self._options.min_partitions, self._options.max_records_per_partition)

    def _present(
        self, partitions: list[TopicPartition], end: StreamOffset, found: SourcePartitions
    ) -> frozenset[TopicPartition]:
        """Returns those of the partitions that are in `found` and of the topics that `end` refers to, and those that
        the options do not select any more, which cannot be in `found`.

        Reports a loss for each of the others.
        """
        known, now = frozenset(found.partitions), StreamOffset({}, found.ids)
        present = set()
        for each in partitions:
            if not self._options.selection.may_have(each):
                present.add(each)
            elif each not in known:
                report_loss(f"Partition {each} is gone", fails=self._options.fail_on_data_loss)
            elif not end.is_same_topic(now, each.topic):
                loss = f"The topic of partition {each} was deleted and created again"
                report_loss(loss, fails=self._options.fail_on_data_loss)
            else:
                present.add(each)
        return frozenset(present)

    def _start_offset(self, start_json: dict[str, Any] | None) -> StreamOffset:
        if start_json is not None:
            return self._own(StreamOffset.from_json(start_json))
        return self._last if self._last is not None else StreamOffset({})

    def _own(self, offset: StreamOffset) -> StreamOffset:
        """Returns `offset`, which comes from the checkpoint.

        Raises ConfigError if the offset names another owner than the option checkpointOwner. An offset without an owner
        belongs to every query, and a query without the option accepts every owner.
        """
        mine = self._options.checkpoint_owner
        if mine and offset.owner and offset.owner != mine:
            raise ConfigError(
                f"The checkpoint belongs to {offset.owner}, and this is {mine}, which would continue at a position and "
                "with a state that are not its own: give it another folder (--checkpoint of the jobs, the option "
                "checkpointLocation), or start what the checkpoint belongs to"
            )
        return offset

    def _is_new(self, start: StreamOffset, found: SourcePartitions, partition: TopicPartition) -> bool:
        now = StreamOffset({}, found.ids)
        return partition not in start.positions or not start.is_same_topic(now, partition.topic)

    def _starts(self, start: StreamOffset, found: SourcePartitions) -> dict[TopicPartition, int]:
        """Returns the offset at which the batch starts in each partition.

        A new partition, and a partition of a topic that was created again, starts at its first record.
        """
        new = [partition for partition in found.partitions if self._is_new(start, found, partition)]
        first = self._cluster.earliest(new)
        for partition, offset in first.items():
            if offset > 0 and start.positions and partition not in start.positions:
                self._report_late(partition, offset)
        return {
            partition: first[partition] if partition in first else start.positions[partition]
            for partition in found.partitions
        }

    def _report_late(self, partition: TopicPartition, offset: int) -> None:
        loss = f"Added partition {partition} starts from {offset} instead of 0"
        report_loss(loss, fails=self._options.fail_on_data_loss)

    def _until_target(self, latest: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Returns for each partition the offset up to which the query may read, which is normally the offset in
        `latest`.

        If `stop_at_latest` was called, the offset is at most the end of the partition at the time of that call. It is 0
        for a partition that was created after the call.
        """
        if self._target is None:
            return latest
        return {partition: min(end, self._target.get(partition, 0)) for partition, end in latest.items()}

    def _checked_ends(
        self,
        start: StreamOffset,
        found: SourcePartitions,
        starts: dict[TopicPartition, int],
        latest: dict[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """Checks `latest`, the greatest possible end of the batch in each partition, and returns the ends to use.

        Reports a loss if an end is before the partition's offset in `starts`. If only the limit that `stop_at_latest`
        has set causes this, no loss is reported, and the end is the offset in `starts`. Also reports a loss for a
        partition of `start` whose topic no longer exists; its end is its offset in `start`. To report a loss is to
        raise DataLossError if failOnDataLoss is true, and otherwise to log a warning.
        """
        fails = self._options.fail_on_data_loss
        ends: dict[TopicPartition, int] = {}
        for partition, end in latest.items():
            start_offset = starts[partition]
            if end < start_offset and self._target is not None and end == self._target.get(partition, 0):
                end = start_offset  # the records before it were written and read after the target was set
            elif end < start_offset:
                report_loss(f"Partition {partition}'s offset was changed from {start_offset} to {end}", fails=fails)
            ends[partition] = end
        for partition in sorted(set(start.positions) - set(ends)):
            if partition.topic not in found.missing:
                continue  # the pattern no longer matches its topic
            report_loss(f"Partition {partition} is gone", fails=fails)
            ends[partition] = start.positions[partition]  # if the topic is created again, its id differs
        return ends
