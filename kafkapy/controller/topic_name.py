"""Validation of topic names."""

from __future__ import annotations

import re

from kafkapy.errors import ApiError, Error

MAX_NAME_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def validate_topic_name(name: str) -> None:
    """Raises ApiError(INVALID_TOPIC_EXCEPTION), with Kafka's message, for an invalid name."""
    problem = _problem(name)
    if problem is not None:
        raise ApiError(Error.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def is_valid_topic_name(name: str) -> bool:
    return _problem(name) is None


def _problem(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not _LEGAL.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def collision_key(name: str) -> str:
    """Returns the name with '_' instead of '.', as in names of metrics. The metrics of topics with the same key would
    collide."""
    return name.replace(".", "_")
