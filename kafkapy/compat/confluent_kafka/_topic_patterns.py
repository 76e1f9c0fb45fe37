"""Subscriptions of librdkafka: names, and regular expressions that begin with ^."""

from __future__ import annotations

import re

from kafkapy.compat.confluent_kafka._errors import local_error


def subscription_of(topics: list[str]) -> list[str] | re.Pattern[str]:
    """Converts librdkafka's list `topics` to the argument of `subscribe` of kafkapy's consumer.

    If no element begins with ^, returns the list itself. Otherwise returns one pattern that matches the topics with the
    names in the list and the topics that match a regular expression in the list. Raises KafkaException for an
    expression that is not valid.
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
