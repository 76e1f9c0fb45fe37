"""Where a streaming query stands and how far it may go: the driver's side, asked by Spark before every micro-batch."""

from __future__ import annotations

from typing import Any

from kafkapy.spark.batch_planning import unknown_topics, within_log
from kafkapy.spark.data_loss import report_loss
from kafkapy.spark.limits import TriggerDelay, divide, limit_offsets
from kafkapy.spark.options import ReadOptions
from kafkapy.spark.source_cluster import SourceCluster, SourcePartitions
from kafkapy.spark.start_and_end import resolve
from kafkapy.spark.stream_offset import OffsetRange, StreamOffset, plan_batch
from kafkapy.spark.topic_partitions import nest
from kafkapy.types import Clock, SystemClock, TopicPartition


class StreamPosition:
    """Owns the connection of one query's driver.  One thread.

    `initial` is found once: Spark asks twice, and must not get two answers. All else follows from what Spark hands in.
    """

    def __init__(
        self, options: ReadOptions, *, cluster: SourceCluster | None = None, clock: Clock | None = None
    ) -> None:
        self._options = options
        self._clock = clock or SystemClock()
        self._cluster = cluster or SourceCluster(options, clock=clock)
        self._delay = TriggerDelay(options.min_offsets_per_trigger, options.max_trigger_delay_ms)
        self._initial: StreamOffset | None = None
        self._target: dict[TopicPartition, int] | None = None  # of a run that ends with what is there now
        self._latest: dict[TopicPartition, int] | None = None
        self._last: StreamOffset | None = None

    def close(self) -> None:
        self._cluster.close()

    def initial(self) -> StreamOffset:
        """Where a new query begins. ApiError for a topic that is not there; ConfigError."""
        if self._initial is None:
            found = self._cluster.partitions()
            if found.missing:
                raise unknown_topics(found.missing)
            positions = resolve(self._options.starting, found.partitions, self._cluster.look_up)
            self._initial = self._last = StreamOffset(positions, found.ids, is_initial=True)
        return self._initial

    def stop_at_latest(self) -> None:
        """From here on nothing that is written later is read."""
        self._target = self._cluster.latest(self._cluster.partitions().partitions)

    def latest_seen(self) -> dict[str, dict[str, int]] | None:
        """The ends of the partitions when Spark last asked how far it may go."""
        return None if self._latest is None else nest(self._latest)

    def next_end(self, told: dict[str, Any] | None, *, is_unlimited: bool) -> StreamOffset:
        """The end of the batch that begins at `told` (None: Spark before 4.2 does not say). The same offset again if
        there is nothing to read, or too little. DataLossError."""
        start = self._start_of(told)
        found = self._cluster.partitions()
        latest = self._cluster.latest(found.partitions)
        self._latest = latest
        begins = self._begins(start, found)
        ends = self._checked_ends(start, found, begins, self._until_target(latest))
        if not is_unlimited and self._options.max_offsets_per_trigger is not None:
            ends = limit_offsets(self._options.max_offsets_per_trigger, begins, ends)
        waiting = sum(max(self._until_target(latest)[where] - begins[where], 0) for where in found.partitions)
        if not is_unlimited and self._target is None and self._delay.holds_back(waiting, self._clock.monotonic_ms()):
            return start
        news = {where: begin for where, begin in begins.items() if self._is_new(start, found, where)}
        if start.is_initial:
            news = begins
        ids = {**{topic: start.ids[topic] for topic in found.missing if topic in start.ids}, **found.ids}
        end = StreamOffset(ends, ids, news)
        if not start.is_initial and not news and ends == start.positions and ids == start.ids:
            return start  # to the letter: Spark compares texts
        self._last = end
        return end

    def ranges(self, start: dict[str, Any], end: dict[str, Any]) -> list[OffsetRange]:
        """What the tasks of the batch between two offsets read. The same again if the batch is repeated."""
        first, last = StreamOffset.from_json(start), StreamOffset.from_json(end)
        self._last = last
        fails = self._options.fail_on_data_loss
        plan = plan_batch(first, last)
        for what in plan.losses:
            report_loss(what, fails=fails)
        begins = self._cluster.earliest(plan.unknown)
        for where, begin in begins.items():
            if begin > 0:
                self._report_late(where, begin)
        ranges = [*plan.ranges, *(OffsetRange(where, begins[where], last.positions[where]) for where in begins)]
        ranges = within_log(self._cluster, [each for each in ranges if each.size], fails=fails)
        return divide(ranges, self._options.min_partitions, self._options.max_records_per_partition)

    # Own

    def _start_of(self, told: dict[str, Any] | None) -> StreamOffset:
        if told is not None:
            return StreamOffset.from_json(told)
        return self._last if self._last is not None else StreamOffset({})

    def _is_new(self, start: StreamOffset, found: SourcePartitions, where: TopicPartition) -> bool:
        now = StreamOffset({}, found.ids)
        return where not in start.positions or not start.is_same_topic(now, where.topic)

    def _begins(self, start: StreamOffset, found: SourcePartitions) -> dict[TopicPartition, int]:
        """Where each partition goes on; new ones, and those of topics made anew, at their first record."""
        new = [where for where in found.partitions if self._is_new(start, found, where)]
        first = self._cluster.earliest(new)
        for where, begin in first.items():
            if begin > 0 and start.positions and where not in start.positions:
                self._report_late(where, begin)
        return {where: first[where] if where in first else start.positions[where] for where in found.partitions}

    def _report_late(self, where: TopicPartition, begin: int) -> None:
        what = f"Added partition {where} starts from {begin} instead of 0"
        report_loss(what, fails=self._options.fail_on_data_loss)

    def _until_target(self, latest: dict[TopicPartition, int]) -> dict[TopicPartition, int]:
        if self._target is None:
            return latest
        return {where: min(end, self._target.get(where, 0)) for where, end in latest.items()}

    def _checked_ends(
        self,
        start: StreamOffset,
        found: SourcePartitions,
        begins: dict[TopicPartition, int],
        latest: dict[TopicPartition, int],
    ) -> dict[TopicPartition, int]:
        """The ends as the brokers have them, where they make sense; what does not is a loss."""
        fails = self._options.fail_on_data_loss
        ends: dict[TopicPartition, int] = {}
        for where, end in latest.items():
            if end < begins[where] and self._target is not None and end == self._target.get(where, 0):
                end = begins[where]  # written and read after the target was set: nothing left up to it
            elif end < begins[where]:
                report_loss(f"Partition {where}'s offset was changed from {begins[where]} to {end}", fails=fails)
            ends[where] = end
        for where in sorted(set(start.positions) - set(ends)):
            if where.topic not in found.missing:
                continue  # no longer among the topics of the pattern
            report_loss(f"Partition {where} is gone", fails=fails)
            ends[where] = start.positions[where]  # if the topic comes again, its id tells
        return ends
