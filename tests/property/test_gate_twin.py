"""The gate and the Python path return the same answers, byte for byte, and leave the same files.

Requests of several connections in one wake-up have no order, and the gate runs before Python. Therefore either several
connections share partitions and send only requests that the gate certainly serves ("clean"), or each connection has
partitions of its own. The two brokers share a clock that does not advance, from which transaction markers take their
timestamps.
"""

from __future__ import annotations

import random
import time

import pytest

from kafkapy._core.bytes.codec_functions import find_codec_functions
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.twin_brokers import TwinBrokers, TwinRequest

TOPICS = {
    "t-plain": (3, {"segment.bytes": "10485760", "index.interval.bytes": "300", "max.message.bytes": "3000"}),
    "t-rolls": (2, {"segment.bytes": "1048576", "segment.ms": "2000", "index.interval.bytes": "0"}),
    "t-compacted": (1, {"cleanup.policy": "compact"}),
    "t-recoded": (1, {"compression.type": "gzip"}),
    "t-zstd": (1, {"compression.type": "zstd"}),
    "t-plainly": (1, {"compression.type": "uncompressed"}),
    "t-transactions": (2, {"index.interval.bytes": "300"}),
}
TRANSACTION_PARTITIONS = [("t-transactions", 0), ("t-transactions", 1), ("t-rolls", 0), ("t-rolls", 1)]
TRANSACTIONAL_PRODUCERS = range(201, 204)
PROPERTIES = {"transaction.partition.verification.enable": "false"}  # no coordinator knows these transactions
SHARED_PARTITIONS = 3
CONNECTIONS = range(1, 7)
STEPS = 200


