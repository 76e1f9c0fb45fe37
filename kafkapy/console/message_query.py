"""The query of the page of a topic's records: the choices in the page's URL, and the offsets to read for them."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from kafkapy.console.cluster_view import ClusterView, Ends
from kafkapy.console.decoders import CHOICES
from kafkapy.console.problem import Problem
from kafkapy.console.record_filter import Filter, parse_filters
from kafkapy.console.visit import Visit
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition

STARTS = {
    "newest": "newest",
    "oldest": "oldest",
    "offset": "from offset",
    "time": "from time",
    "live": "live",
}
LIMITS = (20, 50, 100, 200, 500)
MOST_SECONDS = 120
# A live page ends after this time; nobody may be watching it any more.
LIVE_SECONDS = 900
_AGO = re.compile(r"-?(\d{1,6})\s*(s|min|m|h|d)", re.ASCII)
_UNITS_MS = {"s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

Ranges = dict[TopicPartition, tuple[int, int]]


class MessageQuery(NamedTuple):
    """The choices on the page of a topic's records, which are the parameters of the page's URL.

    `start` is one of STARTS, and `at` the offset or time that it needs. `partition` is None for all partitions. `limit`
    is the number of records to show.
    """

    start: str
    at: str
    partition: int | None
    limit: int
    filters: tuple[Filter, ...]
    key_decoder: str
    value_decoder: str
    committed_only: bool

    @property
    def is_backward(self) -> bool:
        """Returns whether records are read from the end of the log to its start."""
        return self.start == "newest"

    @property
    def seconds(self) -> int:
        """The time in seconds after which a search for the page ends."""
        return LIVE_SECONDS if self.start == "live" else MOST_SECONDS


def parse_query(visit: Visit) -> MessageQuery:
    """Returns the choices in the parameters of the page's URL. Raises Problem for a parameter with an invalid value."""
    lists = visit.lists
    return MessageQuery(
        visit.choice("from", tuple(STARTS), "newest"),
        visit.text("at"),
        visit.whole("partition", 0, 0, 1 << 31) if visit.text("partition") else None,
        visit.whole("limit", 50, 1, max(LIMITS)),
        parse_filters(*(_short(lists.get(name, [])) for name in ("field", "name", "op", "text"))),
        visit.choice("kd", CHOICES, "auto"),
        visit.choice("vd", CHOICES, "auto"),
        visit.text("committed") == "1",
    )


def _short(values: Sequence[str]) -> list[str]:
    if len(values) > 50 or any(len(each) > 1000 for each in values):
        raise Problem(400, "A filter has at most 1000 characters.")
    return [each.strip() for each in values]


def time_of(text: str, now_ms: int | None = None) -> int:
    """Returns the time that `text` describes, in ms since 1970.

    The text is a time in ISO 8601 (UTC unless it names a zone), a number of ms since 1970, or a duration before
    `now_ms`, such as "15 min". `now_ms` is None for the present time. Raises Problem for another text.
    """
    now_ms = int(time.time() * 1000) if now_ms is None else now_ms
    if text.isascii() and text.isdigit() and len(text) < 18:
        return int(text)
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(now_ms - int(ago[1]) * _UNITS_MS[ago[2]], 0)
    try:
        moment = datetime.fromisoformat(text)
        return int((moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise Problem(
            400, f"{text[:40]!r} is not a time: 2026-01-31T12:00 (UTC), 15 min, 2 h or milliseconds since 1970."
        ) from None


def ranges_of(query: MessageQuery, view: ClusterView, topic: str, partitions: Sequence[int]) -> Ranges:
    """Returns for each partition the first offset to read and the offset to stop at (exclusive).

    `partitions` are partition ids. The second offset is 2^62 for a live page, which reads records as they arrive. A
    partition whose ends could not be read is omitted. Raises Problem if the query has an invalid offset or time.
    """
    keys = [TopicPartition(topic, each) for each in partitions]
    ends: Mapping[TopicPartition, Ends] = view.ends(keys, read_committed=query.committed_only)
    known = {
        key: (each.first, each.end) for key, each in ends.items() if each.first is not None and each.end is not None
    }
    if query.start == "live":
        return {key: (end, 1 << 62) for key, (_, end) in known.items()}
    if query.start == "offset":
        wanted = _offset(query.at)
        return {key: (min(max(first, wanted), end), end) for key, (first, end) in known.items()}
    if query.start == "time":
        found = view.offsets_at(known, time_of(query.at or "1 h"))
        return {key: (end if found.get(key, -1) < 0 else found[key], end) for key, (_, end) in known.items()}
    return known


def _offset(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Problem(400, f"{text[:40]!r} is not an offset.")
    return int(text)
