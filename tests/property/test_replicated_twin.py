"""Replicated partitions behave alike behind the gate and on the Python path, event by event.

The two brokers lead partitions whose followers are played by the test: it fetches with replica ids, answers the
proposals of ISRs and changes the metadata. After each event both brokers have answered the same requests with the same
bytes, and the leader's state of every partition and follower is the same.
"""

from __future__ import annotations

import random

import pytest

from kafkapy._core.bytes.record_batch import RecordBatchBuilder, iterate_batches
from kafkapy._core.reactor.reactor import FOLLOWER_FETCHES
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kafkapy.types import TopicPartition
from tests.harness.led_partitions import FIRST_EPOCH, FOLLOWERS, LedPartitions
from tests.property.test_gate_permissions_twin import ChangingAuthorizer, install
from tests.twin_brokers import PING, BrokerTwin, TwinBrokers, TwinRequest

TOPICS = {"plain": (3, {}), "rolls": (1, {"segment.bytes": "1048576"})}
PARTITIONS = [TopicPartition(name, index) for name, (count, _) in TOPICS.items() for index in range(count)]
CONSUMERS = range(1, 5)
PRODUCERS = range(20, 26)
ADMIN = 30
COORDINATOR = 31
EVENTS = 500
LONG_MS = 600_000
NOW_MS = 1_700_000_000_000
# The lag limit is so long that the clock of the machine has no part in what happens.
# All records of throttled partitions are in one sample, so that the time has no part in their rate either.
PROPERTIES = {
    "replica.lag.time.max.ms": str(LONG_MS),
    "transaction.partition.verification.enable": "false",
    "replication.quota.window.size.seconds": "100000",
}
NO_THROTTLE = 1e18


