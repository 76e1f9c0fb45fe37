"""Timing wheel: adding and firing a timer among 10,000 others."""

from kafkapy._core.reactor.timing_wheel import TimingWheel


def crowded() -> TimingWheel:
    wheel = TimingWheel()
    for index in range(10_000):
        wheel.add(10_000_000 + index * 37, None)
    return wheel


def test_add_and_cancel(benchmark):
    wheel = crowded()
    benchmark(lambda: wheel.add(500, None).cancel())


def test_add_cancel_and_ask(benchmark):
    wheel = crowded()

    def wake_up():
        entry = wheel.add(500, None)
        wheel.next_deadline_ms()
        entry.cancel()
        wheel.next_deadline_ms()

    benchmark(wake_up)


def test_expire(benchmark):
    wheel, now = crowded(), 0

    def expire():
        nonlocal now
        wheel.add(now + 5, None)
        now += 5
        assert len(wheel.advance(now)) >= 1

    benchmark(expire)
