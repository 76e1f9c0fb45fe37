"""A follower's replica manager on a running reactor, with a hand-made image, that fetches from a real leader."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kafkapy._core.reactor.reactor import Reactor
from kafkapy.broker_parts import build_fetchers
from kafkapy.config import BrokerConfig, TopicConfig
from kafkapy.metadata.cluster_image import BrokerRegistration, Endpoint
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.features import SUPPORTED_FEATURES
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataCache
from kafkapy.metadata.topics_image import PartitionImage, TopicImage
from kafkapy.replica.replica_manager import ReplicaManager
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_manager import LogManager
from kafkapy.types import SystemClock, TopicPartition
from tests.harness.log_manager import create_log

NODE_ID = 2
LEADER_ID = 1
TIMEOUT_S = 30


def registration(broker_id: int, epoch: int, host: str = "127.0.0.1", port: int = 1) -> BrokerRegistration:
    endpoint = Endpoint("PLAINTEXT", host, port, 0)
    return BrokerRegistration(
        broker_id, epoch, bytes(16), {"PLAINTEXT": endpoint}, SUPPORTED_FEATURES, None, False, False, (b"d" * 16,),
        None, False,
    )  # fmt: skip


class Follower:
    """Broker 2 without controller and listeners. Every access to its partitions is a call on the reactor's thread."""

    def __init__(
        self,
        root: Path,
        leader: tuple[str, int],
        *,
        broker_epoch: int = -1,
        metadata_version: int = 30,
        properties: dict[str, str] | None = None,
    ) -> None:
        self.config = BrokerConfig(
            {
                "process.roles": "broker,controller",
                "node.id": str(NODE_ID),
                "log.dirs": str(root),
                "replica.fetch.backoff.ms": "100",
                **(properties or {}),
            }
        )
        self.errors: list[BaseException] = []
        self.truncated: list[Any] = []  # the logs, once for each truncation
        self.reactor = Reactor(lambda requests: None, on_callback_error=self.errors.append)
        self.clock = SystemClock()
        brokers = {
            LEADER_ID: registration(LEADER_ID, 1, *leader),
            NODE_ID: registration(NODE_ID, broker_epoch),
        }
        self.metadata = MetadataCache(
            EMPTY_IMAGE._replace(brokers=brokers, features={"metadata.version": metadata_version})
        )
        self.log_manager = LogManager(
            self.config,
            filesystem=Filesystem(),
            clock=self.clock,
            on_directory_failure=lambda path, error: self.errors.append(error),
            schedule=lambda delay_ms, work: None,
        )
        self.log_manager.lock()
        self.log_manager.startup(lambda topic: TopicConfig(self.config, {}), lambda *_: False, lambda *_: True)
        foundation: Any = SimpleNamespace(
            config=self.config,
            clock=self.clock,
            reactor=self.reactor,
            other_nodes=SimpleNamespace(broker_client=None),
            background=SimpleNamespace(soon=lambda name, work: threading.Thread(target=work).start()),
            log_cleaner=SimpleNamespace(manager=SimpleNamespace(truncate_checkpoint=self.truncated.append)),
        )
        self.manager = ReplicaManager(
            self.config,
            self.log_manager,
            self.metadata,
            self.clock,
            self.reactor.schedule,
            NODE_ID,
            alter_partition=SimpleNamespace(submit=None),
            make_fetchers=lambda may_follow: build_fetchers(foundation, self.manager, self.metadata, may_follow),
        )
        self.thread = threading.Thread(target=self.reactor.run)
        self.thread.start()

    def call(self, function: Callable[[], Any]) -> Any:
        """Runs `function` on the reactor's thread and returns its result."""
        done = threading.Event()
        answer: list[Any] = []

        def run() -> None:
            try:
                answer.append(function())
            finally:
                done.set()

        self.reactor.post(run)
        assert done.wait(TIMEOUT_S)
        assert answer, self.errors
        return answer[0]

    def follow(
        self,
        topic: str,
        topic_id: bytes,
        partitions: int,
        *,
        leader: int = LEADER_ID,
        leader_epoch: int = 0,
        partition_epoch: int = 0,
        configs: dict[str, str] | None = None,
        isr: tuple[int, ...] = (LEADER_ID, NODE_ID),
    ) -> None:
        """Publishes an image in which `leader` leads the topic and this broker has a replica of each partition."""
        replicas = (LEADER_ID, NODE_ID)
        state = PartitionImage(
            replicas, (bytes(16),) * 2, isr, (), (), (), (), leader, 0, leader_epoch, partition_epoch
        )
        image = TopicImage(topic, topic_id, dict.fromkeys(range(partitions), state))
        before = self.metadata.image
        delta = MetadataDelta(before)
        by_name, by_id = delta.topics._own()
        delta.topics._put(image, by_name, by_id)
        delta.topics.changed_partitions[image.topic_id] = image.partitions
        self.metadata.image = delta.to_image(before.offset + 1, 0)
        for number in range(partitions):
            config = TopicConfig(self.config, configs or {})
            create_log(self.log_manager, TopicPartition(topic, number), topic_id, config)
        self.call(lambda: self.manager.apply(delta, self.metadata.image))

    def log(self, topic: str, number: int = 0) -> Any:
        return self.manager.partitions[TopicPartition(topic, number)].log

    def wait(self, condition: Callable[[], bool]) -> None:
        """Waits until the condition, evaluated on the reactor's thread, is True."""
        deadline = time.monotonic() + TIMEOUT_S
        while not self.call(condition):
            assert time.monotonic() < deadline, self.describe()
            time.sleep(0.005)

    def describe(self) -> object:
        fetchers = self.manager.fetchers
        states = [] if fetchers is None else [
            (name, state.phase, state.fetch_offset, state.delayed_until_ms)
            for fetcher in fetchers.fetchers
            for name, state in fetcher.fetcher.partitions.items()
        ]  # fmt: skip
        return [str(partition.log) for partition in self.manager.partitions.values()], states, self.errors

    def close(self) -> None:
        if self.thread.is_alive():
            self.call(self.manager.shutdown)
            self.reactor.stop()
            self.thread.join(TIMEOUT_S)
            for log in self.log_manager.logs():
                log.close()
