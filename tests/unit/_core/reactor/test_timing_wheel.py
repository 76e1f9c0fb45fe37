"""Guarantees of the timing wheel, each with a test of its own."""

import weakref

import pytest

from kafkapy._core.reactor.timing_wheel import TimingWheel


def test_order_and_exactness():
    wheel = TimingWheel(start_ms=1000)
    for deadline in (1500, 1001, 1400, 1001, 90_000_000):
        wheel.add(deadline, f"at {deadline}")
    assert wheel.next_deadline_ms() == 1001
    assert wheel.advance(1000) == []
    assert wheel.advance(1001) == ["at 1001", "at 1001"]
    assert wheel.next_deadline_ms() == 1400
    assert wheel.advance(1399) == []
    assert wheel.advance(2000) == ["at 1400", "at 1500"]
    assert (wheel.next_deadline_ms(), len(wheel)) == (90_000_000, 1)


def test_cancel_is_final_and_frees_the_callback():
    class Callback:
        pass

    wheel, callback = TimingWheel(), Callback()
    gone = weakref.ref(callback)
    entry = wheel.add(10, callback)
    del callback
    assert entry.cancel()
    assert gone() is None
    assert not entry.cancel()
    assert (wheel.next_deadline_ms(), len(wheel), wheel.advance(100)) == (-1, 0, [])


def test_an_expired_entry_cannot_be_cancelled():
    wheel = TimingWheel()
    entry = wheel.add(5, "x")
    assert wheel.advance(5) == ["x"]
    assert not entry.cancel()
    assert entry.callback is None


def test_a_deadline_that_has_passed_expires_at_the_next_advance():
    wheel = TimingWheel(start_ms=100)
    wheel.add(100, "now")
    wheel.add(-5, "long ago")
    assert wheel.next_deadline_ms() == 0
    assert wheel.advance(50) == ["long ago", "now"]


def test_a_clock_that_goes_back_changes_nothing():
    wheel = TimingWheel()
    wheel.add(10, "a")
    assert wheel.advance(10) == ["a"]
    wheel.add(11, "b")
    assert wheel.advance(3) == []
    assert wheel.advance(11) == ["b"]


@pytest.mark.parametrize("arguments", [(0, 20, 0), (1, 1, 0), (1, 20, -1)])
def test_refuses_impossible_wheels(arguments):
    with pytest.raises(ValueError, match="timing wheel"):
        TimingWheel(*arguments)
