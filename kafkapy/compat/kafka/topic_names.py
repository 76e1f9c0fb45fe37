"""The rules for names of topics."""

from __future__ import annotations

import re
from typing import Any

TOPIC_MAX_LENGTH = 249
TOPIC_LEGAL_CHARS = re.compile("^[a-zA-Z0-9._-]+$")


def ensure_valid_topic_name(topic: Any) -> None:
    """Raises TypeError or ValueError if `topic` cannot be the name of a topic."""
    if not isinstance(topic, str):
        raise TypeError("The name of a topic must be a str" if topic is not None else "All topics must not be None")
    if topic in (".", ".."):
        raise ValueError('The name of a topic cannot be "." or ".."')
    if len(topic) > TOPIC_MAX_LENGTH:
        raise ValueError(f"The name of a topic has at most {TOPIC_MAX_LENGTH} characters, not {len(topic)}: {topic}")
    if not TOPIC_LEGAL_CHARS.match(topic):
        raise ValueError(f'The name "{topic}" is not a topic\'s: it may have ASCII letters, digits, ".", "_" and "-"')
