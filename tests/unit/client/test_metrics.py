"""The measurements of a client: windows, names, and their encoding for pushes."""

from __future__ import annotations

import math

import pytest

from kafkapy.client.metrics import ClientMetrics, MetricName, Samples, TimeTotals
from kafkapy.client.telemetry_encoding import encode_metrics, is_requested, telemetry_name
from kafkapy.protocol.api import ApiKey
from kafkapy.server.otlp import read_metrics


class Clock:
    now_ms = 1000

    def monotonic_ms(self) -> int:
        return self.now_ms


def test_rates_averages_and_maxima_are_those_of_the_recent_windows():
    clock = Clock()
    samples = Samples(clock, 1000, 2)
    assert (samples.rate, samples.total, samples.count) == (0.0, 0.0, 0)
    assert math.isnan(samples.average)
    assert math.isnan(samples.maximum)
    for value in (10, 30):
        samples.add(value)
        clock.now_ms += 500
    assert (samples.rate, samples.count_rate) == (40.0, 2.0)  # over one full window at least
    assert (samples.average, samples.maximum, samples.total) == (20.0, 30, 40.0)
    assert (samples.minimum, samples.recent_count) == (10, 2)
    clock.now_ms += 500
    samples.add(2)
    assert samples.rate == 42 / 1.5
    clock.now_ms += 1500  # the first window is too old now
    assert (samples.average, samples.maximum, samples.total) == (2.0, 2, 42.0)
    clock.now_ms += 5000
    assert samples.rate == 0.0
    assert samples.total == 42.0


def test_taken_values_are_those_since_the_last_call():
    samples = Samples(Clock(), 1000, 2)
    assert samples.take() == (0, 0.0, 0.0)
    for value in (10, 30):
        samples.add(value)
    assert samples.take() == (2, 40.0, 30)
    samples.add(5)
    assert samples.take() == (1, 5.0, 5)
    assert samples.take() == (0, 0.0, 0.0)
    assert (samples.count, samples.total) == (3, 45.0)


def test_requests_and_responses_are_counted_by_broker_and_api():
    clock = Clock()
    metrics = ClientMetrics("consumer", "mine", clock, window_ms=1000, number=2)
    sent_ms = metrics.sent(1, [b"abc", b"de"])
    clock.now_ms += 7
    metrics.received(1, ApiKey.FETCH, 100, sent_ms, 3)
    node = metrics.nodes[1]
    assert (node.sent.total, node.received.total, node.latency.maximum) == (5.0, 100.0, 7)
    assert metrics.api(ApiKey.FETCH).average == 7.0
    assert metrics.api(ApiKey.PRODUCE).count == 0
    assert metrics.throttle_time.maximum == 3


def test_the_idle_ratio_is_the_time_of_polls_of_that_time_and_the_time_between_polls():
    clock = Clock()
    metrics = ClientMetrics("consumer", "mine", clock, window_ms=1000, number=2)
    metrics.polled()
    metrics.poll_ended()
    assert math.isnan(metrics.poll_idle_ratio.average)  # the first poll took no time
    clock.now_ms += 60
    metrics.polled()
    clock.now_ms += 20
    metrics.poll_ended()
    assert (metrics.poll_idle_ratio.average, metrics.time_between_polls.total) == (0.25, 60.0)


def test_batches_responses_and_rebalances_are_measured():
    clock = Clock()
    metrics = ClientMetrics("consumer", "mine", clock, window_ms=1000, number=2)
    metrics.batch_sent("t", records=2, size=300, largest_record=200, queued_ms=5)
    metrics.batch_compressed("t", 0.5)
    metrics.batch_compressed("t", 1.0)
    assert (metrics.largest_record.maximum, metrics.compression.average) == (200, 0.75)
    assert metrics.topic("t").compression.average == 0.75
    metrics.fetched({"u": 10, "v": 30})
    metrics.fetched({"u": 20})
    assert (metrics.fetch_size.average, metrics.fetch_size.maximum) == (30.0, 40)
    assert (metrics.topic("u").size.total, metrics.topic("u").size.count) == (30.0, 2)
    began_ms = clock.now_ms
    clock.now_ms += 8
    metrics.rebalanced(began_ms)
    metrics.listener_called("on_partitions_assigned", began_ms)
    assert (metrics.rebalances.maximum, metrics.last_rebalance_ms) == (8, clock.now_ms)
    assert metrics.listener_calls["on_partitions_assigned"].average == 8.0


def test_the_first_authentication_of_a_connection_is_counted_apart_from_the_later_ones():
    clock = Clock()
    metrics = ClientMetrics("producer", "mine", clock, window_ms=1000, number=2)
    metrics.authenticated(None)
    began_ms = clock.now_ms
    clock.now_ms += 6
    metrics.authenticated(began_ms)
    assert (metrics.authentications.count, metrics.reauthentications.count) == (1, 1)
    assert metrics.reauthentications.maximum == 6


def test_the_time_in_a_method_is_counted_also_if_it_raises():
    totals = TimeTotals()
    assert totals["flush"] == 0
    with totals.spent_in("flush"):
        pass
    first = totals["flush"]
    with pytest.raises(LookupError), totals.spent_in("flush"):
        raise LookupError
    assert totals["flush"] > first > 0


def test_the_names_of_pushed_metrics_are_those_of_kip_714():
    name = MetricName("connection-creation-total", "producer-metrics", (("client-id", "a"),))
    assert telemetry_name(name) == "org.apache.kafka.producer.connection.creation.total"
    node = MetricName("request-latency-avg", "producer-node-metrics", (("client-id", "a"), ("node-id", "node-1")))
    assert telemetry_name(node) == "org.apache.kafka.producer.node.request.latency.avg"
    count = MetricName("count", "kafka-metrics-count", (("client-id", "a"),))
    assert telemetry_name(count) == "org.apache.kafka.kafka.count.count"
    assert is_requested(name, ["org.apache.kafka.producer.connection."])
    assert is_requested(name, [""])
    assert not is_requested(name, ["org.apache.kafka.consumer."])
    assert not is_requested(name, [])


def test_metrics_are_encoded_as_gauges_and_sums():
    tags = (("client-id", "a"), ("node-id", "node-1"))
    total, latency = MetricName("request-total", "p-metrics", tags), MetricName("latency-avg", "p-metrics", tags)
    empty = MetricName("size-avg", "p-metrics", tags)
    metrics = {total: 7.0, latency: 1.5, empty: float("nan")}
    found = read_metrics(encode_metrics(metrics, {total: 5.0}, {"group_id": "g"}, 1), 10)
    assert found.dropped == 0
    assert [(each.name, each.attributes, each.value, each.is_difference) for each in found.points] == [
        ("org.apache.kafka.p.request.total", "node_id=node-1", 2.0, True),
        ("org.apache.kafka.p.latency.avg", "node_id=node-1", 1.5, False),
    ]
    whole = read_metrics(encode_metrics(metrics, None, {}, 1), 10)
    assert [(each.value, each.is_difference) for each in whole.points] == [(7.0, False), (1.5, False)]
