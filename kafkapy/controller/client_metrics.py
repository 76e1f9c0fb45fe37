"""Subscriptions to clients' metrics, stored as configuration of the resource type CLIENT_METRICS (KIP-714)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kafkapy.config.value import split_list
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple

METRICS, INTERVAL, MATCH = "metrics", "interval.ms", "match"
CLIENT_METRICS_KEYS = frozenset([METRICS, INTERVAL, MATCH])
ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000
SHORTEST_INTERVAL_MS, LONGEST_INTERVAL_MS = 100, 3_600_000
MATCHED = frozenset([
    "client_instance_id", "client_id", "client_software_name", "client_software_version", "client_source_address",
    "client_source_port",
])  # fmt: skip


class ClientMetricsSubscription(NamedTuple):
    """A subscription to metrics of clients. The object does not change after its construction.

    `metrics` are prefixes of metric names. `patterns` maps names of client attributes, such as `client_id`, to
    patterns. The subscription applies to a client if each pattern matches the whole value of the client's attribute.
    """

    metrics: tuple[str, ...]
    interval_ms: int
    patterns: Mapping[str, re.Pattern[str]]

    @classmethod
    def from_overrides(cls, overrides: Mapping[str, str]) -> ClientMetricsSubscription:
        """Returns the subscription that a resource's overrides (configuration values by key) define.

        Raises ApiError, with Apache Kafka's message, if the overrides are invalid.
        """
        for name in overrides:
            if name not in CLIENT_METRICS_KEYS:
                raise ApiError(Error.INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
        patterns = dict(map(_pattern, split_list(overrides.get(MATCH, ""))))
        return cls(tuple(split_list(overrides.get(METRICS, ""))), _interval(overrides.get(INTERVAL)), patterns)

    def matches(self, attributes: Mapping[str, str]) -> bool:
        return all(pattern.fullmatch(attributes.get(name, "")) for name, pattern in self.patterns.items())


class WantedMetrics(NamedTuple):
    """The metrics requested from one client. The object does not change after its construction."""

    metrics: tuple[str, ...]
    interval_ms: int

    @classmethod
    def together(cls, subscriptions: Iterable[ClientMetricsSubscription]) -> WantedMetrics:
        """Merges the subscriptions of a client: all their metrics, at the shortest of their intervals."""
        metrics: set[str] = set()
        intervals = []
        for subscription in subscriptions:
            metrics.update(subscription.metrics)
            intervals.append(subscription.interval_ms)
        wanted = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
        return cls(wanted, min(intervals, default=DEFAULT_INTERVAL_MS))


def _interval(text: str | None) -> int:
    if text is None:
        return DEFAULT_INTERVAL_MS
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", text):
        raise ApiError(
            Error.INVALID_CONFIG, f"Invalid value {text} for configuration {INTERVAL}: Not a number of type INT"
        )
    if not SHORTEST_INTERVAL_MS <= int(text) <= LONGEST_INTERVAL_MS:
        raise ApiError(
            Error.INVALID_REQUEST,
            f"Invalid value {text} for {INTERVAL}, interval must be between {SHORTEST_INTERVAL_MS} and "
            f"{LONGEST_INTERVAL_MS} (1 hour)",
        )
    return int(text)


def _pattern(text: str) -> tuple[str, re.Pattern[str]]:
    name, separator, expression = text.partition("=")
    try:
        if separator and name.strip() in MATCHED:
            return name.strip(), re.compile(expression.strip())
    except re.error:
        pass  # An invalid expression is refused like an unknown name.
    raise ApiError(Error.INVALID_CONFIG, f"Illegal client matching pattern: {text}")
