"""Simulated nodes of a quorum: the real Raft machine, a driver, a disk that loses writes, and the requests between
them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from kafkapy.errors import Error
from kafkapy.quorum.raft import effects as fx
from kafkapy.quorum.raft import messages as ms
from kafkapy.quorum.raft.config import RaftConfig
from kafkapy.quorum.raft.connections import FOREVER
from kafkapy.quorum.raft.machine import RaftMachine
from kafkapy.quorum.voters import ControllerListener, ReplicaKey, Voter, VoterSet
from kafkapy.types import OffsetAndEpoch
from tests.simulation.disk import Batch, Disk, Snapshot
from tests.simulation.invariants import InvariantBroken, Invariants
from tests.simulation.network import Network

CLUSTER = "simulated"
LISTENER = "CONTROLLER"
SNAPSHOT_BYTES = 3
REQUEST_TIMEOUT_MS = 2000


def listener_of(node_id: int) -> ControllerListener:
    return ControllerListener(LISTENER, "host", 9000 + node_id)


def voter_of(node_id: int, directory_id: bytes) -> Voter:
    return Voter(node_id, directory_id, (listener_of(node_id),), 0, 1)


class Killed(Exception):
    """The node was killed between two effects."""


class Node:
    """A node with its disk; `machine` is None while the process does not run."""

    def __init__(self, world: World, node_id: int, *, can_be_voter: bool, auto_join: bool) -> None:
        self.world = world
        self.node_id = node_id
        self.can_be_voter = can_be_voter
        self.auto_join = auto_join
        self.disk = Disk(None)
        self.directory_id = world.new_directory()
        self.machine: RaftMachine | None = None
        self.incarnation = 0
        self.is_paused = False
        self.high_watermark = -1
        self.tick_ms = FOREVER
        self.part: OffsetAndEpoch | None = None
        self.part_size = 0
        self.waiting: list[Callable[[], None]] = []

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.node_id, self.directory_id)

    # -- process

    def start(self) -> None:
        world = self.world
        config = RaftConfig(
            cluster_id=CLUSTER,
            node_id=self.node_id,
            directory_id=self.directory_id,
            listener_name=LISTENER,
            listeners=(listener_of(self.node_id),) if self.can_be_voter else (),
            can_be_voter=self.can_be_voter,
            static_voters=world.static_voters,
            bootstrap=tuple(each for each in world.bootstrap if each[1] != 9000 + self.node_id),
            auto_join=self.auto_join,
            election_timeout_ms=world.election_timeout_ms,
            fetch_timeout_ms=world.fetch_timeout_ms,
            retry_backoff_ms=50,
        )
        self.incarnation += 1
        self.high_watermark = -1
        self.is_paused = False
        self.part = None
        self.machine = RaftMachine(config, self.disk.view(), self.disk.election, Random(world.random.random()))
        self.run(lambda machine: machine.start(world.now_ms))

    def kill(self) -> None:
        self.machine = None
        self.incarnation += 1
        self.is_paused = False
        self.waiting = []
        self.tick_ms = FOREVER
        self.disk.crash(self.world.random)

    def run(self, call: Callable[[RaftMachine], list[fx.Effect]]) -> None:
        """Calls the machine and carries out its effects; a kill may happen between two of them."""
        machine = self.machine
        assert machine is not None
        todo = call(machine)
        kill_at = -1
        if todo and self.world.random.random() < self.world.kill_between_effects:
            kill_at = int(self.world.random.random() * len(todo))
        index = 0
        try:
            while index < len(todo):
                if index == kill_at:
                    raise Killed
                todo += self._carry_out(machine, todo[index])
                index += 1
        except Killed:
            self.world.note(f"{self.node_id} killed between effects")
            self.kill()
            return
        deadline_ms = machine.next_deadline_ms()
        if deadline_ms < FOREVER and deadline_ms != self.tick_ms:
            self.tick_ms = deadline_ms
            self.world.after(max(deadline_ms - self.world.now_ms, 1), self._ticker(self.incarnation, deadline_ms))

    def _ticker(self, incarnation: int, deadline_ms: int) -> Callable[[], None]:
        def tick() -> None:
            if self.incarnation != incarnation or self.tick_ms != deadline_ms:
                return
            if self.is_paused:
                self.waiting.append(tick)
                return
            self.tick_ms = FOREVER
            self.run(lambda machine: machine.tick(self.world.now_ms))

        return tick

    # -- effects

    def _carry_out(self, machine: RaftMachine, effect: fx.Effect) -> list[fx.Effect]:
        disk, world = self.disk, self.world
        if isinstance(effect, fx.Send):
            world.send(self, effect.destination, effect.request)
        elif isinstance(effect, fx.Respond):
            world.respond(self, effect.token, effect.response)
        elif isinstance(effect, fx.SaveElection):
            disk.election = effect.state
        elif isinstance(effect, fx.HighWatermark):
            world.invariants.high_watermark(self.node_id, self.high_watermark, effect.offset, disk)
            self.high_watermark = effect.offset
        elif isinstance(effect, fx.AppendFetched):
            self._append_fetched(effect)
        elif isinstance(effect, fx.AppendControl):
            if effect.base_offset != disk.end_offset:
                raise InvariantBroken(f"control batch for {effect.base_offset}, but the log ends at {disk.end_offset}")
            disk.append_control(effect.epoch, effect.records)
            if world.random.random() < world.kill_between_effects:
                raise Killed
            disk.flush()
            return machine.appended(disk.end_offset, effect.epoch, world.now_ms)
        elif isinstance(effect, fx.Truncate):
            world.invariants.truncated(self.node_id, self.high_watermark, effect.offset)
            disk.truncate(effect.offset)
        elif isinstance(effect, fx.BecameLeader):
            world.invariants.became_leader(self.node_id, effect.epoch, disk)
            world.note(f"{self.node_id} leads {effect.epoch}")
        elif isinstance(effect, fx.WriteSnapshotChunk):
            self._write_chunk(effect)
        elif isinstance(effect, fx.StartAtSnapshot):
            return self._start_at_snapshot(machine, effect)
        elif isinstance(effect, fx.DropSnapshotPart):
            self.part = None
        elif isinstance(effect, fx.Fatal):
            raise InvariantBroken(f"node {self.node_id} stops: {effect.text}")
        elif isinstance(effect, fx.Stopped):
            raise Killed
        return []

    def _append_fetched(self, effect: fx.AppendFetched) -> None:
        batches: Any = effect.records
        disk = self.disk
        for batch, fetched in zip(batches, effect.batches, strict=True):
            assert isinstance(batch, Batch)
            if batch.fetched != fetched or batch.base_offset != disk.end_offset:
                raise InvariantBroken(f"node {self.node_id} appends {batch} at {disk.end_offset}")
            disk.batches.append(batch)
        if effect.is_durable:
            disk.flush()

    def _write_chunk(self, effect: fx.WriteSnapshotChunk) -> None:
        if effect.position == 0:
            self.part, self.part_size = effect.snapshot_id, 0
        if self.part != effect.snapshot_id or self.part_size != effect.position:
            raise InvariantBroken(f"a piece of {effect.snapshot_id} at {effect.position} does not fit the part file")
        self.part_size += len(effect.data)

    def _start_at_snapshot(self, machine: RaftMachine, effect: fx.StartAtSnapshot) -> list[fx.Effect]:
        if self.part != effect.snapshot_id or self.part_size != SNAPSHOT_BYTES:
            raise InvariantBroken(f"snapshot {effect.snapshot_id} is not complete")
        snapshot = self.world.snapshots[effect.snapshot_id]
        self.disk.start_at(effect.snapshot_id, snapshot)
        self.part = None
        return machine.started_at_snapshot(
            effect.snapshot_id, snapshot.voters, snapshot.kraft_version, self.world.now_ms
        )

    # -- operations of the driver

    def append_records(self) -> None:
        """Appends records as the active controller does."""
        machine, world = self.machine, self.world
        if machine is None or not machine.is_leader:
            return
        epoch = machine.epoch
        world.values += 1
        self.disk.append(1 + world.values % 3, epoch, world.values)
        self.disk.flush()
        self.run(lambda machine: machine.appended(self.disk.end_offset, epoch, world.now_ms))

    def take_snapshot(self) -> None:
        """Writes a snapshot at the high watermark, and perhaps removes the log before it."""
        machine, disk = self.machine, self.disk
        offset = self.high_watermark
        if machine is None or offset <= max((key.offset for key in disk.snapshots), default=0):
            return
        index = disk.index_at(offset) - 1
        if index < 0:
            return
        batch = disk.batches[index]
        snapshot_id = OffsetAndEpoch(offset, batch.epoch)
        snapshot = Snapshot(batch.digest, *machine.voters_at(offset))
        if self.world.snapshots.setdefault(snapshot_id, snapshot) != snapshot:
            raise InvariantBroken(f"node {self.node_id} has another snapshot {snapshot_id} than the others")
        disk.snapshots[snapshot_id] = snapshot
        machine.snapshot_taken(snapshot_id)
        if len(disk.snapshots) > 1 and self.world.random.random() < 0.7:
            oldest = sorted(disk.snapshots)[self.world.random.randint(1, len(disk.snapshots) - 1)]
            disk.clean(oldest)
            machine.cleaned(oldest.offset, sorted(disk.snapshots))

    def read(self, response: ms.FetchResponse) -> ms.FetchResponse:
        """Reads the batches that the machine of a leader names."""
        if response.read_from < 0:
            return response
        index = self.disk.index_at(response.read_from)
        batches = tuple(self.disk.batches[index : index + self.world.random.randint(1, 5)])
        if not batches or batches[0].base_offset != response.read_from:
            raise InvariantBroken(f"node {self.node_id} cannot read from {response.read_from}")
        records: Any = batches
        return response._replace(
            records=records,
            batches=tuple(batch.fetched for batch in batches),
            changes=tuple(change for batch in batches for change in batch.changes),
        )

    def read_snapshot(self, response: ms.FetchSnapshotResponse) -> ms.FetchSnapshotResponse:
        return response._replace(size=SNAPSHOT_BYTES, data=b"x")


class World(Network):
    """All nodes, and the network between them."""

    def __init__(self, random: Random, *, is_traced: bool = False) -> None:
        super().__init__(random, is_traced=is_traced)
        self.invariants = Invariants()
        self.nodes: dict[int, Node] = {}
        self.static_voters = VoterSet()
        self.bootstrap: tuple[tuple[str, int], ...] = ()
        self.snapshots: dict[OffsetAndEpoch, Snapshot] = {}
        self.values = 0
        self.directories = 0
        self.kill_between_effects = 0.0
        self.election_timeout_ms = 1000
        self.fetch_timeout_ms = 2000

    def new_directory(self) -> bytes:
        self.directories += 1
        return bytes(8) + (1 << 32 | self.directories).to_bytes(8, "big")

    def send(self, source: Node, destination: ms.Destination, request: ms.Request) -> None:
        target = self.nodes[destination.port - 9000]
        incarnation = source.incarnation

        def answer(response: ms.Response | None) -> None:
            def arrive() -> None:
                if source.incarnation != incarnation:
                    return
                if source.is_paused:
                    source.waiting.append(arrive)
                    return
                if self.trace is not None:
                    self.note(f"{target.node_id}->{source.node_id} {response}")
                source.run(lambda machine: machine.response(destination, request, response, self.now_ms))

            if response is None:
                self.after(1, arrive)
            elif not self.transmit(target.node_id, source.node_id, arrive):
                self.after(REQUEST_TIMEOUT_MS, fail)

        def fail() -> None:
            answer(None)

        def arrive_at_target() -> None:
            if target.machine is None:
                answer(None)
                self._refuse(source, incarnation, target.node_id)
            elif target.is_paused:
                target.waiting.append(arrive_at_target)
            elif isinstance(request, ms.ApiVersionsRequest):
                answer(ms.ApiVersionsResponse(Error.NONE, 0, 1))
            else:
                token = (target.incarnation, answer)
                target.run(lambda machine: machine.receive(request, token, self.now_ms))

        if self.trace is not None:
            self.note(f"{source.node_id}->{target.node_id} {request}")
        if not self.transmit(source.node_id, target.node_id, arrive_at_target):
            self.after(REQUEST_TIMEOUT_MS, fail)

    def _refuse(self, source: Node, incarnation: int, leader_id: int) -> None:
        """Tells the driver of `source` that the connections to a dead process are refused."""

        def refused() -> None:
            if source.incarnation == incarnation and not source.is_paused:
                source.run(lambda machine: machine.leader_refused(leader_id, self.now_ms))

        if self.random.random() < 0.5:
            self.after(1, refused)

    def respond(self, source: Node, token: Any, response: ms.Response) -> None:
        if token is None:
            return
        incarnation, answer = token
        if incarnation != source.incarnation:
            raise InvariantBroken(f"node {source.node_id} responds to a request of its former life")
        if isinstance(response, ms.FetchResponse):
            response = source.read(response)
        elif isinstance(response, ms.FetchSnapshotResponse) and response.error == Error.NONE:
            response = source.read_snapshot(response)
        answer(response)
