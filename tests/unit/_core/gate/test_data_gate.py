"""The data gate in a running broker: which requests it serves, which fetches it wakes, and failures of the disk."""

from __future__ import annotations

import random
import resource
import socket
from pathlib import Path

import pytest

from kafkapy._core.broker_state.partition_state import PartitionState
from kafkapy._core.bytes.record_batch import RecordBatchBuilder
from kafkapy._core.gate.data_gate import DataGate
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.protocol.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.api_client import ask, request_bytes
from tests.reactor_harness import frame, receive_frame
from tests.twin_brokers import BrokerTwin

CONSUMER = 1
PRODUCER = 2


@pytest.fixture
def twin(tmp_path):
    twin = BrokerTwin(tmp_path, gated=True)
    yield twin
    twin.stop()


def produce_request(topic: str, partition: int = 0, *, acks: int = 1, count: int = 1, size: int = 10) -> ProduceRequest:
    builder = RecordBatchBuilder()
    for _ in range(count):
        builder.append(1_700_000_000_000, None, bytes(size))
    data = ProduceRequest.PartitionProduceData(index=partition, records=builder.build())
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[data])]
    )


def produce(twin: BrokerTwin, topic: str, partition: int = 0, **keywords) -> ProduceResponse.PartitionProduceResponse:
    request = produce_request(topic, partition, **keywords)
    response = ask(twin.connection(PRODUCER), ApiKey.PRODUCE, 9, request, ProduceResponse)
    return response.responses[0].partition_responses[0]


def fetch_request(topic: str, offset: int, *, max_wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    asked = FetchRequest.FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[asked])],
    )


def open_gate(twin: BrokerTwin, topic: str) -> int:
    """Appends the first two batches of a segment, which Python serves; returns the next offset.

    For the second batch Python reads the first timestamp of the segment.
    """
    twin.create_topic(topic, 1, {})
    return [produce(twin, topic).base_offset for _ in range(2)][-1] + 1


@pytest.mark.parametrize("seed", range(5))
def test_partitions_are_found_until_they_are_removed(seed):
    chance = random.Random(seed)
    gate = DataGate(print, print, fetch_max_bytes=1)
    expected: dict[tuple[str, int], PartitionState] = {}
    ids = {f"topic{number}": chance.randbytes(16) for number in range(40)}
    for _ in range(4000):
        topic, index = chance.choice(list(ids)), chance.randrange(4)
        if chance.random() < 0.5:
            state = expected[topic, index] = PartitionState()
            gate.add(state, topic, ids[topic], index)
        elif (topic, index) in expected:
            gate.remove(expected.pop((topic, index)), topic, ids[topic], index)
        assert gate.find(topic, index) is expected.get((topic, index))
        assert gate.find_by_id(ids[topic], index) is expected.get((topic, index))
    assert gate.partition_count == len(expected)
    for topic, topic_id in ids.items():
        for index in range(4):
            assert gate.find(topic, index) is gate.find_by_id(topic_id, index) is expected.get((topic, index))


def test_offsets_continue_where_python_was(twin):
    offset = open_gate(twin, "topic")
    before = twin.broker.parts.gate.counters()["batches_appended"]
    assert [produce(twin, "topic", count=3).base_offset for _ in range(4)] == [offset + 3 * at for at in range(4)]
    assert twin.broker.parts.gate.counters()["batches_appended"] == before + 4


def test_a_topic_without_partitions_is_left_to_python(twin):
    offset = open_gate(twin, "topic")
    twin.create_topic("other", 1, {})
    before = twin.broker.parts.gate.counters()["batches_appended"]
    for number in range(2):
        request = produce_request("topic")
        request.topic_data.insert(number, ProduceRequest.TopicProduceData(name="other", partition_data=[]))
        response = ask(twin.connection(PRODUCER), ApiKey.PRODUCE, 9, request, ProduceResponse)
        found = [(each.name, data.base_offset) for each in response.responses for data in each.partition_responses]
        assert found == [("topic", offset + number)]
    assert twin.broker.parts.gate.counters()["batches_appended"] == before


def test_nothing_passes_a_gate_that_somebody_shut(twin):
    offset = open_gate(twin, "topic")
    gate = twin.broker.parts.gate
    for shut, opened, passes in (("quotas", None, 0), ("acls", "quotas", 0), (None, "acls", 1), (None, "acls", 1)):
        if shut:
            gate.shut(shut)
        if opened:
            gate.open(opened)
        before = gate.counters()["batches_appended"]
        assert produce(twin, "topic").base_offset == offset
        assert gate.counters()["batches_appended"] - before == passes
        assert bool(gate.shut_by) != passes
        offset += 1


