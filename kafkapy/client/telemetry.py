"""The pushes of a client's metrics to the broker (KIP-714), if a subscription of the cluster requests them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from random import uniform
from typing import TYPE_CHECKING

from kafkapy._core.bytes.compression import NONE, compress
from kafkapy.client.metrics import MetricName, Metrics
from kafkapy.client.network import NEVER, Network
from kafkapy.client.telemetry_encoding import encode_metrics, is_counter, is_requested
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkapy.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from kafkapy.types import ZERO_UUID

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig

log = logging.getLogger("kafkapy.client")

# The pause after an error, before the interval of pushes is known.
_PAUSE_AFTER_ERROR_MS = 300_000
# The first push comes after this part of the interval, chosen at random, so that clients do not push together.
_FIRST_PUSH = 0.5, 1.5
_LONGEST_LAST_PUSH_MS = 1000
# The client does not push again after these errors.
_FINAL = frozenset((Error.INVALID_REQUEST, Error.INVALID_RECORD, Error.UNSUPPORTED_VERSION))
# The client requests its subscription again at once after these errors.
_ASK_AGAIN = frozenset((Error.UNKNOWN_SUBSCRIPTION_ID, Error.UNSUPPORTED_COMPRESSION_TYPE))
_LABELS = {
    "client.rack": "client_rack",
    "group.id": "group_id",
    "group.instance.id": "group_instance_id",
    "transactional.id": "transactional_id",
}


class TelemetryReporter:
    """Requests a client's subscription to metrics from a broker, and pushes the metrics that the subscription names.

    The reporter is a `Task`: the client's network loop calls `run` in every pass. Methods must be called with
    `Network.lock` held, unless their description says otherwise. A broker that does not serve GetTelemetrySubscriptions
    and PushTelemetry gets no request.
    """

    def __init__(self, network: Network, config: ClientConfig, metrics: Callable[[], Metrics]) -> None:
        self._network = network
        self._metrics = metrics
        self._labels = {label: str(config[key]) for key, label in _LABELS.items() if config.has(key) and config[key]}
        self._instance_id = ZERO_UUID
        self._subscription: GetTelemetrySubscriptionsResponse | None = None
        self._pushed: dict[MetricName, float] = {}
        self._next_ms = 0
        self._has_request = False
        self._is_stopped = False
        self._is_ending = False
        self.has_ended = True  # False while the last push has no response

    def run(self, monotonic_ms: int) -> int:
        """Sends the request that is due; returns the monotonic time (ms) at which to run again."""
        if self._is_stopped or self._is_ending or self._has_request:
            return NEVER
        if monotonic_ms < self._next_ms:
            return self._next_ms
        node_id = self._broker()
        if node_id is None:
            return NEVER  # the step in which a connection becomes ready runs this task again
        if self._subscription is None:
            self._request_subscription(node_id)
        else:
            self._push(node_id, terminating=False)
        return NEVER

    def _broker(self) -> int | None:
        """Returns the id of a connected broker; None if none is connected.

        If the broker does not serve PushTelemetry, ends the pushes for good and returns None.
        """
        network = self._network
        for node_id in network.cluster.nodes:
            if not network.is_connected(node_id):
                continue
            if int(ApiKey.PUSH_TELEMETRY) not in network.versions(node_id):
                self._is_stopped = True
                return None
            return node_id
        return None

    def _request_subscription(self, node_id: int) -> None:
        self._has_request = True
        self._network.submit(
            node_id,
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
            lambda version: GetTelemetrySubscriptionsRequest(client_instance_id=self._instance_id),
            self._on_subscription,
        )

    def _on_subscription(
        self, response: GetTelemetrySubscriptionsResponse | None, version: int, error: Exception | None
    ) -> None:
        self._has_request = False
        now_ms = self._network.clock.monotonic_ms()
        if response is None or response.error_code:
            self._failed(error if response is None else ApiError(Error.of(response.error_code)), now_ms)
            return
        self._instance_id = response.client_instance_id
        if not response.requested_metrics:
            self._next_ms = now_ms + response.push_interval_ms
            return
        self._subscription = response
        self._next_ms = now_ms + int(response.push_interval_ms * uniform(*_FIRST_PUSH))

    def _failed(self, error: Exception | None, now_ms: int) -> None:
        subscription, self._subscription = self._subscription, None
        code = error.error if isinstance(error, ApiError) else Error.NETWORK_EXCEPTION
        self._next_ms = now_ms + (_PAUSE_AFTER_ERROR_MS if subscription is None else subscription.push_interval_ms)
        if code in _FINAL:
            log.info("The broker does not take metrics of this client: %s", code.name)
            self._is_stopped = True
        elif code in _ASK_AGAIN:
            self._next_ms = now_ms
        elif subscription is not None and code is not Error.NETWORK_EXCEPTION:
            self._subscription = subscription  # too large, or too early: the next push may succeed

    def _push(self, node_id: int, *, terminating: bool) -> None:
        subscription = self._subscription
        assert subscription is not None
        wanted = {
            name: value for name, value in self._metrics().items() if is_requested(name, subscription.requested_metrics)
        }
        pushed = self._pushed if subscription.delta_temporality else None
        data = encode_metrics(wanted, pushed, self._labels, time.time_ns())
        codec = next(iter(subscription.accepted_compression_types), NONE)
        self._has_request = True
        request = PushTelemetryRequest(
            client_instance_id=self._instance_id,
            subscription_id=subscription.subscription_id,
            terminating=terminating,
            compression_type=codec,
            metrics=data if codec == NONE else compress(codec, data),
        )

        def on_response(response: PushTelemetryResponse | None, version: int, error: Exception | None) -> None:
            self._has_request = False
            self.has_ended = True
            now_ms = self._network.clock.monotonic_ms()
            if response is None or response.error_code:
                self._failed(error if response is None else ApiError(Error.of(response.error_code)), now_ms)
                return
            self._pushed = {name: value for name, value in wanted.items() if is_counter(name)}
            self._next_ms = now_ms + subscription.push_interval_ms

        self._network.submit(node_id, ApiKey.PUSH_TELEMETRY, lambda version: request, on_response)

    def end(self) -> None:
        """Pushes for the last time, if there is a subscription; blocks for a second at most.

        Waits for a push in flight first, because the last push contains only the changes since the push before it. The
        caller must not hold `Network.lock`.
        """
        network = self._network
        end_ms = network.clock.monotonic_ms() + _LONGEST_LAST_PUSH_MS
        with network.lock:
            self._is_ending = True
            is_pushing = self._has_request and self._subscription is not None
        if is_pushing:
            with network.uninterrupted():
                network.wait_until(lambda: not self._has_request, _LONGEST_LAST_PUSH_MS / 1000)
        with network.lock:
            node_id = self._broker() if self._subscription is not None and not self._is_stopped else None
            if node_id is None or self._has_request:
                self._is_stopped = True
                return
            self.has_ended = False
            self._push(node_id, terminating=True)
            self._is_stopped = True
        with network.uninterrupted():
            left_ms = max(end_ms - network.clock.monotonic_ms(), 0)
            network.wait_until(lambda: self.has_ended, left_ms / 1000)


def start_telemetry(network: Network, config: ClientConfig, metrics: Callable[[], Metrics]) -> TelemetryReporter | None:
    """Adds the pushes of metrics to the tasks of a client's network, and returns this task.

    `metrics()` returns the client's current metrics. Returns None if `enable.metrics.push` is off.
    """
    if not config["enable.metrics.push"]:
        return None
    reporter = TelemetryReporter(network, config, metrics)
    network.tasks.append(reporter)
    return reporter
