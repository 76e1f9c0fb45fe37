"""The throttle, by a clock that only waiting moves."""

from kafkapy.storage.io_throttle import IoThrottle
from tests.mock_clock import MockClock


def test_waits_for_what_was_too_much():
    clock, waits = MockClock(), []

    def wait(delay_ms):
        waits.append(delay_ms)
        clock.advance(delay_ms)

    throttle = IoThrottle(lambda: 1000.0, clock, wait)
    throttle.count(100)
    assert waits == []
    throttle.count(400)
    assert waits == [500]
    throttle.count(299)
    assert waits == [500]
    clock.advance(300)
    throttle.count(1)
    assert waits == [500]
    for _ in range(20):
        throttle.count(500)
    assert sum(waits) == 500 + 20 * 500


def test_a_changed_rate_takes_effect():
    clock, waits, rates = MockClock(), [], [1e308]

    def wait(delay_ms):
        waits.append(delay_ms)
        clock.advance(delay_ms)
        rates[0] = 4000.0

    throttle = IoThrottle(lambda: rates[0], clock, wait)
    clock.advance(300)
    throttle.count(1 << 40)
    assert waits == []
    rates[0] = 1.0
    throttle.count(8000)
    assert waits == [1000, 1000]


def test_a_wait_that_is_cut_short():
    throttle = IoThrottle(lambda: 1.0, MockClock(), lambda delay_ms: True)
    throttle.count(1 << 40)
