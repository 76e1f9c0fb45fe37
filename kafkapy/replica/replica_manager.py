"""The replica manager: appends to and reads from several partitions for one request.

An append writes to each partition, is answered or waits for replicas, and then completes fetches that wait for data. A
fetch reads each partition. If it finds too little, it waits, and reads again when a partition has changed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from kafkapy._core.broker_state.topic_counters import TopicCounters
from kafkapy._core.bytes.record_batch import BatchSummary, RecordValidationError
from kafkapy._core.gate.data_gate import DECLINED, WAITS, DataGate
from kafkapy._core.reactor.reactor import Request
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.image import MetadataCache, MetadataImage
from kafkapy.metadata.internal_topics import INTERNAL_TOPICS
from kafkapy.metadata.topics_image import NO_LEADER, TopicImage
from kafkapy.purgatory.purgatory import Schedule
from kafkapy.replica.alter_partition import AlterPartitionPort
from kafkapy.replica.delayed_delete_records import DelayedDeleteRecords, DeleteRecordsCallback, DeleteRecordsResult
from kafkapy.replica.delayed_fetch import DelayedFetch, FetchCallback
from kafkapy.replica.delayed_produce import DelayedProduce, ProduceCallback
from kafkapy.replica.fetch import NO_REPLICA, FetchParams, FetchPartition, FetchResult, LogRead
from kafkapy.replica.held_fetch import HeldFetch
from kafkapy.replica.hosted_partitions import HostedPartitions
from kafkapy.replica.partition import ALL_REPLICAS, Partition
from kafkapy.replica.partition_response import PartitionResponse
from kafkapy.replica.replica_context import ReplicaContext
from kafkapy.replica.replica_selector import replica_selector
from kafkapy.storage.checkpoint import MalformedCheckpoint
from kafkapy.storage.log import Log
from kafkapy.storage.log_manager import LogManager
from kafkapy.storage.log_results import FetchData
from kafkapy.types import ZERO_UUID, Clock, OffsetAndEpoch, TopicPartition

if TYPE_CHECKING:
    from kafkapy.replica.fetcher.fetcher_manager import ReplicaFetcherManager

logger = logging.getLogger("kafka.server.ReplicaManager")

NOTHING_CHECKED: Mapping[TopicPartition, list[BatchSummary] | ApiError] = MappingProxyType({})
# Kafka responds with these errors without the log start offset, and with all other errors of an append with it.
_WITHOUT_LOG_START_OFFSET = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.MESSAGE_TOO_LARGE,
        Error.RECORD_LIST_TOO_LARGE,
        Error.CORRUPT_MESSAGE,
        Error.KAFKA_STORAGE_ERROR,
        Error.INVALID_TOPIC_EXCEPTION,
    }
)

Found = TypeVar("Found")
LeadershipListener = Callable[[list[Partition], list[Partition]], None]
# Constructs the fetchers, which follow the partitions for which the argument returns True.
MakeFetchers = Callable[[Callable[[Partition], bool]], "ReplicaFetcherManager"]


class ReplicaManager:
    """Owns the partitions of this broker and the requests that wait for them.

    Used only by the thread that owns it, except for `checkpoint_high_watermarks`. The callback of each request is
    called exactly once, possibly before the method returns.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log_manager: LogManager,
        metadata: MetadataCache,
        clock: Clock,
        schedule: Schedule,
        node_id: int,
        alter_partition: AlterPartitionPort,
        *,
        on_leadership: LeadershipListener = lambda led, followed: None,
        gate: DataGate | None = None,
        make_fetchers: MakeFetchers | None = None,
    ) -> None:
        """Creates a manager without partitions; `startup` creates these.

        `on_leadership(led, followed)` is called with the partitions that this broker began or ceased to lead, and with
        the partitions whose leader or leader epoch has changed. `make_fetchers` is called when this broker first
        follows another one; without it, followed partitions are not fetched.

        `gate` is compiled code that serves usual requests without the replica manager. It calls `gate_appended` if an
        operation may wait for its change of a partition, and `gate_failed_to_append` after an append that failed.
        Fetches that have to wait are passed to `hold_fetch`.
        """
        lag_max_ms: int = config.replica_lag_time_max_ms
        self.context = ReplicaContext(node_id, clock, metadata, schedule, alter_partition, lag_max_ms, gate)
        self.delayed_operations = self.context.delayed_operations
        self.hosted = HostedPartitions(config, log_manager, self.context, self._on_roles, gate)
        self.partitions: Mapping[TopicPartition, Partition] = self.hosted.online
        self.find_partition = self.hosted.find
        self.topic_counters = self.hosted.topic_counters
        self.fetchers: ReplicaFetcherManager | None = None
        self._config = config
        self._on_leadership = on_leadership
        self._make_fetchers = make_fetchers
        self._log_manager = log_manager
        self._gate = gate
        self._select_replica = replica_selector(config.replica_selector_class)

    # -- life ----------------------------------------------------------------------------------------------------

    def startup(self, image: MetadataImage, *, waits_for_registration: bool = False) -> None:
        """Creates the partitions that `image` places on this broker. The log manager has loaded their logs.

        If `waits_for_registration` is set, this broker leads no partition before it has registered.
        """
        high_watermarks: dict[TopicPartition, int] = {}
        for directory in self._log_manager.directories:
            if directory.is_online:
                try:
                    checkpoint = directory.high_watermarks.read()
                except (OSError, MalformedCheckpoint) as error:
                    self._log_manager.take_offline(directory.path, error)
                    continue
                for partition, offset in checkpoint.items():
                    # The file of the directory that a partition was moved from may still contain it.
                    if self._log_manager.directory_of(partition) is directory:
                        high_watermarks[partition] = offset
        self.hosted.startup(image, high_watermarks, waits_for_registration=waits_for_registration)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Applies one metadata delta. Logs of new partitions exist already, and `drop_topics` has removed deleted
        ones."""
        self.hosted.apply(delta, image)
        if self.fetchers is not None and delta.changed_configs:
            self.fetchers.reconfigure(self._config)
            self.fetchers.follow_throttles()

    def follow_broker_config(self, image: MetadataImage) -> None:
        """Updates the topics' settings after a change of the broker's configuration, from which topics inherit."""
        self.hosted.follow_broker_config(image)
        if self.fetchers is not None:
            self.fetchers.reconfigure(self._config)

    def drop_topics(self, deleted: Iterable[TopicImage]) -> None:
        """Removes the partitions of deleted topics before their logs are deleted. The delta for `apply` contains these
        topics as well."""
        self.hosted.drop_topics(deleted)

    def handle_directory_failure(self, directory: str) -> list[TopicPartition]:
        """Takes the partitions of a failed log directory offline and returns them."""
        return self.hosted.handle_directory_failure(directory)

    def replace_log(self, current: Log, future: Log) -> None:
        """Replaces the log of a partition by `future`, which has the same records."""
        topic_partition = current.topic_partition
        partition = self.partitions.get(topic_partition)
        if partition is not None and partition.log is current:
            assert future.log_end_offset == current.log_end_offset, "the logs have different records"
            partition.log = future
            # Waiting fetches refer to positions in the files of the replaced log.
            self.delayed_operations.fetch.force_complete(topic_partition)

    def checkpoint_high_watermarks(self) -> None:
        """Writes `replication-offset-checkpoint` in each directory where it has changed. Any thread may call it, but
        only one at a time.

        The high watermarks are read while the reactor's thread changes them, because a checkpoint that is too low is
        harmless.
        """
        self._log_manager.checkpoints.write_high_watermarks()

    def shutdown(self) -> None:
        """Stops fetching, and completes all waiting requests. The caller writes the last high watermark checkpoint."""
        if self.fetchers is not None:
            self.fetchers.close()
        self.hosted.stop()
        self.delayed_operations.force_complete_all()
        if self._gate is not None:
            self._gate.expire_awaited(at_once=True)

    def get_partition(self, topic_partition: TopicPartition) -> Partition:
        """Returns the partition.

        Raises ApiError: UNKNOWN_TOPIC_OR_PARTITION if it does not exist, NOT_LEADER_OR_FOLLOWER if this broker does not
        host it, and KAFKA_STORAGE_ERROR if its log directory is offline.
        """
        partition = self.partitions.get(topic_partition)
        if partition is None:
            found = self.find_partition(topic_partition)
            if isinstance(found, Error):
                raise ApiError(found)
            return found
        return partition

    # -- following -----------------------------------------------------------------------------------------------

    def _on_roles(self, led: list[Partition], followed: list[Partition]) -> None:
        """Starts fetching the partitions `followed` that have a leader, stops fetching the partitions `led` and the
        partitions `followed` without a leader, and calls `on_leadership`. Constructs the fetchers when this broker
        first follows another one.
        """
        if self.fetchers is None and self._make_fetchers is not None:
            node_id = self.context.node_id
            if any(partition.leader_id not in (NO_LEADER, node_id) for partition in followed):
                self.fetchers = self._make_fetchers(self.hosted.may_follow)
        if self.fetchers is not None:
            self.fetchers.on_roles(led, followed)
        self._on_leadership(led, followed)

    def begin_controlled_shutdown(self) -> None:
        """Stops fetching partitions that have no leader, or whose ISR does not contain this broker, now and until the
        broker stops."""
        self.hosted.is_in_controlled_shutdown = True
        if self.fetchers is not None:
            self.fetchers.on_roles((), [self.partitions[name] for name in tuple(self.fetchers.partitions)])

    def on_followed_high_watermarks(self, changed: Iterable[TopicPartition]) -> None:
        """Completes the consumers' fetches that wait for the high watermark of a followed partition (KIP-392)."""
        for topic_partition in changed:
            partition = self.partitions.get(topic_partition)
            # A followed partition has no remote replicas, so that a consumer's fetch also sets `is_watched`; the other
            # mark is for produce requests, which a follower does not have.
            if partition is not None and partition.is_watched:
                self.delayed_operations.complete_and_mark(partition, topic_partition)

    # -- append --------------------------------------------------------------------------------------------------

    def append_records(
        self,
        timeout_ms: int,
        required_acks: int,
        entries: Mapping[TopicPartition, memoryview],
        on_response: ProduceCallback,
        *,
        from_client: bool = True,
        internal_topics_allowed: bool = False,
        checked: Mapping[TopicPartition, list[BatchSummary] | ApiError] = NOTHING_CHECKED,
    ) -> None:
        """Appends to each partition independently: a refusal of one does not affect the others.

        `entries` are writable, since offsets are assigned in place, and borrowed until this returns. `checked` holds
        the results of `Log.check_records` for some of the entries. `on_response` is called with one response for each
        entry: at once with acks 0 and 1; with acks -1 when the in-sync replicas have the records, or after
        `timeout_ms`.
        """
        responses: dict[TopicPartition, PartitionResponse] = {}
        if required_acks not in (ALL_REPLICAS, 0, 1):
            on_response({entry: PartitionResponse(Error.INVALID_REQUIRED_ACKS) for entry in entries})
            return
        appended: dict[TopicPartition, int] = {}
        for topic_partition, records in entries.items():
            try:
                if not internal_topics_allowed and topic_partition[0] in INTERNAL_TOPICS:
                    raise ApiError(Error.INVALID_TOPIC_EXCEPTION)
                partition = self.get_partition(topic_partition)
                info = partition.append_records_to_leader(
                    records, required_acks, from_client=from_client, checked=checked.get(topic_partition)
                )
            except ApiError as error:
                self.counters_of(topic_partition).count_failed_append()
                responses[topic_partition] = self._refused(topic_partition, error)
            except StorageError as error:
                self.counters_of(topic_partition).count_failed_append()
                logger.error("Append to %s failed: %s", topic_partition, error)
                responses[topic_partition] = PartitionResponse(Error.KAFKA_STORAGE_ERROR)
            else:
                responses[topic_partition] = PartitionResponse(
                    Error.NONE, info.first_offset, info.log_append_time, info.log_start_offset
                )
                appended[topic_partition] = info.last_offset + 1
        if required_acks == ALL_REPLICAS and appended:
            keys = tuple(appended)
            operation = DelayedProduce(timeout_ms, responses, appended, self.find_partition, on_response)
            if not self.delayed_operations.produce.try_complete_else_watch(operation, keys):
                for key in keys:
                    self.partitions[key].is_commit_watched = True
        else:
            keys = tuple(appended)
            on_response(responses)
        # After the response, as in Kafka: the producer does not wait for the fetches that its records complete.
        for topic_partition in keys:
            changed = self.partitions.get(topic_partition)
            if changed is not None:
                self.delayed_operations.complete_all(changed, topic_partition)

    def gated_produces(self) -> tuple[int, int]:
        """Returns how many produce requests wait in compiled code (the gate), and how many have expired there.

        The second number counts from the start of the broker. Any thread may call this method.
        """
        return (0, 0) if self._gate is None else (self._gate.awaited_count, self._gate.expired_count)

    def counters_of(self, topic_partition: TopicPartition) -> TopicCounters:
        """Returns the counters of the partition's topic, or the counters of all topics together if this broker does not
        host the partition."""
        partition = self.partitions.get(topic_partition)
        return self.topic_counters.total if partition is None else partition.counters

    def gate_appended(self, partition: Partition) -> None:
        """Tries to complete the operations that wait for a partition.

        The gate, the compiled code that serves requests without the interpreter lock, has appended to the partition or
        served a follower's fetch.
        """
        self.delayed_operations.complete_and_mark(partition, partition.topic_partition)

    def gate_failed_to_append(self, partition: Partition, error_number: int) -> None:
        """Takes the log directory of the partition offline, after the compiled request path (the gate) failed to append
        to the partition and responded with KAFKA_STORAGE_ERROR. `error_number` is the errno of the failed append."""
        try:
            partition.log.report_failed_append(error_number)
        except StorageError as error:
            logger.error("Append to %s failed: %s", partition.topic_partition, error)

    def _refused(self, topic_partition: TopicPartition, refusal: ApiError) -> PartitionResponse:
        error = refusal.error
        response = PartitionResponse(error)
        partition = self.partitions.get(topic_partition)
        if partition is not None and error not in _WITHOUT_LOG_START_OFFSET:
            response.log_start_offset = partition.log.log_start_offset
        if isinstance(refusal, RecordValidationError):
            response.error_message = refusal.message
            response.record_errors = tuple(refusal.record_errors)
        if error is Error.UNKNOWN_SERVER_ERROR:
            logger.error("Error processing append operation on partition %s: %s", topic_partition, refusal.message)
        return response

    # -- fetch ---------------------------------------------------------------------------------------------------

    def fetch_messages(self, params: FetchParams, partitions: list[FetchPartition], on_response: FetchCallback) -> None:
        """Reads `partitions`, and calls `on_response` with pairs (FetchPartition, FetchResult) in the same order.

        If fewer than `min_bytes` bytes can be read and there is no error, first waits for more data, at most for
        `max_wait_ms`.
        """
        read = self.read_from_log(params, partitions)
        if params.max_wait_ms <= 0 or not partitions or read.must_answer or read.bytes_readable >= params.min_bytes:
            on_response(read.results)
            return
        operation = DelayedFetch(params, read.places, self.find_partition, self._read_again, on_response)
        keys = [asked.topic_partition for asked in partitions]
        for key in keys:
            partition = self.partitions.get(key)
            if partition is not None:
                partition.watch_fetch(is_from_follower=params.is_from_follower)
        self.delayed_operations.fetch.try_complete_else_watch(operation, keys)

    def hold_fetch(self, request: Request, serve_in_python: Callable[[Request], None]) -> None:
        """Keeps a fetch until compiled code (the gate) finds enough data for it, or until its deadline.

        If the gate declines the fetch, now or while it waits, `serve_in_python(request)` serves the fetch in Python.
        """
        gate = self._gate
        assert gate is not None, "only the gate marks requests that wait"
        verdict, awaited, max_wait_ms, replica_id = gate.serve_or_await(request)
        if verdict == WAITS:
            request.detach()
            is_from_follower = replica_id >= 0
            operation = HeldFetch(
                request, max_wait_ms, gate, self.context.clock, serve_in_python, is_from_follower=is_from_follower
            )
            keys = [replica_id] if is_from_follower else [partition.topic_partition for partition in awaited]
            self.delayed_operations.fetch.watch(operation, keys)
        elif verdict == DECLINED:
            serve_in_python(request)

    def read_from_log(
        self, params: FetchParams, partitions: list[FetchPartition], *, is_second_read: bool = False
    ) -> LogRead:
        """Reads each partition once.

        The records are at most `max_bytes` in all, but at least one whole batch of the first partition that has
        records. If `is_second_read` is set, because the fetch has waited, a follower's position is not recorded again.
        """
        read = LogRead()
        results = read.results
        remaining = params.max_bytes
        min_one_message = True
        for asked in partitions:
            result, data = self._read(params, asked, min(asked.max_bytes, remaining), min_one_message, is_second_read)
            results.append((asked, result))
            if data is None:
                read.must_answer = True
                continue
            read.places.append((asked, data.offset_metadata))
            size = len(result.records)
            if size:
                read.bytes_readable += size
                min_one_message = False
                remaining = max(0, remaining - size)
        return read

    def count_replicated(self, results: list[tuple[FetchPartition, FetchResult]]) -> None:
        """Counts the bytes that a follower receives from throttled partitions in the rate that
        leader.replication.throttled.rate limits (KIP-73). `results` are the partitions of the response to the
        follower."""
        for asked, result in results:
            partition = self.partitions.get(asked.topic_partition)
            if partition is not None and partition.leader_throttle is not None and len(result.records):
                partition.leader_throttle.record(len(result.records), self.context.clock.monotonic_ms())

    def _read_again(self, params: FetchParams, partitions: list[FetchPartition]) -> LogRead:
        return self.read_from_log(params, partitions, is_second_read=True)

    def _read(
        self, params: FetchParams, asked: FetchPartition, max_bytes: int, min_one_message: bool, is_second_read: bool
    ) -> tuple[FetchResult, FetchData | None]:
        try:
            partition = self.get_partition(asked.topic_partition)
            if asked.topic_id != ZERO_UUID and asked.topic_id != partition.topic_id:
                raise ApiError(Error.INCONSISTENT_TOPIC_ID)
            if params.client_rack and self._select_replica is not None and partition.is_leader:
                brokers = self.context.metadata.image.brokers
                preferred = self._select_replica(partition, params, asked.fetch_offset, brokers)
                if preferred != NO_REPLICA:
                    return partition.refer_to(preferred, asked), None
            return partition.fetch_records(
                params,
                asked,
                max_bytes,
                min_one_message=min_one_message,
                update_state=not (is_second_read or params.is_recorded),
            )
        except ApiError as error:
            return FetchResult(error.error), None
        except StorageError as error:
            logger.error("Fetch from %s failed: %s", asked.topic_partition, error)
            return FetchResult(Error.KAFKA_STORAGE_ERROR), None

    def fetch_offset(self, topic_partition: TopicPartition, find: Callable[[Partition], Found]) -> Found:
        """Calls `find`, which searches a partition for the offset of a timestamp, and returns its result.

        Raises ApiError if this broker does not host the partition, and with KAFKA_STORAGE_ERROR if its log cannot be
        read.
        """
        partition = self.get_partition(topic_partition)
        try:
            return find(partition)
        except StorageError as error:
            logger.error("The search for an offset of %s failed: %s", topic_partition, error)
            raise ApiError(Error.KAFKA_STORAGE_ERROR) from error

    def offset_for_leader_epoch(
        self, topic_partition: TopicPartition, current_leader_epoch: int, leader_epoch: int
    ) -> OffsetAndEpoch:
        """Returns the largest epoch <= `leader_epoch` of a partition led here, with its end offset; see
        `Log.end_offset_for_epoch`. Raises ApiError if this broker does not lead the partition or cannot use its log, or
        if `current_leader_epoch` is neither -1 nor the partition's epoch."""
        partition = self.get_partition(topic_partition)
        return partition.last_offset_for_leader_epoch(current_leader_epoch, leader_epoch, only_leader=True)

    # -- delete --------------------------------------------------------------------------------------------------

    def delete_records(
        self, timeout_ms: int, offsets: Mapping[TopicPartition, int], on_response: DeleteRecordsCallback
    ) -> None:
        """Moves log start offsets up to `offsets` (-1: the high watermark). Calls `on_response` with the result of each
        partition when all replicas have moved their log start offsets, or after `timeout_ms`.
        """
        results: dict[TopicPartition, DeleteRecordsResult] = {}
        required: dict[TopicPartition, int] = {}
        for topic_partition, offset in offsets.items():
            try:
                partition = self.get_partition(topic_partition)
                if topic_partition[0] in INTERNAL_TOPICS:
                    raise ApiError(Error.INVALID_TOPIC_EXCEPTION)
                required[topic_partition] = partition.delete_records_on_leader(offset)
            except ApiError as error:
                results[topic_partition] = DeleteRecordsResult(error.error)
            except StorageError as error:
                logger.error("DeleteRecords on %s failed: %s", topic_partition, error)
                results[topic_partition] = DeleteRecordsResult(Error.KAFKA_STORAGE_ERROR)
        if not required:
            on_response(results)
            return
        keys = tuple(required)
        operation = DelayedDeleteRecords(timeout_ms, results, required, self.find_partition, on_response)
        if not self.delayed_operations.delete_records.try_complete_else_watch(operation, keys):
            for key in keys:
                self.partitions[key].is_commit_watched = True
