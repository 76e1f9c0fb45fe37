"""The pages of the console: the path of each page, relative to the path of its cluster, and the function for it."""

from __future__ import annotations

from collections.abc import Callable

from starlette.responses import Response

from kafkapy.console.pages import (
    brokers,
    comparison,
    groups,
    history,
    jobs,
    messages,
    metadata,
    old_groups,
    overview,
    security,
    topic,
    topics,
    transactions,
)
from kafkapy.console.visit import Page, Visit

_OF_TOPIC = "/topics/{topic}"
PAGES: tuple[tuple[str, Callable[[Visit], Page | Response]], ...] = (
    ("/", overview.show),
    ("/topics", topics.show_all),
    (_OF_TOPIC, messages.show),
    (f"{_OF_TOPIC}/export", messages.export),
    (f"{_OF_TOPIC}/records/{{partition:int}}/{{offset:int}}", messages.show_record),
    (f"{_OF_TOPIC}/partitions", topic.show_partitions),
    (f"{_OF_TOPIC}/groups", topic.show_groups),
    (f"{_OF_TOPIC}/configuration", topic.show_configuration),
    (f"{_OF_TOPIC}/producers", transactions.show_producers),
    (f"{_OF_TOPIC}/history", metadata.show_partition),
    ("/groups", groups.show_all),
    ("/group", groups.show),
    ("/old-group", old_groups.show),
    ("/history", history.show),
    ("/jobs", jobs.show),
    ("/brokers", brokers.show_all),
    ("/brokers/{broker:int}", brokers.show_configuration),
    ("/directories", brokers.show_directories),
    ("/transactions", transactions.show_all),
    ("/security", security.show),
    ("/compare", comparison.show),
    ("/metadata", metadata.show),
    ("/metadata/difference", metadata.show_difference),
)
