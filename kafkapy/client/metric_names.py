"""The metrics of a client under the names, groups and tags of Java's clients, computed when they are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkapy.client.metrics import ClientMetrics, MetricName, Metrics, NodeMetrics, Samples
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.types import TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.network import Network
    from kafkapy.client.subscription import PartitionState, Subscription

_HEARTBEATS = (ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT)
_CALLS = ("flush", "metadata-wait")
_TRANSACTION_CALLS = ("txn-init", "txn-begin", "txn-send-offsets", "txn-prepare", "txn-commit", "txn-abort")
_NS_PER_S = 1e9
Tags = tuple[tuple[str, str], ...]


class Memory(NamedTuple):
    """A producer's buffer: its size in bytes (`buffer.memory`), the bytes that records occupy, and the number of
    threads that wait for space.
    """

    limit: int
    used: int
    waiting_threads: int


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

    def times(self, name: str, samples: Samples) -> None:
        """Adds three metrics of durations in ns: their average, their total, and the part of the recent time that they
        have taken.

        The names are `NAME-time-ns-avg`, `NAME-time-ns-total` and `NAME-ratio`.
        """
        self.put(f"{name}-time-ns-avg", samples.average)
        self.put(f"{name}-time-ns-total", samples.total)
        self.put(f"{name}-ratio", samples.rate / _NS_PER_S)

    def spread(self, name: str, samples: Samples) -> None:
        """Adds `NAME-avg` and `NAME-max`, the average and the maximum of the recent values."""
        self.put(f"{name}-avg", samples.average)
        self.put(f"{name}-max", samples.maximum)


def _common(found: Metrics, network: Network) -> Group:
    """Adds the metrics of a client's connections and requests to `found`: the metrics of all brokers together, and the
    metrics of each broker.

    Returns the group of the metrics of all brokers together, to which the caller may add metrics.
    """
    metrics = network.metrics
    own: Tags = (("client-id", metrics.client_id),)
    group = Group(found, f"{metrics.kind}-metrics", own)
    group.put("connection-count", network.connection_count())
    group.meter("connection-creation", metrics.created_connections)
    group.meter("connection-close", metrics.closed_connections)
    group.meter("successful-authentication", metrics.authentications)
    group.meter("failed-authentication", metrics.failed_authentications)
    group.count("successful-reauthentication", metrics.reauthentications)
    group.meter("failed-reauthentication", metrics.failed_reauthentications)
    group.spread("reauthentication-latency", metrics.reauthentications)
    group.count("select", metrics.waits)
    group.times("io-wait", metrics.waits)
    group.times("io", metrics.steps)
    Group(found, "app-info", own).put("start-time-ms", network.clock.wall_ms() - metrics.age_ms())
    _add_requests(group, list(metrics.nodes.values()))
    nodes = [(node_id, each) for node_id, each in sorted(metrics.nodes.items()) if node_id >= 0]
    for node_id, each in nodes:
        of_node = Group(found, f"{metrics.kind}-node-metrics", (*own, ("node-id", f"node-{node_id}")))
        of_node.count("request", each.sent)
        of_node.spread("request-size", each.sent)
        of_node.meter("outgoing-byte", each.sent)
        of_node.count("response", each.received)
        of_node.meter("incoming-byte", each.received)
        of_node.spread("request-latency", each.latency)
    return group


def _add_requests(group: Group, nodes: list[NodeMetrics]) -> None:
    """Adds the rates, totals and sizes of the requests to all brokers together, and of their responses."""
    sent, received = [each.sent for each in nodes], [each.received for each in nodes]
    for name, counted in (("request", sent), ("response", received)):
        group.put(f"{name}-rate", sum(each.count_rate for each in counted))
        group.put(f"{name}-total", sum(each.count for each in counted))
    for name, measured in (("outgoing-byte", sent), ("incoming-byte", received)):
        group.put(f"{name}-rate", sum(each.rate for each in measured))
        group.put(f"{name}-total", sum(each.total for each in measured))
    recent = [each for each in sent if each.recent_count]
    size = sum(each.average * each.recent_count for each in recent)
    group.put("request-size-avg", _ratio(size, sum(each.recent_count for each in recent)))
    group.put("request-size-max", max((each.maximum for each in recent), default=float("nan")))


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else float("nan")


def _finished(found: Metrics, metrics: ClientMetrics) -> Metrics:
    count = MetricName("count", "kafka-metrics-count", (("client-id", metrics.client_id),))
    found[count] = float(len(found) + 1)
    return found


def connection_metrics(network: Network) -> Metrics:
    """Returns the metrics of a client's connections and requests."""
    found: Metrics = {}
    _common(found, network)
    return _finished(found, network.metrics)


