"""A member of a group with librdkafka, kafka-python or aiokafka; member.py describes its commands and output.

member_program.py LIBRARY BOOTSTRAP GROUP TOPIC ASSIGNOR INSTANCE SESSION_MS MAX_POLL_MS
"""

from __future__ import annotations

import asyncio
import queue
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from confluent_kafka import Consumer, KafkaError, KafkaException
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

HEARTBEAT_MS = 300
ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
AIO_ASSIGNORS = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}


class Settings(NamedTuple):
    bootstrap: str
    group: str
    topic: str
    assignor: str
    instance: str | None
    session_ms: int
    max_poll_ms: int


class Report:
    """Prints changes of the assignment and committed records for the test, and reads the test's commands."""

    def __init__(self) -> None:
        self._assigned: list[int] = []
        self._commands: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._commands.put(line.strip())

    def command(self) -> str:
        return "" if self._commands.empty() else self._commands.get()

    def assigned(self, partitions: Iterable[int]) -> None:
        numbers = sorted(partitions)
        if numbers != self._assigned:
            self._assigned = numbers
            print(f"assigned\t{','.join(map(str, numbers))}", flush=True)

    def read(self, records: Iterable[tuple[int, int]]) -> None:
        for partition, offset in records:
            print(f"record\t{partition}\t{offset}", flush=True)


def librdkafka(settings: Settings, report: Report) -> None:
    instance = {"group.instance.id": settings.instance} if settings.instance else {}
    consumer = Consumer(
        {
            "bootstrap.servers": settings.bootstrap,
            "group.id": settings.group,
            "partition.assignment.strategy": settings.assignor,
            "session.timeout.ms": settings.session_ms,
            "max.poll.interval.ms": settings.max_poll_ms,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **instance,
        }
    )
    consumer.subscribe([settings.topic])
    while (command := report.command()) != "stop":
        if command:
            time.sleep(int(command.split()[1]) / 1000)
        messages = consumer.consume(100, 0.1)
        report.assigned(each.partition for each in consumer.assignment())
        read = [(each.partition(), each.offset()) for each in messages if each.error() is None]
        for message in messages:
            error = message.error()
            if error is not None and error.code() != KafkaError._MAX_POLL_EXCEEDED:
                raise KafkaException(error)
        if read:
            consumer.commit(asynchronous=False)
            report.read(read)
    consumer.close()


def kafka_python(settings: Settings, report: Report) -> None:
    consumer = kafka.KafkaConsumer(
        settings.topic,
        bootstrap_servers=settings.bootstrap,
        group_id=settings.group,
        group_instance_id=settings.instance,
        partition_assignment_strategy=[ASSIGNORS[settings.assignor]],
        session_timeout_ms=settings.session_ms,
        max_poll_interval_ms=settings.max_poll_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    while (command := report.command()) != "stop":
        if command:
            time.sleep(int(command.split()[1]) / 1000)
        # A short time-out may end in the middle of a look-up of the coordinator, after which release 3.0.12 sometimes
        # loops forever although every request gets a response.
        batch = consumer.poll(timeout_ms=1000)
        report.assigned(each.partition for each in consumer.assignment())
        if batch:
            try:
                consumer.commit()
            except kafka.errors.CommitFailedError:
                continue  # another member has the partitions now and reads the records again
            report.read((each.partition, each.offset) for records in batch.values() for each in records)
    consumer.close()


async def aiokafka_member(settings: Settings, report: Report) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        settings.topic,
        bootstrap_servers=settings.bootstrap,
        group_id=settings.group,
        group_instance_id=settings.instance,
        partition_assignment_strategy=[AIO_ASSIGNORS[settings.assignor]],
        session_timeout_ms=settings.session_ms,
        max_poll_interval_ms=settings.max_poll_ms,
        rebalance_timeout_ms=settings.max_poll_ms,
        heartbeat_interval_ms=HEARTBEAT_MS,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    while (command := report.command()) != "stop":
        if command:
            await asyncio.sleep(int(command.split()[1]) / 1000)
        batch = await consumer.getmany(timeout_ms=100)
        report.assigned(each.partition for each in consumer.assignment())
        if batch:
            try:
                await consumer.commit()
            except aiokafka.errors.CommitFailedError:
                continue
            report.read((each.partition, each.offset) for records in batch.values() for each in records)
    await consumer.stop()


def main() -> None:
    library, bootstrap, group, topic, assignor, instance, session_ms, max_poll_ms = sys.argv[1:]
    known_instance = None if instance == "-" else instance
    settings = Settings(bootstrap, group, topic, assignor, known_instance, int(session_ms), int(max_poll_ms))
    members: dict[str, Callable[[Settings, Report], Awaitable[None] | None]] = {
        "librdkafka": librdkafka,
        "kafka-python": kafka_python,
        "aiokafka": aiokafka_member,
    }
    running = members[library](settings, Report())
    if running is not None:
        asyncio.run(_wait_for(running))


async def _wait_for(running: Awaitable[None]) -> None:
    await running


if __name__ == "__main__":
    main()
