"""The metrics of the clients, in the form of kafka-python's `metrics()`.

kafkapy's client counts totals only. These metrics therefore contain neither rates nor averages over a window of time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from kafkapy.client.consumer import Consumer
    from kafkapy.client.producer import Producer


class MetricName(NamedTuple):
    """The name, the group and the tags of a metric."""

    name: str
    group: str
    description: str
    tags: tuple[tuple[str, str], ...]


def producer_metrics(producer: Producer, client_id: str) -> dict[MetricName, float]:
    """Returns the metrics of a producer."""
    tags = (("client-id", client_id),)
    network = producer._network
    values = {
        "record-send-total": ("producer-metrics", "The records that were added to batches.", producer.records_appended),
        "buffer-total-bytes": ("producer-metrics", "The size of buffer.memory.", producer.memory_limit),
        "buffer-available-bytes": (
            "producer-metrics",
            "The unused part of buffer.memory.",
            producer.memory_limit - producer.memory_used,
        ),
        "connection-count": ("producer-metrics", "The open connections.", len(network._connections)),
    }
    return _named(values, tags)


def consumer_metrics(consumer: Consumer, client_id: str, records: int) -> dict[MetricName, float]:
    """Returns the metrics of a consumer that has returned `records` records."""
    tags = (("client-id", client_id),)
    states = list(consumer._subscription.partitions.values())
    lags = [lag for state in states if (lag := state.lag) is not None]
    values = {
        "records-consumed-total": ("consumer-fetch-manager-metrics", "The records that were returned.", records),
        "records-lag-max": (
            "consumer-fetch-manager-metrics",
            "The greatest distance of a position to the end of its partition.",
            max(lags, default=0),
        ),
        "assigned-partitions": (
            "consumer-coordinator-metrics",
            "The assigned partitions.",
            len(consumer._subscription.partitions),
        ),
        "connection-count": ("consumer-metrics", "The open connections.", len(consumer._network._connections)),
    }
    return _named(values, tags)


def _named(values: Mapping[str, tuple[str, str, float]], tags: tuple[tuple[str, str], ...]) -> dict[MetricName, float]:
    found = {
        MetricName(name, group, description, tags): float(value) for name, (group, description, value) in values.items()
    }
    count = MetricName("count", "kafka-metrics-count", "The number of metrics.", tags)
    return {count: float(len(found) + 1), **found}


def grouped(metrics: Mapping[MetricName, float]) -> dict[str, dict[str, Any]]:
    """Returns metrics as {group: {name: value}}."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in metrics.items():
        found.setdefault(name.group, {})[name.name] = value
    return found
