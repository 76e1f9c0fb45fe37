"""Kafka's Raft for the metadata log as a pure state machine.

The machine has no clock, no disk and no network: the driver calls it with messages and times and carries out the
effects that each call returns, in their order. One thread calls the machine.
"""

from __future__ import annotations

from random import Random
from typing import Any

from kafkapy.quorum.raft.config import RaftConfig
from kafkapy.quorum.raft.effects import Effect, ElectionState
from kafkapy.quorum.raft.log_view import LogView
from kafkapy.quorum.raft.messages import Destination, QuorumDescription, Request, Response
from kafkapy.quorum.voters import VoterSet
from kafkapy.types import OffsetAndEpoch


class RaftMachine:
    """One replica of the metadata log: voter or observer, in one of the states of KIP-595.

    Every method that takes `monotonic_ms` returns effects. The driver carries out all effects of one call before the
    next call, except that `appended` and `started_at_snapshot` follow their effect at once, within the list.
    """

    def __init__(self, config: RaftConfig, log: LogView, saved: ElectionState | None, random: Random) -> None:
        """Prepares the machine; `log` describes the log as it was opened, which the machine owns from now on, and
        `saved` is the content of quorum-state, None if the file is missing or unreadable."""

    # -- state, for the driver to read

    @property
    def epoch(self) -> int:
        """The current epoch."""
        raise NotImplementedError

    @property
    def leader_id(self) -> int:
        """The leader of the current epoch, -1 if it is not known."""
        raise NotImplementedError

    @property
    def is_leader(self) -> bool:
        """True if this node leads the current epoch."""
        raise NotImplementedError

    @property
    def state_name(self) -> str:
        """Kafka's name of the state: unattached, prospective, candidate, leader, follower, resigned, or observer for an
        unattached or following observer (as in the metric current-state)."""
        raise NotImplementedError

    @property
    def high_watermark(self) -> int:
        """The offset before which all records are committed, -1 if it is not known."""
        raise NotImplementedError

    @property
    def voters(self) -> VoterSet:
        """The newest voter set, committed or not."""
        raise NotImplementedError

    @property
    def kraft_version(self) -> int:
        """The newest kraft.version, committed or not."""
        raise NotImplementedError

    def voters_at(self, offset: int) -> tuple[VoterSet | None, int]:
        """Returns the voter set (None if the log contains none) and the kraft.version before an offset, which a
        snapshot with that end offset has to contain."""
        raise NotImplementedError

    def describe(self) -> QuorumDescription | None:
        """Returns the data of DescribeQuorum, or None if this node is not the leader."""
        raise NotImplementedError

    def next_deadline_ms(self) -> int:
        """Returns the monotonic time at which `tick` must be called, unless another call changes it before."""
        raise NotImplementedError

    # -- inputs

    def start(self, monotonic_ms: int) -> list[Effect]:
        """Enters the first state. The only voter becomes leader in this call, without waiting for a timer."""
        raise NotImplementedError

    def tick(self, monotonic_ms: int) -> list[Effect]:
        """Handles timers that expired, and sends the requests that are due."""
        raise NotImplementedError

    def receive(self, request: Request, token: Any, monotonic_ms: int) -> list[Effect]:
        """Handles a request of another node or of a client; one Respond with `token` follows, perhaps later."""
        raise NotImplementedError

    def response(
        self, destination: Destination, request: Request, response: Response | None, monotonic_ms: int
    ) -> list[Effect]:
        """Handles the response to a request that this machine sent; None if it failed or timed out."""
        raise NotImplementedError

    def appended(self, end_offset: int, epoch: int, monotonic_ms: int) -> list[Effect]:
        """Notes that the leader's own records, those of AppendControl included, are durable up to `end_offset`.

        The driver calls it after each append, before it calls anything else.
        """
        raise NotImplementedError

    def started_at_snapshot(
        self, snapshot_id: OffsetAndEpoch, voters: VoterSet | None, kraft_version: int, monotonic_ms: int
    ) -> list[Effect]:
        """Notes that StartAtSnapshot was carried out; the snapshot contains `voters` (None: no KRaftVoters record)."""
        raise NotImplementedError

    def snapshot_taken(self, snapshot_id: OffsetAndEpoch) -> None:
        """Notes that this node wrote a snapshot of its own."""
        raise NotImplementedError

    def cleaned(self, start_offset: int, snapshots: list[OffsetAndEpoch]) -> None:
        """Notes that the driver removed old snapshots and the log before `start_offset`; `snapshots` remain."""
        raise NotImplementedError

    def leader_refused(self, leader_id: int, monotonic_ms: int) -> list[Effect]:
        """Notes that every connection to the leader is refused: its process has ended.

        A follower that is a voter then asks for PreVotes without waiting for its fetch timeout, and grants them.
        """
        raise NotImplementedError

    def upgrade_kraft_version(self, level: int, validate_only: bool, token: Any, monotonic_ms: int) -> list[Effect]:
        """Raises kraft.version from 0 to 1 (UpdateFeatures): a KRaftVersionResult with `token` follows."""
        raise NotImplementedError

    def resign(self, epoch: int, monotonic_ms: int) -> list[Effect]:
        """Gives up the leadership of `epoch`; ignored if this node no longer leads it."""
        raise NotImplementedError

    def shutdown(self, timeout_ms: int, monotonic_ms: int) -> list[Effect]:
        """Gives up leadership and stops; Stopped follows, at the latest after `timeout_ms`."""
        raise NotImplementedError
