"""A quorum of one voter: this node leads every epoch and its metadata log is the cluster's state.

open()         reads and checks everything, writes nothing unless all of it can be served; returns the image
begin_epoch()  writes quorum-state, LeaderChange, the bootstrap records of an empty log, RegisterController
encode()       encodes records as batches, which `log.append` makes durable
close()        writes indexes and producer snapshot, as a clean stop of Apache Kafka does
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.config.broker_config import BrokerConfig
from kafkapy.controller.activation import activation_records
from kafkapy.errors import ConfigError, StorageError
from kafkapy.metadata import features as levels
from kafkapy.metadata.cluster_image import ControllerRegistration, Endpoint
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion, register_controller_record, snapshot_records
from kafkapy.metadata.loader import MetadataLoader
from kafkapy.protocol.messages.data_records import KRaftVersionRecord, LeaderChangeMessage, VotersRecord
from kafkapy.protocol.messages.metadata_records import FeatureLevelRecord
from kafkapy.quorum import snapshot as snapshots
from kafkapy.quorum.log_scanner import LogScanner
from kafkapy.quorum.metadata_batch import control_batch, decode_control_batch, decode_metadata_batch, metadata_batches
from kafkapy.quorum.metadata_log import DIRECTORY_NAME, MetadataLog
from kafkapy.quorum.quorum_state import read_quorum_epoch, write_quorum_state
from kafkapy.quorum.voters import (
    DEFAULT_CONTROLLER_LISTENER,
    ControllerListener,
    VoterSet,
    check_static_voters,
    check_voters,
    single_voter,
)
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.partition_metadata import write_partition_metadata
from kafkapy.types import METADATA_TOPIC_ID, Clock, OffsetAndEpoch, random_uuid

BOOTSTRAP_FILE = "bootstrap.checkpoint"
logger = logging.getLogger("kafka.raft.KafkaRaftClient")


class QuorumSettings(NamedTuple):
    """The settings of the quorum; sizes in bytes, times in milliseconds (-1: without limit)."""

    log_directory: str
    node_id: int
    directory_id: bytes
    static_voters: list[str]
    controller_listener: ControllerListener | None = None
    min_insync_replicas: int = 1
    segment_bytes: int = 1024 * 1024 * 1024
    snapshot_after_bytes: int = 20 * 1024 * 1024
    snapshot_interval_ms: int = 3_600_000
    retention_bytes: int = 100 * 1024 * 1024
    retention_ms: int = 7 * 24 * 3_600_000


def settings_from_config(config: BrokerConfig, directory_id: bytes) -> QuorumSettings:
    """Returns the settings of a broker's configuration; `directory_id` is that of the directory with the metadata log.

    Raises ConfigError unless the node is both controller and broker.
    """
    roles = sorted(config.process_roles)
    if roles != ["broker", "controller"]:
        raise ConfigError(
            f"process.roles={','.join(config['process.roles'])}: this broker is its own controller; accepted is "
            "broker,controller"
        )
    return QuorumSettings(
        log_directory=config.metadata_log_dir,
        node_id=config.node_id,
        directory_id=directory_id,
        static_voters=config.controller_quorum_voters,
        controller_listener=controller_listener_of(config),
        min_insync_replicas=config.min_insync_replicas,
        segment_bytes=config.metadata_log_segment_bytes,
        snapshot_after_bytes=config.metadata_log_max_record_bytes_between_snapshots,
        snapshot_interval_ms=config.metadata_log_max_snapshot_interval_ms,
        retention_bytes=config.metadata_max_retention_bytes,
        retention_ms=config.metadata_max_retention_ms,
    )


def controller_listener_of(config: BrokerConfig) -> ControllerListener | None:
    """Returns the first listener of the controller, as it is in the quorum's records; None without one."""
    for listener in config.controller_listeners:
        return ControllerListener(listener.name, listener.host or "localhost", listener.port)
    return None


