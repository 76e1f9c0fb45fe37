"""kafkapy's consumer with the additions that confluent-kafka's Consumer needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from typing import Any

from kafkapy.client.consumer import Consumer as KafkapyConsumer
from kafkapy.client.offset_lookup import OffsetAndTimestamp
from kafkapy.errors import Error
from kafkapy.types import TopicPartition as Place

_UNAVAILABLE = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.TOPIC_AUTHORIZATION_FAILED, Error.INVALID_TOPIC_EXCEPTION)


class InnerConsumer(KafkapyConsumer):
    """kafkapy's consumer, with methods that read its internal state for this package.

    Unlike its base class, it does not refuse calls by several threads, because `Consumer` holds a lock for each call.
    """

    def __init__(self, properties: dict[str, Any]) -> None:
        super().__init__(properties)
        self._single_thread = nullcontext()  # type: ignore[assignment]

    def attend(self) -> None:
        """Performs the work that is due for the group without returning records.

        The call counts as a poll, so that `max.poll.interval.ms` begins again.
        """
        if self._subscription.is_automatic or self._subscription.is_manual:
            self._group.poll(self._network.clock.monotonic_ms())

    def is_subscribed(self) -> bool:
        """Returns True if the group assigns the partitions (`subscribe`), False if the program does (`assign`)."""
        return self._subscription.is_automatic

    def watermarks(self, place: Place) -> tuple[int, int] | None:
        """Returns the log start offset and the high watermark of a partition, as the last fetch response reported them.

        An offset is negative if there was no fetch yet. Returns None if the partition is not assigned.
        """
        state = self._subscription.partitions.get(place)
        return None if state is None else (state.log_start_offset, state.high_watermark)

    def ends_reached(self) -> Iterable[tuple[Place, int]]:
        """Yields (partition, position) for each assigned partition of which the consumer has returned all records.

        The position is the partition's end offset, or the last stable offset for `read_committed`. A position behind
        the end, to which the program has sought, is not an end: the next fetch response resets it.
        """
        reads_committed = self._fetcher.isolation_level
        for place, state in self._subscription.partitions.items():
            end = state.last_stable_offset if reads_committed else state.high_watermark
            if state.position is not None and not state.buffers and end == state.position:
                yield place, end

    def offsets_for_times(
        self, timestamps: Mapping[Place, int], timeout: float | None = None
    ) -> dict[Place, OffsetAndTimestamp | None]:
        """Returns the offset of each partition's first record with the given timestamp or a later one, or None. Blocks.

        Unlike the method of the base class, it accepts the protocol's special timestamps, such as -1 for the end.
        """
        return self._look_up(timestamps, timeout)

    def lacks(self, place: Place, left_s: Callable[[], float]) -> bool:
        """Returns whether a partition does not exist. Looks up the topic if the partition is not known.

        Blocks in this case, for `left_s()` seconds at most, and then raises RequestTimedOut.
        """
        info = self._network.cluster.topics.get(place.topic)
        if info is not None and any(each.partition == place.partition for each in info.partitions):
            return False
        return all(each.partition != place.partition for each in self.partitions_for(place.topic, left_s()))

    def unavailable(self) -> dict[str, Error]:
        """Returns the subscribed topics that do not exist or may not be read, each with its error."""
        errors = self._network.cluster.errors
        return {topic: errors[topic] for topic in self._subscription.topics if errors.get(topic) in _UNAVAILABLE}

    def knows_coordinator(self) -> bool:
        """Returns whether the coordinator of the group is known; looks it up otherwise. Does not block."""
        return self._group.commits.knows_coordinator()

    def await_coordinator(self, timeout_s: float) -> None:
        """Blocks until the coordinator of the group is known; raises RequestTimedOut after `timeout_s` seconds."""
        with self._network.uninterrupted():
            self._group.commits.await_coordinator(timeout_s)

    def await_commits(self, timeout_s: float) -> None:
        """Blocks until a commit has ended, for at most `timeout_s` seconds, and runs the callbacks of ended commits."""
        commits = self._group.commits
        with self._network.uninterrupted():
            self._network.wait_until(lambda: commits.has_callbacks, timeout_s)
        commits.call_back()