def test_nothing_passes_the_gate_from_a_listener_of_the_controller(tmp_path):
    listeners = {
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
    }
    twin = BrokerTwin(tmp_path, gated=True, properties=listeners)
    try:
        offset = open_gate(twin, "topic")
        broker, controller = twin.broker.socket_server.endpoints
        assert (broker.name, controller.name) == ("PLAINTEXT", "CONTROLLER")
        before = twin.broker.parts.gate.counters()
        for key, version, request in (
            (ApiKey.PRODUCE, 9, produce_request("topic")),
            (ApiKey.FETCH, 12, fetch_request("topic", 0)),
        ):
            with socket.create_connection((controller.host, controller.port), timeout=20) as client:
                client.sendall(frame(request_bytes(key, version, request)))
                client.recv(1)  # an answer about the metadata log, or the end of the connection
        assert twin.broker.parts.gate.counters() == before
        assert produce(twin, "topic").base_offset == offset
    finally:
        twin.stop()


def test_what_a_producer_sent_ahead_is_gathered_and_answered_in_order(twin):
    offset = open_gate(twin, "topic")
    for sequence in range(2):  # the first batch makes the producer known, and Python serves it
        batches = [idempotent_batch(sequence + at) for at in range(5)] if sequence else [idempotent_batch(0)]
        sent = [produce_bytes(batch, correlation_id=at) for at, batch in enumerate(batches)]
        behind = frame(request_bytes(ApiKey.FETCH, 12, fetch_request("topic", offset), correlation_id=99))
        before = twin.broker.parts.gate.counters()["batches_appended"]
        *produced, fetched = twin.wake_up({PRODUCER: [*sent, behind]})[PRODUCER]
        responses = [ProduceResponse.decode(answer, 8, 4) for answer in produced]
        answers = [response.responses[0].partition_responses[0] for response in responses]
        assert [int.from_bytes(answer[:4], "big") for answer in produced] == list(range(len(sent)))
        assert [(answer.error_code, answer.base_offset) for answer in answers] == [
            (0, offset + at) for at in range(len(sent))
        ]
        offset += len(sent)
        data = FetchResponse.decode(fetched, 12, 5).responses[0].partitions[0]
        assert (int.from_bytes(fetched[:4], "big"), data.high_watermark) == (99, offset)
        assert twin.broker.parts.gate.counters()["batches_appended"] - before == 5 * sequence


def test_a_connection_whose_produce_requests_were_answered_fetches_through_the_gate(twin):
    offset = open_gate(twin, "topic")
    sent = [frame(request_bytes(ApiKey.PRODUCE, 9, produce_request("topic"))) for _ in range(2)]
    twin.wake_up({PRODUCER: sent})
    before = twin.broker.parts.gate.counters()
    response = ask(twin.connection(PRODUCER), ApiKey.FETCH, 12, fetch_request("topic", offset), FetchResponse)
    assert response.responses[0].partitions[0].high_watermark == offset + 2
    assert twin.broker.parts.gate.counters() == before | {"fetches_answered": before["fetches_answered"] + 1}


def test_a_failed_sequence_among_those_sent_ahead_fails_alone(twin):
    offset = open_gate(twin, "topic")
    twin.wake_up({PRODUCER: [produce_bytes(idempotent_batch(0))]})
    sequences = [1, 2, 2, 7, 3]
    answers = twin.wake_up({PRODUCER: [produce_bytes(idempotent_batch(sequence)) for sequence in sequences]})[PRODUCER]
    found = [ProduceResponse.decode(answer, 8, 4).responses[0].partition_responses[0] for answer in answers]
    assert [(each.error_code, each.base_offset) for each in found] == [
        (0, offset + 1),
        (0, offset + 2),
        (0, offset + 2),
        (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
        (0, offset + 3),
    ]


def idempotent_batch(sequence: int) -> bytes:
    builder = RecordBatchBuilder(producer_id=5, producer_epoch=0, base_sequence=sequence)
    builder.append(1_700_000_000_000, None, b"value")
    return builder.build()


def produce_bytes(batch: bytes, *, correlation_id: int = 0) -> bytes:
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name="topic", partition_data=[data])
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic])
    return frame(request_bytes(ApiKey.PRODUCE, 8, request, correlation_id=correlation_id))


def test_a_waiting_fetch_is_woken_by_a_gated_append(twin):
    offset = open_gate(twin, "topic")
    consumer = twin.connection(CONSUMER)
    for number in range(3):
        request = fetch_request("topic", offset + number, max_wait_ms=60_000)
        consumer.sendall(frame(request_bytes(ApiKey.FETCH, 12, request)))
        wait_until_watched(twin, "topic")
        assert produce(twin, "topic").error_code == 0
        response = FetchResponse.decode(receive_frame(consumer), 12, 5)
        data = response.responses[0].partitions[0]
        assert (data.error_code, data.high_watermark, len(data.records) > 0) == (0, offset + number + 1, True)
    assert twin.broker.parts.gate.counters()["batches_appended"] == 3
    assert not partition_of(twin, "topic").is_watched


