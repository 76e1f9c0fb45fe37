"""Counters by topic. A bounded number of topics have counters of their own; all further topics share the counters of
"(other)".

A topic keeps its counters while it is hosted, so that a counter never decreases. A topic that is created when the limit
is reached shares the counters of "(other)" until it is deleted and created again.
"""

from __future__ import annotations

from kafkapy._core.broker_state.topic_counters import TopicCounters
from kafkapy.metrics.metric import format_labels

# No topic can have this name.
OTHER = "(other)"


class TopicCounterTable:
    """The counters of the topics of which this broker has partitions.

    The thread that owns the partitions changes the table; any thread may call `listed`.
    """

    def __init__(self, limit: int) -> None:
        """Creates an empty table. `limit` is the number of topics with counters of their own; further topics share
        "(other)"."""
        self._limit = limit
        self.total = TopicCounters()
        self._other = TopicCounters(_labels(OTHER), self.total)
        self._own: dict[str, TopicCounters] = {}
        self._partitions: dict[str, int] = {}  # topic -> number of hosted partitions
        self._has_shared = False

    def enter(self, topic: str) -> TopicCounters:
        """Records that this broker has one more partition of the topic. Returns the counters that the partition must
        increase."""
        hosted = self._partitions.get(topic, 0)
        self._partitions[topic] = hosted + 1
        counters = self._own.get(topic)
        if counters is not None:
            return counters
        if hosted or len(self._own) >= self._limit:
            self._has_shared = True
            return self._other
        counters = self._own[topic] = TopicCounters(_labels(topic), self.total)
        return counters

    def leave(self, topic: str) -> None:
        """Records that this broker has one partition of the topic less.

        The topic's counters are removed with its last partition, as in Kafka.
        """
        left = self._partitions.get(topic, 0) - 1
        if left > 0:
            self._partitions[topic] = left
        else:
            self._partitions.pop(topic, None)
            self._own.pop(topic, None)

    def listed(self) -> list[TopicCounters]:
        """Returns the counters of all topics together, then the counters of each topic, then the counters of "(other)"
        if topics share them.

        Any thread may call this.
        """
        others = [self._other] if self._has_shared else []
        return [self.total, *list(self._own.values()), *others]


def _labels(topic: str) -> bytes:
    return format_labels(("topic",), (topic,)).encode()
