"""Placement of replicas: spread over the brokers, without knowledge of racks."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.errors import ApiError, Error


def place_replicas(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    *,
    start_index: int,
    shift: int,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """Returns the replicas of `partitions` new partitions, the leader first.

    The first replicas go round the brokers from `start_index`. The other replicas of a partition follow at a distance
    that grows by one each time round, so that two brokers do not share all their partitions. `first_partition` is the
    number of partitions that the topic has. Raises ApiError(INVALID_REPLICATION_FACTOR) if there are too few brokers.
    """
    if replication_factor < 1:
        raise ApiError(Error.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    if replication_factor > len(brokers):
        raise ApiError(
            Error.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {replication_factor} time(s): The target replication factor of "
            f"{replication_factor} cannot be reached because only {len(brokers)} broker(s) are registered or "
            "some brokers have all their log directories cordoned.",
        )
    ordered = sorted(brokers)
    count = len(ordered)
    assignments = []
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start_index) % count
        replicas = [ordered[first]]
        for other in range(replication_factor - 1):
            distance = 1 + (shift + other) % (count - 1)
            replicas.append(ordered[(first + distance) % count])
        assignments.append(tuple(replicas))
    return assignments
