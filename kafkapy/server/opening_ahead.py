"""Decompresses large produced batches on the handler pool before they are appended.

A batch of a megabyte may decompress to hundreds of megabytes, for which the reactor's thread must not wait. The work of
a request is estimated without decompressing, from the frames of its codecs; only a request above LARGEST_WORK goes to
the pool. Its connection is not read in the meantime, so that a producer's requests stay in order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkapy._core.bytes.compression import work_to_open
from kafkapy._core.bytes.record_batch import BatchSummary
from kafkapy.errors import ApiError
from kafkapy.network.handler_pool import Work
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.types import TopicPartition

Checked = dict[TopicPartition, list[BatchSummary] | ApiError]

# Decompressed bytes; about 20 ms of work for lz4.
LARGEST_WORK = 16 << 20


def open_ahead(
    submit: Callable[[Work], None],
    manager: ReplicaManager,
    entries: Mapping[TopicPartition, memoryview],
    on_opened: Callable[[Checked], None],
) -> None:
    """Validates the batches of a produce request on the handler pool if decompressing them takes long.

    `on_opened` is called once. After a validation it gets {partition: the batch headers, or the ApiError} of the
    partitions whose batches were validated, on the reactor's thread. If decompressing is quick, nothing is validated,
    and `on_opened({})` is called before this function returns. `submit` runs work on the handler pool. `entries` must
    not change until `on_opened` is called. Only the reactor's thread may use it.
    """
    work = {topic_partition: work_to_open(records) for topic_partition, records in entries.items()}
    if sum(work.values()) <= LARGEST_WORK:
        on_opened({})
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
        return lambda: on_opened(checked)

    submit(check)
