"""The lags of followers on the metrics page."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkapy.server.exposition.topics import ReplicaLags


def led(end_offset: int, **offsets: tuple[int, int]) -> Any:
    """Returns a partition; `offsets` maps r2, r3 to the end offset of a follower and the time when it was caught up."""
    replicas = {
        int(name[1:]): SimpleNamespace(broker_id=int(name[1:]), log_end_offset=offset, last_caught_up_ms=caught_up_ms)
        for name, (offset, caught_up_ms) in offsets.items()
    }
    return SimpleNamespace(
        log=SimpleNamespace(log_start_offset=10, log_end_offset=end_offset), remote_replicas=replicas
    )


def test_the_largest_lag_of_each_follower_counts() -> None:
    lags = ReplicaLags(9000)
    lags.add(led(100, r2=(100, 100), r3=(40, 5000)))
    lags.add(led(50, r2=(45, 8000), r3=(50, 9000)))
    assert (lags.records, lags.times_ms) == ({2: 5, 3: 60}, {2: 1000, 3: 4000})


def test_a_follower_that_has_not_fetched_lacks_the_whole_log() -> None:
    lags = ReplicaLags(9000)
    lags.add(led(100, r2=(-1, -(1 << 62))))
    assert (lags.records, lags.times_ms) == ({2: 90}, {2: 9000})
