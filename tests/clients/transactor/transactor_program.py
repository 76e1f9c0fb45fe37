"""Executes the commands of transactor.py with librdkafka or aiokafka.

transactor_program.py librdkafka|aiokafka
"""

from __future__ import annotations

import asyncio
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, OffsetAndMetadata
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

DEADLINE_SECONDS = 30


class Librdkafka:
    def __init__(self) -> None:
        self._producers: dict[str, Producer] = {}

    async def init(self, name: str, bootstrap: str, transactional_id: str, timeout_ms: str) -> None:
        settings = {"transactional.id": transactional_id, "transaction.timeout.ms": int(timeout_ms)}
        producer = self._producers[name] = Producer({"bootstrap.servers": bootstrap, **settings})
        producer.init_transactions(DEADLINE_SECONDS)

    async def begin(self, name: str) -> None:
        self._producers[name].begin_transaction()

    async def send(self, name: str, topic: str, *values: str) -> None:
        errors: list[KafkaError] = []
        for value in values:
            self._producers[name].produce(
                topic, value, partition=0, on_delivery=lambda error, _: errors.append(error) if error else None
            )
        if self._producers[name].flush(DEADLINE_SECONDS) or errors:
            raise KafkaException(*errors[:1])

    async def offsets(self, name: str, group: str, topic: str, offset: str) -> None:
        settings = {"bootstrap.servers": "localhost:1", "group.id": group, "log_level": 0}
        metadata = Consumer(settings).consumer_group_metadata()
        offsets = [TopicPartition(topic, 0, int(offset))]
        self._producers[name].send_offsets_to_transaction(offsets, metadata, DEADLINE_SECONDS)

    async def commit(self, name: str) -> None:
        self._producers[name].commit_transaction(DEADLINE_SECONDS)

    async def abort(self, name: str) -> None:
        self._producers[name].abort_transaction(DEADLINE_SECONDS)

    async def seen(self, bootstrap: str, topic: str, isolation: str) -> str:
        settings = {"isolation.level": isolation, "enable.partition.eof": True, "enable.auto.commit": False}
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", **settings})
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        values: list[str] = []
        try:
            while (message := consumer.poll(DEADLINE_SECONDS)) is not None:
                error = message.error()
                if error is None:
                    values.append(message.value().decode())
                elif error.code() == KafkaError._PARTITION_EOF:
                    return "\t".join(values)
                else:
                    raise KafkaException(error)
            raise TimeoutError
        finally:
            consumer.close()


class Aiokafka:
    def __init__(self) -> None:
        self._producers: dict[str, AIOKafkaProducer] = {}

    async def init(self, name: str, bootstrap: str, transactional_id: str, timeout_ms: str) -> None:
        settings = {"transactional_id": transactional_id, "transaction_timeout_ms": int(timeout_ms)}
        producer = self._producers[name] = AIOKafkaProducer(bootstrap_servers=bootstrap, **settings)
        await producer.start()

    async def begin(self, name: str) -> None:
        await self._producers[name].begin_transaction()

    async def send(self, name: str, topic: str, *values: str) -> None:
        sent = [await self._producers[name].send(topic, value.encode(), partition=0) for value in values]
        await asyncio.gather(*sent)

    async def offsets(self, name: str, group: str, topic: str, offset: str) -> None:
        offsets = {AioTopicPartition(topic, 0): OffsetAndMetadata(int(offset), "")}
        await self._producers[name].send_offsets_to_transaction(offsets, group)

    async def commit(self, name: str) -> None:
        await self._producers[name].commit_transaction()

    async def abort(self, name: str) -> None:
        await self._producers[name].abort_transaction()

    async def seen(self, bootstrap: str, topic: str, isolation: str) -> str:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, isolation_level=isolation, enable_auto_commit=False)
        await consumer.start()
        try:
            partition = AioTopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            # aiokafka returns the end of the log; read_committed readers stop at the last stable offset
            end = (await consumer.end_offsets([partition]))[partition]
            values: list[str] = []
            while await consumer.position(partition) < end:
                batch = await consumer.getmany(timeout_ms=100)
                values += [record.value.decode() for records in batch.values() for record in records]
                stable = consumer.last_stable_offset(partition)
                if stable is not None and isolation == "read_committed" and 0 <= stable < end:
                    end = stable
            return "\t".join(values)
        finally:
            await consumer.stop()


async def main() -> None:
    client = {"librdkafka": Librdkafka, "aiokafka": Aiokafka}[sys.argv[1]]()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command, *words = line.rstrip("\n").split("\t")
        try:
            answer = await asyncio.wait_for(getattr(client, command)(*words), DEADLINE_SECONDS)
            print(f"ok\t{answer or ''}", flush=True)
        except (KafkaException, AioKafkaError, AssertionError, TimeoutError) as error:  # aiokafka asserts states
            print(f"error\t{error!r}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