class Play:
    """The two brokers, and what their clients and followers have sent."""

    def __init__(self, twins: TwinBrokers, chance: random.Random, throttle_weight: int = 4) -> None:
        self.throttle_weight = throttle_weight  # how often throttles change, in relation to the other events
        self.twins = twins
        self.chance = chance
        self.leaders = [LedPartitions(twin) for twin in (twins.plain, twins.gated)]
        self.epochs = dict.fromkeys(FOLLOWERS, FIRST_EPOCH)
        self.ends = {broker_id: dict.fromkeys(PARTITIONS, 0) for broker_id in FOLLOWERS}
        self.waiting: dict[int, TwinRequest] = {}
        self.session_epochs: dict[int, int] = {}
        self.sequences: dict[tuple[int, TopicPartition], int] = {}
        self.open_transactions: set[TopicPartition] = set()
        self.on_leaders("register", self.epochs, set())
        for topic_partition in PARTITIONS:
            self.on_leaders("change", topic_partition, True, FOLLOWERS, True)

    def on_leaders(self, method: str, *arguments) -> list:
        """Runs a method of both leaders on their reactors and returns the results."""
        return [leader.run(method, *arguments) for leader in self.leaders]

    def check(self, kind: str) -> None:
        """Takes the answers that both brokers have sent, and compares their states."""
        expected, found = [twin.answered(self.waiting) for twin in (self.twins.plain, self.twins.gated)]
        plain, gated = self.on_leaders("state", PARTITIONS)
        unequal = {number: self.waiting[number] for number in expected ^ found}
        assert found == expected, f"{kind} {expected} {found} {unequal} {plain}"
        for number in expected:
            request = self.waiting.pop(number)
            answer = self.twins.answer_to(number, request)
            key, version, sent = request
            if key is ApiKey.FETCH:
                self.learn(number, sent, FetchResponse.decode(answer, version, 4 + (version >= 12)))
        assert gated == plain, kind

    def send(self, number: int, request: TwinRequest) -> None:
        if number not in self.waiting:
            self.waiting[number] = request
            received = [requests_received(twin) for twin in (self.twins.plain, self.twins.gated)]
            self.twins.send({number: request})
            for twin, before in zip((self.twins.plain, self.twins.gated), received, strict=True):
                pings = 1  # of `requests_received`
                while requests_received(twin) < before + pings + 1:  # a large request takes several reads
                    pings += 1

    def event(self) -> None:
        chance = self.chance
        topic_partition = chance.choice(PARTITIONS)
        kind = chance.choices(
            ["produce", "follow", "consume", "controller", "shrink", "metadata", "minimum", "register", "delete",
             "transaction", "throttle"],
            [40, 60, 15, 8, 2, 2, 4, 1, 1, 6, self.throttle_weight],
        )[0]  # fmt: skip
        if kind == "produce":
            self.send(chance.choice(PRODUCERS), self.produce())
        elif kind == "follow":
            number = chance.choice(FOLLOWERS)  # the number of its connection too
            self.send(number, self.follow(number))
        elif kind == "consume":
            number = chance.choice(CONSUMERS)
            self.send(number, self.consume(number))
        elif kind == "controller":
            errors = [Error.NONE, Error.INELIGIBLE_REPLICA, Error.INVALID_UPDATE_VERSION]
            self.on_leaders("answer_proposal", chance.choices(errors, [10, 2, 1])[0])
        elif kind == "shrink":
            self.on_leaders("shrink", topic_partition)
        elif kind == "metadata":
            isr = tuple(chance.sample(FOLLOWERS, chance.choice([0, 1, 2, 2])))
            self.on_leaders("change", topic_partition, chance.random() < 0.7, isr, chance.random() < 0.7)
        elif kind == "minimum":
            self.on_leaders("set_min_insync_replicas", topic_partition, chance.choice([1, 1, 2, 3]))
        elif kind == "register":
            number = chance.choice(FOLLOWERS)
            self.epochs[number] += 1
            self.on_leaders("register", self.epochs, {number} if chance.random() < 0.3 else set())
        elif kind == "delete":
            self.send(ADMIN, self.delete_records(topic_partition))
        elif kind == "throttle":
            self.on_leaders("throttle", topic_partition, chance.random() < 0.5, chance.choice([0.0, NO_THROTTLE]))
        else:
            self.send(COORDINATOR, self.transaction(topic_partition))
        self.check(kind)

    def heal(self) -> None:
        """Ends everything that would keep the followers from catching up."""
        self.on_leaders("register", self.epochs, set())
        for topic_partition in PARTITIONS:
            self.on_leaders("throttle", topic_partition, False, NO_THROTTLE)
            self.on_leaders("set_min_insync_replicas", topic_partition, 1)
            self.on_leaders("change", topic_partition, True, FOLLOWERS, True)
        self.check("heal")

    # -- requests ------------------------------------------------------------------------------------------------

    def produce(self) -> TwinRequest:
        chance = self.chance
        chosen = chance.sample(PARTITIONS, chance.choice([1, 1, 2, 3]))
        producer_id = chance.choice([-1, 7])
        topics = []
        for name, indexes in grouped(chosen).items():
            data = []
            for index in indexes:
                builder = RecordBatchBuilder(**self.next_in_sequence(producer_id, TopicPartition(name, index)))
                size = 300_000 if chance.random() < 0.08 else chance.choice([5, 60, 400])
                builder.append(NOW_MS, None, bytes(size))
                data.append(ProduceRequest.PartitionProduceData(index=index, records=builder.build()))
            topics.append(ProduceRequest.TopicProduceData(name=name, partition_data=data))
        acks = chance.choices([-1, 1, 0], [8, 2, 1])[0]
        return ApiKey.PRODUCE, chance.randint(3, 13), ProduceRequest(acks=acks, timeout_ms=LONG_MS, topic_data=topics)

    def transaction(self, topic_partition: TopicPartition) -> TwinRequest:
        """Returns records of a transaction, or the marker that ends the one that is open in the partition."""
        name, index = topic_partition
        if topic_partition in self.open_transactions and self.chance.random() < 0.7:
            self.open_transactions.remove(topic_partition)
            topic = WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=[index])
            marker = WriteTxnMarkersRequest.WritableTxnMarker(
                producer_id=50, producer_epoch=0, transaction_result=self.chance.random() < 0.5, topics=[topic]
            )
            return ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=[marker])
        self.open_transactions.add(topic_partition)
        builder = RecordBatchBuilder(**self.next_in_sequence(50, topic_partition), is_transactional=True)
        builder.append(NOW_MS, None, b"value")
        data = ProduceRequest.PartitionProduceData(index=index, records=builder.build())
        topics = [ProduceRequest.TopicProduceData(name=name, partition_data=[data])]
        return ApiKey.PRODUCE, 9, ProduceRequest(transactional_id="t", acks=1, timeout_ms=LONG_MS, topic_data=topics)

    def next_in_sequence(self, producer_id: int, topic_partition: TopicPartition) -> dict[str, int]:
        if producer_id < 0:
            return {}
        key = (producer_id, topic_partition)
        sequence = self.sequences.get(key, 0)
        self.sequences[key] = sequence + 1
        return {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequence}

    def follow(self, number: int) -> TwinRequest:
        """Returns a follower's fetch, usually from where its last one ended."""
        chance = self.chance
        manager = self.leaders[0].manager
        asked = {}
        for topic_partition in chance.sample(PARTITIONS, chance.randint(1, len(PARTITIONS))):
            partition = manager.partitions[topic_partition]
            epoch = partition.leader_epoch + chance.choices([0, 1, -1], [30, 1, 1])[0]
            end = self.ends[number][topic_partition]
            asked[topic_partition] = FetchRequest.FetchPartition(
                partition=topic_partition.partition,
                fetch_offset=end + chance.choices([0, 1, -1], [30, 1, 1])[0],
                partition_max_bytes=chance.choice([100, 1 << 20, 1 << 20]),
                log_start_offset=chance.choices([0, partition.log.log_start_offset], [1, 4])[0],
                current_leader_epoch=chance.choice([epoch, epoch, -1]),
                last_fetched_epoch=chance.choices(
                    [-1, partition.log.leader_epochs.epoch_for_offset(end - 1), partition.log.latest_epoch, 0],
                    [2, 6, 1, 1],
                )[0],
            )
        version = chance.choice([12, 16, 17, 18])
        broker_epoch = self.epochs[number] - chance.choices([0, 1], [20, 1])[0]
        return self.fetch(number, version, asked, replica_id=number, replica_epoch=broker_epoch)

    def consume(self, number: int) -> TwinRequest:
        chance = self.chance
        manager = self.leaders[0].manager
        asked = {}
        for topic_partition in chance.sample(PARTITIONS, chance.choice([1, 1, 2])):
            log = manager.partitions[topic_partition].log
            asked[topic_partition] = FetchRequest.FetchPartition(
                partition=topic_partition.partition,
                fetch_offset=chance.choice([log.high_watermark, log.high_watermark, log.log_start_offset, 1]),
                partition_max_bytes=1 << 20,
            )
        return self.fetch(number, chance.choice([10, 12, 18]), asked)

    def fetch(self, number, version, asked, *, replica_id=-1, replica_epoch=-1) -> TwinRequest:
        chance = self.chance
        epoch = self.session_epochs.get(number, 0)
        if number % 2 or (epoch and chance.random() < 0.03):
            epoch = -1  # half of the clients use sessions
        if epoch > 0:
            # A session has either names or ids.
            version = 12 if number in CONSUMERS else 16
            asked = {key: asked[key] for key in asked if chance.random() < 0.8}
        elif epoch == 0:
            version = 12 if number in CONSUMERS else 16
        has_replica_state = version >= FetchRequest.FIRST_VERSION_WITH_REPLICA_STATE
        request = FetchRequest(
            replica_id=-1 if has_replica_state else replica_id,
            max_wait_ms=chance.choice([0, LONG_MS, LONG_MS]),
            min_bytes=1,
            max_bytes=chance.choice([1 << 22, 1000]),
            isolation_level=chance.choice([0, 1]),
            session_id=number if epoch > 0 else 0,
            session_epoch=epoch,
            topics=[
                FetchRequest.FetchTopic(topic=name, partitions=[asked[name, index] for index in indexes])
                for name, indexes in grouped(asked).items()
            ],
        )
        if has_replica_state and replica_id >= 0:
            request.replica_state = FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=replica_epoch)
        return ApiKey.FETCH, version, request

    def delete_records(self, topic_partition: TopicPartition) -> TwinRequest:
        offset = self.leaders[0].manager.partitions[topic_partition].log.high_watermark
        partition = DeleteRecordsRequest.DeleteRecordsPartition(
            partition_index=topic_partition.partition, offset=offset
        )
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name=topic_partition.topic, partitions=[partition])
        return ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[topic], timeout_ms=LONG_MS)

    def learn(self, number: int, sent: FetchRequest, response: FetchResponse) -> None:
        """Updates the session of a client, and the log of a follower."""
        if sent.session_epoch >= 0:
            if response.error_code or not response.session_id:
                self.session_epochs.pop(number, None)
            else:
                self.session_epochs[number] = sent.session_epoch + 1
        if number not in FOLLOWERS:
            return
        for topic in response.responses:
            name = topic.topic or topic.topic_id.decode().rstrip("-")
            for data in topic.partitions:
                if data.error_code == Error.OFFSET_OUT_OF_RANGE or data.diverging_epoch.epoch >= 0:
                    log = self.leaders[0].manager.partitions[TopicPartition(name, data.partition_index)].log
                    self.ends[number][name, data.partition_index] = log.log_start_offset
                for batch in iterate_batches(whole_batches(bytes(data.records or b""))):
                    end = batch.base_offset + batch.last_offset_delta + 1
                    self.ends[number][name, data.partition_index] = end


