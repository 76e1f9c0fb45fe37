"""Reads the metrics that clients push: OpenTelemetry's MetricsData in protobuf, as far as KIP-714 needs it.

    MetricsData     1: ResourceMetrics*
    ResourceMetrics 2: ScopeMetrics*
    ScopeMetrics    2: Metric*
    Metric          1: name | 5: Gauge | 7: Sum | others: histograms, which Apache Kafka's clients do not send
    Gauge           1: NumberDataPoint*
    Sum             1: NumberDataPoint* | 2: temporality (1: since the last push, 2: since the start)
    NumberDataPoint 4: double | 6: int64 | 7: KeyValue*
    KeyValue        1: key | 2: AnyValue    (1: string, 2: bool, 3: int, 4: double)

Other fields are skipped, as protobuf requires. Every length is compared with the remaining bytes of the enclosing
message, and points beyond a limit are counted and dropped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from kafkapy.named_tuple import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10
LONGEST_NAME = 200
LONGEST_VALUE = 100
MOST_ATTRIBUTES = 8
DELTA = 1
_DOUBLE = struct.Struct("<d")
_INT64 = struct.Struct("<q")


class MalformedMetrics(ValueError):
    """Raised if the bytes are not a valid MetricsData message."""


class Point(NamedTuple):
    """One value of one metric. If `is_difference` is True, `value` is the change since the client's last push."""

    name: str
    attributes: str
    value: float
    is_difference: bool


class Points(NamedTuple):
    """The points of a push, and the number of dropped points, which are not numeric or beyond a limit."""

    points: list[Point]
    dropped: int


def read_metrics(data: bytes | memoryview, limit: int) -> Points:
    """Returns the first `limit` numeric points in `data`, and the number of points that are left out.

    Raises MalformedMetrics if `data` is not a valid MetricsData message.
    """
    points: list[Point] = []
    dropped = 0
    for resource in _messages(memoryview(data), 1):
        for scope in _messages(resource, 2):
            for metric in _messages(scope, 2):
                for point in _points(metric):
                    if point is None or len(points) >= limit:
                        dropped += 1
                    else:
                        points.append(point)
    return Points(points, dropped)


def _fields(data: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """Yields (field number, wire type, value) of each field of a protobuf message. Raises MalformedMetrics."""
    pos = 0
    while pos < len(data):
        key, pos = _varint(data, pos)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise MalformedMetrics("a field with the number 0")
        if wire_type == VARINT:
            value, pos = _varint(data, pos)
            yield number, wire_type, value
            continue
        if wire_type == BYTES:
            size, pos = _varint(data, pos)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise MalformedMetrics(f"a field of the wire type {wire_type}")
        if size > len(data) - pos:
            raise MalformedMetrics(f"a field of {size} bytes, with {len(data) - pos} bytes left")
        yield number, wire_type, data[pos : pos + size]
        pos += size


def _varint(data: memoryview, pos: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, LONGEST_VARINT * 7, 7):
        if pos >= len(data):
            raise MalformedMetrics("a number that is cut off")
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
    raise MalformedMetrics("a number of more than ten bytes")


def _messages(data: memoryview, number: int) -> Iterator[memoryview]:
    for found, _, value in _fields(data):
        if found == number and isinstance(value, memoryview):
            yield value


def _points(metric: memoryview) -> Iterator[Point | None]:
    """Yields the points of one metric, and None for each point whose value is not a number."""
    name = ""
    kinds: list[tuple[int, memoryview]] = []
    for number, wire_type, value in _fields(metric):
        if wire_type != BYTES or not isinstance(value, memoryview):
            continue
        if number == 1:
            name = _text(value, LONGEST_NAME)
        elif number in (5, 7, 9, 10, 11):
            kinds.append((number, value))
    for number, data in kinds:
        temporality = 0
        if number == 7:
            temporality = next((value for n, w, value in _fields(data) if n == 2 and isinstance(value, int)), 0)
        for point in _messages(data, 1):
            if number in (5, 7) and name:
                yield _point(name, point, is_difference=temporality == DELTA)
            else:
                yield None


def _point(name: str, data: memoryview, *, is_difference: bool) -> Point | None:
    number: float | None = None
    attributes: list[str] = []
    for field, wire_type, value in _fields(data):
        if isinstance(value, int):
            continue
        if field == 4 and wire_type == FIXED64:
            number = float(_DOUBLE.unpack(value)[0])
        elif field == 6 and wire_type == FIXED64:
            number = int(_INT64.unpack(value)[0])
        elif field == 7 and wire_type == BYTES and len(attributes) < MOST_ATTRIBUTES:
            attributes.append(_attribute(value))
    if number is None:
        return None
    return Point(name, ",".join(sorted(attributes)), number, is_difference)


def _attribute(data: memoryview) -> str:
    key = value = ""
    for field, wire_type, found in _fields(data):
        if wire_type != BYTES or not isinstance(found, memoryview):
            continue
        if field == 1:
            key = _text(found, LONGEST_VALUE)
        elif field == 2:
            value = _any_value(found)
    return f"{key}={value}"


def _any_value(data: memoryview) -> str:
    for field, wire_type, value in _fields(data):
        if field == 1 and isinstance(value, memoryview):
            return _text(value, LONGEST_VALUE)
        if field == 2 and isinstance(value, int):
            return str(bool(value)).lower()
        if field == 3 and isinstance(value, int):
            return str(value - (1 << 64) if value >> 63 else value)
        if field == 4 and wire_type == FIXED64 and isinstance(value, memoryview):
            return repr(_DOUBLE.unpack(value)[0])
    return ""


def _text(data: memoryview, longest: int) -> str:
    return bytes(data[:longest]).decode("utf-8", "replace")
