"""Finds transactions that are open in a partition and no longer known to their coordinator (KIP-664)."""

from __future__ import annotations

import time

from kafkapy.client.admin import Admin, ProducerState, TransactionDescription
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import TopicPartition


class OpenTransaction(NamedTuple):
    """An open transaction of a producer in a partition."""

    partition: TopicPartition
    producer: ProducerState


def find_hanging(
    admin: Admin, *, topic: str | None, partition: int | None, broker: int | None, longer_than_ms: int
) -> list[OpenTransaction]:
    """Returns the hanging transactions whose last record in the partition is older than `longer_than_ms`.

    Searches one partition if `topic` and `partition` are given, all partitions of `topic` if only `topic` is given, and
    all partitions of the cluster if both are None. The leader of each partition is asked for its open transactions. If
    `broker` is given, this broker is asked instead of the leaders and, unless `partition` is given, only partitions of
    which it has a replica are searched. Raises ApiError if a request fails.
    """
    candidates = _open_transactions(admin, _partitions(admin, topic, partition, broker), broker, longer_than_ms)
    if not candidates:
        return []
    ids = sorted({each.producer.producer_id for each in candidates})
    names = {each.producer_id: each.transactional_id for each in admin.list_transactions(producer_ids=ids)}
    described = admin.describe_transactions(names.values()) if names else None
    hanging = []
    for each in candidates:
        name = names.get(each.producer.producer_id)
        if (
            name is None
            or described is None
            or not _is_known(described.values.get(name), described.errors.get(name), each)
        ):
            hanging.append(each)
    return hanging


def _is_known(described: TransactionDescription | None, error: ApiError | None, each: OpenTransaction) -> bool:
    """Returns whether the coordinator knows the open transaction of `each`, so that this transaction does not hang.

    That is the case if the transactional id has an open transaction that includes the partition of `each`: the
    coordinator will end it in this partition too. `described` is the coordinator's description of the transactional id,
    and `error` the error that was returned instead, or None. Returns False for TRANSACTIONAL_ID_NOT_FOUND, and raises
    any other error.
    """
    if error is not None:
        if error.error is Error.TRANSACTIONAL_ID_NOT_FOUND:
            return False
        raise error
    return described is not None and described.state != "Empty" and each.partition in described.partitions


def _partitions(admin: Admin, topic: str | None, partition: int | None, broker: int | None) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [TopicPartition(topic, partition)]
    described = admin.describe_topics([topic] if topic is not None else None).check()
    return [
        TopicPartition(name, each.partition)
        for name, description in described.items()
        for each in description.partitions
        if broker is None or broker in each.replicas
    ]


def _open_transactions(
    admin: Admin, partitions: list[TopicPartition], broker: int | None, longer_than_ms: int
) -> list[OpenTransaction]:
    wall_ms = int(time.time() * 1000)
    producers = admin.describe_producers(partitions, broker=broker).check()
    return [
        OpenTransaction(partition, each)
        for partition, states in producers.items()
        for each in states
        if each.transaction_start_offset is not None and wall_ms - each.last_timestamp > longer_than_ms
    ]
