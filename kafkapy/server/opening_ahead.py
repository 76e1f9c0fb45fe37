"""Produced batches that take long to open are opened on the handler pool, before they are appended (step "handler").

A batch of a megabyte may decompress to hundreds: nothing that the reactor's thread could wait for. How much work a
request may be is seen without decompressing, from the frames of its codecs; only what exceeds LARGEST_WORK goes to the
pool. Its connection is not read meanwhile, so that the order of a producer's requests stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkapy._core.compression import largest_decompressed_size
from kafkapy._core.record_batch import BatchSummary
from kafkapy.errors import ApiError
from kafkapy.network.handler_pool import HandlerPool
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.types import TopicPartition

Checked = dict[TopicPartition, list[BatchSummary] | ApiError]

_MAGIC_AT = 16
_ATTRIBUTES_AT = 22
_RECORDS_AT = 61
_BATCH_MAGIC = 2
_CODEC_MASK = 0x07
# What a byte costs, by codec, about: lz4 gives a gigabyte a second.
_COSTS = {1: 4, 2: 1, 3: 1, 4: 1}
# About 20 ms.
LARGEST_WORK = 16 << 20


def work_to_open(records: memoryview) -> int:
    """At most so many bytes of lz4 take as long to open as the batch at the beginning of `records`."""
    if len(records) <= _RECORDS_AT or records[_MAGIC_AT] != _BATCH_MAGIC:
        return 0
    codec = records[_ATTRIBUTES_AT] & _CODEC_MASK
    cost = _COSTS.get(codec, 0)
    return cost * largest_decompressed_size(codec, records[_RECORDS_AT:]) if cost else 0


def open_ahead(
    pool: HandlerPool,
    manager: ReplicaManager,
    entries: Mapping[TopicPartition, memoryview],
    append: Callable[[Checked], None],
) -> None:
    """Calls `append` on this thread: at once with nothing, or later with what was found of the batches that took long.

    `entries` stay as they are until then. Reactor thread only.
    """
    work = {topic_partition: work_to_open(records) for topic_partition, records in entries.items()}
    if sum(work.values()) <= LARGEST_WORK:
        append({})
        return
    logs = {
        topic_partition: manager.partitions[topic_partition].log
        for topic_partition, amount in work.items()
        if amount and topic_partition in manager.partitions
    }

    def check() -> Callable[[], None]:
        checked: Checked = {}
        for topic_partition, log in logs.items():
            try:
                checked[topic_partition] = log.check_records(entries[topic_partition])
            except ApiError as error:
                checked[topic_partition] = error
        return lambda: append(checked)

    pool.submit(check)
