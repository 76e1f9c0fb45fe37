"""A log directory with one kind of damage, and a broker's behaviour on it: whether the broker starts, and what it
serves."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.broker_process import BrokerProcess
from tests.peers import ApacheKafka
from tests.server_process import ServerProcess
from tests.swap.swap import HEAP

TIMEOUT = 60
RECORDS = 40
VALUE = bytes(range(250)) * 200

Damage = Callable[["DamagedDirectory"], None]


class DamagedDirectory:
    """Two log directories, written by kafkapy, with the topics `t`, in several segments, and `u`, one partition each.
    They are restored from a copy before each damage."""

    def __init__(self, kafka: Path, root: Path, *, killed: bool) -> None:
        self.kafka = ApacheKafka(kafka, root, dynamic=True, heap=HEAP, log_dir_count=2)
        self.ours = BrokerProcess(root, config=self.kafka.config, port=self.kafka.port)
        self._saved = root / "saved"
        self._fill(killed=killed)

    def _fill(self, *, killed: bool) -> None:
        with self.ours as server:
            admin = AdminClient({"bootstrap.servers": server.bootstrap})
            config = {"segment.bytes": str(1 << 20)}
            for future in admin.create_topics([NewTopic(name, 1, 1, config=config) for name in ("t", "u")]).values():
                future.result(TIMEOUT)
            settings = {"bootstrap.servers": server.bootstrap, "enable.idempotence": True, "batch.num.messages": 1}
            producer = Producer(settings)
            for number in range(RECORDS):
                producer.produce("t", key=b"%d" % number, value=VALUE, partition=0)
                producer.produce("u", key=b"%d" % number, value=b"u", partition=0)
            assert producer.flush(TIMEOUT) == 0
            if killed:
                server.kill()
        for directory in self.kafka.log_dirs:
            shutil.copytree(directory, self._saved / directory.name)

    def partition(self, name: str) -> Path:
        """Returns the directory of a partition."""
        (found,) = [each / name for each in self.kafka.log_dirs if (each / name).is_dir()]
        return found

    def segments(self) -> list[Path]:
        return sorted(self.partition("t-0").glob("*.log"))

    def observe(self, server: ServerProcess, damage: Damage) -> dict[str, object]:
        """Returns whether `server` starts on the directory, the keys that it serves, and the directories it leaves."""
        for directory in self.kafka.log_dirs:
            shutil.rmtree(directory)
            shutil.copytree(self._saved / directory.name, directory)
        damage(self)
        try:
            server.start()
        except AssertionError as error:
            if not has_refused(str(error)):
                raise
            return {"starts": False}
        try:
            found: dict[str, object] = {"starts": True}
            for topic in ("t", "u"):
                found[topic] = read_keys(server.bootstrap, topic)
            found["directories"] = sorted(
                f"{each.name.split('.')[0]}{'-stray' if each.name.endswith('-stray') else ''}"
                for directory in self.kafka.log_dirs
                for each in directory.iterdir()
                if each.is_dir() and not each.name.startswith("__consumer_offsets")  # created for the reading consumer
            )
            return found
        finally:
            server.kill()


def has_refused(failure: str) -> bool:
    """Returns whether the broker refused to start. A time-out and a port in use are no refusals."""
    return failure.startswith("exit 1 while starting") and "Address already in use" not in failure


def read_keys(bootstrap: str, topic: str) -> list[int] | str:
    """Returns the keys of partition 0, or the name of the error if the partition cannot be read."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    keys: list[int] = []
    try:
        while True:
            message = consumer.poll(TIMEOUT)
            assert message is not None, f"{topic} cannot be read"
            error = message.error()
            if error is None:
                keys.append(int(message.key()))
            elif error.code() == KafkaError._PARTITION_EOF:
                return keys
            elif not error.retriable():
                return str(error.name())
    finally:
        consumer.close()
