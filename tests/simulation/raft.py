"""Random schedules of a quorum, each determined by its seed; `python -m tests.simulation.raft --help`.

A schedule begins with a random cluster and takes 200 steps: time passes, messages are lost, delayed, duplicated and
reordered, nodes are killed, paused, cut off and restarted, voters are added and removed, snapshots are taken. Then
everything is healed, and the cluster must commit new records on all nodes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from random import Random

from kafkapy.quorum.raft.messages import AddVoterRequest, RemoveVoterRequest
from kafkapy.quorum.voters import ReplicaKey, VoterSet
from tests.simulation.disk import Disk
from tests.simulation.invariants import InvariantBroken
from tests.simulation.world import CLUSTER, Node, World, voter_of

STEPS = 200
HEALED_WITHIN_MS = 60_000


class Schedule:
    """One seeded run."""

    def __init__(self, seed: int, *, is_traced: bool = False) -> None:
        self.random = Random(seed)
        self.world = world = World(self.random, is_traced=is_traced)
        random = self.random
        voters = random.choice((1, 2, 3, 3, 3, 3, 4, 5))
        others = random.randint(0, 3)
        self.is_static = random.random() < 0.25
        ids = list(range(1, voters + others + 1))
        world.bootstrap = tuple(("host", 9000 + node_id) for node_id in ids)
        for node_id in ids:
            is_voter = node_id <= voters
            can_be_voter = is_voter or random.random() < 0.7
            world.nodes[node_id] = Node(
                world, node_id, can_be_voter=can_be_voter, auto_join=not self.is_static and random.random() < 0.5
            )
        first = VoterSet(voter_of(node_id, world.nodes[node_id].directory_id) for node_id in ids[:voters])
        if self.is_static:
            world.static_voters = VoterSet(
                voter._replace(directory_id=bytes(16), max_kraft_version=0) for voter in first
            )
        else:
            for node_id in ids[:voters]:
                world.nodes[node_id].disk = Disk(first)
        if random.random() < 0.8:
            world.drop = random.choice((0.0, 0.02, 0.1, 0.3))
            world.duplicate = random.choice((0.0, 0.05, 0.3))
            world.slow = random.choice((0.0, 0.02, 0.1))
            world.kill_between_effects = random.choice((0.0, 0.002, 0.02))
        self.longest_step = 3.2  # The decimal logarithm of its milliseconds.
        self.faults: Sequence[Callable[[Schedule], None]] = self.FAULTS
        kind = random.random()
        if kind < 0.3:
            # Elections that are disturbed all the time, with timeouts so short that many candidates compete.
            world.drop, world.slow, world.kill_between_effects = 0.1, 0.2, 0.05
            world.election_timeout_ms = random.choice((50, 100, 300))
            world.fetch_timeout_ms = 2 * world.election_timeout_ms
            self.longest_step = 2.9
            self.faults = self.ELECTION_FAULTS
        elif kind < 0.6:
            # Changes of the voters, one after the other, while leaders fail.
            world.election_timeout_ms = 200
            world.fetch_timeout_ms = 400
            self.longest_step = 2.7
            self.faults = self.VOTER_FAULTS

    # -- steps

    def run(self) -> None:
        """Takes all steps, ends all faults, and checks that the cluster then elects a leader and commits records."""
        world, random = self.world, self.random
        for node in world.nodes.values():
            if random.random() < 0.8:
                node.start()
        for _ in range(STEPS):
            choice = random.random()
            if choice < 0.45:
                world.advance(int(10 ** (random.random() * self.longest_step)))
            elif choice < 0.65:
                self._append()
            else:
                random.choice(self.faults)(self)
        self.heal()

    def _node(self) -> Node:
        return self.random.choice(list(self.world.nodes.values()))

    def _leader(self) -> Node | None:
        leaders = [node for node in self.world.nodes.values() if node.machine is not None and node.machine.is_leader]
        return self.random.choice(leaders) if leaders else None

    def _append(self) -> None:
        for node in list(self.world.nodes.values()):
            if not node.is_paused:
                node.append_records()

    def _kill(self) -> None:
        node = self._leader() if self.random.random() < 0.5 else self._node()
        if node is not None and node.machine is not None:
            self.world.note(f"{node.node_id} killed")
            node.kill()

    def _restart(self) -> None:
        dead = [node for node in self.world.nodes.values() if node.machine is None]
        if dead:
            node = self.random.choice(dead)
            self.world.note(f"{node.node_id} starts")
            node.start()

    def _restart_all(self) -> None:
        """Kills some nodes and starts all at once, so that their election timers begin together."""
        for node in self.world.nodes.values():
            if node.machine is not None and self.random.random() < 0.5:
                node.kill()
            if node.machine is None:
                self.world.note(f"{node.node_id} starts")
                node.start()

    def _bounce(self) -> None:
        """Kills a node and starts it at once."""
        node = self._node()
        if node.machine is not None:
            self.world.note(f"{node.node_id} bounces")
            node.kill()
            node.start()

    def _time_out(self) -> None:
        """Lets the leader of a node refuse connections, so that it asks for votes before the others."""
        node = self._node()
        if node.machine is not None and not node.is_paused:
            node.run(lambda machine: machine.leader_refused(machine.leader_id, self.world.now_ms))

    def _pause(self) -> None:
        node = self._node()
        if node.machine is not None:
            self.world.note(f"{node.node_id} paused")
            node.is_paused = True

    def _resume(self) -> None:
        for node in self.world.nodes.values():
            if node.is_paused and self.random.random() < 0.7:
                self._continue(node)

    def _continue(self, node: Node) -> None:
        self.world.note(f"{node.node_id} continues")
        node.is_paused = False
        waiting, node.waiting = node.waiting, []
        for action in waiting:
            self.world.after(0, action)

    def _cut(self) -> None:
        self.world.cut_off(self.world.nodes, 0.5)

    def _join(self) -> None:
        self.world.join()

    def _add_voter(self) -> None:
        leader, node = self._leader(), self._node()
        if leader is not None and node.can_be_voter and not leader.is_paused:
            request = AddVoterRequest(
                CLUSTER, 1000, voter_of(node.node_id, node.directory_id), self.random.random() < 0.5
            )
            self.world.note(f"add {node.key} at {leader.node_id}")
            leader.run(lambda machine: machine.receive(request, None, self.world.now_ms))

    def _remove_voter(self) -> None:
        leader = self._leader()
        if leader is not None and leader.machine is not None and not leader.is_paused:
            voter = self.random.choice(list(leader.machine.voters))
            remaining = self._intact(leader.machine.voters.without(voter.node_id))
            if 2 * remaining <= len(leader.machine.voters) - 1:
                return  # The others could not elect a leader without a disk that was replaced.
            self.world.note(f"remove {voter.key} at {leader.node_id}")
            request = RemoveVoterRequest(CLUSTER, voter.key)
            leader.run(lambda machine: machine.receive(request, None, self.world.now_ms))

    def _upgrade(self) -> None:
        leader = self._leader()
        if leader is not None and not leader.is_paused:
            leader.run(lambda machine: machine.upgrade_kraft_version(1, None, self.world.now_ms))

    def _snapshot(self) -> None:
        self._node().take_snapshot()

    def _shut_down(self) -> None:
        node = self._leader() if self.random.random() < 0.5 else self._node()
        if node is not None and node.machine is not None and not node.is_paused:
            node.run(lambda machine: machine.shutdown(5000, self.world.now_ms))

    def _replace_disk(self) -> None:
        """Replaces a disk by an empty one with a new directory id, if the voters can do without it."""
        node = self._node()
        sets = [each.machine.voters for each in self.world.nodes.values() if each.machine is not None]
        sets += [voters for each in self.world.nodes.values() if (voters := each.disk.view().voters()) is not None]
        if self.is_static or not sets or not all(self._can_spare(voters, node.key) for voters in sets):
            return
        self.world.note(f"{node.node_id} has a new disk")
        if node.machine is not None:
            node.kill()
        node.directory_id = self.world.new_directory()
        node.disk = Disk(None)
        node.start()

    def _can_spare(self, voters: VoterSet, key: ReplicaKey) -> bool:
        """Returns True if a majority remains without a voter, also if another one is removed at the same time."""
        return self._intact(voters.without(key.node_id)) > (len(voters) + 1) // 2

    def _intact(self, voters: VoterSet) -> int:
        """Returns the number of voters whose disk was not replaced."""
        return sum(self.world.nodes[voter.node_id].key == voter.key for voter in voters)

    FAULTS = (
        _kill,
        _restart,
        _restart,
        _restart,
        _pause,
        _resume,
        _resume,
        _cut,
        _join,
        _join,
        _add_voter,
        _add_voter,
        _remove_voter,
        _upgrade,
        _snapshot,
        _snapshot,
        _shut_down,
        _replace_disk,
    )

    ELECTION_FAULTS = (
        _bounce,
        _bounce,
        _bounce,
        _kill,
        _restart,
        _restart,
        _restart_all,
        _time_out,
        _time_out,
        _shut_down,
        _cut,
        _join,
        _snapshot,
    )

    VOTER_FAULTS = (
        *(_add_voter,) * 5,
        *(_remove_voter,) * 3,
        *(_upgrade,) * 2,
        _kill,
        _restart,
        _restart,
        _restart_all,
        _shut_down,
        _cut,
        _join,
        _join,
        _replace_disk,
    )

    # -- the end

    def heal(self) -> None:
        """Ends all faults and waits until new records are committed on every node."""
        world = self.world
        world.note("healed")
        world.join()
        world.drop = world.duplicate = world.slow = world.kill_between_effects = 0.0
        for node in world.nodes.values():
            if node.is_paused:
                self._continue(node)
            if node.machine is None:
                node.start()
        target, target_epoch, deadline_ms = -1, -1, world.now_ms + HEALED_WITHIN_MS
        while world.now_ms < deadline_ms:
            world.advance(200)
            for node in world.nodes.values():
                if node.machine is None:  # It was shutting down.
                    node.start()
            leader = self._leader()
            epoch = leader.machine.epoch if leader is not None and leader.machine is not None else -1
            if leader is not None and epoch != target_epoch and leader.high_watermark == leader.disk.end_offset:
                leader.append_records()  # A later leader need not have what a former one appended.
                target, target_epoch = leader.disk.end_offset, epoch
            if 0 <= target <= min(node.high_watermark for node in world.nodes.values()):
                return
        states = {
            node.node_id: (node.machine.state_name, node.machine.epoch, node.high_watermark, node.machine.voters)
            for node in world.nodes.values()
            if node.machine is not None
        }
        raise InvariantBroken(f"the healed cluster committed nothing up to {target}: {states}")


def run_seed(seed: int, *, is_traced: bool = False) -> Schedule:
    """Runs the schedule of a seed; an InvariantBroken names the seed."""
    schedule = Schedule(seed, is_traced=is_traced)
    try:
        schedule.run()
    except Exception as error:
        if is_traced:
            print("\n".join(schedule.world.trace or []))
        raise InvariantBroken(f"seed {seed}: {error}") from error
    return schedule


def main() -> int:
    """Runs the schedules that the command line names; returns 1 if one breaks an invariant."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.raft", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--schedules", type=int, default=1, help="the number of seeds")
    parser.add_argument("--trace", action="store_true", help="print every message of a schedule that fails")
    arguments = parser.parse_args()
    began, failures, records = time.perf_counter(), 0, 0
    for seed in range(arguments.seed, arguments.seed + arguments.schedules):
        try:
            records += run_seed(seed, is_traced=arguments.trace).world.invariants.end
        except InvariantBroken as error:
            print(error)
            failures += 1
    taken = time.perf_counter() - began
    per_thousand = taken * 1000 / arguments.schedules
    print(f"{arguments.schedules} schedules, {failures} failures, {records} records, {per_thousand:.1f} s per 1,000")
    return min(1, failures)


if __name__ == "__main__":
    sys.exit(main())