class OutdatedAuthorizer(ChangingAuthorizer):
    """Allows everything; the answers that the gate has stored become outdated with each new generation."""

    def __init__(self) -> None:
        super().__init__(random.Random(0))


def requests_received(twin: BrokerTwin) -> int:
    """Returns the number of requests that the broker has received before this call, and sends it one more."""
    count: int = twin.broker.reactor.counters()["requests_received"]
    twin.wake_up({0: [PING]})
    return count


def whole_batches(data: bytes) -> bytes:
    """Returns the batches in `data` without an incomplete last one."""
    position = 0
    while position + 12 <= len(data):
        size = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        if position + size > len(data):
            break
        position += size
    return data[:position]


def grouped(partitions) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    return topics


@pytest.mark.timeout(180)
@pytest.mark.parametrize(("seed", "is_authorized"), [(1, False), (2, False), (3, False), (4, True), (5, True)])
def test_the_same_events_bring_the_same_answers_and_states(tmp_path, seed, is_authorized):
    twins = TwinBrokers(tmp_path, PROPERTIES)
    for name, (count, configs) in TOPICS.items():
        twins.create_topic(name, count, configs)
    play = Play(twins, random.Random(seed), 0 if is_authorized else 4)
    authorizer = OutdatedAuthorizer()
    rights = [install(twin, authorizer) for twin in (twins.plain, twins.gated)] if is_authorized else []
    for event in range(EVENTS):
        if is_authorized and play.chance.random() < 0.02:
            authorizer.generation += 1
            for each in rights:
                each.check()
        play.event()
        if event % 30 == 29:
            play.heal()
    counters = twins.gate_counters()
    assert (counters["rights_used"] > 0) is is_authorized, counters
    assert counters["batches_appended"] > EVENTS // 20, counters
    assert counters["follower_fetches_answered"] > EVENTS // 20, counters
    plain_rate, gated_rate = play.on_leaders("replicated_rate")
    assert plain_rate == gated_rate
    assert (plain_rate > 0) is not is_authorized
    assert counters["produces_awaited"] >= EVENTS // 40, counters
    assert twins.topic_counters(twins.gated) == twins.topic_counters(twins.plain)
    fetches = [twins.request_counts(twin)[FOLLOWER_FETCHES][0] for twin in (twins.gated, twins.plain)]
    assert fetches[0] == fetches[1] > EVENTS // 10
    for number in set(play.waiting):
        for twin in (twins.plain, twins.gated):
            twin.connections.pop(number).close()
    twins.stop_and_compare()
