"""Three voters with real logs, and input that no healthy cluster has."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkapy.quorum.quorum_state import read_election
from kafkapy.quorum.raft.messages import VoteRequest, VoteResponse
from kafkapy.quorum.voters import ReplicaKey
from kafkapy.types import SystemClock
from tests.harness.quorum_nodes import FIRST_PORT, QuorumNodes, wait_until
from tests.unit.quorum.test_three_nodes import keys, put

HOUR_MS = 3_600_000


def addresses(*node_ids: int) -> str:
    return ",".join(f"{node_id}@localhost:{FIRST_PORT + node_id}" for node_id in node_ids)


class JumpingClock(SystemClock):
    """The wall clock of a machine that an administrator sets."""

    offset_ms = 0

    def wall_ms(self) -> int:
        return super().wall_ms() + self.offset_ms


@pytest.mark.parametrize("garbage", [b"\0" * 100, b"garbage" * 100, bytes(range(1, 200))])
def test_a_log_that_ends_in_garbage_is_completed_by_the_leader(tmp_path: Path, garbage: bytes) -> None:
    with QuorumNodes(tmp_path) as quorum:
        quorum.submit(put("before"))
        quorum.wait_for_equal_images()
        follower = next(node for node in quorum.nodes.values() if not node.loop.is_active)
        follower.kill()
        (segment,) = (follower.directory / "__cluster_metadata-0").glob("*.log")
        with segment.open("ab") as file:
            file.write(garbage)
        quorum.submit(put("meanwhile"))
        follower.start()
        quorum.submit(put("after"))
        assert keys(quorum.wait_for_equal_images()) == {"before", "meanwhile", "after"}
        leader = quorum.leader()
        (expected,) = (leader.directory / "__cluster_metadata-0").glob("*.log")
        wait_until(lambda: segment.read_bytes() == expected.read_bytes(), "the logs differ")
        assert not follower.faults


def test_a_clock_that_jumps_changes_neither_the_leader_nor_what_is_committed(tmp_path: Path) -> None:
    clock = JumpingClock()
    with QuorumNodes(tmp_path, clock=clock) as quorum:
        quorum.submit(put("0"))
        leader = quorum.leader()
        epoch = leader.quorum.machine.epoch
        for number, jump_ms in enumerate((24 * HOUR_MS, -48 * HOUR_MS, 0), 1):
            clock.offset_ms = jump_ms
            quorum.submit(put(str(number)))
        assert keys(quorum.wait_for_equal_images()) == {"0", "1", "2", "3"}
        assert (quorum.leader().node_id, leader.quorum.machine.epoch) == (leader.node_id, epoch)


def test_lists_of_voters_that_differ_by_one_node_still_have_one_leader(tmp_path: Path) -> None:
    """Node 3 counts itself as a voter, the others do not. As in Apache Kafka, voters grant votes to a candidate that
    they do not know, so that either side may lead."""
    with QuorumNodes(tmp_path, voters={1: addresses(1, 2), 2: addresses(1, 2), 3: addresses(1, 2, 3)}) as quorum:
        for number in range(5):
            quorum.submit(put(str(number)))
        leader = quorum.leader()
        assert len(keys(quorum.wait_for_equal_images())) == 5
        voters = leader.quorum.machine.voters.ids
        assert voters == ((1, 2, 3) if leader.node_id == 3 else (1, 2))
        assert not [node.faults for node in quorum.nodes.values() if node.faults]


def test_a_vote_from_the_future_raises_the_epoch_of_all(tmp_path: Path) -> None:
    with QuorumNodes(tmp_path) as quorum:
        quorum.submit(put("before"))
        leader = quorum.leader()
        future = leader.quorum.machine.epoch + 1_000_000
        responses: list[VoteResponse] = []
        stranger = ReplicaKey(9, bytes(range(16)))
        request = VoteRequest(quorum.cluster_id, ReplicaKey(leader.node_id), stranger, future, 0, 0, False)
        leader.loop.call(lambda: leader.quorum.receive(request, responses.append)).result()
        assert [(response.epoch, response.granted) for response in responses] == [(future, False)]
        assert quorum.submit(put("after")) is not None
        assert keys(quorum.wait_for_equal_images()) == {"before", "after"}
        for node in quorum.nodes.values():
            assert node.quorum.machine.epoch >= future
            election = read_election(str(node.directory / "__cluster_metadata-0"))
            assert election is not None and election.epoch >= future
            assert not node.faults
