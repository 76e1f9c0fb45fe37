"""The transactional ids with the states of their transactions, and the active producers of a topic's partitions."""

from __future__ import annotations

import time

from kafkapy.console.visit import Page, Visit, part_of
from kafkapy.types import TopicPartition


def show_all(visit: Visit) -> Page:
    """Returns the page of all transactional ids, ordered by id; ids with an open transaction come before all others."""
    wanted = visit.text("q")
    listings = [each for each in visit.cluster.admin.list_transactions() if wanted in each.transactional_id]
    # Open transactions come first; only they have a start.
    listings.sort(
        key=lambda each: (each.state not in ("Ongoing", "PrepareCommit", "PrepareAbort"), each.transactional_id)
    )
    part = part_of(listings, visit)
    described = visit.cluster.admin.describe_transactions([each.transactional_id for each in part.rows]).values
    now_ms = int(time.time() * 1000)
    return Page(
        "transactions",
        {"tab": "transactions", "part": part, "described": described, "wanted": wanted, "now_ms": now_ms},
    )


def show_producers(visit: Visit) -> Page:
    """Returns the page of the active producers of each partition of a topic, as the partitions' leaders report them."""
    topic = visit.cluster.topic(visit.path["topic"])
    keys = [TopicPartition(topic.name, each.partition) for each in topic.partitions]
    found = visit.cluster.admin.describe_producers(keys)
    rows = [(key, each) for key, producers in sorted(found.values.items()) for each in producers]
    values = {"tab": "topics", "part_name": "producers", "topic": topic, "rows": rows, "errors": found.errors}
    return Page("producers", values)
