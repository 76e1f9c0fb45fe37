"""The rate of a client quota, computed slowly: all samples are kept, and expire only when the rate is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass
class Sample:
    start_ms: int
    last_event_ms: int
    value: Fraction


class SlowRate:
    def __init__(self, sample_limit: int, sample_ms: int) -> None:
        self.sample_limit = sample_limit
        self.sample_ms = sample_ms
        self.samples: list[Sample] = []

    def record(self, value: int, now_ms: int) -> None:
        if not self.samples or now_ms - self.samples[-1].start_ms >= self.sample_ms:
            self.samples.append(Sample(now_ms, now_ms, Fraction(0)))
        self.samples[-1].value += value
        self.samples[-1].last_event_ms = now_ms

    def window_ms(self, now_ms: int) -> int:
        counting = self.counting(now_ms)
        elapsed_ms = now_ms - min((each.start_ms for each in counting), default=now_ms)
        missing = max(0, self.sample_limit - 1 - elapsed_ms // self.sample_ms)
        return max(1, elapsed_ms + missing * self.sample_ms)

    def counting(self, now_ms: int) -> list[Sample]:
        length_ms = self.sample_limit * self.sample_ms
        return [each for each in self.samples if now_ms - each.last_event_ms < length_ms]

    def rate(self, now_ms: int) -> Fraction:
        total = sum((each.value for each in self.counting(now_ms)), Fraction(0))
        return total * 1000 / self.window_ms(now_ms)

    def throttle_ms(self, bound: int, now_ms: int) -> Fraction:
        rate = self.rate(now_ms)
        return max(Fraction(0), (rate - bound) / bound * self.window_ms(now_ms))
