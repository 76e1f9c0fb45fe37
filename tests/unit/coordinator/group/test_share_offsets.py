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


class Persister:
    """Deletes states; holds the answers until the test gives them."""

    def __init__(self) -> None:
        self.asked: dict[SharePartitionKey, Any] = {}

    def delete(self, key: SharePartitionKey, on_error: Any) -> None:
        self.asked[key] = on_error


@pytest.mark.parametrize("second", [Error.NONE, Error.NOT_COORDINATOR])
def test_a_topic_is_deleted_when_all_states_of_its_partitions_are(second: Error) -> None:
    executed: list[tuple[Any, Any]] = []  # what an operation of the coordinator calls with its result or its error
    image = SimpleNamespace(topics=SimpleNamespace(by_id={}))
    groups: Any = SimpleNamespace(
        settings=SimpleNamespace(image=lambda: image),
        persister=Persister(),
        coordinator=SimpleNamespace(
            execute=lambda group_id, operation, on_result, refuse: executed.append((on_result, refuse))
        ),
    )
    found: list[Any] = []
    ends: Any = None
    ShareOffsets(groups, ends).delete("g", None, found.append, lambda error, message: found.append(error))
    executed.pop()[0]({TOPIC: frozenset({0, 3})})
    first, other = groups.persister.asked.values()
    assert set(groups.persister.asked) == {KEY, KEY._replace(partition=0)}
    first(Error.NONE, None)
    assert found == [] and executed == []
    other(second, None)
    if second is Error.NONE:
        executed.pop()[0](None)  # the topic was removed from the group
    assert found == [{TOPIC: second}] and executed == []
