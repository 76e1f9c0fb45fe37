"""The driver of the Raft machine: opens the metadata log, carries out the effects of the machine, writes snapshots.

The machine itself does no I/O: it returns effects, such as a batch to write or a request to send.

open()       reads and checks the whole log, writes nothing if a check fails; returns the committed image
start()      enters the quorum; if this node is the only voter, it is the leader on return
append()     appends records of the leader, which are durable on this node on return
close()      writes indexes and producer snapshot, as a clean stop of Apache Kafka does
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, ClassVar, Protocol

from kafkapy._core.bytes.record_batch import RecordBatch
from kafkapy.controller.feature_updates import QuorumVersion
from kafkapy.errors import ApiError, ConfigError, Error, StorageError
from kafkapy.metadata.cluster_image import ControllerRegistration, Endpoint
from kafkapy.metadata.features import SUPPORTED_FEATURES
from kafkapy.metadata.image import EMPTY_IMAGE, MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion, snapshot_records
from kafkapy.metadata.loader import MetadataLoader
from kafkapy.protocol.messages.data_records import KRaftVersionRecord, LeaderChangeMessage
from kafkapy.quorum import snapshot as snapshots
from kafkapy.quorum.committed_records import CommittedRecords
from kafkapy.quorum.election_latency import ElectionLatency
from kafkapy.quorum.leader_refusals import LeaderRefusals
from kafkapy.quorum.log_scanner import LogScanner
from kafkapy.quorum.metadata_batch import control_batch, decode_metadata_batch, metadata_batches
from kafkapy.quorum.metadata_log import DIRECTORY_NAME, MetadataLog
from kafkapy.quorum.quorum_settings import QuorumSettings
from kafkapy.quorum.quorum_state import read_election, write_election
from kafkapy.quorum.raft import effects
from kafkapy.quorum.raft.config import RaftConfig
from kafkapy.quorum.raft.log_view import LogView
from kafkapy.quorum.raft.machine import RaftMachine
from kafkapy.quorum.raft.messages import Destination, FetchResponse, Request, Response, VoterChange
from kafkapy.quorum.voter_changes import control_change, voter_changes
from kafkapy.quorum.voters import DEFAULT_CONTROLLER_LISTENER, KRAFT_VERSION_DYNAMIC, ReplicaKey, VoterSet
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.partition_metadata import write_partition_metadata
from kafkapy.types import METADATA_TOPIC_ID, Clock, OffsetAndEpoch, random_uuid, uuid_to_string

logger = logging.getLogger("kafka.raft.KafkaRaftClient")

OnResponse = Callable[["Response | None"], None]


class Transport(Protocol):
    """The interface through which the quorum sends requests to other nodes."""

    def send(self, destination: Destination, request: Request, on_response: OnResponse) -> None:
        """Sends a request. `on_response` is called once, on any thread, with the response, or with None if the request
        failed."""

    def is_refused(self, destination: Destination) -> bool:
        """Returns True if the last attempt to connect was refused, because no process listens at the address."""
        ...


class QuorumEvents(Protocol):
    """The methods by which a quorum notifies its owner, the controller loop. They are called on the quorum thread."""

    def committed(self, end_offset: int) -> None:
        """Is called when all records before `end_offset` are committed."""

    def became_leader(self, epoch: int, start_offset: int) -> None:
        """Is called when this node has become the leader of `epoch`, whose first record has the offset
        `start_offset`."""

    def lost_leadership(self, epoch: int) -> None:
        """Is called when this node no longer leads `epoch`."""

    def leader_changed(self) -> None:
        """Is called when this node knows another leader, or no leader, or another epoch than before."""

    def control_records_appended(self, end_offset: int) -> None:
        """Is called when the leader has appended control records, after which the log ends at `end_offset`."""

    def snapshot_loaded(self, image: MetadataImage) -> None:
        """Is called when a snapshot that was fetched from the leader has replaced the log; `image` is the image of the
        snapshot."""

    def stopped(self) -> None:
        """Is called when this node has left the quorum after `shutdown`."""

    def post(self, work: Callable[[], None]) -> None:
        """Makes the quorum thread call `work()` later. Only this thread calls the quorum. Any thread may call
        `post`."""


class MetadataQuorum:
    """Owns `__cluster_metadata-0` and the Raft machine. One thread calls `open`; after that only the quorum thread uses
    it."""

    def __init__(
        self,
        settings: QuorumSettings,
        config: RaftConfig,
        filesystem: Filesystem,
        clock: Clock,
        make_transport: Callable[[], Transport] | None = None,
        random: Random | None = None,
    ) -> None:
        """Creates the quorum; `open` must be called before any other method.

        `make_transport` is called before the first request to another node; a node that is the only voter never sends
        one.
        """
        self.settings = settings
        self.config = config
        self.log = MetadataLog(os.path.join(settings.log_directory, DIRECTORY_NAME), filesystem, settings.segment_bytes)
        self._filesystem = filesystem
        self._clock = clock
        self._make_transport = make_transport
        self._transport: Transport | None = None
        self._random = random or Random()
        self._machine: RaftMachine | None = None
        self.election_latency = ElectionLatency()
        self._events: QuorumEvents | None = None
        self._snapshot_id = OffsetAndEpoch(0, 0)
        self.committed = CommittedRecords(EMPTY_IMAGE)
        # The leader and its address on the listener of the quorum, as far as they are known. Any thread may read them.
        self.leader_id = -1
        self.leader: Destination | None = None
        self._incarnation_id = random_uuid()
        self._changes: list[VoterChange] = []
        self._effects: deque[effects.Effect] = deque()
        self._is_carrying_out = False
        self._leader_high_watermark = -1
        self._refusals = LeaderRefusals()

    @property
    def machine(self) -> RaftMachine:
        """The Raft machine. It exists after `open` has been called."""
        assert self._machine is not None, "the quorum was not opened"
        return self._machine

    @property
    def events(self) -> QuorumEvents:
        assert self._events is not None, "the quorum was not started"
        return self._events

    @property
    def is_alone(self) -> bool:
        """True if this node is the only voter."""
        return self.machine.voters.is_only_voter(self.config.key)

    @property
    def registration(self) -> ControllerRegistration:
        """The registration of this node as a controller."""
        endpoints = {name: Endpoint(name, host, port, 0) for name, host, port in self.config.listeners}
        features = dict(SUPPORTED_FEATURES)
        return ControllerRegistration(self.config.node_id, self._incarnation_id, False, endpoints, features)

    @property
    def leader_high_watermark(self) -> int:
        """The leader's high watermark, as far as this node knows it; -1 if it is not known."""
        machine = self.machine
        return max(machine.high_watermark, -1 if machine.is_leader else self._leader_high_watermark)

    @property
    def records_behind_snapshot(self) -> int:
        """The number of offsets in the log after the newest snapshot, which the next start has to replay."""
        return self.log.end_offset - self._snapshot_id.offset

    # -- opening

    def open(self) -> MetadataImage:
        """Reads the metadata log and the newest snapshot, and creates the Raft machine.

        Returns the image of the records that are known to be committed: the whole log if this node is the only voter,
        otherwise the newest snapshot. Raises StorageError if the log or the snapshot cannot be read, and ConfigError
        if this node cannot take part in the quorum; in both cases, no file of the log has been changed.
        """
        loader = MetadataLoader(EMPTY_IMAGE)
        try:
            self._filesystem.make_directory(self.log.directory)
            found = snapshots.list_snapshots(self.log.directory)
            if found:
                self._snapshot_id = found[-1]
                self._load_snapshot(loader)
            at_snapshot = loader.delta.to_image(*self._snapshot_id)
            loader = loader.continued_on(at_snapshot)  # the delta would change the image, which shares its parts
            scanned = LogScanner(self.log.directory)
            scanned.scan(self._snapshot_id.offset, lambda batch: self._visit(loader, batch))
            if scanned.start_offset > self._snapshot_id.offset:
                raise StorageError(
                    self.settings.log_directory,
                    f"the metadata log begins at offset {scanned.start_offset}, and no snapshot replaces the log "
                    "before it",
                )
            state = read_election(self.log.directory)
        except OSError as error:
            raise StorageError(self.settings.log_directory, f"reading the metadata log failed: {error}") from error
        voters = next((change.voters for change in reversed(self._changes) if change.voters is not None), None)
        self._check_voters(voters)
        self._set_listeners(voters)
        self.log.open(scanned, self._snapshot_id)
        self._remove_unfinished_snapshots()
        view = LogView(self.log.start_offset, self.log.end_offset, self.log.epochs.entries, found, self._changes)
        self._machine = RaftMachine(self.config, view, state, self._random)
        if not self.is_alone:
            self.committed = CommittedRecords(at_snapshot)
            return at_snapshot
        image = loader.delta.to_image(self.log.end_offset, max(self.log.last_epoch, self._snapshot_id.epoch))
        self.committed = CommittedRecords(image, loader.continued_on(image))
        return image

    def _remove_unfinished_snapshots(self) -> None:
        try:
            for name in os.listdir(self.log.directory):
                if name.endswith((snapshots.PART_SUFFIX, snapshots.DELETED_SUFFIX)):
                    self._filesystem.unlink(os.path.join(self.log.directory, name))
        except OSError as error:
            raise StorageError(self.settings.log_directory, f"cleaning up snapshots failed: {error}") from error

    def _load_snapshot(self, loader: MetadataLoader) -> None:
        """Replays the records of the newest snapshot into `loader`.

        Makes the voters and kraft.version in the snapshot the first elements of `_changes`. This list has the changes
        of the voter set and of kraft.version.
        """
        path = os.path.join(self.log.directory, snapshots.snapshot_name(self._snapshot_id))
        snapshot = snapshots.read_snapshot(path, self._snapshot_id)
        for message in snapshot.control_messages:
            change = control_change(self._snapshot_id.offset - 1, message)
            if change is not None:
                self._changes.append(change)
        for record in snapshot.records:
            try:
                loader.replay(record)
            except ValueError as error:
                raise StorageError(self.settings.log_directory, f"snapshot {path}: {error}") from error

    def _visit(self, loader: MetadataLoader, batch: RecordBatch) -> None:
        """Replays a batch that follows the newest snapshot in the log. Skips a batch of an older epoch than the
        snapshot: it was never committed, and `MetadataLog.open` removes it."""
        if batch.partition_leader_epoch < self._snapshot_id.epoch:
            return
        if batch.is_control:
            self._changes += voter_changes(batch)
            return
        for record in decode_metadata_batch(batch):
            loader.replay(record)

    def _check_voters(self, voters: VoterSet | None) -> None:
        """Raises ConfigError if this node can never take part in the quorum with `voters`, or does not support the
        kraft.version of the log. `voters` is the voter set in the log, or None if the log contains no voters."""
        key = self.config.key
        kraft_version = max((each.kraft_version or 0 for each in self._changes), default=0)
        if kraft_version > KRAFT_VERSION_DYNAMIC:
            raise ConfigError(f"kraft.version {kraft_version} in the metadata log; this node supports 0 and 1")
        if voters is not None and key.node_id not in voters.ids and not self.config.bootstrap:
            raise ConfigError(
                f"the metadata log names the voters {list(voters.ids)}, not this node ({key.node_id}), and "
                "controller.quorum.bootstrap.servers names no node of their quorum"
            )
        if voters is not None and voters.ids == (key.node_id,) and not voters.is_voter(key):
            (voter,) = voters
            raise ConfigError(
                f"the metadata log names directory {uuid_to_string(voter.directory_id)} for voter {key.node_id}, "
                f"but meta.properties has directory.id={uuid_to_string(key.directory_id)}"
            )

    def _set_listeners(self, voters: VoterSet | None) -> None:
        """Sets the controller listener of a controller whose configuration names none; does nothing on other nodes.

        The listener is the one that this node has in `voters`, the voter set in the log. If `voters` has no listener
        of this node, Kafka's default is used.
        """
        config = self.config
        if config.can_be_voter and not config.listeners:
            voter = None if voters is None else voters.get(config.node_id)
            listeners = voter.listeners if voter is not None else ()
            self.config = config._replace(listeners=listeners or (DEFAULT_CONTROLLER_LISTENER,))

    # -- the quorum

    def start(self, events: QuorumEvents) -> None:
        """Joins the quorum; the methods of `events` are called from now on. Raises StorageError."""
        self._events = events
        self.election_latency.leader_is(-1, self._clock.monotonic_ms())
        try:
            # A killed node may not have synced the directory.
            self._filesystem.sync_directory(self.settings.log_directory)
            write_partition_metadata(self._filesystem, self.log.directory, METADATA_TOPIC_ID)
        except OSError as error:
            raise self._failed("writing partition.metadata", error) from error
        self._carry_out(self.machine.start(self._clock.monotonic_ms()))

    def tick(self) -> None:
        """Handles the timers of the Raft machine that have expired."""
        monotonic_ms = self._clock.monotonic_ms()
        if monotonic_ms >= self.machine.next_deadline_ms():
            self._carry_out(self.machine.tick(monotonic_ms))

    def receive(self, request: Request, respond: Callable[[Response], None]) -> None:
        """Handles a request of another node. `respond` is called with the response on this thread, before the method
        returns or later."""
        self._carry_out(self.machine.receive(request, respond, self._clock.monotonic_ms()))

    def shutdown(self, timeout_ms: int) -> None:
        """Begins to leave the quorum. `events.stopped` is called when the node has left it, after `timeout_ms` at the
        latest."""
        self._carry_out(self.machine.shutdown(timeout_ms, self._clock.monotonic_ms()))

    @property
    def version(self) -> QuorumVersion:
        """The facts about kraft.version that UpdateFeatures needs: its level, the reason why the level cannot be
        increased now (None if it can be increased), and the voters' ids in a static quorum (empty in a dynamic
        quorum)."""
        machine = self.machine
        static = () if machine.kraft_version >= KRAFT_VERSION_DYNAMIC else machine.voters.ids
        return QuorumVersion(machine.kraft_version, machine.upgrade_refusal(), frozenset(static))

    def upgrade_kraft_version(self, level: int, on_result: Callable[[Error, str | None], None]) -> None:
        """Increases kraft.version to `level`, and writes the voters into the log. `on_result` is called with
        (Error.NONE, None) when the change is committed, or with the error and its message."""
        self._carry_out(self.machine.upgrade_kraft_version(level, on_result, self._clock.monotonic_ms()))

    def encode(self, base_offset: int, records: Sequence[MessageAndVersion]) -> tuple[list[bytes], int]:
        """Returns the encoded batches with `records` in the current epoch, from `base_offset` on, and the offset after
        the last record."""
        return metadata_batches(base_offset, self.machine.epoch, self._clock.wall_ms(), records)

    def append(self, batches: list[bytes]) -> None:
        """Appends batches that were encoded by `encode` while this node leads. They are durable on this node on return.
        Raises StorageError."""
        assert self.machine.is_leader, "only the leader appends"
        self.log.append(batches)
        self._appended()

    def _appended(self) -> None:
        self._carry_out(self.machine.appended(self.log.end_offset, self.machine.epoch, self._clock.monotonic_ms()))

    def _carry_out(self, found: Sequence[effects.Effect]) -> None:
        """Carries out effects of the Raft machine in their order.

        If carrying out an effect makes the machine return further effects, these are carried out after all earlier
        ones.
        """
        self._effects += found
        if self._is_carrying_out:
            return
        self._is_carrying_out = True
        while self._effects:
            effect = self._effects.popleft()
            self._HANDLERS[type(effect)](self, effect)
        self._is_carrying_out = False

    def _save_election(self, effect: effects.SaveElection) -> None:
        try:
            write_election(self._filesystem, self.log.directory, effect.state, is_dynamic=effect.is_dynamic)
        except OSError as error:
            raise self._failed("writing quorum-state", error) from error

    def _truncate(self, effect: effects.Truncate) -> None:
        self.log.truncate_to(effect.offset)

    def _append_fetched(self, effect: effects.AppendFetched) -> None:
        self.log.append([effect.records], is_durable=effect.is_durable)

    def _append_control(self, effect: effects.AppendControl) -> None:
        assert effect.base_offset == self.log.end_offset, "the machine and the log have different ends"
        messages: list[Any] = []
        for record in effect.records:
            if isinstance(record, effects.LeaderChange):
                messages.append(_leader_change(record))
            elif isinstance(record, VoterSet):
                messages.append(record.voters_record())
            else:
                messages.append(KRaftVersionRecord(version=0, kraft_version=record))
        self.log.append([control_batch(effect.base_offset, effect.epoch, self._clock.wall_ms(), messages)])
        self.events.control_records_appended(self.log.end_offset)
        self._appended()

    def _send(self, effect: effects.Send) -> None:
        if self._transport is None:
            assert self._make_transport is not None, "a quorum of one sends nothing"
            self._transport = self._make_transport()
        destination, request = effect
        events = self.events

        def on_response(response: Response | None) -> None:
            events.post(lambda: self._handle_response(destination, request, response))

        self._transport.send(destination, request, on_response)

    def _handle_response(self, destination: Destination, request: Request, response: Response | None) -> None:
        if isinstance(response, FetchResponse) and response.error is Error.NONE:
            self._leader_high_watermark = max(self._leader_high_watermark, response.high_watermark)
        monotonic_ms = self._clock.monotonic_ms()
        self._carry_out(self.machine.response(destination, request, response, monotonic_ms))
        if self.settings.acts_on_refusals:
            assert self._transport is not None
            is_refused = response is None and self._transport.is_refused(destination)
            if self._refusals.note(destination, is_refused=is_refused):
                self._carry_out(self.machine.leader_refused(self.leader_id, monotonic_ms))

    def _respond(self, effect: effects.Respond) -> None:
        effect.token(effect.response)

    def _high_watermark(self, effect: effects.HighWatermark) -> None:
        self.events.committed(effect.offset)

    def _leader_changed(self, effect: effects.LeaderChanged) -> None:
        endpoint = next((each for each in effect.endpoints if each.name == self.config.listener_name), None)
        self.leader_id = effect.leader_id
        self.leader = None if endpoint is None else Destination(effect.leader_id, endpoint.host, endpoint.port)
        self._refusals.follow(self.leader)
        self.election_latency.leader_is(effect.leader_id, self._clock.monotonic_ms())
        self.events.leader_changed()

    def _became_leader(self, effect: effects.BecameLeader) -> None:
        self.events.became_leader(effect.epoch, effect.start_offset)

    def _lost_leadership(self, effect: effects.LostLeadership) -> None:
        self.events.lost_leadership(effect.epoch)

    def _fatal(self, effect: effects.Fatal) -> None:
        raise StorageError(self.settings.log_directory, effect.text)

    # -- snapshots

    def write_snapshot(self, image: MetadataImage) -> None:
        """Writes a snapshot of a committed image, and deletes old snapshots and segments. Raises StorageError."""
        snapshot_id = OffsetAndEpoch(image.offset, image.epoch)
        if snapshot_id <= self._snapshot_id:
            return
        voters, kraft_version = self.machine.voters_at(image.offset)
        control = [] if voters is None or kraft_version < KRAFT_VERSION_DYNAMIC else voters.records()
        content = snapshots.snapshot_bytes(
            image.epoch, self._clock.wall_ms(), self.log.last_timestamp, control, snapshot_records(image)
        )
        try:
            snapshots.write_snapshot(self._filesystem, self.log.directory, snapshot_id, content)
            self._snapshot_id = snapshot_id
            self.machine.snapshot_taken(snapshot_id)
            self._delete_old_snapshots()
        except OSError as error:
            raise self._failed("writing a metadata snapshot", error) from error
        logger.info("wrote metadata snapshot %s (%d bytes)", snapshots.snapshot_name(snapshot_id), len(content))

    def _delete_old_snapshots(self) -> None:
        """Deletes the oldest snapshots until the retention limits are met or one snapshot is left.

        After each deletion, removes the segments before the end offset of the oldest snapshot that is left.
        """
        directory = self.log.directory
        found = snapshots.list_snapshots(directory)
        paths = {each: os.path.join(directory, snapshots.snapshot_name(each)) for each in found}
        total = self.log.size + sum(os.path.getsize(path) for path in paths.values())
        is_cleaned = False
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
            is_cleaned = True
        if is_cleaned:
            self.machine.cleaned(self.log.start_offset, found)

    def read_snapshot(self, snapshot_id: OffsetAndEpoch, position: int, max_bytes: int) -> tuple[int, bytes]:
        """Returns the size of a snapshot file, and at most `max_bytes` of its content from `position` on.

        Raises ApiError with SNAPSHOT_NOT_FOUND or POSITION_OUT_OF_RANGE, and StorageError.
        """
        path = os.path.join(self.log.directory, snapshots.snapshot_name(snapshot_id))
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if not 0 <= position < size:
                    raise ApiError(Error.POSITION_OUT_OF_RANGE)
                return size, os.pread(file.fileno(), max_bytes, position)
        except FileNotFoundError:
            raise ApiError(Error.SNAPSHOT_NOT_FOUND) from None
        except OSError as error:
            raise self._failed("reading a metadata snapshot", error) from error

    def _write_chunk(self, effect: effects.WriteSnapshotChunk) -> None:
        try:
            snapshots.write_part(self.log.directory, effect.snapshot_id, effect.position, effect.data)
        except OSError as error:
            raise self._failed("writing a metadata snapshot", error) from error

    def _drop_part(self, effect: effects.DropSnapshotPart) -> None:
        try:
            self._filesystem.unlink(snapshots.part_path(self.log.directory, effect.snapshot_id))
        except OSError as error:
            raise self._failed("removing a part of a metadata snapshot", error) from error

    def _start_at_snapshot(self, effect: effects.StartAtSnapshot) -> None:
        directory, snapshot_id = self.log.directory, effect.snapshot_id
        old = snapshots.list_snapshots(directory)
        loader = MetadataLoader(EMPTY_IMAGE)
        self._changes.clear()
        try:
            snapshots.complete_part(self._filesystem, directory, snapshot_id)
            self._snapshot_id = snapshot_id
            self._load_snapshot(loader)
            self.log.start_at(snapshot_id.offset)
            for each in old:
                if each != snapshot_id:
                    self._filesystem.unlink(os.path.join(directory, snapshots.snapshot_name(each)))
        except OSError as error:
            raise self._failed("loading a metadata snapshot", error) from error
        voters = next((each.voters for each in self._changes if each.voters is not None), None)
        kraft_version = next((each.kraft_version for each in self._changes if each.kraft_version is not None), 0)
        self._carry_out(
            self.machine.started_at_snapshot(snapshot_id, voters, kraft_version, self._clock.monotonic_ms())
        )
        self.events.snapshot_loaded(loader.delta.to_image(*snapshot_id))

    def close(self) -> None:
        """Closes the log, and writes the files that Kafka expects after a clean stop. Raises StorageError."""
        self.log.close()

    def _failed(self, doing: str, error: OSError) -> StorageError:
        return StorageError(self.settings.log_directory, f"{doing} failed: {error}")

    _HANDLERS: ClassVar[dict[type, Callable[[Any, Any], None]]] = {
        effects.SaveElection: _save_election,
        effects.Truncate: _truncate,
        effects.AppendFetched: _append_fetched,
        effects.AppendControl: _append_control,
        effects.WriteSnapshotChunk: _write_chunk,
        effects.DropSnapshotPart: _drop_part,
        effects.StartAtSnapshot: _start_at_snapshot,
        effects.Send: _send,
        effects.Respond: _respond,
        effects.HighWatermark: _high_watermark,
        effects.LeaderChanged: _leader_changed,
        effects.BecameLeader: _became_leader,
        effects.LostLeadership: _lost_leadership,
        effects.KRaftVersionResult: lambda self, effect: effect.token(effect.error, effect.message),
        effects.Stopped: lambda self, effect: self.events.stopped(),
        effects.Fatal: _fatal,
    }


def _leader_change(record: effects.LeaderChange) -> LeaderChangeMessage:
    def voters(keys: tuple[ReplicaKey, ...]) -> list[Any]:
        return [LeaderChangeMessage.Voter(voter_id=key.node_id) for key in keys]

    return LeaderChangeMessage(
        version=0,
        leader_id=record.leader_id,
        voters=voters(record.voters),
        granting_voters=voters(record.granting_voters),
    )
