"""Fetch for consumers before 0.11: the log is read as for other consumers, and converted on the handler pool.

Some batches contain no message for such a consumer (control batches, batches that compaction has emptied), and the
consumer cannot skip them itself. In this case the broker reads on until it finds a message or the end of the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafkapy._core.bytes.segment_file import FileRange
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.fetch import FetchRequest
from kafkapy.replica.fetch import FetchParams, FetchPartition, FetchResult
from kafkapy.server.fetch_session import Results
from kafkapy.server.large_fetches import ClientOfFetch
from kafkapy.server.request_context import RequestContext
from kafkapy.storage.down_conversion import down_convert, is_old_enough

logger = logging.getLogger("kafka.server.KafkaApis")

# The maximum number of bytes that one request reads for conversion; converted bytes are in memory twice.
LARGEST_CONVERSION_BYTES = 8 << 20

Answer = Callable[[Results], None]


class PartitionConversion:
    """The state of converting one partition's records. Passed between threads, but used by one at a time."""

    __slots__ = ("asked", "error", "max_decompressed_bytes", "position", "result")

    def __init__(self, asked: FetchPartition, result: FetchResult, max_decompressed_bytes: int) -> None:
        self.asked = asked
        self.result = result
        self.max_decompressed_bytes = max_decompressed_bytes
        # The offset that was read last. It rises above the requested offset while there is nothing to send.
        self.position = asked.fetch_offset
        self.error: OSError | None = None

    def convert(self, magic: int) -> bool:
        """Converts the records that were read to messages of magic `magic` or lower.

        Returns True if the records contain no message for this consumer, so that the caller has to read on from
        `position`; otherwise False.
        """
        read = self.result.records
        try:
            data = read.read() if isinstance(read, FileRange) else read
            if is_old_enough(data, magic):
                return False
            found = down_convert(data, magic, self.position, self.asked.max_bytes, self.max_decompressed_bytes)
        except ApiError as error:
            self.result = FetchResult(error.error)
            return False
        except OSError as error:
            self.error = error
            self.result = FetchResult(Error.KAFKA_STORAGE_ERROR)
            return False
        except Exception:
            # The request needs a response after this error too, and no other code handles the error.
            logger.exception("%s at offset %d cannot be converted", self.asked.topic_partition, self.position)
            self.result = FetchResult(Error.UNKNOWN_SERVER_ERROR)
            return False
        self.result.records = found.records
        has_moved = found.next_offset > self.position
        self.position = found.next_offset
        return not found.records and has_moved


def fetch_in_old_format(
    context: RequestContext,
    params: FetchParams,
    partitions: list[FetchPartition],
    answer: Answer,
    client: ClientOfFetch,
) -> None:
    """Reads `partitions`, and calls `answer` with message sets of magic 0 or 1, depending on the request's version.

    If a batch is larger than the fetch permits, stores this for the page of such fetches (`LargeFetches`). This is done
    before the conversion, because the conversion changes the size of the batch. `client` returns the client of the
    fetch.

    Successive requests begin with different partitions, because the first partition with records may use up the limits,
    and these clients always name their partitions in the same order.
    """
    magic = 1 if context.api_version >= FetchRequest.FIRST_VERSION_WITH_MAGIC1 else 0
    if not partitions:
        answer([])
        return
    first = context.correlation_id % len(partitions)

    def on_results(results: Results) -> None:
        services = context.services
        partitions_of = services.replica_manager.partitions
        services.large_fetches.note(client, params, results, partitions_of, services.clock)
        conversions = []
        for asked, result in results:
            partition = partitions_of.get(asked.topic_partition)
            limit = 0 if partition is None else partition.log.config.max_decompressed_bytes
            conversions.append(PartitionConversion(asked, result, limit))
        convert(conversions, [each for each in conversions if len(each.result.records)])

    def convert(conversions: list[PartitionConversion], to_convert: list[PartitionConversion]) -> None:
        if not to_convert:
            answer([(each.asked, each.result) for each in conversions])
            return

        def work() -> Callable[[], object]:
            without_messages = [each for each in to_convert if each.convert(magic)]
            return lambda: read_on(conversions, without_messages)

        context.submit(work)

    def read_on(conversions: list[PartitionConversion], without_messages: list[PartitionConversion]) -> None:
        report_failures(context.services, conversions)
        for each in without_messages:
            asked = FetchPartition(each.asked.topic, each.asked.partition, each.position, each.asked.max_bytes)
            ((_, each.result),) = context.services.replica_manager.read_from_log(params, [asked]).results
        convert(conversions, [each for each in without_messages if len(each.result.records)])

    context.services.replica_manager.fetch_messages(params, partitions[first:] + partitions[:first], on_results)


def report_failures(services: Any, conversions: list[PartitionConversion]) -> None:
    """Takes a log directory offline if the records of one of its partitions could not be read for conversion."""
    for each in conversions:
        partition = services.replica_manager.partitions.get(each.asked.topic_partition)
        if each.error is not None and partition is not None:
            services.log_manager.take_offline(partition.log.directory.path, each.error)
        each.error = None
