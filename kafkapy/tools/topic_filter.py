"""Expressions that select topics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from kafkapy.client.admin import Admin
from kafkapy.tools.option import Arguments


def topic_filter(expression: str) -> Callable[[str], bool]:
    """Returns a function that returns whether the expression matches the whole name of a topic.

    Commas in the expression separate alternatives; surrounding quotes and all spaces are ignored. Raises ValueError for
    an invalid expression.
    """
    text = re.sub(r"[\"']+$", "", re.sub(r"^[\"']+", "", expression.strip().replace(",", "|").replace(" ", "")))
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"{text} is an invalid regex.") from error
    return lambda name: pattern.fullmatch(name) is not None


def chosen_topics(names: Iterable[str], expression: str | None) -> list[str]:
    """Returns the names that match `expression` as a whole, sorted; all names if `expression` is None.

    Commas in the expression separate alternatives. Raises ValueError for an invalid expression.
    """
    matches = topic_filter(expression) if expression is not None else lambda name: True
    return sorted(filter(matches, names))


def topics_of(admin: Admin, arguments: Arguments) -> list[str]:
    """Returns the topics that --topic and --exclude-internal select, sorted."""
    found = admin.list_topics(include_internal=not arguments.has("exclude-internal"))
    return chosen_topics(found, arguments["topic"])


def ensure_exist(names: list[str], arguments: Arguments) -> None:
    """Raises ValueError if --topic is given but has selected no topic, unless --if-exists is given.

    `names` are the topics that --topic has selected.
    """
    if not names and arguments["topic"] and not arguments.has("if-exists"):
        raise ValueError(f"Topic '{arguments['topic']}' does not exist as expected")
