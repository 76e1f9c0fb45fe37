"""Elections in changes of the metadata."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.election_counts import ElectionCounts
from kafkapy.metadata.image import EMPTY_IMAGE
from kafkapy.protocol.messages.metadata_records import PartitionChangeRecord, PartitionRecord, TopicRecord

TOPIC_ID = b"t" * 16


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"leader": 2}, (0, 0)),
        ({"isr": [1]}, (0, 0)),
        ({"leader": -1, "isr": []}, (0, 0)),
        ({"leader": 3, "isr": [3]}, (0, 1)),
        ({"leader": 4, "isr": [4], "leader_recovery_state": 1}, (1, 0)),
    ],
)
def test_elections_are_counted(fields: dict[str, Any], counts: tuple[int, int]) -> None:
    first = MetadataDelta(EMPTY_IMAGE)
    first.replay(TopicRecord(name="t", topic_id=TOPIC_ID))
    first.replay(
        PartitionRecord(
            partition_id=0, topic_id=TOPIC_ID, replicas=[1, 2, 3, 4], isr=[1, 2], leader=1, leader_epoch=0,
            partition_epoch=0, eligible_leader_replicas=[3],
        )
    )  # fmt: skip
    image = first.to_image(2, 1)
    delta = MetadataDelta(image)
    delta.replay(PartitionChangeRecord(partition_id=0, topic_id=TOPIC_ID, **fields))
    found = ElectionCounts()
    found.on_metadata(first, image)
    found.on_metadata(delta, delta.to_image(3, 1))
    assert (found.unclean, found.from_eligible) == counts
