"""The header `traceparent` of W3C Trace Context."""

from __future__ import annotations

import os
import re

from kafkapy.named_tuple import NamedTuple

TRACE_HEADER = "traceparent"
SAMPLED = 1
TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_INVALID_VERSION = "ff"


class TraceParent(NamedTuple):
    """A span as the header `traceparent` names it: the ids of the trace and of the span, and the flags."""

    trace_id: bytes
    span_id: bytes
    flags: int = SAMPLED

    @property
    def is_sampled(self) -> bool:
        return bool(self.flags & SAMPLED)

    def text(self) -> str:
        """Returns the value of the header `traceparent` that names this span."""
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{self.flags & SAMPLED:02x}"

    def child(self, span_id: bytes) -> TraceParent:
        """Returns the span with the id `span_id` in the same trace, with the same flags."""
        return TraceParent(self.trace_id, span_id, self.flags)


def parse_parent(value: bytes | str | None) -> TraceParent:
    """Returns the span of a header's value (section 3.2 of the recommendation). Raises ValueError for an invalid one.

    A later version of the header may have more fields, which are ignored.
    """
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else value or ""
    found = _FORM.fullmatch(text)
    if found is None or found[1] == _INVALID_VERSION or (found[1] == "00" and found[5]):
        raise ValueError(f"{text[:80]!r} is not a valid {TRACE_HEADER}")
    trace_id, span_id = bytes.fromhex(found[2]), bytes.fromhex(found[3])
    if not any(trace_id) or not any(span_id):
        raise ValueError(f"{text!r} has an id of zeros")
    return TraceParent(trace_id, span_id, int(found[4], 16))


def new_span_id() -> bytes:
    """Returns a random id for a span. The id is not zero."""
    return os.urandom(SPAN_ID_BYTES - 1) + b"\x01"


def new_parent(*, is_sampled: bool) -> TraceParent:
    """Returns the first span of a new trace; `is_sampled` says whether the events of the trace are recorded."""
    return TraceParent(os.urandom(TRACE_ID_BYTES - 1) + b"\x01", new_span_id(), SAMPLED if is_sampled else 0)
