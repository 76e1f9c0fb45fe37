"""The metrics of a client under the names, groups and tags of Java's clients, computed when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kafkapy.client.metrics import ClientMetrics, MetricName, Metrics, Samples
from kafkapy.protocol.api import ApiKey
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.network import Network
    from kafkapy.client.subscription import PartitionState, Subscription

_JOINS = (ApiKey.JOIN_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT)
_HEARTBEATS = (ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT)
Tags = tuple[tuple[str, str], ...]


class Group:
    """One group of metrics with the same tags. The methods add metrics to `found`, a dictionary of values by
    MetricName.
    """

    def __init__(self, found: Metrics, group: str, tags: Tags) -> None:
        self._found, self._group, self._tags = found, group, tags

    def put(self, name: str, value: float) -> None:
        """Adds a metric."""
        self._found[MetricName(name, self._group, self._tags)] = float(value)

    def meter(self, name: str, samples: Samples) -> None:
        """Adds `NAME-rate`, the sum of the recent values per second, and `NAME-total`, the sum of all values."""
        self.put(f"{name}-rate", samples.rate)
        self.put(f"{name}-total", samples.total)

    def count(self, name: str, samples: Samples) -> None:
        """Adds `NAME-rate`, the number of recent values per second, and `NAME-total`, the number of all values."""
        self.put(f"{name}-rate", samples.count_rate)
        self.put(f"{name}-total", samples.count)

    def spread(self, name: str, samples: Samples) -> None:
        """Adds `NAME-avg` and `NAME-max`, the average and the maximum of the recent values."""
        self.put(f"{name}-avg", samples.average)
        self.put(f"{name}-max", samples.maximum)


def _common(found: Metrics, network: Network) -> Group:
    """Adds the metrics of a client's connections and requests to `found`: those of all brokers together, and of each
    broker.

    Returns the group of the metrics of all brokers together, to which the caller may add metrics.
    """
    metrics = network.metrics
    own: Tags = (("client-id", metrics.client_id),)
    group = Group(found, f"{metrics.kind}-metrics", own)
    group.put("connection-count", network.connection_count())
    group.meter("connection-creation", metrics.created_connections)
    group.meter("connection-close", metrics.closed_connections)
    group.meter("failed-authentication", metrics.failed_authentications)
    nodes = [(node_id, each) for node_id, each in sorted(metrics.nodes.items()) if node_id >= 0]
    for name, samples in (("request", [each.sent for _, each in metrics.nodes.items()]),
                          ("response", [each.received for _, each in metrics.nodes.items()])):  # fmt: skip
        group.put(f"{name}-rate", sum(each.count_rate for each in samples))
        group.put(f"{name}-total", sum(each.count for each in samples))
    for name, samples in (("outgoing-byte", [each.sent for _, each in metrics.nodes.items()]),
                          ("incoming-byte", [each.received for _, each in metrics.nodes.items()])):  # fmt: skip
        group.put(f"{name}-rate", sum(each.rate for each in samples))
        group.put(f"{name}-total", sum(each.total for each in samples))
    for node_id, each in nodes:
        of_node = Group(found, f"{metrics.kind}-node-metrics", (*own, ("node-id", f"node-{node_id}")))
        of_node.count("request", each.sent)
        of_node.spread("request-size", each.sent)
        of_node.meter("outgoing-byte", each.sent)
        of_node.count("response", each.received)
        of_node.meter("incoming-byte", each.received)
        of_node.spread("request-latency", each.latency)
    return group


def _finished(found: Metrics, metrics: ClientMetrics) -> Metrics:
    count = MetricName("count", "kafka-metrics-count", (("client-id", metrics.client_id),))
    found[count] = float(len(found) + 1)
    return found


def connection_metrics(network: Network) -> Metrics:
    """Returns the metrics of a client's connections and requests."""
    found: Metrics = {}
    _common(found, network)
    return _finished(found, network.metrics)