def test_a_fetch_waits_until_it_has_enough(twin):
    offset = open_gate(twin, "topic")
    consumer = twin.connection(CONSUMER)
    request = fetch_request("topic", offset, max_wait_ms=60_000, min_bytes=300)
    consumer.sendall(frame(request_bytes(ApiKey.FETCH, 12, request)))
    wait_until_watched(twin, "topic")
    produce(twin, "topic", size=100)
    assert partition_of(twin, "topic").is_watched
    produce(twin, "topic", size=100)
    response = FetchResponse.decode(receive_frame(consumer), 12, 5)
    assert response.responses[0].partitions[0].high_watermark == offset + 2


def test_the_gate_loses_partitions_with_their_topic(twin):
    open_gate(twin, "topic")
    open_gate(twin, "other")
    assert twin.broker.parts.gate.partition_count == 2
    twin.delete_topic("topic")
    assert twin.broker.parts.gate.partition_count == 1
    assert produce(twin, "topic").error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(twin, "other").error_code == 0


@pytest.fixture
def two_directories(tmp_path):
    """Yields a broker whose metadata are in directory "a", so that the broker survives the failure of directory "b"."""
    properties = {"log.dirs": f"{tmp_path}/a,{tmp_path}/b", "metadata.log.dir": f"{tmp_path}/a"}
    twin = BrokerTwin(tmp_path, gated=True, properties=properties)
    yield twin
    twin.stop()


def topic_in_directory_b(twin: BrokerTwin) -> str:
    names = [f"topic{number}" for number in range(4)]
    for name in names:
        open_gate(twin, name)
        produce(twin, name, size=200_000)
    return next(name for name in names if (twin.root / "b" / f"{name}-0").exists())


def segment_file(twin: BrokerTwin, topic: str, suffix: str) -> Path:
    return twin.root / "b" / f"{topic}-0" / f"{0:020d}{suffix}"


def test_a_failed_write_is_answered_and_takes_the_directory_offline(two_directories):
    twin = two_directories
    name = topic_in_directory_b(twin)
    log_file = segment_file(twin, name, ".log")
    content = log_file.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) + 50, limits[1]))
    try:
        before = twin.broker.parts.gate.counters()["batches_appended"]
        failed = produce(twin, name, size=200)
        assert (failed.error_code, failed.base_offset) == (Error.KAFKA_STORAGE_ERROR, -1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert log_file.read_bytes() == content
    assert twin.broker.parts.gate.counters()["batches_appended"] == before
    assert produce(twin, name).error_code == Error.KAFKA_STORAGE_ERROR
    assert not twin.broker.log_manager.directories[1].is_online


def test_a_batch_whose_index_entry_fails_is_cut_off_again(two_directories):
    twin = two_directories
    name = topic_in_directory_b(twin)  # the next batch is more than index.interval.bytes after the last entry
    log_file = segment_file(twin, name, ".log")
    content = log_file.read_bytes()
    segment_file(twin, name, ".index").unlink()  # the first entry allocates a page of the file
    before = twin.broker.parts.gate.counters()["batches_appended"]
    failed = produce(twin, name)
    assert (failed.error_code, failed.base_offset) == (Error.KAFKA_STORAGE_ERROR, -1)
    assert log_file.read_bytes() == content
    assert twin.broker.parts.gate.counters()["batches_appended"] == before
    assert not twin.broker.log_manager.directories[1].is_online


def test_nothing_is_appended_to_a_directory_that_has_just_failed(two_directories):
    twin = two_directories
    name = topic_in_directory_b(twin)
    content = segment_file(twin, name, ".log").read_bytes()
    # Another thread had an error, which the owner thread has not handled yet, so the partition is still online.
    twin.broker.log_manager.directories[1].is_online = False
    assert produce(twin, name).error_code == Error.KAFKA_STORAGE_ERROR
    assert segment_file(twin, name, ".log").read_bytes() == content


def fetched(twin: BrokerTwin, offset: int, *, isolation_level: int = 0) -> tuple[FetchResponse.PartitionData, int]:
    """Returns the data of a fetch from "topic", and the number of fetches that the gate answered for it (0 or 1)."""
    before = twin.broker.parts.gate.counters()["fetches_answered"]
    request = fetch_request("topic", offset)
    request.isolation_level = isolation_level
    response = ask(twin.connection(CONSUMER), ApiKey.FETCH, 12, request, FetchResponse)
    return response.responses[0].partitions[0], twin.broker.parts.gate.counters()["fetches_answered"] - before


def test_a_fetch_below_the_log_start_offset_is_out_of_range(twin):
    end = open_gate(twin, "topic")
    for _ in range(4):
        produce(twin, "topic")
    assert fetched(twin, end - 1)[1] == 1
    deletion = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=end)
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name="topic", partitions=[deletion])
    request = DeleteRecordsRequest(topics=[topic], timeout_ms=1000)
    response = ask(twin.connection(PRODUCER), ApiKey.DELETE_RECORDS, 2, request, DeleteRecordsResponse)
    assert response.topics[0].partitions[0].low_watermark == end
    data, gated = fetched(twin, end)
    assert (data.error_code, data.log_start_offset, len(data.records) > 0, gated) == (0, end, True, 1)
    data, gated = fetched(twin, end - 1)
    assert (data.error_code, data.high_watermark, gated) == (Error.OFFSET_OUT_OF_RANGE, -1, 0)


