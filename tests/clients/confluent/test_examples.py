"""The programs of confluent-kafka's README and examples, in our words, with only the import changed."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

PATIENCE_S = 30.0


async def until(condition: Callable[[], Any], step: Callable[[], Awaitable[Any]]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s, "the condition did not become true"
        await step()


def read_one(consumer: Any) -> Any:
    while True:
        message = consumer.poll(1.0)
        if message is not None:
            return message


def test_basic_producer_and_consumer(library, bootstrap, topic, group, capsys):
    Consumer, Producer = library.top.Consumer, library.top.Producer  # noqa: N806
    producer = Producer({"bootstrap.servers": bootstrap})

    def report(error: Any, message: Any) -> None:
        if error is not None:
            print(f"delivery failed: {error}")
        else:
            print(f"delivered to {message.topic()} [{message.partition()}]")

    for text in ("one", "two", "three"):
        producer.poll(0)
        producer.produce(topic, text.encode("utf-8"), callback=report)
    producer.flush()
    assert capsys.readouterr().out.count(f"delivered to {topic}") == 3

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    received: list[str] = []
    while len(received) < 3:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            raise AssertionError(message.error())
        received.append(message.value().decode("utf-8"))
    consumer.close()
    assert sorted(received) == ["one", "three", "two"]


def test_consume_transform_and_produce_exactly_once(library, bootstrap, topic, group):
    Consumer, KafkaError = library.top.Consumer, library.top.KafkaError  # noqa: N806
    Producer, TopicPartition = library.top.Producer, library.top.TopicPartition  # noqa: N806
    source = Producer({"bootstrap.servers": bootstrap})
    for number in range(7):
        source.produce(topic, f"v{number}", key=f"k{number}", partition=0)
    source.flush()

    settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0)])
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{group}-eos"})
    producer.init_transactions()
    producer.begin_transaction()
    count = 0
    while True:
        producer.poll(0)
        message = consumer.poll(timeout=1.0)
        if message is None:
            continue
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF
            break
        count += 1
        producer.produce(topic, base64.b64encode(message.value()), base64.b64encode(message.key()), partition=1)
        if count % 3 == 0:
            producer.send_offsets_to_transaction(
                consumer.position(consumer.assignment()), consumer.consumer_group_metadata()
            )
            producer.commit_transaction()
            producer.begin_transaction()
    producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), consumer.consumer_group_metadata())
    producer.commit_transaction()
    assert consumer.committed([TopicPartition(topic, 0)])[0].offset == 7
    consumer.assign([TopicPartition(topic, 1, 0)])
    values: list[bytes] = []
    while len(values) < 7:
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            values.append(base64.b64decode(message.value()))
    assert values == [f"v{number}".encode() for number in range(7)]
    consumer.close()


def test_clients_are_context_managers_and_log_to_a_logger(library, bootstrap, topic, group):
    logger = logging.getLogger("confluent-example")
    with library.top.Producer({"bootstrap.servers": bootstrap}, logger=logger) as producer:
        producer.produce(topic, "in a block")
    with library.top.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}, logger=logger
    ) as consumer:
        consumer.subscribe([topic])
        messages: list[Any] = []
        while not messages:
            messages += consumer.consume(num_messages=10, timeout=1.0)
        assert messages[0].value() == b"in a block"
    with library.module("admin").AdminClient({"bootstrap.servers": bootstrap}) as admin:
        assert topic in admin.list_topics(timeout=PATIENCE_S).topics


def test_serializers_of_a_producer_and_a_consumer(library, bootstrap, topic, group):
    serialization, errors = library.module("serialization"), library.module("error")
    producer = library.top.SerializingProducer(
        {
            "bootstrap.servers": bootstrap,
            "key.serializer": serialization.StringSerializer("utf_8"),
            "value.serializer": serialization.IntegerSerializer(),
        }
    )
    with pytest.raises(errors.ValueSerializationError):
        producer.produce(topic=topic, key="k", value="no number")
    producer.produce(topic=topic, key="k", value=42)
    producer.flush()
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "key.deserializer": serialization.StringDeserializer("utf_8"),
    }
    consumer = library.top.DeserializingConsumer(
        {**settings, "value.deserializer": serialization.IntegerDeserializer()}
    )
    consumer.subscribe([topic])
    message = read_one(consumer)
    assert (message.key(), message.value()) == ("k", 42)
    with pytest.raises(NotImplementedError):
        consumer.consume()
    consumer.close()
    consumer = library.top.DeserializingConsumer(
        {**settings, "group.id": f"{group}-other", "value.deserializer": serialization.DoubleDeserializer()}
    )
    consumer.subscribe([topic])
    with pytest.raises(errors.ValueDeserializationError) as caught:
        read_one(consumer)
    assert caught.value.name == "_VALUE_DESERIALIZATION"
    assert caught.value.kafka_message.value() == b"\0\0\0\x2a"
    consumer.close()


def test_producer_and_consumer_of_asyncio(library, bootstrap, topic, group):
    aio = library.module("aio")

    async def run() -> None:
        producer = aio.AIOProducer({"bootstrap.servers": bootstrap})
        futures = [await producer.produce(topic, value=f"v{number}".encode(), key=b"k") for number in range(5)]
        await producer.flush()
        delivered = await asyncio.gather(*futures)
        assert sorted(each.value() for each in delivered) == [f"v{number}".encode() for number in range(5)]
        with pytest.raises(NotImplementedError):
            await producer.produce(topic, value=b"v", headers={"a": b"1"})
        assert topic in (await producer.list_topics(timeout=PATIENCE_S)).topics
        await producer.close()

        assigned: list[Any] = []

        async def on_assign(consumer: Any, partitions: list[Any]) -> None:
            await consumer.assign(partitions)
            assigned.append(partitions)

        settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = aio.AIOConsumer({**settings, "enable.auto.commit": False})
        await consumer.subscribe([topic], on_assign=on_assign)
        found: list[bytes] = []

        async def poll() -> None:
            message = await consumer.poll(1.0)
            if message is not None and message.error() is None:
                found.append(message.value())

        await until(lambda: len(found) == 5, poll)
        assert assigned
        committed = await consumer.commit(asynchronous=False)
        assert sum(max(each.offset, 0) for each in committed) == 5
        await consumer.unsubscribe()
        await consumer.close()

    asyncio.run(run())


def test_serializers_of_asyncio(library, bootstrap, topic, group):
    aio, serialization = library.module("aio"), library.module("serialization")

    async def upper(text: str, context: Any) -> bytes:
        return text.upper().encode()

    async def run() -> None:
        producer = await aio.AsyncSerializingProducer({"bootstrap.servers": bootstrap, "value.serializer": upper})
        future = await producer.produce(topic, value="loud")
        await producer.flush()
        assert (await future).value() == b"LOUD"
        await producer.close()
        settings = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        consumer = await aio.AsyncDeserializingConsumer(
            {**settings, "value.deserializer": serialization.StringDeserializer()}
        )
        await consumer.subscribe([topic])
        found: list[Any] = []

        async def poll() -> None:
            message = await consumer.poll(1.0)
            if message is not None:
                found.append(message.value())

        await until(lambda: found, poll)
        assert found == ["LOUD"]
        await consumer.close()

    asyncio.run(run())


def test_share_consumer_with_implicit_and_explicit_acknowledgements(library, bootstrap, topic, group):
    admin_module = library.module("admin")
    resource = admin_module.ConfigResource(admin_module.ResourceType.GROUP, group)
    resource.add_incremental_config(
        admin_module.ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=admin_module.AlterConfigOpType.SET
        )
    )
    admin = admin_module.AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(PATIENCE_S)
    producer = library.top.Producer({"bootstrap.servers": bootstrap})
    for number in range(4):
        producer.produce(topic, str(number), partition=0)
    producer.flush()
    conf = {"bootstrap.servers": bootstrap, "group.id": group, "share.acknowledgement.mode": "explicit"}
    consumer = library.top.ShareConsumer(conf)
    consumer.subscribe([topic])
    assert consumer.subscription() == [topic]
    seen: list[bytes] = []
    end_s = time.monotonic() + PATIENCE_S
    while len(seen) < 4:
        assert time.monotonic() < end_s
        messages = consumer.poll(timeout=1.0)
        for message in messages:
            assert message.delivery_count() == 1
            seen.append(message.value())
            consumer.acknowledge(message, library.top.AcknowledgeType.ACCEPT)
        if not messages.is_empty():
            assert list(consumer.commit_sync(PATIENCE_S).values()) == [None]
    assert sorted(seen) == [b"0", b"1", b"2", b"3"]
    consumer.close()
    with pytest.raises(library.top.IllegalStateException):
        consumer.poll(0)
