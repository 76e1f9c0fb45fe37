"""The rate of a quota, compared with a slow computation, and the behaviour that Apache Kafka shows."""

from __future__ import annotations

import random
from math import inf, nan

import pytest

from kafkapy._core.broker_state.quota_sensor import QuotaSensor
from tests.reference.quota_rate import SlowRate


@pytest.mark.parametrize("seed", range(8))
def test_the_rate_is_that_of_the_slow_computation(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        limit, sample_ms, bound = chance.randint(1, 12), chance.choice([1, 10, 1000]), chance.choice([1, 50, 10**6])
        sensor, slow = QuotaSensor(bound, limit, sample_ms), SlowRate(limit, sample_ms)
        now_ms = chance.randint(0, 10**12)
        for _ in range(200):
            now_ms += chance.choices([0, 1, sample_ms // 2, sample_ms, 3 * sample_ms, 20 * limit * sample_ms],
                                     [30, 30, 20, 20, 5, 1])[0]  # fmt: skip
            value = chance.choice([0, 1, 7, bound * limit // 3 + 1, bound * limit * 2])
            assert sensor.rate(now_ms) == pytest.approx(float(slow.rate(now_ms)))
            fits = sensor.has_room(value, now_ms)
            sensor.record(value, now_ms)
            slow.record(value, now_ms)
            assert sensor.rate(now_ms) == pytest.approx(float(slow.rate(now_ms)))
            assert fits == (sensor.rate(now_ms) <= bound)
            assert abs(sensor.throttle_ms(now_ms) - slow.throttle_ms(bound, now_ms)) <= 0.51
            assert sensor.last_record_ms == now_ms
            if chance.random() < 0.1:
                sensor.record(-value, now_ms)
                slow.record(-value, now_ms)


def test_ten_seconds_of_the_bound_pass_at_once() -> None:
    sensor = QuotaSensor(1000, 11, 1000)
    sensor.record(10_000, 5)
    assert sensor.throttle_ms(5) == 0
    assert sensor.has_room(0, 5)
    assert not sensor.has_room(1, 5)
    sensor.record(1, 5)
    assert sensor.throttle_ms(5) == 1


def test_a_sample_leaves_the_window_after_its_length() -> None:
    sensor = QuotaSensor(1000, 11, 1000)
    sensor.record(20_000, 0)
    assert sensor.throttle_ms(0) == 10_000
    assert not sensor.has_room(0, 10_999)
    assert sensor.has_room(10_000, 11_000)
    assert sensor.rate(11_000) == 0


def test_a_refund_withdraws_what_was_recorded() -> None:
    sensor = QuotaSensor(10, 11, 1000)
    sensor.record(1000, 3)
    sensor.record(-1000, 3)
    assert sensor.rate(3) == 0


@pytest.mark.parametrize(("limit", "sample_ms"), [(0, 1000), (-1, 1000), (11, 0)])
def test_a_sensor_needs_samples(limit: int, sample_ms: int) -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        QuotaSensor(1, limit, sample_ms)


def test_absurd_bounds() -> None:
    for bound, throttled in ((nan, False), (inf, False), (1e300, False), (5e-324, True), (1e-300, True), (0, True)):
        sensor = QuotaSensor(bound, 11, 1000)
        assert sensor.has_room(10**9, 0) != throttled
        sensor.record(10**9, 0)
        assert sensor.throttle_ms(0) == (2**53 - 1 if throttled else 0)
