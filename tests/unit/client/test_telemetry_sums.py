"""The changes that a client pushes every 100 ms: they add up to the totals of its metrics, the last push included."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from threading import RLock
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.client.configuration import producer_config
from kafkapy.client.metrics import MetricName
from kafkapy.client.telemetry import TelemetryReporter
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from kafkapy.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from kafkapy.server.otlp import read_metrics
from tests.mock_clock import MockClock

INTERVAL_MS = 100
SENT = MetricName("record-send-total", "producer-metrics", ())


class HeldNetwork:
    """A network with one broker that responds when the test says so, and that adds up what it receives."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.clock = MockClock()
        self.cluster = SimpleNamespace(nodes={1: None})
        self.held: list[tuple[Any, Callable[..., None]]] = []
        self.total = 0.0
        self.pushes: list[PushTelemetryRequest] = []
        self.refusals: list[Error] = []

    def is_connected(self, node_id: int) -> bool:
        return True

    def versions(self, node_id: int) -> dict[int, tuple[int, int]]:
        return {int(ApiKey.PUSH_TELEMETRY): (0, 0)}

    def submit(
        self, node_id: int, key: ApiKey, build: Callable[[int], Any], on_done: Callable[[Any, int, None], None]
    ) -> None:
        self.held.append((build(0), on_done))

    def uninterrupted(self) -> nullcontext[None]:
        return nullcontext()

    def wait_until(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        while self.held and not is_done():
            self.respond()
        return is_done()

    def respond(self) -> None:
        request, on_done = self.held.pop(0)
        if not isinstance(request, PushTelemetryRequest):
            subscribed = GetTelemetrySubscriptionsResponse(
                requested_metrics=[""], push_interval_ms=INTERVAL_MS, delta_temporality=True, subscription_id=1
            )
            on_done(subscribed, 0, None)
            return
        self.pushes.append(request)
        if self.refusals:
            on_done(PushTelemetryResponse(error_code=self.refusals.pop()), 0, None)
            return
        self.total += sum(point.value for point in read_metrics(request.metrics, 10).points)
        on_done(PushTelemetryResponse(), 0, None)


@pytest.mark.parametrize("seed", range(20))
def test_the_pushed_changes_add_up(seed: int) -> None:
    chosen = random.Random(seed)
    network = HeldNetwork()
    sent = 0.0
    reporter = TelemetryReporter(network, producer_config({"bootstrap.servers": "memory:1"}), lambda: {SENT: sent})  # type: ignore[arg-type]
    for _ in range(200):
        sent += chosen.randrange(5)
        network.clock.advance(chosen.randrange(2 * INTERVAL_MS))
        reporter.run(network.clock.monotonic_ms())
        if network.held and chosen.random() < 0.7:
            if chosen.random() < 0.1:
                network.refusals.append(Error.THROTTLING_QUOTA_EXCEEDED)
            network.respond()
    assert len(network.pushes) > 20
    network.refusals.clear()
    reporter.end()
    assert network.pushes[-1].terminating
    assert network.total == sent


def test_a_push_in_flight_is_finished_before_the_last_one() -> None:
    network = HeldNetwork()
    sent = 1.0
    reporter = TelemetryReporter(network, producer_config({"bootstrap.servers": "memory:1"}), lambda: {SENT: sent})  # type: ignore[arg-type]
    reporter.run(0)
    network.respond()
    network.clock.advance(2 * INTERVAL_MS)
    reporter.run(network.clock.monotonic_ms())
    assert len(network.held) == 1
    sent = 3.0
    reporter.end()
    assert [push.terminating for push in network.pushes] == [False, True]
    assert network.total == 3.0
