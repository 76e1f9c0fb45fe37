"""The lists of throttled replicas, and the rate by which replication is throttled."""

from __future__ import annotations

import pytest

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from kafkapy.replica.replication_throttles import lists_replica


@pytest.mark.parametrize(
    ("value", "is_listed"),
    [(None, False), ("", False), ("*", True), (" * ", True), ("0:1,2:3", True), ("0:1, 2:3", True), ("2:1,0:3", False)],
)
def test_a_list_names_replicas_or_all(value: str | None, is_listed: bool) -> None:
    assert lists_replica(value, 2, 3) is is_listed


def test_a_simple_sensor_counts_from_its_first_sample() -> None:
    """The window is one sample at least, and has no samples before the first record (SimpleRate in Kafka)."""
    sensor = QuotaSensor(1000, 11, 1000, is_simple=True)
    sensor.record(1000, 5)
    assert sensor.rate(5) == 1000
    assert sensor.has_room(0, 5)
    sensor.record(1000, 505)
    assert sensor.rate(505) == 2000
    assert not sensor.has_room(0, 505)
    assert sensor.throttle_ms(505) == 1000
    assert sensor.rate(2005) == 1000
    assert sensor.has_room(0, 2005)
