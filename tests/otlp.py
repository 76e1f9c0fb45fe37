"""Builds the metrics that a client pushes: OpenTelemetry's MetricsData, as Apache Kafka's clients fill it."""

from __future__ import annotations

import struct

GAUGE, DELTA, CUMULATIVE = 0, 1, 2


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def field(number: int, content: bytes) -> bytes:
    """Encodes a field with a message, a text or other bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def attribute(key: str, value: str) -> bytes:
    return field(7, field(1, key.encode()) + field(2, field(1, value.encode())))


def point(value: float, **attributes: str) -> bytes:
    number = struct.pack("<Bq", 6 << 3 | 1, value) if isinstance(value, int) else struct.pack("<Bd", 4 << 3 | 1, value)
    when = struct.pack("<Bq", 3 << 3 | 1, 1_700_000_000)
    return when + number + b"".join(attribute(*pair) for pair in attributes.items())


def metric(name: str, value: float, kind: int = GAUGE, **attributes: str) -> bytes:
    points = field(1, point(value, **attributes))
    data = (
        field(5, points) if kind == GAUGE else field(7, points + varint(2 << 3) + varint(kind) + varint(3 << 3) + b"\1")
    )
    return field(1, name.encode()) + data


def metrics_data(*metrics: bytes) -> bytes:
    scope = field(1, field(1, b"kafka")) + b"".join(field(2, each) for each in metrics)
    return field(1, field(1, b"") + field(2, scope))


def pushed(*metrics: tuple[str, float] | tuple[str, float, int]) -> bytes:
    """Encodes a push of (name, value) or (name, value, kind)."""
    return metrics_data(*(metric(*each) for each in metrics))
