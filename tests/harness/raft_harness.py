"""One Raft machine under test: its calls, with a clock that the test sets, and the effects of the last call."""

from __future__ import annotations

from random import Random
from typing import Any, TypeVar

from kafkapy.errors import Error
from kafkapy.quorum.raft.config import RaftConfig
from kafkapy.quorum.raft.effects import AppendControl, Effect, ElectionState, Respond, Send
from kafkapy.quorum.raft.log_view import LogView
from kafkapy.quorum.raft.machine import RaftMachine
from kafkapy.quorum.raft.messages import (
    BeginQuorumEpochRequest,
    Destination,
    FetchedBatch,
    FetchRequest,
    FetchResponse,
    Request,
    Response,
    VoterChange,
    VoteRequest,
    VoteResponse,
)
from kafkapy.quorum.voters import ControllerListener, ReplicaKey, Voter, VoterSet
from kafkapy.types import ZERO_UUID

CLUSTER = "cluster"
Found = TypeVar("Found")


class NoRandom(Random):
    """A source that always draws 0, so that an election timeout is exactly the configured one."""

    def random(self) -> float:
        return 0.0


def directory_of(node_id: int) -> bytes:
    return bytes(15) + bytes([100 + node_id])


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory_of(node_id))


def listener_of(node_id: int) -> ControllerListener:
    return ControllerListener("CONTROLLER", f"host{node_id}", 9093)


def voter_of(node_id: int) -> Voter:
    return Voter(node_id, directory_of(node_id), (listener_of(node_id),), 0, 1)


def voters_of(*node_ids: int) -> VoterSet:
    return VoterSet(voter_of(node_id) for node_id in node_ids)


def static_voters_of(*node_ids: int) -> VoterSet:
    return VoterSet(Voter(node_id, ZERO_UUID, (listener_of(node_id),)) for node_id in node_ids)


def destination_of(node_id: int) -> Destination:
    return Destination(node_id, f"host{node_id}", 9093)


def log_of(*epochs: tuple[int, int], voters: VoterSet | None = None) -> LogView:
    """Returns the view of a log with batches of one record: `(epoch, number of records)`; the first one contains
    `voters` as KRaftVoters and kraft.version 1."""
    changes = [] if voters is None else [VoterChange(-1, voters), VoterChange(-1, None, 1)]
    log = LogView(changes=changes)
    for epoch, records in epochs:
        for _ in range(records):
            log.append((FetchedBatch(log.end_offset, log.end_offset, epoch),), ())
    log.flushed_offset = log.end_offset
    return log


