"""The timing wheel behaves like a sorted list of timers, for any ticks, sizes and jumps of the clock."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy._core.reactor.timing_wheel import TimingWheel
from tests.reference.timing_wheel import Timers

DELAYS = st.one_of(
    st.integers(-5, 50), st.integers(0, 2_000), st.integers(0, 10**7), st.sampled_from([0, 1, 19, 20, 399, 400, 2**50])
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), DELAYS),
        st.tuples(st.just("cancel"), st.integers(0, 30)),
        st.tuples(st.just("advance"), DELAYS),
        st.tuples(st.just("next"), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(STEPS, st.sampled_from([1, 3, 10]), st.sampled_from([2, 3, 20]), st.sampled_from([0, 17, 1_700_000_000_000]))
def test_behaves_as_a_sorted_list(steps, tick_ms, wheel_size, start_ms):
    wheel, timers = TimingWheel(tick_ms, wheel_size, start_ms), Timers(start_ms)
    handles = []
    for number, (step, argument) in enumerate(steps):
        if step == "add":
            deadline = timers.monotonic_ms + argument
            handles.append((wheel.add(deadline, number), timers.add(deadline, number)))
        elif step == "cancel" and handles:
            entry, timer = handles[argument % len(handles)]
            assert entry.cancel() == timers.cancel(timer)
        elif step == "advance":
            now = timers.monotonic_ms + argument
            assert wheel.advance(now) == timers.advance(now)
        elif step == "next":
            assert wheel.next_deadline_ms() == timers.next_deadline_ms()
        assert len(wheel) == len(timers.waiting)
    assert wheel.next_deadline_ms() == timers.next_deadline_ms()
    assert wheel.advance(2**62) == timers.advance(2**62)
    assert wheel.next_deadline_ms() == -1
