"""The expressions that tools choose topics by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from kafkapy.client.admin import Admin
from kafkapy.tools.option import Arguments


def topic_filter(expression: str) -> Callable[[str], bool]:
    """Whether a topic's whole name matches; commas are alternatives, quotes around and spaces are left out. ValueError
    for what is no expression."""
    text = re.sub(r"[\"']+$", "", re.sub(r"^[\"']+", "", expression.strip().replace(",", "|").replace(" ", "")))
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"{text} is an invalid regex.") from error
    return lambda name: pattern.fullmatch(name) is not None


def chosen_topics(names: Iterable[str], expression: str | None) -> list[str]:
    """The names that match, or all without an expression; sorted."""
    matches = topic_filter(expression) if expression is not None else lambda name: True
    return sorted(filter(matches, names))


def topics_of(admin: Admin, arguments: Arguments) -> list[str]:
    """The topics that --topic and --exclude-internal choose, sorted."""
    found = admin.list_topics(include_internal=not arguments.has("exclude-internal"))
    return chosen_topics(found, arguments["topic"])


def ensure_exist(names: list[str], arguments: Arguments) -> None:
    """ValueError if --topic was given and chose none, unless --if-exists was given too."""
    if not names and arguments["topic"] and not arguments.has("if-exists"):
        raise ValueError(f"Topic '{arguments['topic']}' does not exist as expected")
