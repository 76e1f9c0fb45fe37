"""The place of a record in its broker's files: segment, byte position and batch."""

from __future__ import annotations

from typing import Any

from kafkapy.console.broker_facts import NOT_CONFIGURED, FactsUnknown
from kafkapy.console.cluster_view import ClusterView
from kafkapy.console.figures import counted, number, size
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition


class RecordPlace(NamedTuple):
    """The place of a record, as facts for the console's page about the record.

    `facts` has a pair (label, text) for each fact. If the place is not known, `facts` is empty, and `unknown` is the
    reason.
    """

    facts: list[tuple[str, str]]
    unknown: str = ""


def place_of(view: ClusterView, partition: TopicPartition, offset: int) -> RecordPlace:
    """Returns the place of a record, as a broker with a replica reports it. Blocks."""
    if not view.facts.is_configured:
        return RecordPlace([], NOT_CONFIGURED)
    found = next(each for each in view.topic(partition.topic).partitions if each.partition == partition.partition)
    brokers = sorted(found.replicas, key=lambda broker: broker != found.leader)
    try:
        place = view.facts.place(view.describe().cluster_id, brokers, partition, offset)
    except FactsUnknown as reason:
        return RecordPlace([], str(reason))
    segment, batch = place["segment"], place["batch"]
    return RecordPlace(
        [
            ("Segment", f"{segment['file']} of {size(segment['size_bytes'])}, on broker {place['broker']}"),
            (
                "Position",
                f"The batch begins at byte {number(place['position'])} of the segment, byte "
                f"{number(place['position_in_log'])} of the log.",
            ),
            ("Batch", _batch(batch)),
            ("Producer", _producer(batch)),
        ]
    )


def _batch(batch: dict[str, Any]) -> str:
    records = f"{counted(batch['records'], 'record')}, " if "records" in batch else ""
    codec = "not compressed" if batch["codec"] == "none" else f"compressed with {batch['codec']}"
    return (
        f"Offsets {batch['base_offset']} to {batch['last_offset']}: {records}{number(batch['size_bytes'])} bytes, "
        f"{codec}, magic {batch['magic']}."
    )


def _producer(batch: dict[str, Any]) -> str:
    if batch.get("producer_id", -1) < 0:
        return "The producer is not idempotent: the batch names none."
    kind = "in a transaction" if batch["is_transactional"] else "idempotent, without a transaction"
    return (
        f"Producer id {batch['producer_id']}, epoch {batch['producer_epoch']}, first sequence number "
        f"{batch['base_sequence']}, {kind}."
    )
