"""Members of consumer groups (KIP-848) that run during a test: librdkafka on a thread, Java in a process."""

from __future__ import annotations

import threading
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.clients.confluent_client import received_record
from tests.clients.records import SentRecord

# Errors of a commit without offsets, by a client that is no longer a member (of that epoch), or by one that librdkafka
# was closing already (_DESTROY): another member reads the records again.
UNCOMMITTED = (
    KafkaError._NO_OFFSET,
    KafkaError._DESTROY,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
)


class ConsumerMember(threading.Thread):
    """A member that reads and commits until `stop` is called, and then leaves the group.

    `assigned` are its partitions (topic, number); `rebalances` counts the changes of its assignment.
    """

    def __init__(self, bootstrap: str, topics: list[str], group: str, **properties: Any) -> None:
        super().__init__(daemon=True)
        self.received: list[SentRecord] = []
        self.assigned: set[tuple[str, int]] = set()
        self.rebalances = 0
        self.errors: list[KafkaError] = []
        self._stopping = threading.Event()
        self._resume = threading.Event()
        self._resume.set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 500,
                **properties,
            }
        )
        self._consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    def run(self) -> None:
        while not self._stopping.is_set():
            self._resume.wait()
            messages = self._consumer.consume(100, 0.1)
            for message in messages:
                if message.error():
                    self.errors.append(message.error())
                else:
                    self.received.append(received_record(message))
            if messages:
                commit_consumed(self._consumer)
        commit_consumed(self._consumer)
        self._consumer.close()

    def pause(self) -> None:
        """Stops polling; librdkafka continues to send heartbeats until max.poll.interval.ms is over."""
        self._resume.clear()

    def resume(self) -> None:
        self._resume.set()

    def stop(self) -> None:
        self._resume.set()
        self._stopping.set()
        self.join(30)
        assert not self.is_alive()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += bool(partitions)
        self.assigned |= {(entry.topic, entry.partition) for entry in partitions}

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.rebalances += bool(partitions)
        self.assigned -= {(entry.topic, entry.partition) for entry in partitions}
        commit_consumed(consumer)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {(entry.topic, entry.partition) for entry in partitions}


def commit_consumed(consumer: Consumer) -> None:
    """Commits the positions of the assigned partitions; it is no error if nothing was consumed."""
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        # The assertion is outside of the handler, because librdkafka's error object in an exception's context
        # confuses traceback formatting.
        code = error.args[0].code()
    else:
        return
    assert code in UNCOMMITTED, code