def test_a_committed_read_of_a_segment_with_an_aborted_transaction_lists_it(tmp_path):
    twin = BrokerTwin(tmp_path, gated=True, properties={"transaction.partition.verification.enable": "false"})
    end = open_gate(twin, "topic")
    builder = RecordBatchBuilder(producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)
    builder.append(1_700_000_000_000, None, b"value")
    data = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    topics = [ProduceRequest.TopicProduceData(name="topic", partition_data=[data])]
    request = ProduceRequest(transactional_id="t", acks=-1, timeout_ms=1000, topic_data=topics)
    produced = ask(twin.connection(PRODUCER), ApiKey.PRODUCE, 9, request, ProduceResponse)
    assert produced.responses[0].partition_responses[0].base_offset == end
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=5,
        producer_epoch=0,
        transaction_result=False,
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="topic", partition_indexes=[0])],
        coordinator_epoch=0,
    )
    request = WriteTxnMarkersRequest(markers=[marker])
    ask(twin.connection(PRODUCER), ApiKey.WRITE_TXN_MARKERS, 1, request, WriteTxnMarkersResponse)
    for _ in range(3):  # after the first fetch the log knows that no transaction is open
        data, gated = fetched(twin, end, isolation_level=1)
        assert [(each.producer_id, each.first_offset) for each in data.aborted_transactions] == [(5, end)]
        assert gated == 0
        data, gated = fetched(twin, end)
        assert (data.error_code, data.last_stable_offset, len(data.records) > 0) == (0, end + 2, True)
    assert gated == 1
    twin.stop()


def partition_of(twin: BrokerTwin, topic: str):
    return twin.broker.parts.replica_manager.partitions[topic, 0]


def wait_until_watched(twin: BrokerTwin, topic: str) -> None:
    """Waits until the reactor has read all earlier requests: the answer to another connection comes after them."""
    probe = socket.create_connection(twin.address, timeout=20)
    partition = partition_of(twin, topic)
    for _ in range(1000):
        if partition.is_watched:
            break
        ask(probe, ApiKey.FETCH, 12, fetch_request(topic, 0, min_bytes=0), FetchResponse)
    assert partition.is_watched
    probe.close()


def test_a_waiting_fetch_whose_client_has_gone_is_forgotten(twin):
    offset = open_gate(twin, "topic")
    consumer = twin.connection(CONSUMER)
    consumer.sendall(frame(request_bytes(ApiKey.FETCH, 12, fetch_request("topic", offset, max_wait_ms=60_000))))
    wait_until_watched(twin, "topic")
    twin.connections.pop(CONSUMER).close()
    assert produce(twin, "topic").error_code == 0
    assert twin.broker.parts.replica_manager.delayed_operations.fetch.delayed_count == 0
    assert not partition_of(twin, "topic").is_watched


def test_a_fetch_that_waits_goes_the_python_way_when_the_gate_is_shut(twin):
    offset = open_gate(twin, "topic")
    consumer = twin.connection(CONSUMER)
    consumer.sendall(frame(request_bytes(ApiKey.FETCH, 12, fetch_request("topic", offset, max_wait_ms=60_000))))
    wait_until_watched(twin, "topic")
    before = twin.broker.parts.gate.counters()["fetches_answered"]
    twin.broker.parts.gate.shut("quotas")
    assert produce(twin, "topic").error_code == 0
    response = FetchResponse.decode(receive_frame(consumer), 12, 5)
    assert response.responses[0].partitions[0].high_watermark == offset + 1
    assert twin.broker.parts.gate.counters()["fetches_answered"] == before
