"""A consumer's fetcher: keeps every partition's buffers filled ahead of the application, and positions found."""

from __future__ import annotations

import logging
from typing import Any

from kafkapy._core.client.fetched_records import ConsumerRecord, FetchedRecords
from kafkapy.client.cluster import NO_LEADER, ZERO_UUID, Node
from kafkapy.client.configuration import ClientConfig
from kafkapy.client.fetch_session import FetchPlan, FetchPosition, FetchSession
from kafkapy.client.network import NEVER, Network
from kafkapy.client.offset_lookup import OffsetAndTimestamp, look_up
from kafkapy.client.position_validation import PositionValidator
from kafkapy.client.sender import STALE_METADATA
from kafkapy.client.subscription import PartitionState, Subscription, reset_timestamp
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.types import OffsetAndEpoch, TopicPartition

log = logging.getLogger("kafkapy.client")

# Fetches of one partition that are held before the application has taken the first.
BUFFERED_FETCHES = 2
# A fetch without a partition whose buffers are full does not wait long for the others: that one is wanted soon.
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


class NoOffsetForPartition(ApiError):
    """A partition has no position, and `auto.offset.reset` is none; or its position is outside its log."""

    def __init__(self, partition: TopicPartition, message: str) -> None:
        super().__init__(Error.OFFSET_OUT_OF_RANGE, message)
        self.partition = partition


class LogTruncated(NoOffsetForPartition):
    """A position is behind where its log was cut off by a new leader, and `auto.offset.reset` is none. `agreed` is the
    last offset, with its epoch, up to which the log is what was read; None if nobody knows."""

    def __init__(self, partition: TopicPartition, position: int, agreed: OffsetAndEpoch | None) -> None:
        hint = f"; it diverges from offset {agreed.offset} on" if agreed is not None else ""
        super().__init__(partition, f"Truncated partition {partition}: position {position} is no more{hint}")
        self.agreed = agreed


