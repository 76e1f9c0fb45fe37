"""A consumer's fetcher: finds the positions of its partitions and fetches records ahead of the application."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from kafkapy._core.client.fetched_records import ConsumerRecord, FetchedRecords
from kafkapy.client.cluster import NO_LEADER, ZERO_UUID, Node
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.errors import LogTruncated, NoOffsetForPartition
from kafkapy.client.fetch_session import FetchPlan, FetchPosition, FetchSession
from kafkapy.client.network import NEVER, Network
from kafkapy.client.offset_lookup import OffsetAndTimestamp, awaits_metadata, look_up
from kafkapy.client.position_validation import PositionValidator
from kafkapy.client.sender import STALE_METADATA
from kafkapy.client.subscription import PartitionState, Subscription, reset_timestamp
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.types import OffsetAndEpoch, TopicPartition

log = logging.getLogger("kafkapy.client")

# Fetched responses of one partition that are buffered ahead of the application.
BUFFERED_FETCHES = 2
# The longest wait at the broker of a fetch that leaves out a partition with full buffers: that partition will soon be
# fetched again, and needs the same connection.
SHORT_WAIT_MS = 20
_LOST_SESSION = frozenset(
    (
        Error.FETCH_SESSION_ID_NOT_FOUND,
        Error.INVALID_FETCH_SESSION_EPOCH,
        Error.FETCH_SESSION_TOPIC_ID_ERROR,
        Error.INCONSISTENT_TOPIC_ID,
        Error.UNKNOWN_TOPIC_ID,
    )
)


class Fetcher:
    """Fetches the records of one consumer; it owns the fetch requests and the fetch sessions.

    The fetcher is a `Task`: the client's network loop calls `run` in every pass, with `Network.lock` held. `errors`
    contains the error, if there is one, that `collect` raises when no records are buffered. `is_hungry` says that the
    last `collect` has emptied a buffer, so that another fetch can be sent.
    """

    def __init__(self, network: Network, subscription: Subscription, config: ClientConfig) -> None:
        self._network = network
        self._subscription = subscription
        self._config = config
        self._read_committed = config["isolation.level"] == "read_committed"
        self.isolation_level = 1 if self._read_committed else 0
        self._reset: str = config["auto.offset.reset"]
        self._check_crcs: bool = config["check.crcs"]
        self._sessions: dict[int, FetchSession] = {}
        self._busy: set[int] = set()  # brokers with a fetch in flight
        self.errors: list[Exception] = []
        self._collects = 0
        self.is_hungry = True
        self._validator = PositionValidator(network, subscription, self._on_truncated)

    def run(self, monotonic_ms: int) -> int:
        """Looks up unknown positions and sends a fetch to every broker that has none in flight.

        Returns the monotonic time (ms) at which to run again.
        """
        due = self._find_positions(monotonic_ms)
        partition_counts: dict[int, int] = {}
        full: set[int] = set()  # brokers with a partition whose buffers are full
        wanted: dict[int, dict[TopicPartition, FetchPosition]] = {}
        for topic_partition, state in self._subscription.partitions.items():
            node_id = self._source(topic_partition, state)
            partition_counts[node_id] = partition_counts.get(node_id, 0) + 1
            if not state.is_fetchable or node_id in self._busy:
                continue
            if len(state.buffers) >= BUFFERED_FETCHES:
                full.add(node_id)
                continue
            if node_id == NO_LEADER:
                self._network.metadata.request_update()
            elif state.not_before_ms > monotonic_ms:
                due = min(due, state.not_before_ms)
            elif self._network.is_ready(node_id):
                info = self._network.cluster.topics[topic_partition.topic]
                leader = info.partitions[topic_partition.partition]
                if self._validator.may_fetch(topic_partition, state, leader.leader, leader.leader_epoch):
                    position = FetchPosition(info.topic_id, state.fetch_offset, leader.leader_epoch)
                    wanted.setdefault(node_id, {})[topic_partition] = position
            else:
                due = min(due, self._network.ready_from_ms(node_id))
        self._validator.send_requests()
        for node_id, positions in wanted.items():
            longest_wait_ms = SHORT_WAIT_MS if node_id in full else NEVER
            self._fetch(node_id, positions, partition_counts[node_id], longest_wait_ms)
        return due

    def _source(self, topic_partition: TopicPartition, state: PartitionState) -> int:
        """Returns the id of the broker to fetch from.

        This is the replica that the leader has named as preferred for this client, if it has named one that the cluster
        has. Otherwise it is the leader.
        """
        if state.preferred_replica in self._network.cluster.nodes:
            return state.preferred_replica
        return self._network.cluster.leader(*topic_partition)

    # Positions

    def _find_positions(self, monotonic_ms: int) -> int:
        due = NEVER
        wanted: dict[TopicPartition, int] = {}
        for topic_partition, state in self._subscription.partitions.items():
            if state.position is not None or state.wants_committed or state.is_fetching:
                continue
            if state.not_before_ms > monotonic_ms:
                due = min(due, state.not_before_ms)
                continue
            if state.reset is None:
                state.reset = reset_timestamp(self._reset, self._network.clock.wall_ms())
                if state.reset is None:
                    message = f"Undefined offset with no reset policy for partitions: [{topic_partition}]"
                    self._report(state, NoOffsetForPartition(topic_partition, message))
                    continue
            if awaits_metadata(self._network, topic_partition):
                continue
            wanted[topic_partition] = state.reset
            state.is_fetching = True
        if wanted:
            generations = {each: self._subscription.partitions[each].generation for each in wanted}
            on_found = partial(self._found, generations)
            look_up(self._network, wanted, self.isolation_level, on_found)
        return due

    def _found(
        self,
        generations: Mapping[TopicPartition, int],
        topic_partition: TopicPartition,
        found: OffsetAndTimestamp | None,
        error: ApiError | None,
    ) -> None:
        state = self._subscription.partitions.get(topic_partition)
        if state is None:
            return
        state.is_fetching = False
        if state.generation != generations[topic_partition] or state.position is not None or state.reset is None:
            return  # the application has changed the position, or requested another reset, since the request
        if error is not None:
            if not error.error.retriable and error.error is not Error.UNKNOWN_SERVER_ERROR:
                self._report(state, error)
            state.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
        elif found is None:
            state.jump_by(-1)
        else:
            state.jump(found.offset, found.leader_epoch)

    def _on_truncated(
        self, topic_partition: TopicPartition, state: PartitionState, agreed: OffsetAndEpoch | None
    ) -> None:
        timestamp = reset_timestamp(self._reset, self._network.clock.wall_ms())
        if timestamp is None:
            self._report(state, LogTruncated(topic_partition, state.position or 0, agreed))
        elif agreed is None:
            state.jump_by(timestamp)
        else:
            state.jump(*agreed)

    def _report(self, state: PartitionState, error: ApiError) -> None:
        """Stores an error, which the next poll raises, unless another error is stored already.

        The partition is fetched again after the backoff, so that the error recurs until the application changes the
        position.
        """
        state.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
        if not self.errors:
            self.errors.append(error)

    # Fetching

    def _fetch(
        self, node_id: int, positions: dict[TopicPartition, FetchPosition], partition_count: int, longest_wait_ms: int
    ) -> None:
        session = self._sessions.setdefault(node_id, FetchSession())
        plan = session.plan(positions, partition_count=partition_count)
        partitions = self._subscription.partitions
        states = {each: (partitions[each], partitions[each].generation) for each in positions}
        self._busy.add(node_id)
        with_ids = all(position.topic_id != ZERO_UUID for position in positions.values())

        def on_response(response: FetchResponse | None, version: int, error: Exception | None) -> None:
            self._busy.discard(node_id)
            self._on_response(session, plan, positions, states, response, version)

        self._network.submit(
            node_id,
            ApiKey.FETCH,
            lambda version: self._request(plan, version, longest_wait_ms),
            on_response,
            highest=None if with_ids else FetchRequest.FIRST_VERSION_WITH_TOPIC_ID - 1,
        )

    def _request(self, plan: FetchPlan, version: int, longest_wait_ms: int) -> FetchRequest:
        config = self._config
        with_ids = version >= FetchRequest.FIRST_VERSION_WITH_TOPIC_ID
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for topic_partition, position in plan.wanted.items():
            topic = topics.get(topic_partition.topic)
            if topic is None:
                topic = FetchRequest.FetchTopic(partitions=[])
                if with_ids:
                    topic.topic_id = position.topic_id
                else:
                    topic.topic = topic_partition.topic
                topics[topic_partition.topic] = topic
            partition = FetchRequest.FetchPartition(
                partition=topic_partition.partition,
                fetch_offset=position.fetch_offset,
                partition_max_bytes=config["max.partition.fetch.bytes"],
            )
            if version >= FetchRequest.FIRST_VERSION_WITH_CURRENT_LEADER_EPOCH:
                partition.current_leader_epoch = position.leader_epoch
            topic.partitions.append(partition)
        request = FetchRequest(
            max_wait_ms=min(config["fetch.max.wait.ms"], longest_wait_ms),
            min_bytes=config["fetch.min.bytes"],
            max_bytes=config["fetch.max.bytes"],
            isolation_level=self.isolation_level,
            topics=list(topics.values()),
        )
        if version >= FetchRequest.FIRST_VERSION_WITH_SESSION_ID:
            request.session_id, request.session_epoch = plan.session_id, plan.epoch
            request.forgotten_topics_data = [
                FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=[topic_partition.partition])
                if with_ids
                else FetchRequest.ForgottenTopic(topic=topic_partition.topic, partitions=[topic_partition.partition])
                for topic_partition, topic_id in plan.forgotten.items()
            ]
        if version >= FetchRequest.FIRST_VERSION_WITH_RACK_ID:
            request.rack_id = config["client.rack"]
        return request

    def _on_response(
        self,
        session: FetchSession,
        plan: FetchPlan,
        positions: dict[TopicPartition, FetchPosition],
        states: dict[TopicPartition, tuple[PartitionState, int]],
        response: FetchResponse | None,
        version: int,
    ) -> None:
        if response is None:
            session.lose()
            self._pause(positions)
            return
        if response.error_code:
            error = Error.of(response.error_code)
            if error in _LOST_SESSION:
                session.refuse()
                if error is not Error.FETCH_SESSION_ID_NOT_FOUND:
                    self._network.metadata.request_update()
            else:
                session.lose()
            self._pause(positions)
            return
        session.confirm(plan, response.session_id)
        names = {position.topic_id: topic_partition.topic for topic_partition, position in positions.items()}
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        with_ids = version >= FetchResponse.FIRST_VERSION_WITH_TOPIC_ID
        sizes: dict[str, int] = {}
        for topic in response.responses:
            name = names.get(topic.topic_id) if with_ids else topic.topic
            for data in topic.partitions:
                topic_partition = TopicPartition(name or "", data.partition_index)
                state = self._subscription.partitions.get(topic_partition)
                # The partition may have been unassigned, assigned again, or moved by a seek since the request.
                if state is None or states.get(topic_partition) != (state, state.generation):
                    continue
                # Its records may have been fetched from a new leader before the former leader responded.
                if positions[topic_partition].fetch_offset != state.fetch_offset:
                    continue
                self._add(topic_partition, state, data, nodes)
                if data.records is not None and len(data.records):
                    sizes[topic_partition.topic] = sizes.get(topic_partition.topic, 0) + len(data.records)
        if sizes:
            self._network.metrics.fetched(sizes)

    def _pause(self, positions: dict[TopicPartition, FetchPosition]) -> None:
        not_before = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
        for topic_partition in positions:
            state = self._subscription.partitions.get(topic_partition)
            if state is not None:
                state.not_before_ms = not_before
                state.preferred_replica = -1

    def _add(self, topic_partition: TopicPartition, state: PartitionState, data: Any, nodes: list[Node]) -> None:
        """Buffers the records that a response has for one partition, or handles the partition's error.

        `data` is the partition's struct in the response, and `nodes` are the brokers that the response names.
        """
        if data.error_code:
            self._on_error(topic_partition, state, Error.of(data.error_code), data, nodes)
            return
        state.high_watermark, state.last_stable_offset = data.high_watermark, data.last_stable_offset
        state.log_start_offset = data.log_start_offset
        if data.preferred_read_replica >= 0:
            state.preferred_replica = data.preferred_read_replica
            return
        if data.records is None or not len(data.records):
            return
        aborted = [(each.first_offset, each.producer_id) for each in data.aborted_transactions or ()]
        fetched = FetchedRecords(
            data.records,
            topic_partition.topic,
            topic_partition.partition,
            state.fetch_offset,
            until_offset=state.until_offset,
            aborted=aborted,
            read_committed=self._read_committed,
            check_crcs=self._check_crcs,
            high_watermark=data.high_watermark,
            last_stable_offset=data.last_stable_offset,
            log_start_offset=data.log_start_offset,
        )
        if fetched.end_offset > state.fetch_offset:
            state.fetch_offset = fetched.end_offset
            state.buffers.append(fetched)
        else:
            message = f"The record at offset {state.fetch_offset} of {topic_partition} is larger than what was fetched"
            self._report(state, ApiError(Error.MESSAGE_TOO_LARGE, message))

    def _on_error(
        self, topic_partition: TopicPartition, state: PartitionState, error: Error, data: Any, nodes: list[Node]
    ) -> None:
        """Handles the error of one partition: resets the position, updates the leader, or stores the error for the next
        poll to raise.

        `data` is the partition's part of the response, and `nodes` are the brokers that the response names.
        """
        state.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
        if error is Error.OFFSET_OUT_OF_RANGE and state.preferred_replica < 0:
            if state.buffers:
                return  # the application gets the buffered records first; then the fetch fails again
            timestamp = reset_timestamp(self._reset, self._network.clock.wall_ms())
            if timestamp is None:
                message = f"Fetch position {state.fetch_offset} is out of range for partition {topic_partition}"
                self._report(state, NoOffsetForPartition(topic_partition, message, is_out_of_range=True))
            else:
                log.info("Position %d of %s is out of range: reset", state.fetch_offset, topic_partition)
                state.jump_by(timestamp)
                state.not_before_ms = 0
        elif error in STALE_METADATA or error.retriable or error is Error.OFFSET_OUT_OF_RANGE:
            state.preferred_replica = -1
            leader = data.current_leader
            self._network.metadata.update_leader(topic_partition, leader.leader_id, leader.leader_epoch, nodes)
            self._network.metadata.request_update()
        else:
            self._report(state, ApiError(error, f"Fetching {topic_partition}: {error.message}"))

    # Called by the application's thread

    def collect(self, limit: int) -> list[ConsumerRecord]:
        """Returns up to `limit` buffered records, partition by partition, and advances the positions.

        If no records are buffered, raises the error that the fetcher has reported; each error is raised once.
        """
        records: list[ConsumerRecord] = []
        self.is_hungry = False
        for topic_partition in self._order():
            state = self._subscription.partitions[topic_partition]
            while state.buffers and not state.is_paused and len(records) < limit:
                fetched = state.buffers[0]
                taken = len(records)
                try:
                    records += fetched.take(limit - taken)
                except ApiError as error:
                    if records:
                        return records
                    raise error
                self._network.metrics.topic(fetched.topic).records.add(len(records) - taken)
                state.advance(fetched)
                self.is_hungry |= fetched.is_exhausted
                state.measure(self._network.metrics)
        if not records:
            self.raise_error()
        return records

    def ready_states(self) -> list[PartitionState]:
        """Returns the partitions with buffered records that are not paused, in the order of `collect`."""
        partitions = self._subscription.partitions
        return [
            partitions[topic_partition]
            for topic_partition in self._order()
            if not partitions[topic_partition].is_paused
        ]

    def raise_error(self) -> None:
        """Raises the error that was reported first, and forgets it; does nothing if there is none."""
        if self.errors:
            raise self.errors.pop(0)

    def _order(self) -> list[TopicPartition]:
        """Returns the partitions with buffered records, in an order that rotates from call to call.

        If there are several, the first partition of this call becomes the last one of the next call.
        """
        partitions = self._subscription.partitions
        ready = [topic_partition for topic_partition, state in partitions.items() if state.buffers]
        if len(ready) > 1:
            ready.sort(key=lambda topic_partition: partitions[topic_partition].last_collect)
            self._collects += 1
            partitions[ready[0]].last_collect = self._collects
        return ready

    @property
    def has_records(self) -> bool:
        """Returns whether `collect` would return records or raise an error."""
        if self.errors:
            return True
        return any(state.buffers and not state.is_paused for state in self._subscription.partitions.values())
