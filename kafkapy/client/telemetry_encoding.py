"""The encoding of a client's metrics for a push: OpenTelemetry's MetricsData in protobuf, as Java's clients fill it.

MetricsData     1: ResourceMetrics
ResourceMetrics 1: Resource | 2: ScopeMetrics
ScopeMetrics    2: Metric*
Metric          1: name | 5: Gauge | 7: Sum
Sum             1: NumberDataPoint | 2: temporality (1: since the last push, 2: since the start) | 3: monotonic
NumberDataPoint 3: time (ns) | 4: double | 7: KeyValue*
KeyValue        1: key | 2: AnyValue (1: string)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Mapping

from kafkapy.client.metrics import MetricName, Metrics

_TIME, _DOUBLE = struct.Struct("<BQ"), struct.Struct("<Bd")
_FIXED64, _LENGTH = 1, 2  # wire types
_DELTA, _CUMULATIVE = 1, 2
_NAMESPACE = "org.apache.kafka."
# The broker knows the client by its connection.
_OWN_TAG = "client-id"


def telemetry_name(name: MetricName) -> str:
    """Returns the name that a metric has in pushes, such as org.apache.kafka.producer.connection.creation.total."""
    group = name.group.replace("-metrics", "")
    return f"{_NAMESPACE}{group}.{name.name}".replace("-", ".")


def is_counter(name: MetricName) -> bool:
    """Returns whether a metric is a sum since the start of the client."""
    return name.name.endswith("-total")


def is_requested(name: MetricName, prefixes: Iterable[str]) -> bool:
    """Returns whether the metric's name in pushes begins with one of the prefixes of a subscription; "" matches all."""
    return any(telemetry_name(name).startswith(prefix) for prefix in prefixes)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content


def _attribute(number: int, key: str, value: str) -> bytes:
    return _field(number, _field(1, key.encode()) + _field(2, _field(1, value.encode())))


def _point(name: MetricName, value: float, time_ns: int) -> bytes:
    tags = b"".join(_attribute(7, key.replace("-", "_"), text) for key, text in name.tags if key != _OWN_TAG)
    return _TIME.pack(3 << 3 | _FIXED64, time_ns) + _DOUBLE.pack(4 << 3 | _FIXED64, value) + tags


def encode_metrics(
    metrics: Metrics, pushed: Mapping[MetricName, float] | None, labels: Mapping[str, str], time_ns: int
) -> bytes:
    """Encodes the metrics as MetricsData; a metric without a value is left out.

    `pushed` has the values of the counters at the last push: the changes since then are encoded. With None the values
    since the start are encoded. `labels` describe the client, and `time_ns` is the time in nanoseconds since 1970.
    """
    encoded = []
    temporality = _CUMULATIVE if pushed is None else _DELTA
    for name, value in metrics.items():
        if not math.isfinite(value):
            continue
        if is_counter(name):
            change = value - (pushed or {}).get(name, 0.0)
            kind = _varint(2 << 3) + bytes((temporality,)) + _varint(3 << 3) + b"\1"
            data = _field(7, _field(1, _point(name, change, time_ns)) + kind)
        else:
            data = _field(5, _field(1, _point(name, value, time_ns)))
        encoded.append(_field(2, _field(1, telemetry_name(name).encode()) + data))
    resource = _field(1, b"".join(_attribute(1, key, text) for key, text in labels.items()))
    return _field(1, resource + _field(2, b"".join(encoded)))