def producer_metrics(network: Network, *, buffer_bytes: int, used_bytes: int) -> Metrics:
    """Returns the metrics of a producer.

    `buffer_bytes` is the size of its buffer (`buffer.memory`), and `used_bytes` the part of it that records occupy.
    """
    found: Metrics = {}
    metrics = network.metrics
    group = _common(found, network)
    topics = list(metrics.topics.items())
    for name, of_topics in (
        ("record-send", [each.records for _, each in topics]),
        ("record-retry", [each.retries for _, each in topics]),
        ("record-error", [each.errors for _, each in topics]),
    ):
        group.put(f"{name}-rate", sum(each.rate for each in of_topics))
        group.put(f"{name}-total", sum(each.total for each in of_topics))
    group.spread("batch-size", metrics.batch_size)
    group.spread("record-queue-time", metrics.queue_time)
    group.put("records-per-request-avg", metrics.records_per_request.average)
    group.put("record-size-avg", metrics.batch_size.average / metrics.batch_records.average)
    group.spread("request-latency", metrics.api(ApiKey.PRODUCE))
    group.spread("produce-throttle-time", metrics.throttle_time)
    group.put("requests-in-flight", network.requests_in_flight())
    group.put("metadata-age", network.metadata_age_s())
    group.put("buffer-total-bytes", buffer_bytes)
    group.put("buffer-available-bytes", buffer_bytes - used_bytes)
    for topic, each in topics:
        of_topic = Group(found, "producer-topic-metrics", (("client-id", metrics.client_id), ("topic", topic)))
        of_topic.meter("record-send", each.records)
        of_topic.meter("byte", each.size)
        of_topic.meter("record-retry", each.retries)
        of_topic.meter("record-error", each.errors)
    return _finished(found, metrics)


def consumer_metrics(network: Network, subscription: Subscription) -> Metrics:
    """Returns the metrics of a consumer."""
    found: Metrics = {}
    metrics = network.metrics
    group = _common(found, network)
    now_ms = network.clock.monotonic_ms()
    group.spread("time-between-poll", metrics.time_between_polls)
    group.put("poll-idle-ratio-avg", metrics.poll_idle_ratio.average)
    group.put("last-poll-seconds-ago", (now_ms - metrics.last_poll_ms) // 1000 if metrics.last_poll_ms else -1)
    own: Tags = (("client-id", metrics.client_id),)
    _add_coordinator_metrics(Group(found, "consumer-coordinator-metrics", own), metrics, subscription)
    fetches = Group(found, "consumer-fetch-manager-metrics", own)
    latencies = metrics.api(ApiKey.FETCH)
    fetches.count("fetch", latencies)
    fetches.spread("fetch-latency", latencies)
    fetches.spread("fetch-throttle-time", metrics.throttle_time)
    topics = list(metrics.topics.items())
    for name, of_topics in (
        ("records-consumed", [each.records for _, each in topics]),
        ("bytes-consumed", [each.size for _, each in topics]),
    ):
        fetches.put(f"{name}-rate", sum(each.rate for each in of_topics))
        fetches.put(f"{name}-total", sum(each.total for each in of_topics))
    for topic, each in topics:
        of_topic = Group(found, "consumer-fetch-manager-metrics", (*own, ("topic", topic)))
        of_topic.meter("records-consumed", each.records)
        of_topic.meter("bytes-consumed", each.size)
        of_topic.spread("fetch-size", each.size)
    _add_lags(fetches, found, own, subscription)
    return _finished(found, metrics)


def _add_coordinator_metrics(group: Group, metrics: ClientMetrics, subscription: Subscription) -> None:
    group.put("assigned-partitions", len(subscription.partitions))
    commits = metrics.api(ApiKey.OFFSET_COMMIT)
    group.count("commit", commits)
    group.spread("commit-latency", commits)
    group.count("join", metrics.api(*_JOINS))
    heartbeats = metrics.api(*_HEARTBEATS)
    group.count("heartbeat", heartbeats)
    group.put("heartbeat-response-time-max", heartbeats.maximum)
    group.count("sync", metrics.api(ApiKey.SYNC_GROUP))
    group.spread("rebalance-latency", metrics.rebalances)
    group.put("rebalance-latency-total", metrics.rebalances.total)
    group.put("rebalance-total", metrics.rebalances.count)
    group.put("rebalance-rate-per-hour", metrics.rebalances.count_rate * 3600)


def _add_lags(fetches: Group, found: Metrics, own: Tags, subscription: Subscription) -> None:
    lags: list[int] = []
    leads: list[int] = []
    for place, lag, lead in _lags(subscription):
        tags = (*own, ("topic", place.topic), ("partition", str(place.partition)))
        of_partition = Group(found, "consumer-fetch-manager-metrics", tags)
        of_partition.put("records-lag", lag)
        of_partition.put("records-lead", lead)
        lags.append(lag)
        leads.append(lead)
    fetches.put("records-lag-max", max(lags, default=float("nan")))
    fetches.put("records-lead-min", min(leads, default=float("nan")))


def _lags(subscription: Subscription) -> Iterator[tuple[TopicPartition, int, int]]:
    """Yields (partition, lag, lead) of each partition whose position and end are known.

    The lag is the number of offsets from the position to the high watermark; the lead is that from the log start to the
    position.
    """
    partitions: list[tuple[TopicPartition, PartitionState]] = list(subscription.partitions.items())
    for place, state in partitions:
        if state.position is not None and state.high_watermark >= 0:
            lag = max(state.high_watermark - state.position, 0)
            yield place, lag, max(state.position - max(state.log_start_offset, 0), 0)
