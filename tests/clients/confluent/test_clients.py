"""The producer, consumer and admin client of confluent-kafka against a broker: the same with the original and ours."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

PATIENCE_S = 30.0


def wait_for(condition: Callable[[], Any], poll: Callable[[], Any]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "the condition did not become true"
        poll()


def produce(library, bootstrap: str, topic: str, count: int, **conf: Any) -> None:
    producer = library.top.Producer({"bootstrap.servers": bootstrap, **conf})
    for number in range(count):
        producer.produce(topic, f"value-{number}", key=f"key-{number}")
    assert producer.flush(PATIENCE_S) == 0


def consume(library, consumer: Any, count: int) -> list[Any]:
    found: list[Any] = []

    def poll() -> None:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found.append(message)

    wait_for(lambda: len(found) >= count, poll)
    return found


@pytest.fixture
def consumer(library, bootstrap, group):
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    made = library.top.Consumer({**conf, "enable.auto.commit": False})
    yield made
    made.close()


def test_delivery_callbacks_are_called_by_poll_and_flush_only(library, bootstrap, topic):
    calls: list[tuple[Any, ...]] = []
    me = threading.get_ident()

    def delivered(error: Any, message: Any) -> None:
        calls.append((error, message.topic(), message.key(), message.value(), threading.get_ident()))
        assert message.offset() >= 0
        assert message.latency() is not None
        assert message.timestamp()[0] == library.top.TIMESTAMP_CREATE_TIME

    producer = library.top.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    producer.produce(topic, "v", key="k", on_delivery=delivered)
    assert len(producer) == 1
    assert not calls
    wait_for(lambda: calls, lambda: producer.poll(0.1))
    producer.produce(topic, b"w", callback=delivered, headers={"a": b"1"}, timestamp=1234, partition=1)
    assert producer.flush(PATIENCE_S) == 0
    assert calls == [(None, topic, b"k", b"v", me), (None, topic, None, b"w", me)]
    assert len(producer) == 0
    assert producer.poll(0) == 0


def test_the_default_delivery_callback_and_only_errors(library, bootstrap, topic):
    calls: list[Any] = []
    conf = {"bootstrap.servers": bootstrap, "on_delivery": lambda error, message: calls.append(message.value())}
    producer = library.top.Producer(conf)
    producer.produce(topic, "a")
    producer.flush(PATIENCE_S)
    assert calls == [b"a"]
    producer = library.top.Producer({**conf, "delivery.report.only.error": True})
    producer.produce(topic, "b")
    producer.flush(PATIENCE_S)
    assert calls == [b"a"]


def test_an_exception_of_a_callback_reaches_the_caller_of_flush(library, bootstrap, topic):
    def delivered(error: Any, message: Any) -> None:
        raise KeyError("mine")

    producer = library.top.Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, "a", on_delivery=delivered)
    with pytest.raises(KeyError, match="mine"):
        producer.flush(PATIENCE_S)


def test_records_have_the_partitions_that_librdkafka_chooses(library, bootstrap, topic):
    found: dict[bytes, int] = {}
    for partitioner, name in (("consistent_random", "consistent"), ("murmur2_random", "murmur2"), ("fnv1a", "fnv1a")):
        producer = library.top.Producer({"bootstrap.servers": bootstrap, "partitioner": partitioner})
        choose = getattr(library.top, name)
        found.clear()
        for number in range(40):
            producer.produce(
                topic,
                "v",
                key=f"key-{number}",
                on_delivery=lambda error, message: found.__setitem__(message.key(), message.partition()),
            )
        producer.flush(PATIENCE_S)
        assert found == {f"key-{number}".encode(): choose(f"key-{number}".encode(), 3) for number in range(40)}


def test_a_full_queue_and_invalid_records_are_refused(library, bootstrap, topic):
    conf = {"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 2, "linger.ms": 10_000}
    producer = library.top.Producer(conf)
    producer.produce(topic, "a", partition=0)
    producer.produce(topic, "b", partition=0)
    with pytest.raises(BufferError, match="Queue full"):
        producer.produce(topic, "c", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    with pytest.raises(library.top.KafkaException) as caught:
        producer.produce(topic, "x" * 2_000_000)
    assert caught.value.args[0].code() == library.top.KafkaError.MSG_SIZE_TOO_LARGE
    assert caught.value.args[0].str() == "Unable to produce message: Broker: Message size too large"
    for arguments in ((topic, 5), (5, "v")):
        with pytest.raises(TypeError):
            producer.produce(*arguments)
    with pytest.raises(TypeError, match="expected headers to be dict or list"):
        producer.produce(topic, "v", headers=5)
    with pytest.raises(TypeError):
        producer.produce(topic, "v", headers=[("a", 5)])
    with pytest.raises(TypeError):
        producer.produce()
    with pytest.raises(library.top.KafkaException) as caught:
        producer.produce(topic, "v", partition=77)
    assert caught.value.args[0].code() == library.top.KafkaError._UNKNOWN_PARTITION


def test_a_record_that_cannot_be_delivered_has_an_error(library):
    calls: list[Any] = []
    errors: list[Any] = []
    conf = {"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 500, "error_cb": errors.append, "log_level": 0}
    producer = library.top.Producer(conf)
    producer.produce("nowhere", "v", key="k", on_delivery=lambda error, message: calls.append((error, message.key())))
    wait_for(lambda: calls and errors, lambda: producer.poll(0.1))
    [(error, key)] = calls
    assert key == b"k"
    assert error.code() == library.top.KafkaError._MSG_TIMED_OUT
    assert {library.top.KafkaError._TRANSPORT, library.top.KafkaError._ALL_BROKERS_DOWN} <= {
        each.code() for each in errors
    }


def test_records_of_a_batch(library, bootstrap, topic):
    calls: list[bytes] = []
    producer = library.top.Producer({"bootstrap.servers": bootstrap})
    messages = [{"value": b"a", "key": "k"}, {"value": "b", "partition": 1}, {"value": None}]
    added = producer.produce_batch(topic, messages, on_delivery=lambda error, message: calls.append(message.value()))
    assert added == 3
    producer.flush(PATIENCE_S)
    assert set(calls) == {None, b"a", b"b"}
    with pytest.raises(TypeError):
        producer.produce_batch(topic, "a")


def test_a_batch_outside_of_a_transaction_has_an_error_for_each_record(library, bootstrap, topic, group):
    producer = library.top.Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{group}-tx"})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "first")  # so that the topic's partitions are known
    producer.commit_transaction(PATIENCE_S)
    messages: list[dict[str, Any]] = [{"value": b"a"}, {"value": b"b"}]
    assert producer.produce_batch(topic, messages) == 0
    assert [each["_error"].code() for each in messages] == [library.top.KafkaError._STATE] * 2
    assert len(producer) == 0


def create_topic(library, bootstrap: str, name: str, config: dict[str, str]) -> str:
    """Creates a topic with one partition and returns its name, which says for which library the topic is."""
    admin_module = library.module("admin")
    name += "-ours" if library.is_ours else "-original"
    admin = admin_module.AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([admin_module.NewTopic(name, 1, 1, config=config)])[name].result(PATIENCE_S)
    return name


def test_a_failed_transaction_accepts_no_records_until_it_is_aborted(library, bootstrap, group):
    topic = create_topic(library, bootstrap, "small-records", {"max.message.bytes": "1000"})
    reports: list[Any] = []
    conf = {"bootstrap.servers": bootstrap, "transactional.id": f"{group}-tx", "log_level": 0}
    producer = library.top.Producer(conf)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "x" * 5000, on_delivery=lambda error, message: reports.append(error.code()))
    producer.flush(PATIENCE_S)
    assert reports == [library.top.KafkaError.MSG_SIZE_TOO_LARGE]
    with pytest.raises(library.top.KafkaException) as caught:
        producer.produce(topic, "v")
    assert caught.value.args[0].code() == library.top.KafkaError._STATE
    messages: list[dict[str, Any]] = [{"value": b"a"}, {"value": b"b"}]
    assert producer.produce_batch(topic, messages) == 0
    assert [each["_error"].code() for each in messages] == [library.top.KafkaError._STATE] * 2
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    assert producer.produce_batch(topic, [{"value": b"a"}, {"value": b"b"}]) == 2


def test_reports_of_a_topic_with_the_brokers_time_have_it(library, bootstrap):
    name = create_topic(library, bootstrap, "append-time", {"message.timestamp.type": "LogAppendTime"})
    found: list[tuple[int, int]] = []
    producer = library.top.Producer({"bootstrap.servers": bootstrap})
    begin_ms = time.time() * 1000
    producer.produce(name, "a", timestamp=1234, on_delivery=lambda error, message: found.append(message.timestamp()))
    assert producer.flush(PATIENCE_S) == 0
    [(kind, timestamp_ms)] = found
    assert kind == library.top.TIMESTAMP_LOG_APPEND_TIME
    assert timestamp_ms >= begin_ms - 1000


def test_a_consumer_reads_what_was_written(library, bootstrap, topic, consumer):
    produce(library, bootstrap, topic, 10)
    assigned: list[Any] = []
    consumer.subscribe([topic], on_assign=lambda who, partitions: assigned.append((who, partitions)))
    found = consume(library, consumer, 10)
    assert {(each.key(), each.value()) for each in found} == {
        (f"key-{number}".encode(), f"value-{number}".encode()) for number in range(10)
    }
    [(who, partitions)] = assigned
    assert who is consumer
    assert [(each.topic, each.partition) for each in partitions] == [(topic, number) for number in range(3)]
    assert consumer.assignment() == partitions
    first = found[0]
    assert (first.topic(), first.headers(), first.error(), first.latency()) == (topic, None, None, None)
    assert first.timestamp()[0] == library.top.TIMESTAMP_CREATE_TIME
    ends = {each.partition: each.offset for each in consumer.position(partitions)}
    assert sum(ends.values()) == 10
    committed = consumer.commit(asynchronous=False)
    assert {each.partition: each.offset for each in committed if each.offset >= 0} == {
        number: end for number, end in ends.items() if end >= 0
    }
    assert {each.partition: each.offset for each in consumer.committed(partitions, PATIENCE_S)} == ends
    assert consumer.get_watermark_offsets(partitions[0], PATIENCE_S) == (0, ends[0])
    assert consumer.get_watermark_offsets(partitions[0], cached=True)[1] == ends[0]
    assert consumer.memberid()


def test_commits_of_a_message_of_offsets_and_without_any(library, bootstrap, topic, consumer):
    produce(library, bootstrap, topic, 3, partitioner="fnv1a")
    consumer.assign([library.top.TopicPartition(topic, number) for number in range(3)])
    with pytest.raises(library.top.KafkaException) as caught:
        consumer.commit(asynchronous=False)
    assert caught.value.args[0].code() == library.top.KafkaError._NO_OFFSET
    message = consume(library, consumer, 1)[0]
    [committed] = consumer.commit(message=message, asynchronous=False)
    assert (committed.partition, committed.offset) == (message.partition(), message.offset() + 1)
    [committed] = consumer.commit(
        offsets=[library.top.TopicPartition(topic, 2, 77, metadata="mine")], asynchronous=False
    )
    [found] = consumer.committed([library.top.TopicPartition(topic, 2)], PATIENCE_S)
    assert (found.offset, found.metadata) == (77, "mine")
    assert consumer.commit(message=message) is None
    with pytest.raises(ValueError, match="mutually exclusive"):
        consumer.commit(message=message, offsets=[])


def test_the_end_of_a_partition_is_reported_once(library, bootstrap, topic, group):
    produce(library, bootstrap, topic, 1)
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "enable.partition.eof": True}
    with library.top.Consumer({**conf, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([library.top.TopicPartition(topic, number) for number in range(3)])
        ends: dict[int, int] = {}
        values = []

        def poll() -> None:
            message = consumer.poll(0.2)
            if message is None:
                return
            if message.error() is None:
                values.append(message.value())
                return
            assert message.error().code() == library.top.KafkaError._PARTITION_EOF
            assert message.value() == message.error().str().encode()
            assert message.partition() not in ends
            ends[message.partition()] = message.offset()

        wait_for(lambda: len(ends) == 3 and values, poll)
        assert sum(ends.values()) == 1
        assert consumer.poll(0.5) is None


def test_positions_are_chosen_by_assign_and_seek(library, bootstrap, topic, consumer):
    producer = library.top.Producer({"bootstrap.servers": bootstrap})
    for number in range(6):
        producer.produce(topic, str(number), partition=0, timestamp=1000 + number)
    producer.flush(PATIENCE_S)
    consumer.assign([library.top.TopicPartition(topic, 0, 4)])
    assert [each.value() for each in consume(library, consumer, 2)] == [b"4", b"5"]
    consumer.seek(library.top.TopicPartition(topic, 0, 1))
    assert consume(library, consumer, 1)[0].value() == b"1"
    consumer.assign([library.top.TopicPartition(topic, 0, library.top.OFFSET_BEGINNING)])
    assert [each.value() for each in consumer.consume(6, PATIENCE_S)] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    [found] = consumer.offsets_for_times([library.top.TopicPartition(topic, 0, 1003)], PATIENCE_S)
    assert found.offset == 3
    [found] = consumer.offsets_for_times([library.top.TopicPartition(topic, 0, 9999)], PATIENCE_S)
    assert found.offset == library.top.OFFSET_END
    with pytest.raises(library.top.KafkaException) as caught:
        consumer.seek(library.top.TopicPartition("other", 0, 1))
    assert caught.value.args[0].code() == library.top.KafkaError._UNKNOWN_PARTITION


def test_paused_partitions_return_nothing(library, bootstrap, topic, consumer):
    produce(library, bootstrap, topic, 30)
    consumer.assign([library.top.TopicPartition(topic, number) for number in range(3)])
    found = consume(library, consumer, 1)
    consumer.pause([library.top.TopicPartition(topic, number) for number in range(3)])
    assert consumer.poll(0.3) is None
    consumer.resume([library.top.TopicPartition(topic, number) for number in range(3)])
    found += consume(library, consumer, 29)
    assert len({(each.partition(), each.offset()) for each in found}) == 30


def test_stored_offsets_are_committed(library, bootstrap, topic, group):
    produce(library, bootstrap, topic, 3)
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = library.top.Consumer({**conf, "enable.auto.offset.store": False, "enable.auto.commit": False})
    consumer.subscribe([topic])
    message = consume(library, consumer, 3)[0]
    consumer.store_offsets(message)
    [committed] = [each for each in consumer.commit(asynchronous=False) if each.offset >= 0]
    assert (committed.partition, committed.offset) == (message.partition(), message.offset() + 1)
    consumer.close()


def test_automatic_commits_happen_at_close_and_call_back(library, bootstrap, topic, group):
    produce(library, bootstrap, topic, 5)
    calls: list[Any] = []
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    committing = {
        **conf,
        "auto.commit.interval.ms": 100,
        "on_commit": lambda error, parts: calls.append((error, parts)),
    }
    consumer = library.top.Consumer(committing)
    consumer.subscribe([topic])
    consume(library, consumer, 5)
    wait_for(lambda: calls, lambda: consumer.poll(0.1))
    assert calls[0][0] is None
    consumer.close()
    with library.top.Consumer(conf) as after:
        found = after.committed([library.top.TopicPartition(topic, number) for number in range(3)], PATIENCE_S)
        assert sum(max(each.offset, 0) for each in found) == 5


def test_rebalance_callbacks(library, bootstrap, topic, group):
    events: list[tuple[str, int]] = []
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}

    def assigned(consumer: Any, partitions: list[Any]) -> None:
        events.append(("assigned", len(partitions)))
        for each in partitions:
            each.offset = library.top.OFFSET_END
        consumer.assign(partitions)

    produce(library, bootstrap, topic, 5)
    consumer = library.top.Consumer(conf)
    consumer.subscribe(
        [topic],
        on_assign=assigned,
        on_revoke=lambda consumer, partitions: events.append(("revoked", len(partitions))),
    )
    wait_for(lambda: events, lambda: consumer.poll(0.1))
    assert consumer.poll(0.5) is None  # it starts at the end
    consumer.close()
    assert events == [("assigned", 3), ("revoked", 3)]


def test_topics_are_chosen_by_a_regular_expression(library, bootstrap, topic, consumer):
    produce(library, bootstrap, topic, 1)
    consumer.subscribe([f"^{topic[:-1]}[{topic[-1]}]$"])
    assert consume(library, consumer, 1)[0].topic() == topic
    consumer.unsubscribe()
    wait_for(lambda: not consumer.assignment(), lambda: consumer.poll(0.1))


def test_an_unknown_topic_is_an_error_of_the_consumer(library, bootstrap, consumer):
    consumer.subscribe(["there-is-no-such-topic"])
    errors: list[Any] = []

    def poll() -> None:
        message = consumer.poll(0.2)
        if message is not None:
            errors.append(message.error())

    wait_for(lambda: errors, poll)
    assert errors[0].code() == library.top.KafkaError.UNKNOWN_TOPIC_OR_PART
    assert errors[0].str() == (
        "Subscribed topic not available: there-is-no-such-topic: Broker: Unknown topic or partition"
    )


def test_a_closed_client_refuses_calls(library, bootstrap, group):
    consumer = library.top.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    consumer.close()
    consumer.close()
    for call in (lambda: consumer.poll(0), consumer.assignment, lambda: consumer.subscribe(["a"]), consumer.memberid):
        with pytest.raises(RuntimeError, match="Consumer closed"):
            call()
    producer = library.top.Producer({"bootstrap.servers": bootstrap})
    assert producer.close() is True
    with pytest.raises(RuntimeError):
        producer.produce("a", "b")


def test_invalid_arguments_of_the_consumer(library, bootstrap, consumer):
    for call in (
        lambda: consumer.subscribe("a"),
        lambda: consumer.subscribe(["a"], on_assign=3),
        lambda: consumer.assign("a"),
        lambda: consumer.assign([("a", 0)]),
        lambda: consumer.poll("x"),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError, match="num_messages must be between"):
        consumer.consume(-1)
    with pytest.raises(library.top.KafkaException):
        consumer.subscribe([])
    with pytest.raises(ValueError, match="expected either message or offsets"):
        consumer.store_offsets()


def test_the_metadata_of_the_cluster(library, bootstrap, topic, consumer):
    producer = library.top.Producer({"bootstrap.servers": bootstrap})
    for client in (producer, consumer):
        metadata = client.list_topics(timeout=PATIENCE_S)
        assert len(metadata.topics[topic].partitions) == 3
        partition = metadata.topics[topic].partitions[0]
        assert (partition.leader, partition.replicas, partition.isrs) == (1, [1], [1])
        assert metadata.brokers[1].host == "localhost"
        assert client.cluster_id(PATIENCE_S) == metadata.cluster_id
    found = consumer.list_topics("there-is-no-such-topic", timeout=PATIENCE_S).topics["there-is-no-such-topic"]
    assert found.error.code() == library.top.KafkaError.UNKNOWN_TOPIC_OR_PART


def test_a_transaction_with_offsets(library, bootstrap, topic, group):
    produce(library, bootstrap, topic, 4)
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = library.top.Consumer({**conf, "enable.auto.commit": False})
    consumer.subscribe([topic])
    consume(library, consumer, 4)
    producer = library.top.Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{group}-tx"})
    with pytest.raises(library.top.KafkaException):
        producer.begin_transaction()
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "aborted")
    producer.abort_transaction(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "committed")
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), PATIENCE_S)
    producer.commit_transaction(PATIENCE_S)
    assert [each.value() for each in consume(library, consumer, 1)] == [b"committed"]
    found = consumer.committed(consumer.assignment(), PATIENCE_S)
    assert sum(max(each.offset, 0) for each in found) == 4
    consumer.close()
    plain = library.top.Producer({"bootstrap.servers": bootstrap})
    with pytest.raises(library.top.KafkaException) as caught:
        plain.begin_transaction()
    assert caught.value.args[0].code() == library.top.KafkaError._NOT_CONFIGURED


def test_statistics_are_json_of_librdkafkas_form(library, bootstrap, topic):
    told: list[dict[str, Any]] = []
    conf = {"bootstrap.servers": bootstrap, "client.id": "told", "statistics.interval.ms": 200}
    producer = library.top.Producer({**conf, "stats_cb": lambda text: told.append(json.loads(text))})
    for number in range(20):
        producer.produce(topic, "0123456789", key=str(number))
    producer.flush(PATIENCE_S)
    told.clear()
    wait_for(lambda: told, lambda: producer.poll(0.1))
    found = told[-1]
    assert found["name"].startswith("told#producer-")
    assert (found["client_id"], found["type"], found["msg_cnt"], found["txmsgs"]) == ("told", "producer", 0, 20)
    assert found["tx"] > 0
    assert found["tx_bytes"] > 200
    assert found["rx"] > 0
    [broker] = [each for each in found["brokers"].values() if each["nodeid"] == 1 and each["source"] != "logical"]
    assert broker["state"] == "UP"
    assert broker["tx"] > 0
    partitions = found["topics"][topic]["partitions"]
    assert sum(partitions[str(number)]["txmsgs"] for number in range(3)) == 20


def test_statistics_of_a_consumer(library, bootstrap, topic, group):
    told: list[dict[str, Any]] = []
    produce(library, bootstrap, topic, 20)
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    watched = {**conf, "statistics.interval.ms": 200, "stats_cb": lambda text: told.append(json.loads(text))}
    consumer = library.top.Consumer(watched)
    consumer.subscribe([topic])
    consume(library, consumer, 20)
    told.clear()
    wait_for(lambda: len(told) > 1, lambda: consumer.poll(0.1))
    found = told[-1]
    assert (found["type"], found["rxmsgs"], found["cgrp"]["state"], found["cgrp"]["assignment_size"]) == (
        "consumer", 20, "up", 3,
    )  # fmt: skip
    partitions = found["topics"][topic]["partitions"]
    assert sum(partitions[str(number)]["app_offset"] for number in range(3)) == 20
    assert all(partitions[str(number)]["consumer_lag"] in (0, -1) for number in range(3))
    consumer.close()


def test_the_ends_are_looked_up_by_special_timestamps(library, bootstrap, topic, consumer):
    produce(library, bootstrap, topic, 9)
    for timestamp, place in ((-1, 1), (-2, 0)):
        [found] = consumer.offsets_for_times([library.top.TopicPartition(topic, 0, timestamp)], PATIENCE_S)
        offsets = consumer.get_watermark_offsets(library.top.TopicPartition(topic, 0), PATIENCE_S)
        assert found.offset == offsets[place]


def test_offsets_of_a_partition_that_does_not_exist_are_refused(library, bootstrap, topic, consumer):
    missing = library.top.TopicPartition(topic, 7, 0)
    began_s = time.monotonic()
    for call in (consumer.get_watermark_offsets, lambda partition: consumer.offsets_for_times([partition])):
        with pytest.raises(library.top.KafkaException) as caught:
            call(missing)
        assert caught.value.args[0].code() == library.top.KafkaError._UNKNOWN_PARTITION
        assert caught.value.args[0].str().endswith(": Local: Unknown partition")
    assert time.monotonic() - began_s < PATIENCE_S


def test_no_end_is_reported_at_a_position_behind_it(library, bootstrap, topic, group):
    produce(library, bootstrap, topic, 9)
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "enable.partition.eof": True}
    with library.top.Consumer({**conf, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([library.top.TopicPartition(topic, 0, 0)])
        ends: list[int] = []

        def poll() -> None:
            message = consumer.poll(0.2)
            if message is not None and message.error() is not None:
                ends.append(message.offset())

        wait_for(lambda: ends, poll)
        consumer.seek(library.top.TopicPartition(topic, 0, 1000))
        wait_for(lambda: len(ends) == 2, poll)
        assert ends[0] == ends[1]


def test_the_records_of_an_aborted_transaction_that_were_not_sent_are_purged(library, bootstrap, topic, group):
    codes: list[int] = []
    conf = {"bootstrap.servers": bootstrap, "transactional.id": group, "linger.ms": 10_000}
    producer = library.top.Producer(conf)
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "v", partition=0)
    producer.commit_transaction(PATIENCE_S)
    producer.begin_transaction()
    producer.produce(topic, "w", partition=0, on_delivery=lambda error, message: codes.append(error.code()))
    producer.abort_transaction(PATIENCE_S)
    wait_for(lambda: codes, lambda: producer.poll(0.1))
    assert codes == [library.top.KafkaError._PURGE_QUEUE]
