"""Subscriptions of librdkafka: names, and regular expressions that begin with ^."""

from __future__ import annotations

import re

from kafkapy.compat.confluent_kafka._errors import local_error


def subscription_of(topics: list[str]) -> list[str] | re.Pattern[str]:
    """Returns what kafkapy's consumer can subscribe to for librdkafka's list `topics`.

    If no element begins with ^, this is the list itself. Otherwise it is one pattern that matches every name and every
    regular expression in the list. Raises KafkaException for an expression that is not valid.
    """
    if not any(each.startswith("^") for each in topics):
        return topics
    parts = [each if each.startswith("^") else f"^{re.escape(each)}$" for each in topics]
    try:
        for each in parts:
            re.compile(each)
        return re.compile("|".join(f"(?:{each})" for each in parts))
    except re.error as error:
        raise local_error("_INVALID_ARG", f"Failed to set subscription: {error}") from error