class Requests:
    """Random produce requests; remembers the producers' sequences, so that most requests are valid."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.sequences: dict[tuple[int, str, int], int] = {}
        self.epochs: dict[int, int] = {}
        self.start_ms = int(time.time() * 1000) - 5000
        self.sessions = Sessions(chance)
        self.open_transactions: dict[int, list[tuple[str, int]]] = {}

    def step(self) -> dict[int, TwinRequest]:
        """Returns the requests of one wake-up, by connection."""
        chance = self.chance
        numbers = chance.sample(CONNECTIONS, chance.randint(1, len(CONNECTIONS)))
        kind = chance.random()
        if kind < 0.04:
            return {numbers[0]: self.delete_records()}
        if kind < 0.2:
            return {numbers[0]: self.transaction(chance.choice(TRANSACTIONAL_PRODUCERS))}
        if chance.random() < 0.5:
            return {
                number: self.fetch() if chance.random() < 0.4 else self.sessions.fetch(number) for number in numbers
            }
        if chance.random() < 0.5:
            return {number: self.request([self.clean_topic(number)], is_clean=True) for number in numbers}
        partitions = [(name, index) for name, (count, _) in TOPICS.items() for index in range(count)]
        chance.shuffle(partitions)
        step = {}
        for number in numbers:
            mine = [partitions.pop() for _ in range(chance.choice([1, 1, 1, 2, 4])) if partitions]
            if mine:
                step[number] = self.produce(mine)
        return step

    def pipelined_step(self) -> dict[int, list[tuple[ApiKey, int, ProduceRequest | FetchRequest]]]:
        """Returns several requests for each connection, which has partitions of its own."""
        chance = self.chance
        partitions = [(name, index) for name, (count, _) in TOPICS.items() for index in range(count)]
        chance.shuffle(partitions)
        step = {}
        for number in chance.sample(CONNECTIONS, 3):
            mine = [partitions.pop() for _ in range(chance.choice([1, 1, 2]))]
            step[number] = [
                self.fetch(mine) if chance.random() < 0.1 else self.produce(chance.sample(mine, 1))
                for _ in range(chance.randint(1, 6))
            ]
        return step

    def produce(self, partitions: list[tuple[str, int]]) -> tuple[ApiKey, int, ProduceRequest]:
        return self.request([self.topic(name, indexes) for name, indexes in grouped(partitions).items()])

    def request(self, topics, *, is_clean: bool = False) -> tuple[ApiKey, int, ProduceRequest]:
        chance = self.chance
        acks = chance.choices([-1, 1, 0, 2], [10, 10, 4, 0 if is_clean else 0.3])[0]
        return ApiKey.PRODUCE, chance.randint(3, 13), ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)

    def transaction(self, producer_id: int) -> TwinRequest:
        """Usually ends the producer's open transaction; otherwise adds records to it, or begins a transaction."""
        chance = self.chance
        partitions = self.open_transactions.pop(producer_id, [])
        if partitions and chance.random() < 0.8:
            return self.end_transaction(producer_id, partitions)
        added = chance.sample(TRANSACTION_PARTITIONS, chance.choice([1, 1, 2]))
        self.open_transactions[producer_id] = list(dict.fromkeys(partitions + added))
        topics = []
        for name, indexes in grouped(added).items():
            data = []
            for index in indexes:
                count = chance.choice([1, 3])
                builder = RecordBatchBuilder(
                    **self.next_in_sequence(producer_id, name, index, count), is_transactional=True
                )
                for _ in range(count):
                    builder.append(self.start_ms + chance.randint(0, 300), None, chance.randbytes(50))
                data.append(ProduceRequest.PartitionProduceData(index=index, records=builder.build()))
            topics.append(ProduceRequest.TopicProduceData(name=name, partition_data=data))
        request = ProduceRequest(transactional_id="transactional", acks=-1, timeout_ms=1000, topic_data=topics)
        return ApiKey.PRODUCE, chance.randint(3, 13), request

    def end_transaction(self, producer_id: int, partitions: list[tuple[str, int]]) -> TwinRequest:
        """Returns the markers that commit or abort, as a coordinator on another broker would send them."""
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=0,
            transaction_result=self.chance.random() < 0.4,
            topics=[
                WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                for name, indexes in grouped(partitions).items()
            ],
            coordinator_epoch=0,
        )
        return ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest(markers=[marker])

    def delete_records(self) -> TwinRequest:
        """Returns a DeleteRecords request, usually to an offset in the middle of a segment."""
        chance = self.chance
        name = chance.choice(list(TOPICS))
        partition = DeleteRecordsRequest.DeleteRecordsPartition(
            partition_index=chance.randrange(TOPICS[name][0]),
            offset=chance.choices([1, 3, 8, 20, -1], [8, 8, 8, 8, 1])[0],
        )
        topic = DeleteRecordsRequest.DeleteRecordsTopic(name=name, partitions=[partition])
        return ApiKey.DELETE_RECORDS, 2, DeleteRecordsRequest(topics=[topic], timeout_ms=1000)

    def fetch(self, partitions: list[tuple[str, int]] | None = None) -> tuple[ApiKey, int, FetchRequest]:
        """Returns a fetch without a session that does not wait, usually as a consumer, from `partitions` or any."""
        chance = self.chance
        version = chance.randint(4, 18)
        partitions = partitions or [(name, index) for name, (count, _) in TOPICS.items() for index in range(count)]
        topics = []
        for name, indexes in grouped(chance.choices(partitions, k=chance.choice([1, 1, 2, 4]))).items():
            asked = [
                FetchRequest.FetchPartition(
                    partition=index,
                    fetch_offset=chance.choice([-1, 0, 1, 2, 5, 10, 20, 40, 80, 160, 10**6]),
                    partition_max_bytes=chance.choice([0, 1, 300, 5000, 1 << 20]),
                    current_leader_epoch=chance.choice([-1, -1, -1, 0, 1]),
                    last_fetched_epoch=chance.choices([-1, 0, 3], [20, 1, 1])[0] if version >= 12 else -1,
                )
                for index in indexes
            ]
            topics.append(FetchRequest.FetchTopic(topic=name, partitions=asked))
        request = FetchRequest(
            replica_id=chance.choices([-1, -2], [30, 1])[0] if version < 15 else -1,
            max_wait_ms=0,
            min_bytes=chance.choice([0, 1, 1000, 10**6]),
            max_bytes=chance.choice([0, 100, 4000, 10**6, 2**31 - 1]),
            isolation_level=chance.choice([0, 1]),
            session_epoch=-1,
            topics=topics,
        )
        return ApiKey.FETCH, version, request

    def clean_topic(self, number: int, indexes=None):
        """Returns plain batches for shared partitions; no other connection uses the same producer ids.

        With `indexes` the batches go to these partitions, where they make the producer known.
        """
        chance = self.chance
        partitions = []
        for index in indexes or chance.sample(range(SHARED_PARTITIONS), chance.choice([1, 1, 2])):
            is_idempotent = indexes is not None or chance.random() < 0.5
            keywords = self.next_in_sequence(100 + number, "t-plain", index, 3) if is_idempotent else {}
            if chance.random() < 0.3:
                keywords["compression"] = chance.randint(1, 3)  # not every request version allows zstd
            builder = RecordBatchBuilder(**keywords)
            for _ in range(3):
                builder.append(self.start_ms + chance.randint(0, 300), None, chance.randbytes(50))
            partitions.append(ProduceRequest.PartitionProduceData(index=index, records=builder.build()))
        return ProduceRequest.TopicProduceData(name="t-plain", partition_data=partitions)

    def topic(self, name: str, indexes: list[int]):
        if self.chance.random() < 0.02:
            indexes = [*indexes, self.chance.choice([indexes[0], 77])]
        partitions = [
            ProduceRequest.PartitionProduceData(index=index, records=self.batch(name, index)) for index in indexes
        ]
        called = "missing" if self.chance.random() < 0.02 else name
        return ProduceRequest.TopicProduceData(name=called, partition_data=partitions)

    def next_in_sequence(self, producer_id: int, name: str, index: int, count: int) -> dict[str, int]:
        key = (producer_id, name, index)
        sequence = self.sequences.get(key, 0)
        self.sequences[key] = sequence + count
        return {
            "producer_id": producer_id,
            "producer_epoch": self.epochs.get(producer_id, 0),
            "base_sequence": sequence,
        }

    def batch(self, name: str, index: int) -> bytes:
        chance = self.chance
        count = chance.choice([1, 1, 2, 7, 30])
        keywords = self.producer(name, index, count) if chance.random() < 0.5 else {}
        if chance.random() < 0.3:
            keywords["compression"] = chance.randint(1, 4)
        builder = RecordBatchBuilder(**keywords)
        timestamp = self.start_ms + chance.choices([0, -50_000, -200_000, -self.start_ms - 1], [40, 2, 1, 1])[0]
        for _ in range(count):
            value = chance.randbytes(chance.choice([0, 10, 60, 100]) if chance.random() < 0.98 else 4000)
            builder.append(max(timestamp + chance.randint(-3, 500), -1), chance.choice([None, b"key"]), value)
        built = bytearray(builder.build())
        if chance.random() < 0.06:
            self.damage(built)
        return bytes(built)

    def producer(self, name: str, index: int, count: int) -> dict[str, int]:
        """Returns the fields of a producer's batch: in most cases the next one, otherwise a repeated one, a gap, or a
        new epoch."""
        chance = self.chance
        producer_id = chance.randint(1, 4)
        if chance.random() < 0.02:
            self.epochs[producer_id] = self.epochs.get(producer_id, 0) + 1
        if chance.random() < 0.9:
            return self.next_in_sequence(producer_id, name, index, count)
        sequence = self.sequences.get((producer_id, name, index), 0) + chance.choice([-count, 1, 5])
        epoch = self.epochs.get(producer_id, 0)
        return {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": max(sequence, 0)}

    def damage(self, built: bytearray) -> None:
        chance = self.chance
        kind = chance.randrange(4)
        if kind == 0:
            built[chance.randrange(len(built))] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del built[chance.randrange(1, len(built)) :]
        elif kind == 2:
            built += bytes(built)
        else:
            built += b"\0" * chance.randint(1, 20)


class Sessions:
    """Fetches within sessions, one session for each connection; most fetches continue the session as a client does."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.epochs: dict[int, int] = {}
        self.partitions: dict[int, list[tuple[str, int]]] = {}
        self.uses_ids: dict[int, bool] = {}

    def fetch(self, number: int) -> tuple[ApiKey, int, FetchRequest]:
        chance = self.chance
        if number not in self.epochs or chance.random() < 0.05:
            return self.request(number, chance.randint(7, 18), 0, self.some_partitions())
        known = self.partitions[number]
        uses_ids = self.uses_ids[number] != (chance.random() < 0.01)
        version = chance.randint(13, 18) if uses_ids else chance.randint(7, 12)
        epoch = chance.choices([self.epochs[number], -1, self.epochs[number] + 1], [50, 1, 1])[0]
        named = chance.sample(known, chance.randint(0, len(known)))
        if chance.random() < 0.1:
            named = named + chance.choices([*self.some_partitions(), *known], k=1)
        forgotten = chance.sample(known, 1) if chance.random() < 0.05 else []
        return self.request(number, version, epoch, named, forgotten)

    def some_partitions(self) -> list[tuple[str, int]]:
        partitions = [(name, index) for name, (count, _) in TOPICS.items() for index in range(count)]
        partitions.append(("missing", 0))
        weights = [1.0] * (len(partitions) - 1) + [0.1]
        return self.chance.choices(partitions, weights, k=self.chance.choice([1, 2, 4, 6]))

    def request(self, number, version, epoch, partitions, forgotten=()) -> tuple[ApiKey, int, FetchRequest]:
        chance = self.chance
        topics = [
            FetchRequest.FetchTopic(
                topic=name,
                partitions=[
                    FetchRequest.FetchPartition(
                        partition=index,
                        fetch_offset=chance.choices([0, 1, 2, 5, 10, 20, 40, 10**6], [20] * 7 + [1])[0],
                        partition_max_bytes=chance.choice([1, 300, 5000, 1 << 20]),
                        current_leader_epoch=chance.choices([-1, 0, 1], [10, 10, 1])[0],
                    )
                    for index in indexes
                ],
            )
            for name, indexes in grouped(partitions).items()
        ]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=chance.choice([0, 1, 1, 1000]),
            max_bytes=chance.choice([100, 4000, 10**6]),
            isolation_level=chance.choice([0, 1]),
            session_id=number if epoch != 0 or chance.random() < 0.3 else 0,
            session_epoch=epoch,
            topics=topics,
            forgotten_topics_data=[
                FetchRequest.ForgottenTopic(topic=name, partitions=indexes)
                for name, indexes in grouped(forgotten).items()
            ],
        )
        return ApiKey.FETCH, version, request

    def learn(self, step, answers: dict[int, bytes]) -> None:
        """Updates the sessions from the answers."""
        for number, (key, version, request) in step.items():
            if key is not ApiKey.FETCH or version < 7 or (request.session_id == 0 and request.session_epoch != 0):
                continue
            response = FetchResponse.decode(answers[number], version, 5 if version >= 12 else 4)
            if request.session_epoch == -1 or response.session_id == 0:
                self.epochs.pop(number, None)
            elif response.error_code == 0:
                named = [(topic.topic, asked.partition) for topic in request.topics for asked in topic.partitions]
                known = self.partitions[number] if request.session_epoch else []
                self.partitions[number] = list(dict.fromkeys(known + named))
                self.epochs[number] = request.session_epoch + 1
                self.uses_ids[number] = version >= 13


def grouped(partitions: list[tuple[str, int]]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    return topics


@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_same_answers_and_same_files(tmp_path, seed):
    for codec in range(1, 5):
        find_codec_functions(codec)  # as if one batch of each codec had been decompressed before
    requests = Requests(random.Random(seed))
    twins = TwinBrokers(tmp_path, PROPERTIES)
    twins.note_clients("t-*")
    for name, (partitions, configs) in TOPICS.items():
        twins.create_topic(name, partitions, configs)
    for _ in range(2):  # Python serves the first batches of a segment and of a producer
        for number in CONNECTIONS:
            topics = [requests.clean_topic(number, range(SHARED_PARTITIONS))]
            twins.wake_up({number: requests.request(topics, is_clean=True)})
    for _ in range(STEPS):
        step = requests.step()
        requests.sessions.learn(step, twins.wake_up(step))
        if requests.chance.random() < 0.2:
            twins.pipeline(requests.pipelined_step())
    counters = twins.gate_counters()
    assert counters["batches_appended"] > STEPS
    assert counters["fetches_answered"] > STEPS // 5
    assert counters["session_fetches_answered"] > STEPS // 20
    assert twins.topic_counters(twins.gated) == twins.topic_counters(twins.plain)
    gated, plain = twins.request_counts(twins.gated), twins.request_counts(twins.plain)
    assert gated == plain
    assert all(timed == requests for requests, _, timed in gated.values())
    noted = twins.noted_clients(twins.gated)
    assert noted == twins.noted_clients(twins.plain)
    assert len({client for runs in noted.values() for _, client in runs}) == len(CONNECTIONS)
    twins.stop_and_compare()
