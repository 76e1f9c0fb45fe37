"""Producers and consumers of a simulated cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.errors import Error
from kafkapy.metadata.topics_image import NO_LEADER
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkapy.replica.list_offsets import LATEST_TIMESTAMP
from kafkapy.replica.partition_response import PartitionResponse
from kafkapy.types import TopicPartition
from tests.simulation.replication.history import InvariantBroken, records_in
from tests.simulation.replication.world import CLIENT, World

if TYPE_CHECKING:
    from tests.simulation.replication.broker import Broker

ACKS_ALL = -1
RETRY_MS = 150
PRODUCE_TIMEOUT_MS = 1500
# Longer than a client waits for an answer: what its request was told later still counts.
PRODUCE_TIMEOUTS_MS = (PRODUCE_TIMEOUT_MS, PRODUCE_TIMEOUT_MS, 8000)
REQUEST_TIMEOUT_MS = 2000
FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 9
_IN_THE_LOG = (Error.NONE, Error.DUPLICATE_SEQUENCE_NUMBER)
_SEQUENCE_ERRORS = (
    Error.OUT_OF_ORDER_SEQUENCE_NUMBER,
    Error.INVALID_PRODUCER_EPOCH,
    Error.UNKNOWN_PRODUCER_ID,
)


class Metadata:
    """A client's knowledge of one partition's leader, whose epoch never decreases."""

    def __init__(self, world: World, partition: TopicPartition) -> None:
        self.world = world
        self.partition = partition
        self.leader = NO_LEADER
        self.leader_epoch = -1

    def leader_broker(self) -> Broker | None:
        """Asks any broker for the leader, and returns the leader if it is known."""
        world = self.world
        broker = world.random.choice(list(world.brokers.values()))
        if broker.is_accepting:
            state = broker.image.topics.partition(*self.partition)
            if state is not None and state.leader_epoch >= self.leader_epoch:
                self.leader, self.leader_epoch = state.leader, state.leader_epoch
        return world.brokers.get(self.leader)


class Producer:
    """Sends one batch at a time, again and again until it is acknowledged."""

    def __init__(
        self, world: World, name: str, partition: TopicPartition, acks: int, producer_id: int = -1, epoch: int = -1
    ) -> None:
        self.world = world
        self.name = name.encode()
        self.acks = acks
        self.metadata = Metadata(world, partition)
        self.partition = partition
        self.producer_id = producer_id
        self.epoch = epoch
        self.is_transactional = False
        self.sent = 0  # records
        self.sequence = 0
        self.is_busy = False
        self._attempt = 0
        if producer_id >= 0:
            world.history.once.add(self.name)

    def send(self) -> None:
        """Sends the next batch, unless the last one is not acknowledged yet."""
        if self.is_busy:
            return
        self.is_busy = True
        count = self.world.random.choice((1, 1, 1, 2, 5))
        values = [b"%s:%d" % (self.name, self.sent + index) for index in range(count)]
        self.sent += count
        is_idempotent = self.producer_id >= 0
        builder = RecordBatchBuilder(
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequence if is_idempotent else -1,
            is_transactional=self.is_transactional,
        )
        for value in values:
            builder.append(self.world.wall_ms(), None, value)
        self.sequence += count
        self._try(bytes(builder.build()), values)

    def give_up(self) -> None:
        """Forgets the batch that is not acknowledged; its requests may still arrive."""
        self._attempt += 1
        self.is_busy = False

    def _try(self, records: bytes, values: list[bytes]) -> None:
        world = self.world
        self._attempt += 1
        attempt = self._attempt

        def again() -> None:
            if self._attempt == attempt:
                self._try(records, values)

        def take(response: PartitionResponse) -> None:
            if response.error in _IN_THE_LOG and self.acks == ACKS_ALL and response.base_offset >= 0:
                world.history.acknowledge(self.partition, response.base_offset, values)
            if self._attempt == attempt:
                self._take(response, values, lambda: world.after(RETRY_MS, again))

        timeout_ms = world.random.choice(PRODUCE_TIMEOUTS_MS)
        world.after(REQUEST_TIMEOUT_MS, again)
        leader = self.metadata.leader_broker()
        if leader is None:
            world.after(RETRY_MS, again)
            return

        def handle() -> None:
            leader.produce(self.partition, records, self.acks, timeout_ms, respond)

        def respond(response: PartitionResponse) -> None:
            world.transmit(leader.broker_id, CLIENT, lambda: take(response))

        world.transmit(CLIENT, leader.broker_id, lambda: leader.receive(handle))

    def _take(self, response: PartitionResponse, values: list[bytes], retry: Callable[[], None]) -> None:
        history, error = self.world.history, response.error
        if error in _IN_THE_LOG:
            self._attempt += 1
            self.is_busy = False
        elif error in _SEQUENCE_ERRORS:
            if history.is_exactly_once and not history.may_lose:
                raise InvariantBroken(f"producer {self.name!r} got {error.name} for {values}")
            # A producer that lost records begins again, with the next epoch.
            self.epoch += 1
            self.sequence = 0
            self._attempt += 1
            self.is_busy = False
        else:
            retry()


class Consumer:
    """Reads a partition from its beginning, from the leader or from any replica."""

    def __init__(self, world: World, partition: TopicPartition, isolation_level: int, *, from_any: bool) -> None:
        self.world = world
        self.partition = partition
        self.metadata = Metadata(world, partition)
        self.isolation_level = isolation_level
        self.from_any = from_any
        self.position = 0
        self.latest = -1
        self.high_watermark = (-1, -1)  # the leader epoch of the last fetch that was answered, and what it showed
        self.delivered: list[bytes] = []
        self._asked = 0

    def _broker(self) -> Broker | None:
        leader = self.metadata.leader_broker()
        if not self.from_any:
            return leader
        return self.world.random.choice(list(self.world.brokers.values()))

    def poll(self) -> None:
        broker = self._broker()
        if broker is None:
            return
        asked = FetchRequest.FetchPartition(
            partition=self.partition.partition,
            current_leader_epoch=self.metadata.leader_epoch,
            fetch_offset=self.position,
            partition_max_bytes=self.world.random.choice((100, 1000, 1 << 20)),
        )
        request = FetchRequest(
            max_wait_ms=self.world.random.choice((0, 300)),
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=self.isolation_level,
            session_epoch=-1,
            topics=[FetchRequest.FetchTopic(topic=self.partition.topic, partitions=[asked])],
        )
        self._asked += 1
        number, epoch = self._asked, self.metadata.leader_epoch

        def respond(response: FetchResponse) -> None:
            for topic in response.responses:
                for data in topic.partitions:
                    found = data.records or b""
                    data.records = bytes(found) if isinstance(found, bytes | memoryview) else found.read()
            self.world.transmit(broker.broker_id, CLIENT, lambda: take(response))

        def take(response: FetchResponse) -> None:
            if self._asked == number:
                self._take(response.responses[0].partitions[0], epoch)

        self._ask(broker, ApiKey.FETCH, FETCH_VERSION, request, respond)

    def _take(self, data: FetchResponse.PartitionData, epoch: int) -> None:
        self._asked += 1
        history = self.world.history
        if data.error_code == Error.OFFSET_OUT_OF_RANGE:
            if self.position < history.deleted_before(self.partition):
                self.position = history.deleted_before(self.partition)
            elif not self.from_any and not history.may_lose:
                raise InvariantBroken(f"a consumer of {self.partition} is out of range at {self.position}")
            elif history.may_lose:
                self.position = 0
            return
        if data.error_code:
            return
        if not self.from_any:
            self._check_high_watermark(epoch, data.high_watermark)
        aborted = sorted(data.aborted_transactions or [], key=lambda each: each.first_offset, reverse=True)
        skipped: set[int] = set()
        for offset, entry, producer_id in records_in(bytes(data.records or b"")):
            while aborted and aborted[-1].first_offset <= offset:
                skipped.add(aborted.pop().producer_id)
            is_marker = b":" not in entry
            if is_marker and entry.startswith(b"abort"):
                skipped.discard(producer_id)
            if offset < self.position:
                continue
            history.has_read(self.partition, offset, entry)
            self.position = offset + 1
            if self.isolation_level and not is_marker and producer_id not in skipped:
                history.has_read_committed(self.partition, offset, entry)
                self.delivered.append(entry)

    def _check_high_watermark(self, epoch: int, shown: int) -> None:
        """Checks that the high watermark of one leader does not go back. That of the next leader may be lower at
        first."""
        last_epoch, last = self.high_watermark
        if epoch == last_epoch and shown < last and not self.world.history.may_lose:
            raise InvariantBroken(
                f"in epoch {epoch} the high watermark of {self.partition} went from {last} to {shown}"
            )
        self.high_watermark = (epoch, shown)

    def find_end(self) -> None:
        """Asks the leader for the end of the partition, which never goes back."""
        broker = self.metadata.leader_broker()
        if broker is None or self.isolation_level:
            return
        epoch = self.metadata.leader_epoch
        asked = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=self.partition.partition, current_leader_epoch=epoch, timestamp=LATEST_TIMESTAMP
        )
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self.partition.topic, partitions=[asked])
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[topic])
        least = self.latest

        def respond(response: ListOffsetsResponse) -> None:
            found = response.topics[0].partitions[0]
            if found.error_code == 0:
                if found.offset < least and not self.world.history.may_lose:
                    raise InvariantBroken(f"the end of {self.partition} went from {least} to {found.offset}")
                self.latest = max(self.latest, found.offset)

        self._ask(broker, ApiKey.LIST_OFFSETS, LIST_OFFSETS_VERSION, request, respond)

    def _ask(self, broker: Broker, key: ApiKey, version: int, request: Any, respond: Callable[[Any], None]) -> None:
        self.world.transmit(
            CLIENT, broker.broker_id, lambda: broker.receive(lambda: broker.ask(key, version, request, respond))
        )
