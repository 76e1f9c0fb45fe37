"""One client, one load, in a process of its own.

    python -m bench.client_loads CLIENT LOAD BOOTSTRAP TOPIC COUNT SIZE BATCH

Prints one JSON line: records, seconds, and CPU seconds of this process. A producer is measured from the first record of
the load, after one record that finds the topic, until the last record is acknowledged. A consumer is measured from the
second portion of records to the last, so that the time to connect is not included. Each client reads the length of
every value.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import NamedTuple

# All producers give the same guarantee, the default of Apache Kafka's: acks=all, no duplicates, in order, with at most
# five requests in flight.
IDEMPOTENT = True
LINGER_MS = 20
BUFFER_BYTES = 128 << 20
PORTION = 1000  # records that are passed in one call, where a client supports it
FETCH_BYTES = 4 << 20


class Load(NamedTuple):
    bootstrap: str
    topic: str
    count: int  # type: ignore[assignment]  # hides the method of tuple
    size: int
    batch_bytes: int

    def values(self) -> Iterator[bytes]:
        """Returns `count` values, which repeat a few values, so that none is created while time is measured."""
        some = [bytes([65 + number % 26]) * self.size for number in range(PORTION)]
        for start in range(0, self.count, PORTION):
            yield from some[: min(PORTION, self.count - start)]

    def portions(self) -> Iterator[list[bytes]]:
        some = [bytes([65 + number % 26]) * self.size for number in range(PORTION)]
        for start in range(0, self.count, PORTION):
            yield some[: min(PORTION, self.count - start)]


class Clock:
    """A stopwatch for time and CPU seconds, from `start` to `stop`."""

    def __init__(self) -> None:
        self.records = 0
        self._from = (0.0, 0.0)
        self._to = (0.0, 0.0)

    def start(self) -> None:
        self._from = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self._to = time.perf_counter(), time.process_time()

    def report(self) -> dict[str, float]:
        seconds, cpu = (end - begin for begin, end in zip(self._from, self._to, strict=True))
        return {"records": self.records, "seconds": seconds, "cpu_seconds": cpu}


def consume(load: Load, clock: Clock, portions: Iterable[tuple[int, int]]) -> None:
    """Counts the records and bytes that `portions` yields, as pairs, until all records have arrived.

    The clock starts after the first portion.
    """
    seen = total = first = 0
    for records, size in portions:
        if not records:
            continue
        if not seen:
            first = records
            clock.start()
        seen += records
        total += size
        if seen >= load.count:
            break
    clock.stop()
    if total != seen * load.size:
        raise SystemExit(f"{total} bytes in {seen} records of {load.size}")
    clock.records = seen - first


def consume_each(load: Load, clock: Clock, values: Iterator[bytes]) -> None:
    """Counts records and bytes until all have arrived, for a client that returns single records.

    The clock starts after the first record.
    """
    clock.start()
    total = len(next(values))
    clock.start()
    for _ in range(load.count - 1):
        total += len(next(values))
    clock.stop()
    if total != load.count * load.size:
        raise SystemExit(f"{total} bytes in {load.count} records of {load.size}")
    clock.records = load.count - 1


# kafkapy


def kafkapy_producer(load: Load):  # type: ignore[no-untyped-def]
    from kafkapy.client import Producer

    producer = Producer(
        bootstrap_servers=load.bootstrap,
        enable_idempotence=IDEMPOTENT,
        linger_ms=LINGER_MS,
        batch_size=load.batch_bytes,
        buffer_memory=BUFFER_BYTES,
    )
    producer.send(load.topic, b"0" * load.size).result(30)
    return producer


def kafkapy_produce(load: Load, clock: Clock) -> None:
    producer = kafkapy_producer(load)
    topic, send, last = load.topic, producer.send, None
    clock.start()
    for value in load.values():
        last = send(topic, value)
    assert producer.flush(60)
    clock.stop()
    assert last is not None and last.exception() is None
    clock.records = load.count
    producer.close()


def kafkapy_produce_batches(load: Load, clock: Clock) -> None:
    producer = kafkapy_producer(load)
    futures = []
    clock.start()
    for portion in load.portions():
        futures = producer.send_many(load.topic, portion)
    assert producer.flush(60)
    clock.stop()
    assert futures[-1].exception() is None
    clock.records = load.count
    producer.close()


def kafkapy_produce_arrow(load: Load, clock: Clock) -> None:
    import pyarrow

    producer = kafkapy_producer(load)
    table = pyarrow.table({"value": list(load.values())})
    clock.start()
    delivery = producer.send_arrow(load.topic, table)
    assert producer.flush(60)
    clock.stop()
    assert delivery.result(0) == load.count
    clock.records = load.count
    producer.close()


def kafkapy_consumer(load: Load):  # type: ignore[no-untyped-def]
    from kafkapy.client import Consumer

    consumer = Consumer(
        bootstrap_servers=load.bootstrap,
        auto_offset_reset="earliest",
        max_poll_records=PORTION,
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    consumer.assign([(load.topic, 0)])
    return consumer


def kafkapy_consume(load: Load, clock: Clock) -> None:
    with kafkapy_consumer(load) as consumer:
        consume_each(load, clock, (record.value for record in consumer))


def kafkapy_consume_batches(load: Load, clock: Clock) -> None:
    with kafkapy_consumer(load) as consumer:

        def portions() -> Iterator[tuple[int, int]]:
            while True:
                records = consumer.poll(1.0)
                yield len(records), sum([len(record.value) for record in records])

        consume(load, clock, portions())


def kafkapy_consume_arrow(load: Load, clock: Clock) -> None:
    import pyarrow
    import pyarrow.compute

    with kafkapy_consumer(load) as consumer:

        def portions() -> Iterator[tuple[int, int]]:
            while True:
                for batch in consumer.poll_arrow(1.0):
                    rows = pyarrow.record_batch(batch)
                    lengths = pyarrow.compute.binary_length(rows.column("value"))
                    yield rows.num_rows, pyarrow.compute.sum(lengths).as_py()

        consume(load, clock, portions())


# confluent-kafka


CONFLUENT, COMPATIBLE = "confluent_kafka", "kafkapy.compat.confluent_kafka"


def confluent_producer(load: Load, package: str):  # type: ignore[no-untyped-def]
    producer = import_module(package).Producer(
        {
            "bootstrap.servers": load.bootstrap,
            "enable.idempotence": IDEMPOTENT,
            "linger.ms": LINGER_MS,
            "batch.size": load.batch_bytes,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 1_000_000,
            "queue.buffering.max.kbytes": BUFFER_BYTES >> 10,
        }
    )
    producer.produce(load.topic, b"0" * load.size)
    assert producer.flush(30) == 0
    return producer


def confluent_produce(load: Load, clock: Clock, *, package: str = CONFLUENT) -> None:
    producer = confluent_producer(load, package)
    topic, produce = load.topic, producer.produce
    clock.start()
    for value in load.values():
        while True:
            try:
                produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    assert producer.flush(60) == 0
    clock.stop()
    clock.records = load.count


def confluent_produce_batches(load: Load, clock: Clock, *, package: str = CONFLUENT) -> None:
    producer = confluent_producer(load, package)
    clock.start()
    for portion in load.portions():
        messages = [{"value": value} for value in portion]
        while messages:
            producer.produce_batch(load.topic, messages)
            messages = [each for each in messages if each.pop("_error", None) is not None]
            if messages:
                producer.poll(0.01)
    assert producer.flush(60) == 0
    clock.stop()
    clock.records = load.count


def confluent_consumer(load: Load, package: str):  # type: ignore[no-untyped-def]
    confluent = import_module(package)
    consumer = confluent.Consumer(
        {
            "bootstrap.servers": load.bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "queued.min.messages": 1_000_000,
            "queued.max.messages.kbytes": BUFFER_BYTES >> 10,
            "fetch.queue.backoff.ms": 1,
            "fetch.message.max.bytes": FETCH_BYTES,
        }
    )
    consumer.assign([confluent.TopicPartition(load.topic, 0, 0)])
    return consumer


def confluent_consume(load: Load, clock: Clock, *, package: str = CONFLUENT) -> None:
    consumer = confluent_consumer(load, package)

    def values() -> Iterator[bytes]:
        poll = consumer.poll
        while True:
            message = poll(1.0)
            if message is not None:
                assert message.error() is None
                yield message.value()

    consume_each(load, clock, values())
    consumer.close()


def confluent_consume_batches(load: Load, clock: Clock, *, package: str = CONFLUENT) -> None:
    consumer = confluent_consumer(load, package)

    def portions() -> Iterator[tuple[int, int]]:
        while True:
            messages = consumer.consume(PORTION, 1.0)
            yield len(messages), sum([len(message.value()) for message in messages])

    consume(load, clock, portions())
    consumer.close()


# kafka-python, and its replacement


def kafka_python_produce(load: Load, clock: Clock, package: str = "kafka") -> None:
    producer = import_module(package).KafkaProducer(
        bootstrap_servers=load.bootstrap,
        enable_idempotence=IDEMPOTENT,
        linger_ms=LINGER_MS,
        batch_size=load.batch_bytes,
    )
    producer.send(load.topic, b"0" * load.size).get(30)
    last = None
    clock.start()
    for value in load.values():
        last = producer.send(load.topic, value)
    producer.flush()
    clock.stop()
    assert last is not None and last.succeeded()
    clock.records = load.count
    producer.close()


def kafka_python_consumer(load: Load, package: str):  # type: ignore[no-untyped-def]
    kafka = import_module(package)
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=load.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=PORTION,
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    consumer.assign([kafka.TopicPartition(load.topic, 0)])
    return consumer


def kafka_python_consume(load: Load, clock: Clock, package: str = "kafka") -> None:
    consumer = kafka_python_consumer(load, package)
    consume_each(load, clock, (record.value for record in consumer))
    consumer.close()


def kafka_python_consume_batches(load: Load, clock: Clock, package: str = "kafka") -> None:
    consumer = kafka_python_consumer(load, package)

    def portions() -> Iterator[tuple[int, int]]:
        while True:
            for records in consumer.poll(1000).values():
                yield len(records), sum([len(record.value) for record in records])

    consume(load, clock, portions())
    consumer.close()


# aiokafka


async def aiokafka_producer(load: Load):  # type: ignore[no-untyped-def]
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(
        bootstrap_servers=load.bootstrap,
        enable_idempotence=IDEMPOTENT,
        linger_ms=LINGER_MS,
        max_batch_size=load.batch_bytes,
    )
    await producer.start()
    await producer.send_and_wait(load.topic, b"0" * load.size)
    return producer


def aiokafka_produce(load: Load, clock: Clock) -> None:
    async def run() -> None:
        producer = await aiokafka_producer(load)
        clock.start()
        for value in load.values():
            last = await producer.send(load.topic, value)
        await producer.flush()
        clock.stop()
        await last
        await producer.stop()

    asyncio.run(run())
    clock.records = load.count


def aiokafka_produce_batches(load: Load, clock: Clock) -> None:
    async def run() -> None:
        producer = await aiokafka_producer(load)
        batch = producer.create_batch()
        sent = []
        clock.start()
        for value in load.values():
            while batch.append(key=None, value=value, timestamp=None) is None:
                sent.append(await producer.send_batch(batch, load.topic, partition=0))
                batch = producer.create_batch()
        sent.append(await producer.send_batch(batch, load.topic, partition=0))
        await asyncio.gather(*sent)
        clock.stop()
        await producer.stop()

    asyncio.run(run())
    clock.records = load.count


async def aiokafka_consumer(load: Load):  # type: ignore[no-untyped-def]
    from aiokafka import AIOKafkaConsumer, TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=load.bootstrap,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    await consumer.start()
    consumer.assign([TopicPartition(load.topic, 0)])
    return consumer


def aiokafka_consume(load: Load, clock: Clock) -> None:
    async def run() -> None:
        consumer = await aiokafka_consumer(load)
        total = len((await consumer.getone()).value)
        clock.start()
        for _ in range(load.count - 1):
            total += len((await consumer.getone()).value)
        clock.stop()
        assert total == load.count * load.size
        clock.records = load.count - 1
        await consumer.stop()

    asyncio.run(run())


def aiokafka_consume_batches(load: Load, clock: Clock) -> None:
    async def run() -> None:
        consumer = await aiokafka_consumer(load)
        seen = total = first = 0
        while seen < load.count:
            for records in (await consumer.getmany(timeout_ms=1000, max_records=PORTION)).values():
                if not seen:
                    first = len(records)
                    clock.start()
                seen += len(records)
                total += sum([len(record.value) for record in records])
        clock.stop()
        assert total == seen * load.size
        clock.records = seen - first
        await consumer.stop()

    asyncio.run(run())


# The limit: the same bytes through loopback, read into one buffer by one thread


def loopback_consume_arrow(load: Load, clock: Clock) -> None:
    """Receives `count * size` bytes from a server at `bootstrap` that sends them without a request."""
    host, _, port = load.bootstrap.rpartition(":")
    buffer = bytearray(FETCH_BYTES)
    left = load.count * load.size
    with socket.create_connection((host, int(port))) as connection:
        left -= connection.recv_into(buffer)
        clock.start()
        begin = left
        while left:
            got = connection.recv_into(buffer)
            if not got:
                raise SystemExit("the server closed the connection")
            left -= got
        clock.stop()
    clock.records = begin // load.size


def plain_socket_consume_arrow(load: Load, clock: Clock) -> None:
    """Measures the limit for a client that sends the same requests as kafkapy's client.

    Fetches into one buffer. Only the batch headers are read, to find where the next fetch begins.
    """
    from kafkapy._core.client.fetched_records import FetchedRecords
    from kafkapy.protocol.api import ApiKey, request_header_version, response_header_version
    from kafkapy.protocol.messages.fetch import FetchRequest, FetchResponse
    from kafkapy.protocol.messages.header import RequestHeader, ResponseHeader

    version, offset, first, buffer = 12, 0, 0, bytearray(2 * FETCH_BYTES)
    header = RequestHeader(request_api_key=ApiKey.FETCH, request_api_version=version, client_id="bench")
    head = header.encode(request_header_version(ApiKey.FETCH, version))
    answer_head = len(ResponseHeader().encode(response_header_version(ApiKey.FETCH, version)))
    partition = FetchRequest.FetchPartition(partition=0, partition_max_bytes=FETCH_BYTES)
    topics = [FetchRequest.FetchTopic(topic=load.topic, partitions=[partition])]
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, session_epoch=-1, topics=topics)
    host, _, port = load.bootstrap.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        while offset < load.count:
            partition.fetch_offset = offset
            body = head + request.encode(version)
            connection.sendall(len(body).to_bytes(4, "big") + body)
            size = int.from_bytes(receive_exactly(connection, memoryview(buffer)[:4]), "big")
            frame = receive_exactly(connection, memoryview(buffer)[:size])
            records = FetchResponse.decode(frame, version, answer_head).responses[0].partitions[0].records
            offset = FetchedRecords(records or b"", load.topic, 0, offset).end_offset
            if not first:
                first = offset
                clock.start()
    clock.stop()
    clock.records = offset - first


def receive_exactly(connection: socket.socket, room: memoryview) -> memoryview:
    """Receives until `room` is full."""
    filled = 0
    while filled < len(room):
        got = connection.recv_into(room[filled:])
        if not got:
            raise SystemExit("the broker closed the connection")
        filled += got
    return room


LOADS: dict[tuple[str, str], Callable[[Load, Clock], None]] = {
    ("kafkapy", "produce"): kafkapy_produce,
    ("kafkapy", "produce-batches"): kafkapy_produce_batches,
    ("kafkapy", "produce-arrow"): kafkapy_produce_arrow,
    ("kafkapy", "consume"): kafkapy_consume,
    ("kafkapy", "consume-batches"): kafkapy_consume_batches,
    ("kafkapy", "consume-arrow"): kafkapy_consume_arrow,
    ("confluent-kafka", "produce"): confluent_produce,
    ("confluent-kafka", "produce-batches"): confluent_produce_batches,
    ("confluent-kafka", "consume"): confluent_consume,
    ("confluent-kafka", "consume-batches"): confluent_consume_batches,
    (COMPATIBLE, "produce"): partial(confluent_produce, package=COMPATIBLE),
    (COMPATIBLE, "produce-batches"): partial(confluent_produce_batches, package=COMPATIBLE),
    (COMPATIBLE, "consume"): partial(confluent_consume, package=COMPATIBLE),
    (COMPATIBLE, "consume-batches"): partial(confluent_consume_batches, package=COMPATIBLE),
    ("kafka-python", "produce"): kafka_python_produce,
    ("kafka-python", "consume"): kafka_python_consume,
    ("kafka-python", "consume-batches"): kafka_python_consume_batches,
    ("kafkapy.compat.kafka", "produce"): partial(kafka_python_produce, package="kafkapy.compat.kafka"),
    ("kafkapy.compat.kafka", "consume"): partial(kafka_python_consume, package="kafkapy.compat.kafka"),
    ("kafkapy.compat.kafka", "consume-batches"): partial(kafka_python_consume_batches, package="kafkapy.compat.kafka"),
    ("aiokafka", "produce"): aiokafka_produce,
    ("aiokafka", "produce-batches"): aiokafka_produce_batches,
    ("aiokafka", "consume"): aiokafka_consume,
    ("aiokafka", "consume-batches"): aiokafka_consume_batches,
    ("plain-socket", "consume-arrow"): plain_socket_consume_arrow,
    ("loopback", "consume-arrow"): loopback_consume_arrow,
}


def main() -> None:
    client, name, bootstrap, topic, *numbers = sys.argv[1:]
    clock = Clock()
    LOADS[client, name](Load(bootstrap, topic, *map(int, numbers)), clock)
    print(json.dumps(clock.report()))


if __name__ == "__main__":
    main()
