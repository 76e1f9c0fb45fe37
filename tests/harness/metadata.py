"""Metadata for tests: records replayed into images, and a quorum of one node on a directory of its own."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.controller.broker_registration import register_broker, unfence_broker
from kafkapy.controller.result import ControllerResult
from kafkapy.controller.topics import NewTopic, PlacementRules, create_topics
from kafkapy.metadata.cluster_image import BrokerRegistration, Endpoint
from kafkapy.metadata.delta import MetadataDelta
from kafkapy.metadata.features import BOOTSTRAP_FEATURES, SUPPORTED_FEATURES
from kafkapy.metadata.image import BROKER_RESOURCE, EMPTY_IMAGE, MetadataCache, MetadataImage
from kafkapy.protocol.messages.metadata_records import ConfigRecord, FeatureLevelRecord
from kafkapy.quorum.broker_lifecycle import BrokerLifecycle
from kafkapy.quorum.controller_loop import ControllerLoop
from kafkapy.quorum.format_directory import format_directories
from kafkapy.quorum.metadata_quorum import MetadataQuorum
from kafkapy.quorum.quorum_settings import controller_listeners_of, raft_config, settings_from_config
from kafkapy.storage.filesystem import Filesystem
from tests.mock_clock import MockClock

DIRECTORY = bytes(range(16, 32))
OTHER_DIRECTORY = bytes(range(32, 48))
_TOPIC_IDS = count(1000)
_INCARNATIONS = count(1000)


def replay(image: MetadataImage, *records: Any) -> MetadataImage:
    """Returns the image after `records`, which are messages or (message, version)."""
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record[0] if isinstance(record, tuple) else record)
    return delta.to_image(image.offset + len(records), 1)


def commit(image: MetadataImage, result: ControllerResult[Any]) -> MetadataImage:
    return replay(image, *result.records)


def bootstrapped(metadata_version: int = 30, *, elr: bool = True) -> MetadataImage:
    """Returns the image after the first start of a cluster, without brokers; `elr` is False to leave ELR disabled."""
    levels = dict(BOOTSTRAP_FEATURES) | {"metadata.version": metadata_version}
    if not elr:
        del levels["eligible.leader.replicas.version"]
    records: list[Any] = [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.items()]
    if elr:
        minimum = ConfigRecord(resource_type=BROKER_RESOURCE, resource_name="", name="min.insync.replicas", value="1")
        records.append(minimum)
    return replay(EMPTY_IMAGE, *records)


def directory_of(broker_id: int) -> bytes:
    """Returns the id of the only log directory of a broker; DIRECTORY for broker 1."""
    return DIRECTORY[:-1] + bytes([DIRECTORY[-1] + broker_id - 1])


def registration(
    broker_id: int = 1, directories: tuple[bytes, ...] = (), *, incarnation: int | None = None, rack: str | None = None
) -> BrokerRegistration:
    """Returns a broker's registration; its incarnation has the number `incarnation`, by default a new one."""
    number = next(_INCARNATIONS) if incarnation is None else incarnation
    return BrokerRegistration(
        broker_id=broker_id,
        epoch=-1,
        incarnation_id=number.to_bytes(16, "big"),
        endpoints={"PLAINTEXT": Endpoint("PLAINTEXT", "localhost", 9090 + broker_id, 0)},
        features=dict(SUPPORTED_FEATURES),
        rack=rack,
        fenced=True,
        in_controlled_shutdown=False,
        log_dirs=directories or (directory_of(broker_id),),
        cordoned_log_dirs=(),
        is_migrating_zk_broker=False,
    )


def with_brokers(image: MetadataImage, *broker_ids: int) -> MetadataImage:
    """Returns the image with these brokers registered and unfenced."""
    for broker_id in broker_ids:
        image = commit(image, register_broker(image, registration(broker_id), -1))
        image = commit(image, unfence_broker(image, broker_id))
    return image


def broker_config(**properties: str) -> BrokerConfig:
    return BrokerConfig({"node.id": "1", **{key.replace("_", "."): value for key, value in properties.items()}})


def rules(config: BrokerConfig | None = None) -> PlacementRules:
    """Returns rules of placement without randomness: they begin at the first broker, and number the topic ids."""
    return PlacementRules(
        config or broker_config(),
        random_below=lambda bound: 0,
        new_topic_id=lambda: next(_TOPIC_IDS).to_bytes(16, "big"),
    )


def with_topic(image: MetadataImage, name: str, partitions: int = 1, factor: int = 1) -> MetadataImage:
    return commit(image, create_topics(image, [NewTopic(name, partitions, factor)], rules()))


class QuorumHarness:
    """A formatted directory and a quorum on it, which tests start, stop and kill."""

    def __init__(self, directory: Path, filesystem: Filesystem | None = None, **properties: str) -> None:
        self.directory = directory
        self.filesystem = filesystem or Filesystem()
        self.clock = MockClock()
        self.config = broker_config(
            log_dirs=str(directory),
            listeners="PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            controller_listener_names="CONTROLLER",
            **properties,
        )
        self.faults: list[BaseException] = []
        self.broker_epoch = -1

    @property
    def metadata_directory(self) -> Path:
        return self.directory / "__cluster_metadata-0"

    @property
    def log_file(self) -> Path:
        return self.metadata_directory / f"{0:020d}.log"

    def open(self) -> MetadataImage:
        formatted = format_directories(
            self.config.log_dirs, self.config.metadata_log_dir, 1, self.filesystem, self.clock
        )
        directory_id = formatted[self.config.metadata_log_dir].directory_id
        assert directory_id is not None
        cluster_id = formatted[self.config.metadata_log_dir].cluster_id
        assert cluster_id is not None
        self.directory_id = directory_id
        listeners = controller_listeners_of(self.config)
        self.quorum = MetadataQuorum(
            settings_from_config(self.config),
            raft_config(self.config, cluster_id, directory_id, listeners),
            self.filesystem,
            self.clock,
        )
        return self.quorum.open()

    def start(self, clean_broker_epoch: int | None = None) -> ControllerLoop:
        """Opens the quorum, becomes its leader, and registers and unfences the broker.

        `clean_broker_epoch` is the broker epoch of the last clean stop; None means that of the last `stop`.
        """
        image = self.open()
        self.loop = ControllerLoop(self.quorum, MetadataCache(), self.clock, self.faults.append)
        self.loop.start(image)
        self.lifecycle = BrokerLifecycle(self.loop, self.config, tuple)
        clean = self.broker_epoch if clean_broker_epoch is None else clean_broker_epoch
        self.lifecycle.register([self.directory_id], clean)
        self.lifecycle.unfence()
        return self.loop

    def stop(self) -> None:
        self.lifecycle.give_up_leaderships()
        self.lifecycle.end_session()
        self.loop.stop()
        self.broker_epoch = self.lifecycle.broker_epoch

    def kill(self) -> None:
        """Ends like a killed process: nothing is fenced, no index is written."""
        log, self.quorum.close = self.quorum.log, lambda: None  # type: ignore[method-assign]
        self.loop.stop()
        assert log is self.quorum.log
        self.broker_epoch = -1

    def create_topic(self, name: str, partitions: int = 1) -> None:
        topic_rules = PlacementRules(self.config)
        created = self.loop.submit(
            lambda image: create_topics(image, [NewTopic(name, partitions)], topic_rules)
        ).result()
        assert created[name].error.error == 0
