"""Reads the committed records of a topic."""

from __future__ import annotations

from typing import Any

from kafkapy.client import Consumer


def read_topic(bootstrap: str, topic: str) -> list[tuple[Any, Any, dict[str, bytes]]]:
    """Returns (key, value, headers) of every record, with the partitions in any order."""
    options = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
    with Consumer(bootstrap_servers=bootstrap, **options) as consumer:
        places = [(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        found: list[tuple[Any, Any, dict[str, bytes]]] = []
        while any(consumer.position(place, 10) < end for place, end in ends.items()):
            found += [(each.key, each.value, dict(each.headers or ())) for each in consumer.poll(1)]
    return found
