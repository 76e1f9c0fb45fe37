"""The start offsets and lags that a description of a share group contains."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.coordinator.group.share_offsets import ShareOffset, ShareOffsets
from kafkapy.errors import Error
from kafkapy.replica.share.persister import UNINITIALIZED_START_OFFSET, SharePartitionKey, StateSummary
from kafkapy.types import TopicPartition

TOPIC = bytes(15) + b"t"
KEY = SharePartitionKey("g", TOPIC, 3)


def described(summary: StateSummary | None, end_offset: int, *, topics: tuple[bytes, ...] = (TOPIC,)) -> ShareOffset:
    """Returns the description of a partition whose state and high watermark are these."""
    image = SimpleNamespace(topics=SimpleNamespace(by_id={each: SimpleNamespace(name="t") for each in topics}))
    groups: Any = SimpleNamespace(
        settings=SimpleNamespace(image=lambda: image),
        persister=SimpleNamespace(summarize=lambda key, on_summary: on_summary(summary, Error.NONE)),
    )
    offsets = {TopicPartition("t", 3): end_offset}
    ends: Any = SimpleNamespace(find=lambda partition, on_offset: on_offset(offsets[partition]))
    found: list[Any] = []
    ShareOffsets(groups, ends).describe([KEY], found.append)
    (only,) = found
    return only[KEY]


@pytest.mark.parametrize(("end_offset", "lag"), [(30, 16), (14, 0), (0, 0), (-1, -1)])
def test_the_lag_is_what_the_group_has_yet_to_process(end_offset: int, lag: int) -> None:
    assert described(StateSummary(5, 7, 10, 4), end_offset) == ShareOffset(10, 7, lag)


def test_a_state_without_the_number_of_processed_records_has_no_lag() -> None:
    assert described(StateSummary(5, 7, 10, -1), 30) == ShareOffset(10, 7, -1)


def test_a_partition_without_a_state_or_a_topic_has_no_offset() -> None:
    for found in (
        described(None, 30),
        described(StateSummary(5, 7, UNINITIALIZED_START_OFFSET, 0), 30),
        described(StateSummary(5, 7, 10, 4), 30, topics=()),
    ):
        assert found == ShareOffset(-1, 0, -1)
