"""Names of topics for tests."""

from __future__ import annotations

import itertools
import re
import secrets

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_STEM = 200
_run = secrets.token_hex(3)
_numbers = itertools.count(1)


def topic_name(stem: str = "topic") -> str:
    """Returns a topic name that no other call returns, in this process or another.

    The name begins with `stem`, in which "-" replaces characters that a topic may not have. Thread-safe.
    """
    allowed = _NOT_ALLOWED.sub("-", stem).strip("-.")[:_LONGEST_STEM]
    return f"{allowed or 'topic'}-{_run}-{next(_numbers)}"