class EmbeddedQuorum:
    """Owns `__cluster_metadata-0`. Opened on one thread, then used by the controller's thread only.

    Invariant after begin_epoch: the log ends in `epoch`, and `image.offset` of the newest image is its end offset.
    """

    def __init__(self, settings: QuorumSettings, filesystem: Filesystem, clock: Clock) -> None:
        self.settings = settings
        self.epoch = 0
        self.voters: VoterSet | None = None
        self.log = MetadataLog(os.path.join(settings.log_directory, DIRECTORY_NAME), filesystem, settings.segment_bytes)
        self._filesystem = filesystem
        self._clock = clock
        self._loader = MetadataLoader(EMPTY_IMAGE)
        self._snapshot_id = OffsetAndEpoch(0, 0)

    @property
    def is_dynamic(self) -> bool:
        """True if the log has the voters (KIP-853)."""
        return self.voters is not None

    @property
    def records_behind_snapshot(self) -> int:
        """The number of records that the next start has to replay."""
        return self.log.end_offset - self._snapshot_id.offset

    # -- opening

    def open(self) -> MetadataImage:
        """Returns the image at the end of the log. Raises ConfigError or StorageError; then nothing was written."""
        check_static_voters(self.settings.static_voters, self.settings.node_id)
        try:
            self._filesystem.make_directory(self.log.directory)
            self._load_snapshot()
            scanned = LogScanner(self.log.directory)
            scanned.scan(self._snapshot_id.offset, self._visit)
            self._check_start(scanned)
            self.epoch = max(scanned.last_epoch, self._snapshot_id.epoch, read_quorum_epoch(self.log.directory))
        except OSError as error:
            raise StorageError(self.settings.log_directory, f"reading the metadata log failed: {error}") from error
        self.log.open(scanned, self._snapshot_id.offset)
        self._remove_unfinished_snapshots()
        return self._loader.delta.to_image(self.log.end_offset, max(self.log.last_epoch, self._snapshot_id.epoch))

    def _remove_unfinished_snapshots(self) -> None:
        try:
            for name in os.listdir(self.log.directory):
                if name.endswith((snapshots.PART_SUFFIX, snapshots.DELETED_SUFFIX)):
                    self._filesystem.unlink(os.path.join(self.log.directory, name))
        except OSError as error:
            raise StorageError(self.settings.log_directory, f"cleaning up snapshots failed: {error}") from error

    def _load_snapshot(self) -> None:
        found = snapshots.list_snapshots(self.log.directory)
        if not found:
            return
        self._snapshot_id = found[-1]
        path = os.path.join(self.log.directory, snapshots.snapshot_name(found[-1]))
        snapshot = snapshots.read_snapshot(path, found[-1])
        self._replay_control(snapshot.control_messages)
        for record in snapshot.records:
            try:
                self._loader.replay(record)
            except ValueError as error:
                raise StorageError(self.settings.log_directory, f"snapshot {path}: {error}") from error

    def _check_start(self, scanned: LogScanner) -> None:
        if scanned.start_offset > self._snapshot_id.offset:
            raise StorageError(
                self.settings.log_directory,
                f"the metadata log begins at offset {scanned.start_offset}, and no snapshot replaces the log before it",
            )

    def _visit(self, batch: RecordBatch) -> None:
        if batch.is_control:
            self._replay_control(decode_control_batch(batch))
            return
        for record in decode_metadata_batch(batch):
            self._loader.replay(record)

    def _replay_control(self, messages: Sequence[Any]) -> None:
        for message in messages:
            if isinstance(message, VotersRecord):
                self.voters = check_voters(message, self.settings.node_id, self.settings.directory_id)
            elif isinstance(message, KRaftVersionRecord) and message.kraft_version > 1:
                raise ConfigError(
                    f"kraft.version {message.kraft_version} in the metadata log; this broker supports 0 and 1"
                )
            elif isinstance(message, LeaderChangeMessage) and message.leader_id != self.settings.node_id:
                raise ConfigError(
                    f"node {message.leader_id} led the metadata log; this broker serves only a quorum of this "
                    f"node ({self.settings.node_id}) alone"
                )

    # -- writing

    def begin_epoch(self, image: MetadataImage) -> MetadataImage:
        """Starts the next epoch of the quorum; durable on return. Raises StorageError."""
        self.epoch += 1
        try:
            # A killed broker may not have synced the directory.
            self._filesystem.sync_directory(self.settings.log_directory)
            write_quorum_state(
                self._filesystem, self.log.directory, self.settings.node_id, self.epoch, dynamic=self.is_dynamic
            )
            write_partition_metadata(self._filesystem, self.log.directory, METADATA_TOPIC_ID)
        except OSError as error:
            raise StorageError(self.settings.log_directory, f"writing quorum-state failed: {error}") from error
        wall_ms = self._clock.wall_ms()
        first = control_batch(self.log.end_offset, self.epoch, wall_ms, [self._leader_change(), *self._voter_changes()])
        records = activation_records(
            image,
            [] if image.features else self._bootstrap_features(),
            self.settings.min_insync_replicas,
            in_transaction=self._loader.in_transaction,
        )
        batches, _ = metadata_batches(RecordBatch(first).next_offset, self.epoch, wall_ms, records)
        self.log.append([first, *batches])
        for message, _ in records:
            self._loader.replay(message)
        image = self._loader.delta.to_image(self.log.end_offset, self.epoch)
        self._loader = MetadataLoader(image)
        return self._register_controller(image)

    def _leader_change(self) -> LeaderChangeMessage:
        voter = LeaderChangeMessage.Voter(voter_id=self.settings.node_id)
        return LeaderChangeMessage(version=0, leader_id=self.settings.node_id, voters=[voter], granting_voters=[voter])

    def _voter_changes(self) -> list[Any]:
        """Returns the records that the log does not have yet: those of voters that only the formatted snapshot names,
        or of a changed listener."""
        if self.voters is None:
            return []
        listener = self.settings.controller_listener
        moved = listener is not None and listener != self._voter_listener(self.voters)
        if listener is not None:
            self.voters = single_voter(self.settings.node_id, self.settings.directory_id, listener)
        if self.log.end_offset == 0:
            return self.voters.records()
        return self.voters.records()[1:] if moved else []

    @staticmethod
    def _voter_listener(voters: VoterSet) -> ControllerListener:
        return next(iter(voters)).listener

    def _bootstrap_features(self) -> Sequence[Any]:
        """Returns the records of bootstrap.checkpoint, or the default features of a directory without this file."""
        path = os.path.join(self.settings.log_directory, BOOTSTRAP_FILE)
        if os.path.exists(path):
            return snapshots.read_snapshot(path, OffsetAndEpoch(0, 0)).records
        return [FeatureLevelRecord(name=name, feature_level=level) for name, level in levels.BOOTSTRAP_FEATURES]

    def _register_controller(self, image: MetadataImage) -> MetadataImage:
        if not levels.supports_controller_registration(image.metadata_version):
            return image
        listener = self.settings.controller_listener
        if listener is None:
            listener = DEFAULT_CONTROLLER_LISTENER if self.voters is None else self._voter_listener(self.voters)
        registration = ControllerRegistration(
            self.settings.node_id,
            random_uuid(),
            False,
            {listener.name: Endpoint(listener.name, listener.host, listener.port, 0)},
            dict(levels.SUPPORTED_FEATURES),
        )
        return self.append_and_replay(image, [(register_controller_record(registration), 0)])

    def append_and_replay(self, image: MetadataImage, records: Sequence[MessageAndVersion]) -> MetadataImage:
        """Appends records that follow `image` and returns the next image; durable on return. Raises StorageError."""
        assert image.offset == self.log.end_offset, f"image at {image.offset}, log at {self.log.end_offset}"
        loader = MetadataLoader(image)
        for message, _ in records:
            loader.replay(message)
        batches, end_offset = self.encode(image.offset, records)
        self.log.append(batches)
        return loader.delta.to_image(end_offset, self.epoch)

    def encode(self, base_offset: int, records: Sequence[MessageAndVersion]) -> tuple[list[bytes], int]:
        """Returns the batches of records at `base_offset` in the current epoch, and the offset after them."""
        return metadata_batches(base_offset, self.epoch, self._clock.wall_ms(), records)

    # -- snapshots

    def write_snapshot(self, image: MetadataImage) -> None:
        """Writes a snapshot of the image, and deletes old snapshots and segments. Raises StorageError."""
        snapshot_id = OffsetAndEpoch(image.offset, image.epoch)
        if snapshot_id <= self._snapshot_id:
            return
        control = [] if self.voters is None else self.voters.records()
        content = snapshots.snapshot_bytes(
            image.epoch, self._clock.wall_ms(), self.log.last_timestamp, control, snapshot_records(image)
        )
        try:
            snapshots.write_snapshot(self._filesystem, self.log.directory, snapshot_id, content)
            self._snapshot_id = snapshot_id
            self._delete_old_snapshots()
        except OSError as error:
            raise StorageError(self.settings.log_directory, f"writing a metadata snapshot failed: {error}") from error
        logger.info("wrote metadata snapshot %s (%d bytes)", snapshots.snapshot_name(snapshot_id), len(content))

    def _delete_old_snapshots(self) -> None:
        """Deletes the oldest snapshots, and the log before the next one, while they are too large or too old."""
        directory = self.log.directory
        found = snapshots.list_snapshots(directory)
        paths = {each: os.path.join(directory, snapshots.snapshot_name(each)) for each in found}
        total = self.log.size + sum(os.path.getsize(path) for path in paths.values())
        while len(found) > 1:
            oldest = paths[found[0]]
            age = self._clock.wall_ms() - int(os.path.getmtime(oldest) * 1000)
            too_much = 0 <= self.settings.retention_bytes < total
            if not too_much and not 0 <= self.settings.retention_ms < age:
                break
            total -= os.path.getsize(oldest)
            self._filesystem.unlink(oldest)
            found.pop(0)
            before = self.log.size
            self.log.delete_before(found[0].offset)
            total -= before - self.log.size

    def close(self) -> None:
        """Closes the log and writes the files that Kafka expects after a clean stop. Raises StorageError."""
        self.log.close()
