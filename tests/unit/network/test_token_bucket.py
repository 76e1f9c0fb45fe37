"""The token bucket with explicit times."""

from __future__ import annotations

from kafkapy.network.token_bucket import TokenBucket


def test_a_second_of_tokens_is_there_at_first_and_then_one_comes_after_the_other() -> None:
    bucket = TokenBucket(10, monotonic_ms=0)
    for _ in range(10):
        assert bucket.delay_ms(0) == 0
        bucket.take()
    assert 100 <= bucket.delay_ms(0) <= 101
    assert bucket.delay_ms(50) > 0
    assert bucket.delay_ms(101) == 0
    bucket.take()
    assert bucket.delay_ms(101) > 0


def test_no_more_than_one_second_is_saved() -> None:
    bucket = TokenBucket(5, monotonic_ms=0)
    taken = 0
    while bucket.delay_ms(1_000_000) == 0:
        bucket.take()
        taken += 1
    assert taken == 5


def test_a_rate_below_one_and_a_rate_of_zero() -> None:
    slow = TokenBucket(0.5, monotonic_ms=0)
    slow.take()
    assert slow.delay_ms(0) == 1000  # asked again then
    assert slow.delay_ms(2000) == 0
    never = TokenBucket(0, monotonic_ms=0)
    never.take()
    assert never.delay_ms(10_000_000) == 1000


def test_the_rate_can_change() -> None:
    bucket = TokenBucket(100, monotonic_ms=0)
    bucket.set_rate(2, monotonic_ms=0)
    taken = 0
    while bucket.delay_ms(0) == 0:
        bucket.take()
        taken += 1
    assert taken == 2