class RaftHarness:
    """The Raft state machine of node 1, by default one of three voters of a dynamic quorum, with an empty log."""

    def __init__(
        self,
        log: LogView | None = None,
        saved: ElectionState | None = None,
        *,
        voters: VoterSet | None = None,
        node_id: int = 1,
        **settings: Any,
    ) -> None:
        if log is None:
            log = log_of(voters=voters_of(1, 2, 3) if voters is None else voters)
        settings = {"listeners": (listener_of(node_id),), "bootstrap": (("host8", 9093), ("host9", 9093)), **settings}
        config = RaftConfig(CLUSTER, node_id, directory_of(node_id), "CONTROLLER", **settings)
        self.machine = RaftMachine(config, log, saved, NoRandom())
        self.now_ms = 0
        self.effects: list[Effect] = []
        self._sent: list[Send] = []

    # -- calls

    def done(self, effects: list[Effect]) -> list[Effect]:
        """Carries out the leader's appends in `effects`, as the driver does; stores and returns the effects."""
        for effect in effects:
            if isinstance(effect, Send):
                self._sent.append(effect)
            elif isinstance(effect, AppendControl):
                end_offset = effect.base_offset + len(effect.records)
                effects += self.machine.appended(end_offset, effect.epoch, self.now_ms)
        self.effects = effects
        return effects

    def start(self) -> list[Effect]:
        return self.done(self.machine.start(self.now_ms))

    def wait(self, milliseconds: int) -> list[Effect]:
        """Advances the clock, calls the machine's `tick` once, and returns the effects."""
        self.now_ms += milliseconds
        return self.done(self.machine.tick(self.now_ms))

    def receive(self, request: Request, token: Any = "token") -> Any:
        """Returns the response to a request, None if it is held."""
        self.done(self.machine.receive(request, token, self.now_ms))
        return next((each.response for each in self.of(Respond) if each.token == token), None)

    def answer(self, node_id: int, response: Response | None) -> list[Effect]:
        """Answers the newest request that was sent to a node."""
        sent = next(each for each in reversed(self._sent) if each.destination.node_id == node_id)
        return self.done(self.machine.response(sent.destination, sent.request, response, self.now_ms))

    def append(self, records: int) -> list[Effect]:
        """Appends records as the active controller does."""
        end_offset = self.machine.log.end_offset + records
        return self.done(self.machine.appended(end_offset, self.machine.epoch, self.now_ms))

    # -- ways into a state

    def become_leader(self) -> RaftHarness:
        """Starts, and wins an election with the vote of node 2."""
        self.start()
        if not self.machine.is_leader:
            self.wait(1000)
            self.answer(2, VoteResponse(Error.NONE, -1, self.machine.epoch, (), True))
            self.answer(2, VoteResponse(Error.NONE, -1, self.machine.epoch, (), True))
        assert self.machine.is_leader
        return self

    def establish(self) -> RaftHarness:
        """Becomes leader and commits the first batch of its epoch with a fetch of node 2."""
        self.become_leader()
        self.fetch(2, self.machine.log.end_offset, self.machine.epoch)
        assert self.machine.high_watermark == self.machine.log.end_offset
        return self

    def follow(self, leader_id: int = 2, epoch: int = 5) -> RaftHarness:
        """Starts, and follows the leader that announces itself."""
        self.start()
        self.receive(begin(leader_id, epoch))
        assert self.machine.state_name in ("follower", "observer")
        return self

    def fetched(self, *batches: tuple[int, int, int], **fields: Any) -> list[Effect]:
        """Answers the Fetch in flight with batches `(base offset, last offset, epoch)` of the leader."""
        response = FetchResponse(
            Error.NONE,
            self.machine.leader_id,
            self.machine.epoch,
            batches=tuple(FetchedBatch(*batch) for batch in batches),
            records=b"records",
            **fields,
        )
        return self.answer(self.machine.leader_id, response)

    def fetch(self, node_id: int, fetch_offset: int, fetched_epoch: int, **fields: Any) -> Any:
        """Returns the response to a Fetch of another node, None if it is held."""
        request = FetchRequest(CLUSTER, key_of(node_id), self.machine.epoch, fetch_offset, fetched_epoch, -1, 500, 1000)
        return self.receive(request._replace(**fields), ("fetch", node_id))

    # -- effects

    def of(self, kind: type[Found]) -> list[Found]:
        """Returns the effects of one kind of the last call."""
        return [each for each in self.effects if isinstance(each, kind)]

    def sent(self, kind: type[Found]) -> dict[int, Found]:
        """Returns the requests of one kind that the last call sent, by the node that receives them."""
        return {each.destination.node_id: each.request for each in self.of(Send) if isinstance(each.request, kind)}


def begin(leader_id: int, epoch: int) -> BeginQuorumEpochRequest:
    """Returns the announcement of a leader to node 1."""
    return BeginQuorumEpochRequest(CLUSTER, key_of(1), leader_id, epoch, (listener_of(leader_id),))


def vote(candidate_id: int, epoch: int, last_epoch: int, end_offset: int, *, pre_vote: bool = False) -> VoteRequest:
    """Returns a request for the vote of node 1."""
    return VoteRequest(CLUSTER, key_of(1), key_of(candidate_id), epoch, last_epoch, end_offset, pre_vote)