class Fetcher:
    """Owns the fetches on their way and the sessions.  A task of the network: all of it runs with the seat held."""

    def __init__(self, network: Network, subscription: Subscription, config: ClientConfig) -> None:
        self._network = network
        self._subscription = subscription
        self._config = config
        self._read_committed = config["isolation.level"] == "read_committed"
        self.isolation_level = 1 if self._read_committed else 0
        self._reset: str = config["auto.offset.reset"]
        self._check_crcs: bool = config["check.crcs"]
        self._sessions: dict[int, FetchSession] = {}
        self._busy: set[int] = set()  # brokers with a fetch on its way
        self.errors: list[Exception] = []
        self._turns = 0
        self.is_hungry = True  # the last `collect` has made room for another fetch
        self._validator = PositionValidator(network, subscription, self._heed_truncation)

    def run(self, now_ms: int) -> int:
        """Finds positions that are not known and fetches what is wanted; returns when to look again."""
        due = self._find_positions(now_ms)
        here: dict[int, int] = {}
        full: set[int] = set()  # brokers with a partition whose buffers are full: they are not to wait for others
        wanted: dict[int, dict[TopicPartition, FetchPosition]] = {}
        for where, state in self._subscription.partitions.items():
            node_id = self._source(where, state)
            here[node_id] = here.get(node_id, 0) + 1
            if not state.is_fetchable or node_id in self._busy:
                continue
            if len(state.buffers) >= BUFFERED_FETCHES:
                full.add(node_id)
                continue
            if node_id == NO_LEADER:
                self._network.metadata.request_update()
            elif state.not_before_ms > now_ms:
                due = min(due, state.not_before_ms)
            elif self._network.is_ready(node_id):
                info = self._network.cluster.topics[where.topic]
                leader = info.partitions[where.partition]
                if self._validator.holds(where, state, leader.leader, leader.leader_epoch):
                    position = FetchPosition(info.topic_id, state.fetch_offset, leader.leader_epoch)
                    wanted.setdefault(node_id, {})[where] = position
            else:
                due = min(due, self._network.ready_from_ms(node_id))
        self._validator.ask()
        for node_id, positions in wanted.items():
            self._fetch(node_id, positions, here[node_id], SHORT_WAIT_MS if node_id in full else NEVER)
        return due

    def _source(self, where: TopicPartition, state: PartitionState) -> int:
        """The replica to read from: the leader, or the one that the leader has named."""
        if state.preferred_replica in self._network.cluster.nodes:
            return state.preferred_replica
        return self._network.cluster.leader(*where)

    # Positions

    def _find_positions(self, now_ms: int) -> int:
        due = NEVER
        wanted: dict[TopicPartition, int] = {}
        for where, state in self._subscription.partitions.items():
            if state.position is not None or state.wants_committed or state.is_fetching:
                continue
            if state.not_before_ms > now_ms:
                due = min(due, state.not_before_ms)
                continue
            if state.reset is None:
                state.reset = reset_timestamp(self._reset, self._network.clock.now_ms())
                if state.reset is None:
                    message = f"Undefined offset with no reset policy for partitions: [{where}]"
                    self._complain(state, NoOffsetForPartition(where, message))
                    continue
            wanted[where] = state.reset
            state.is_fetching = True
        if wanted:
            look_up(self._network, wanted, self.isolation_level, self._found)
        return due

    def _found(self, where: TopicPartition, found: OffsetAndTimestamp | None, error: ApiError | None) -> None:
        state = self._subscription.partitions.get(where)
        if state is None:
            return
        state.is_fetching = False
        if state.position is not None or state.reset is None:
            return  # a seek came between
        if error is not None:
            if not error.error.retriable and error.error is not Error.UNKNOWN_SERVER_ERROR:
                self._complain(state, error)
            state.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
        elif found is None:
            state.jump_by(-1)
        else:
            state.jump(found.offset, found.leader_epoch)

    def _heed_truncation(self, where: TopicPartition, state: PartitionState, agreed: OffsetAndEpoch | None) -> None:
        timestamp = reset_timestamp(self._reset, self._network.clock.now_ms())
        if timestamp is None:
            self._complain(state, LogTruncated(where, state.position or 0, agreed))
        elif agreed is None:
            state.jump_by(timestamp)
        else:
            state.jump(*agreed)

    def _complain(self, state: PartitionState, error: ApiError) -> None:
        """Something that the application has to hear of, with every poll until it does something about it."""
        state.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
        if not self.errors:
            self.errors.append(error)

    # Fetching

    def _fetch(
        self, node_id: int, positions: dict[TopicPartition, FetchPosition], partitions_here: int, longest_wait_ms: int
    ) -> None:
        session = self._sessions.setdefault(node_id, FetchSession())
        plan = session.plan(positions, partitions_here=partitions_here)
        generations = {where: self._subscription.partitions[where].generation for where in positions}
        self._busy.add(node_id)
        with_ids = all(position.topic_id != ZERO_UUID for position in positions.values())

        def answered(response: FetchResponse | None, version: int, error: Exception | None) -> None:
            self._busy.discard(node_id)
            self._answered(session, plan, positions, generations, response, version)

        self._network.submit(
            node_id,
            ApiKey.FETCH,
            lambda version: self._request(plan, version, longest_wait_ms),
            answered,
            highest=None if with_ids else 12,
        )

    def _request(self, plan: FetchPlan, version: int, longest_wait_ms: int) -> FetchRequest:
        config = self._config
        topics: dict[str, FetchRequest.FetchTopic] = {}
        for where, position in plan.wanted.items():
            topic = topics.get(where.topic)
            if topic is None:
                topic = FetchRequest.FetchTopic(partitions=[])
                if version >= 13:
                    topic.topic_id = position.topic_id
                else:
                    topic.topic = where.topic
                topics[where.topic] = topic
            partition = FetchRequest.FetchPartition(
                partition=where.partition,
                fetch_offset=position.fetch_offset,
                partition_max_bytes=config["max.partition.fetch.bytes"],
            )
            if version >= 9:
                partition.current_leader_epoch = position.leader_epoch
            topic.partitions.append(partition)
        request = FetchRequest(
            max_wait_ms=min(config["fetch.max.wait.ms"], longest_wait_ms),
            min_bytes=config["fetch.min.bytes"],
            max_bytes=config["fetch.max.bytes"],
            isolation_level=self.isolation_level,
            topics=list(topics.values()),
        )
        if version >= 7:
            request.session_id, request.session_epoch = plan.session_id, plan.epoch
            request.forgotten_topics_data = [
                FetchRequest.ForgottenTopic(topic_id=topic_id, partitions=[where.partition])
                if version >= 13
                else FetchRequest.ForgottenTopic(topic=where.topic, partitions=[where.partition])
                for where, topic_id in plan.forgotten.items()
            ]
        if version >= 11:
            request.rack_id = config["client.rack"]
        return request

    def _answered(
        self,
        session: FetchSession,
        plan: FetchPlan,
        positions: dict[TopicPartition, FetchPosition],
        generations: dict[TopicPartition, int],
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
        names = {position.topic_id: where.topic for where, position in positions.items()}
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        for topic in response.responses:
            name = names.get(topic.topic_id) if version >= 13 else topic.topic
            for data in topic.partitions:
                where = TopicPartition(name or "", data.partition_index)
                state = self._subscription.partitions.get(where)
                if state is None or where not in positions or generations[where] != state.generation:
                    continue
                self._take(where, state, data, nodes)

    def _pause(self, positions: dict[TopicPartition, FetchPosition]) -> None:
        not_before = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
        for where in positions:
            state = self._subscription.partitions.get(where)
            if state is not None:
                state.not_before_ms = not_before
                state.preferred_replica = -1

    def _take(self, where: TopicPartition, state: PartitionState, data: Any, nodes: list[Node]) -> None:
        """What a fetch says of one partition."""
        if data.error_code:
            self._heed(where, state, Error.of(data.error_code), data, nodes)
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
            where.topic,
            where.partition,
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
            message = f"The record at offset {state.fetch_offset} of {where} is larger than what was fetched"
            self._complain(state, ApiError(Error.MESSAGE_TOO_LARGE, message))

    def _heed(self, where: TopicPartition, state: PartitionState, error: Error, data: Any, nodes: list[Node]) -> None:
        """An error of one partition."""
        state.not_before_ms = self._network.clock.monotonic_ms() + self._network.retry_backoff.pause_ms(0)
        if error is Error.OFFSET_OUT_OF_RANGE and state.preferred_replica < 0:
            if state.buffers:
                return  # first what is buffered; then the fetch says so again
            timestamp = reset_timestamp(self._reset, self._network.clock.now_ms())
            if timestamp is None:
                message = f"Fetch position {state.fetch_offset} is out of range for partition {where}"
                self._complain(state, NoOffsetForPartition(where, message))
            else:
                log.info("Position %d of %s is out of range: reset", state.fetch_offset, where)
                state.jump_by(timestamp)
                state.not_before_ms = 0
        elif error in STALE_METADATA or error.retriable or error is Error.OFFSET_OUT_OF_RANGE:
            state.preferred_replica = -1
            leader = data.current_leader
            self._network.metadata.heed_leader(where, leader.leader_id, leader.leader_epoch, nodes)
            self._network.metadata.request_update()
        else:
            self._complain(state, ApiError(error, f"Fetching {where}: {error.message}"))

    # What the application takes

    def collect(self, limit: int) -> list[ConsumerRecord]:
        """Up to `limit` records that are there, from one partition after the other; moves the positions.

        Raises what was found wrong, once, if there are no records before it.
        """
        records: list[ConsumerRecord] = []
        self.is_hungry = False
        for where in self._order():
            state = self._subscription.partitions[where]
            while state.buffers and not state.is_paused and len(records) < limit:
                fetched = state.buffers[0]
                try:
                    records += fetched.take(limit - len(records))
                except ApiError as error:
                    if records:
                        return records
                    raise error
                state.take_from(fetched)
                self.is_hungry |= fetched.is_exhausted
        if not records:
            self.raise_error()
        return records

    def ready_states(self) -> list[PartitionState]:
        """Partitions with something that the application may take, in the order of `collect`."""
        partitions = self._subscription.partitions
        return [partitions[where] for where in self._order() if not partitions[where].is_paused]

    def raise_error(self) -> None:
        """Raises what was found wrong, once."""
        if self.errors:
            raise self.errors.pop(0)

    def _order(self) -> list[TopicPartition]:
        """Partitions with something buffered; who was served last comes last."""
        partitions = self._subscription.partitions
        ready = [where for where, state in partitions.items() if state.buffers]
        if len(ready) > 1:
            ready.sort(key=lambda where: partitions[where].last_turn)
            self._turns += 1
            partitions[ready[0]].last_turn = self._turns
        return ready

    @property
    def has_records(self) -> bool:
        """Whether `collect` would give or raise something."""
        if self.errors:
            return True
        return any(state.buffers and not state.is_paused for state in self._subscription.partitions.values())