def producer_metrics(network: Network, memory: Memory) -> Metrics:
    """Returns the metrics of a producer."""
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
    group.put("record-size-max", metrics.largest_record.maximum)
    group.put("compression-rate-avg", metrics.compression.average)
    group.count("batch-split", metrics.batch_splits)
    group.spread("request-latency", metrics.api(ApiKey.PRODUCE))
    group.spread("produce-throttle-time", metrics.throttle_time)
    group.put("requests-in-flight", network.requests_in_flight())
    group.put("metadata-age", network.metadata_age_s())
    group.put("buffer-total-bytes", memory.limit)
    group.put("buffer-available-bytes", memory.limit - memory.used)
    group.put("waiting-threads", memory.waiting_threads)
    group.count("buffer-exhausted", metrics.memory_failures)
    group.put("bufferpool-wait-time-ns-total", metrics.memory_waits.total)
    group.put("bufferpool-wait-ratio", metrics.memory_waits.rate / _NS_PER_S)
    for name in (*_CALLS, *_TRANSACTION_CALLS):
        group.put(f"{name}-time-ns-total", metrics.time_totals[name])
    for topic, each in topics:
        of_topic = Group(found, "producer-topic-metrics", (("client-id", metrics.client_id), ("topic", topic)))
        of_topic.meter("record-send", each.records)
        of_topic.meter("byte", each.size)
        of_topic.put("compression-rate", each.compression.average)
        of_topic.meter("record-retry", each.retries)
        of_topic.meter("record-error", each.errors)
    return _finished(found, metrics)


def consumer_metrics(network: Network, subscription: Subscription) -> Metrics:
    """Returns the metrics of a consumer."""
    found: Metrics = {}
    metrics = network.metrics
    group = _common(found, network)
    group.spread("time-between-poll", metrics.time_between_polls)
    group.put("poll-idle-ratio-avg", metrics.poll_idle_ratio.average)
    group.put("last-poll-seconds-ago", _seconds_since(network, metrics.last_poll_ms))
    for name in ("commit-sync", "committed"):
        group.put(f"{name}-time-ns-total", metrics.time_totals[name])
    own: Tags = (("client-id", metrics.client_id),)
    _add_coordinator_metrics(Group(found, "consumer-coordinator-metrics", own), network, subscription)
    fetches = Group(found, "consumer-fetch-manager-metrics", own)
    latencies = metrics.api(ApiKey.FETCH)
    fetches.count("fetch", latencies)
    fetches.spread("fetch-latency", latencies)
    fetches.spread("fetch-throttle-time", metrics.throttle_time)
    fetches.spread("fetch-size", metrics.fetch_size)
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
        of_topic.put("records-per-request-avg", _ratio(each.records.rate, each.size.count_rate))
    records_per_s = sum(each.records.rate for _, each in topics)
    fetches.put("records-per-request-avg", _ratio(records_per_s, metrics.fetch_size.count_rate))
    _add_lags(fetches, found, own, subscription)
    return _finished(found, metrics)


def _seconds_since(network: Network, time_ms: int) -> int:
    """Returns the whole seconds since a monotonic time; -1, as in Java, for the time 0, which means never."""
    return (network.clock.monotonic_ms() - time_ms) // 1000 if time_ms else -1


def _add_coordinator_metrics(group: Group, network: Network, subscription: Subscription) -> None:
    metrics = network.metrics
    group.put("assigned-partitions", len(subscription.partitions))
    commits = metrics.api(ApiKey.OFFSET_COMMIT)
    group.count("commit", commits)
    group.spread("commit-latency", commits)
    if network.config["group.protocol"].lower() == "classic":
        for name, key in (("join", ApiKey.JOIN_GROUP), ("sync", ApiKey.SYNC_GROUP)):
            group.count(name, metrics.api(key))
            group.spread(f"{name}-time", metrics.api(key))
    heartbeats = metrics.api(*_HEARTBEATS)
    group.count("heartbeat", heartbeats)
    group.put("heartbeat-response-time-max", heartbeats.maximum)
    last_ms = max(metrics.last_sent_ms.get(key, 0) for key in _HEARTBEATS)
    group.put("last-heartbeat-seconds-ago", _seconds_since(network, last_ms))
    group.put("last-rebalance-seconds-ago", _seconds_since(network, metrics.last_rebalance_ms))
    for name in ("assigned", "revoked", "lost"):
        calls = metrics.listener_calls.get(f"on_partitions_{name}") or metrics.samples()
        group.spread(f"partition-{name}-latency", calls)
    group.spread("rebalance-latency", metrics.rebalances)
    group.put("rebalance-latency-total", metrics.rebalances.total)
    group.put("rebalance-total", metrics.rebalances.count)
    group.put("rebalance-rate-per-hour", metrics.rebalances.count_rate * 3600)


def _add_lags(fetches: Group, found: Metrics, own: Tags, subscription: Subscription) -> None:
    lags: list[int] = []
    leads: list[int] = []
    states: list[tuple[TopicPartition, PartitionState]] = list(subscription.partitions.items())
    for place, state in states:
        lag, lead = state.lag, state.lead
        if lag is None or lead is None:
            continue
        tags = (*own, ("topic", place.topic), ("partition", str(place.partition)))
        of_partition = Group(found, "consumer-fetch-manager-metrics", tags)
        of_partition.put("records-lag", lag)
        of_partition.put("records-lead", lead)
        of_partition.put("preferred-read-replica", state.preferred_replica)
        if state.metrics is not None:
            of_partition.spread("records-lag", state.metrics.lag)
            of_partition.put("records-lead-avg", state.metrics.lead.average)
            of_partition.put("records-lead-min", state.metrics.lead.minimum)
        lags.append(lag)
        leads.append(lead)
    fetches.put("records-lag-max", max(lags, default=float("nan")))
    fetches.put("records-lead-min", min(leads, default=float("nan")))
