"""A consumer interceptor that drops expired records, whose lifetime is in a header."""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

from kafkapy.client.reliable.chain_headers import number_of
from kafkapy.client.reliable.records import SourceRecord
from kafkapy.types import Clock, SystemClock

# Milliseconds from the record's timestamp, as decimal text.
TTL_MS = "ttl-ms"
_Record = TypeVar("_Record", bound=SourceRecord)


def expires_at_ms(record: SourceRecord) -> int | None:
    """Returns the time at which a record expires, in ms since 1970; None if it has no header with its lifetime.

    Raises ValueError if the value of the header is not a number.
    """
    for name, value in reversed(record.headers):
        if name == TTL_MS:
            return max(record.timestamp, 0) + number_of(value)
    return None


class TimeToLive:
    """A consumer interceptor that drops expired records. It is an element of `interceptor.classes`.

    The consumer's position moves past the dropped records. `expired` counts the dropped records by topic. `invalid`
    counts, also by topic, the records whose lifetime is not a number; these are not dropped.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self.expired: Counter[str] = Counter()
        self.invalid: Counter[str] = Counter()

    def on_consume(self, records: list[_Record]) -> list[_Record]:
        """Returns the records that have not expired."""
        now_ms = self._clock.wall_ms()
        kept = []
        for record in records:
            try:
                end_ms = expires_at_ms(record) if record.headers else None
            except ValueError:
                self.invalid[record.topic] += 1
                end_ms = None
            if end_ms is not None and end_ms <= now_ms:
                self.expired[record.topic] += 1
            else:
                kept.append(record)
        return kept
