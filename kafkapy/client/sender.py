"""A producer's sender: sends batches that are due to the leaders of their partitions and handles the responses."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkapy._core.client.record_accumulator import PartitionQueue, ProducerBatch, RecordAccumulator
from kafkapy.client.cluster import NO_LEADER, Node
from kafkapy.client.errors import AuthenticationError, RequestTimedOut
from kafkapy.client.network import NEVER, Network
from kafkapy.client.producer_id import ProducerIdSource
from kafkapy.client.sequences import sequences_of
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.types import ZERO_UUID, TopicPartition

if TYPE_CHECKING:
    from kafkapy.client.configuration import ClientConfig

log = logging.getLogger("kafkapy.client")

# Errors after which new metadata are requested, because the leader may have changed.
STALE_METADATA = frozenset(
    (
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.LEADER_NOT_AVAILABLE,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
        Error.KAFKA_STORAGE_ERROR,
        Error.NETWORK_EXCEPTION,
        Error.REPLICA_NOT_AVAILABLE,
    )
)
# The broker does not know the preceding batches; an idempotent producer then starts a new epoch.
_BROKEN_SEQUENCE = frozenset((Error.OUT_OF_ORDER_SEQUENCE_NUMBER, Error.UNKNOWN_PRODUCER_ID))
_FRAME_BYTES = 512  # about the size of a produce request without its batches


class Sender:
    """Sends the batches of one producer; it owns the batches in flight.

    The sender is a `Task`: the client's network loop calls `run` in every pass. Every method must be called with
    `Network.lock` held. While `flushing` or `out_of_memory` (counts of waiting callers) is positive, batches are sent
    without lingering.
    """

    def __init__(
        self,
        network: Network,
        accumulator: RecordAccumulator,
        config: ClientConfig,
        identity: ProducerIdSource,
        on_finished: Callable[[ProducerBatch], None],
    ) -> None:
        self._network = network
        self._accumulator = accumulator
        self._identity = identity
        self._on_finished = on_finished
        self._acks = -1 if config["acks"] == "all" else int(config["acks"])
        self._linger_ms: int = config["linger.ms"]
        self._retries: int = config["retries"]
        self._delivery_timeout_ms: int = config["delivery.timeout.ms"]
        self._request_timeout_ms: int = config["request.timeout.ms"]
        self._max_request_bytes: int = config["max.request.size"]
        self._transactional_id: str | None = config["transactional.id"]
        self._limit: int = config["max.in.flight.requests.per.connection"]
        self.in_flight: set[ProducerBatch] = set()
        # The partitions with a batch in flight, if only one request may be in flight; another broker may become their
        # leader before the response.
        self._muted: set[PartitionQueue] = set()
        self._flights_expire_ms = NEVER  # monotonic; no batch in flight expires before this time
        self._topic_idle_ms: int = config["metadata.max.idle.ms"]
        self._topics_used_ms: dict[str, int] = {}  # monotonic
        network.metadata.idle_topics = self._idle_topics
        self.flushing = 0
        self.out_of_memory = 0

    @property
    def is_idle(self) -> bool:
        """Returns whether every batch is finished."""
        return not self._accumulator.active and not self.in_flight

    def run(self, monotonic_ms: int) -> int:
        """Sends the batches that are due; returns the monotonic time (ms) at which the next batch is due or expires."""
        if monotonic_ms >= self._flights_expire_ms:
            self._expire_flights(monotonic_ms)
        return min(self._send_due(monotonic_ms), self._flights_expire_ms)

    def _send_due(self, monotonic_ms: int) -> int:
        has_identity = False
        failure = self._identity.failure_of_batches()
        if failure is None and self._accumulator.active:
            has_identity = self._identity.run(monotonic_ms, self.in_flight)
            failure = self._identity.failure_of_batches()
        if failure is not None:
            self.fail_all(failure)
        if not self._accumulator.active:
            return NEVER
        has_sent = False
        while True:
            chosen: dict[int, list[ProducerBatch]] = {}
            due = self._choose(monotonic_ms, has_identity, chosen)
            for node_id, batches in chosen.items():
                self._send(node_id, batches, monotonic_ms)
            if not chosen:
                return monotonic_ms if has_sent and self._network.is_congested() else due
            if due > monotonic_ms:
                return due
            has_sent = True

    def _choose(self, monotonic_ms: int, has_identity: bool, chosen: dict[int, list[ProducerBatch]]) -> int:
        """Adds to `chosen` the batches of one request to each broker, at most one batch of each partition.

        `has_identity` is False while the producer may not send, such as before it has a producer id. Returns the
        monotonic time (ms) at which to choose again.
        """
        due = NEVER
        sizes: dict[int, int] = {}
        for queue in list(self._accumulator.active):
            batch = queue.first()
            if batch is None:
                self._accumulator.retire(queue)
                continue
            if monotonic_ms - batch.created_ms >= self._delivery_timeout_ms and self._expire(queue, monotonic_ms):
                due = monotonic_ms
                continue
            ready_ms = max(self._ready_ms(queue, batch), batch.retry_at_ms)
            if ready_ms > monotonic_ms:
                due = min(due, ready_ms)
                continue
            due = min(due, batch.created_ms + self._delivery_timeout_ms)
            if has_identity and self._identity.may_send_to(queue):
                due = min(due, self._add_to_request(queue, batch, chosen, sizes, monotonic_ms))
            else:
                due = min(due, self._identity.next_ms(monotonic_ms))
        return due

    def _ready_ms(self, queue: PartitionQueue, batch: ProducerBatch) -> int:
        if queue.closed_count or self.flushing or self.out_of_memory or self._identity.is_ending:
            return 0
        return batch.created_ms + self._linger_ms

    def _add_to_request(
        self,
        queue: PartitionQueue,
        batch: ProducerBatch,
        chosen: dict[int, list[ProducerBatch]],
        sizes: dict[int, int],
        monotonic_ms: int,
    ) -> int:
        """Adds the first batch of a queue to the request for its leader, if the batch may be sent.

        `chosen` has the batches of each request, and `sizes` its size in bytes, both by the leader's id. Returns the
        monotonic time (ms) at which the next batch of the queue may be added; NEVER if another event must come first.
        """
        leader = self._network.cluster.leader(queue.topic, queue.partition)
        if leader == NO_LEADER:
            self._network.metadata.add_topic(queue.topic)
            self._network.metadata.request_update()
            return NEVER
        if not self._network.is_ready(leader):
            return self._network.ready_from_ms(leader)
        size = sizes.get(leader, _FRAME_BYTES) + batch.size_estimate
        if leader in chosen and size > self._max_request_bytes:
            return monotonic_ms
        if queue in self._muted:
            return NEVER
        if self._identity.is_idempotent:
            sequences = sequences_of(queue)
            if not sequences.may_send(batch, self._identity.identity, self._limit):
                # Without an unfinished batch to wait for, the next run restarts the sequences.
                return NEVER if sequences.unfinished else monotonic_ms
            queue.take()
            if not batch.has_sequence:
                sequences.assign(batch, self._identity.identity, self._transactional_id is not None)
        else:
            queue.take()
        chosen.setdefault(leader, []).append(batch)
        sizes[leader] = size
        return monotonic_ms if queue.batch_count else NEVER

    def _expire(self, queue: PartitionQueue, monotonic_ms: int) -> bool:
        """Fails those batches of a queue that were created more than delivery.timeout.ms ago; returns whether there
        were any.
        """
        expired = False
        while True:
            batch = queue.first()
            if batch is None or monotonic_ms - batch.created_ms < self._delivery_timeout_ms:
                return expired
            queue.take()
            expired = True
            self._fail_expired(batch, monotonic_ms)

    def _expire_flights(self, monotonic_ms: int) -> None:
        """Fails the batches in flight that were created more than delivery.timeout.ms ago, the oldest ones first.

        Responses to them are ignored. In a transaction they wait for their responses, so that the transaction does not
        end before a broker has written them.
        """
        self._flights_expire_ms = NEVER
        for batch in sorted(self.in_flight, key=lambda each: each.created_ms):
            if monotonic_ms - batch.created_ms < self._delivery_timeout_ms:
                self._flights_expire_ms = batch.created_ms + self._delivery_timeout_ms
                return
            self._fail_expired(batch, monotonic_ms)

    def _fail_expired(self, batch: ProducerBatch, monotonic_ms: int) -> None:
        message = (
            f"Expiring {batch.record_count} record(s) for {batch.queue.topic}-{batch.queue.partition}:"
            f"{monotonic_ms - batch.created_ms} ms has passed since batch creation"
        )
        if batch.has_sequence:
            self._identity.on_sequence_given_up(batch)
        expiry = RequestTimedOut(message)
        self._identity.on_error(expiry)
        self._fail(batch, expiry)

    def _idle_topics(self, monotonic_ms: int) -> set[str]:
        """Returns the topics of the metadata that have no batches and had none for metadata.max.idle.ms (KAFKA-8904,
        KIP-526)."""
        used_ms = self._topics_used_ms
        for queue in list(self._accumulator.active):
            used_ms[queue.topic] = monotonic_ms
        topics = self._network.metadata.topics
        for topic in topics:
            used_ms.setdefault(topic, monotonic_ms)  # the application waits for the metadata of a new topic
        idle = {topic for topic in topics if monotonic_ms - used_ms[topic] >= self._topic_idle_ms}
        for topic in idle:
            del used_ms[topic]
        return idle

    def _send(self, node_id: int, batches: list[ProducerBatch], monotonic_ms: int) -> None:
        metrics = self._network.metrics
        records = 0
        for batch in batches:
            batch.attempts += 1
            batch.sent_ms = monotonic_ms
            self._topics_used_ms[batch.queue.topic] = monotonic_ms
            self.in_flight.add(batch)
            if self._limit == 1:
                self._muted.add(batch.queue)
            if self._transactional_id is None:
                self._flights_expire_ms = min(self._flights_expire_ms, batch.created_ms + self._delivery_timeout_ms)
            records += batch.record_count
            if batch.attempts == 1 and not batch.is_part:
                queued_ms = monotonic_ms - batch.created_ms
                metrics.batch_sent(
                    batch.queue.topic, batch.record_count, batch.size_estimate, batch.largest_record, queued_ms
                )
        metrics.records_per_request.add(records)
        acks = self._acks
        ids = [self._topic_id(batch) for batch in batches]

        def build(version: int) -> ProduceRequest:
            return self._request(batches, ids, version)

        def on_response(response: ProduceResponse | None, version: int, error: Exception | None) -> None:
            self._on_response(batches, ids, response, version, error)

        highest = self._identity.highest_produce_version
        if highest is None and ZERO_UUID in ids:
            highest = ProduceRequest.FIRST_VERSION_WITH_TOPIC_ID - 1
        self._network.submit(node_id, ApiKey.PRODUCE, build, on_response, highest=highest, expects_response=acks != 0)
        if acks == 0:
            for batch in batches:
                if batch in self.in_flight:
                    self._complete(batch, -1, -1)

    def _topic_id(self, batch: ProducerBatch) -> bytes:
        info = self._network.cluster.topics.get(batch.queue.topic)
        return ZERO_UUID if info is None else info.topic_id

    def _request(self, batches: list[ProducerBatch], ids: list[bytes], version: int) -> ProduceRequest:
        topics: dict[str, ProduceRequest.TopicProduceData] = {}
        for batch, topic_id in zip(batches, ids, strict=True):
            topic = topics.get(batch.queue.topic)
            if topic is None:
                if version >= ProduceRequest.FIRST_VERSION_WITH_TOPIC_ID:
                    topic = ProduceRequest.TopicProduceData(topic_id=topic_id, partition_data=[])
                else:
                    topic = ProduceRequest.TopicProduceData(name=batch.queue.topic, partition_data=[])
                topics[batch.queue.topic] = topic
            data = ProduceRequest.PartitionProduceData(index=batch.queue.partition, records=batch.encode())
            if batch.attempts == 1:
                self._network.metrics.batch_compressed(batch.queue.topic, batch.compression_ratio)
            topic.partition_data.append(data)
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._acks,
            timeout_ms=self._request_timeout_ms,
            topic_data=list(topics.values()),
        )

    def _on_response(
        self,
        batches: list[ProducerBatch],
        ids: list[bytes],
        response: ProduceResponse | None,
        version: int,
        error: Exception | None,
    ) -> None:
        if response is None:
            failure = error if isinstance(error, ApiError) else ApiError(Error.NETWORK_EXCEPTION, str(error))
            if isinstance(failure, AuthenticationError):
                # The session ended while the request was in flight. The batches wait for another one, as in Java.
                failure = ApiError(Error.NETWORK_EXCEPTION, failure.message)
            for batch in batches:
                self._handle_error(batch, failure)
            return
        if len(batches) == 1 and _is_single_success(response):
            [only] = response.responses[0].partition_responses
            if only.index == batches[0].queue.partition and batches[0] in self.in_flight:
                self._complete(batches[0], only.base_offset, only.log_append_time_ms)
                return
        found: dict[tuple[str | bytes, int], ProduceResponse.PartitionProduceResponse] = {}
        with_ids = version >= ProduceResponse.FIRST_VERSION_WITH_TOPIC_ID
        for topic in response.responses:
            for partition in topic.partition_responses:
                found[topic.topic_id if with_ids else topic.name, partition.index] = partition
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        for batch, topic_id in zip(batches, ids, strict=True):
            name: str | bytes = topic_id if with_ids else batch.queue.topic
            result = found.get((name, batch.queue.partition))
            if result is None:
                self._handle_error(batch, ApiError(Error.UNKNOWN_SERVER_ERROR, "The response lacks the partition"))
            elif batch not in self.in_flight:
                continue
            elif not result.error_code:
                self._complete(batch, result.base_offset, result.log_append_time_ms)
            else:
                leader = result.current_leader
                topic_partition = TopicPartition(batch.queue.topic, batch.queue.partition)
                self._network.metadata.update_leader(topic_partition, leader.leader_id, leader.leader_epoch, nodes)
                self._handle_error(batch, ApiError(Error.of(result.error_code), result.error_message))

    def _handle_error(self, batch: ProducerBatch, error: ApiError) -> None:
        """Retries, splits or fails a batch that was refused or whose response was lost."""
        if batch not in self.in_flight:
            return
        now = self._network.clock.monotonic_ms()
        if error.error in STALE_METADATA:
            self._network.metadata.request_update()
        if error.error is Error.DUPLICATE_SEQUENCE_NUMBER:
            self._complete(batch, -1, -1)
        elif self._may_retry(batch, error.error, now):
            self._end_flight(batch)
            self._network.metrics.topic(batch.queue.topic).retries.add(batch.record_count)
            batch.retry_at_ms = now + self._network.retry_backoff.pause_ms(batch.attempts - 1)
            batch.queue.put_back(batch)
        elif error.error is Error.MESSAGE_TOO_LARGE and batch.record_count > 1:
            self._split(batch)
        else:
            if batch.has_sequence:
                self._identity.on_sequence_given_up(batch, is_refused=_is_refusal(batch, error.error))
            self._identity.on_error(error)
            self._fail(batch, error)

    def _end_flight(self, batch: ProducerBatch) -> None:
        if batch in self.in_flight:
            self.in_flight.remove(batch)
            self._muted.discard(batch.queue)

    def _may_retry(self, batch: ProducerBatch, error: Error, monotonic_ms: int) -> bool:
        if batch.attempts > self._retries or monotonic_ms - batch.created_ms >= self._delivery_timeout_ms:
            return False
        if self._identity.is_idempotent and error in _BROKEN_SEQUENCE:
            if not sequences_of(batch.queue).is_first(batch):
                return True
            if self._transactional_id is None:
                self._identity.on_broken_sequence(batch.queue)
                return True
            return False
        return error.retriable

    def _split(self, batch: ProducerBatch) -> None:
        """Splits a batch that the broker considers too large, and puts the parts back into the queue in the same order.

        A split does not count as a retry: each part may be sent as often as a new batch
        (RecordAccumulator.splitAndReenqueue in Java).
        """
        log.info("Splitting a batch of %s-%d that is too large", batch.queue.topic, batch.queue.partition)
        self._end_flight(batch)
        self._network.metrics.batch_splits.add(1)
        parts = batch.split()
        if self._identity.is_idempotent:
            sequences_of(batch.queue).replace(batch, parts)
        for part in reversed(parts):
            batch.queue.put_back(part)

    def _complete(self, batch: ProducerBatch, base_offset: int, log_append_time: int) -> None:
        self._end_flight(batch)
        if self._identity.is_idempotent:
            sequences_of(batch.queue).acknowledge(batch)
        batch.complete(base_offset, log_append_time)
        self._on_finished(batch)

    def _fail(self, batch: ProducerBatch, error: Exception) -> None:
        self._end_flight(batch)
        if self._identity.is_idempotent:
            sequences_of(batch.queue).finish(batch)
        self._network.metrics.topic(batch.queue.topic).errors.add(batch.record_count)
        batch.fail(error)
        self._on_finished(batch)

    def fail_all(self, error: Exception) -> None:
        """Fails all batches that wait to be sent. Batches in flight get their results from the responses."""
        for queue in list(self._accumulator.active):
            while (batch := queue.take()) is not None:
                if batch.has_sequence:
                    self._identity.on_sequence_given_up(batch)
                self._fail(batch, error)
            self._accumulator.retire(queue)

    def fail_in_flight(self, error: Exception) -> None:
        """Fails the batches in flight, the oldest ones first. The broker may have written them; responses to them are
        ignored."""
        for batch in sorted(self.in_flight, key=lambda each: each.created_ms):
            if batch.has_sequence:
                self._identity.on_sequence_given_up(batch)
            self._fail(batch, error)


def _is_refusal(batch: ProducerBatch, error: Error) -> bool:
    """Returns whether the broker has certainly not written a batch that it answered with an error.

    This is certain only at the first attempt. At a later attempt, the broker may have written the batch before, if only
    the response to an earlier attempt was lost.
    """
    return batch.attempts == 1 and not error.retriable and error is not Error.UNKNOWN_SERVER_ERROR


def _is_single_success(response: ProduceResponse) -> bool:
    """Returns whether a response contains one partition, without an error; this is the usual case."""
    if len(response.responses) != 1 or len(response.responses[0].partition_responses) != 1:
        return False
    return not response.responses[0].partition_responses[0].error_code
