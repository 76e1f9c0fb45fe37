"""A simulation of the controller: random requests and failures, with a model of what the replicas contain.

The controller is pure, so that a step is a function call and its records, which are encoded and decoded as in the log.
The model appends numbered records, replicates them, and acknowledges what all in-sync replicas have while there are
min.insync.replicas of them. Brokers stop cleanly, or are killed and lose the end of their logs, or lose a directory.
After each step a leader has every acknowledged record, unless the metadata says that it was elected uncleanly.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafkapy.controller.broker_sessions import BrokerSessions, Heartbeat
from kafkapy.controller.configs import ConfigChange, incremental_alter_configs
from kafkapy.controller.elections import balance_leaders, elect_leaders, elect_unclean_leaders
from kafkapy.controller.partitions import (
    AlterPartition,
    DirectoryAssignment,
    alter_partitions,
    assign_replicas_to_directories,
)
from kafkapy.controller.reassignments import alter_partition_reassignments
from kafkapy.controller.result import ControllerResult
from kafkapy.controller.topics import NewTopic, create_topics
from kafkapy.errors import ApiError
from kafkapy.metadata.image import BROKER_RESOURCE
from kafkapy.metadata.topics_image import DIRECTORY_UNASSIGNED, NO_LEADER, RECOVERING, PartitionImage
from kafkapy.protocol.record_frame import decode_metadata_record, encode_metadata_record
from kafkapy.types import TopicPartition, random_uuid
from tests.harness.metadata import bootstrapped, broker_config, registration, replay, rules
from tests.seeds import drawn_seed

BROKERS = range(1, 6)
PARTITIONS = 3
SESSION_TIMEOUT_MS = 9000
STEPS = 400
SIMULATIONS = 12


class Broker:
    """A broker's process and disks: log directories, and the log of each replica by partition."""

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.is_running = False
        self.is_stopping = False
        self.clean_epoch = -1
        self.directories = [random_uuid(), random_uuid()]
        self.directory_of: dict[int, bytes] = {}
        self.logs: dict[int, list[int]] = {}
        self.failed: set[bytes] = set()


class Simulation:
    """The cluster: the image, the sessions of its active controller, brokers, and what was acknowledged."""

    def __init__(self, seed: int, *, elr: bool) -> None:
        self.chance = random.Random(seed)
        self.elr = elr
        self.config = broker_config()
        self.image = bootstrapped(elr=elr)
        self.monotonic_ms = 0
        self.sessions = BrokerSessions(self.image, SESSION_TIMEOUT_MS, 0)
        self.brokers = {broker_id: Broker(broker_id) for broker_id in BROKERS}
        self.acknowledged: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        self.next_record = 0
        self.steps = [
            self.append, self.append, self.replicate, self.replicate, self.replicate, self.replicate, self.change_isr,
            self.change_isr, self.heartbeat, self.heartbeat, self.start, self.start, self.kill, self.shut_down,
            self.expire, self.elect, self.reassign, self.change_min_isr, self.fail_over,
        ]  # fmt: skip
        if elr:  # Without ELR the last replica of an ISR is trusted although its directory was replaced.
            self.steps.append(self.fail_directory)
        self.begin()

    def begin(self) -> None:
        for broker_id in BROKERS:
            self.start(broker_id)
            self.heartbeat(broker_id)
        new = NewTopic("t", assignments=[(number, self.chance.sample(BROKERS, 3)) for number in range(PARTITIONS)])
        self.commit(create_topics(self.image, [new], rules(self.config)))
        self.catch_up()

    # -- the log

    def commit(self, result: ControllerResult[Any]) -> Any:
        """Replays records as they would be read from the log, and checks what they did to the partitions."""
        before = self.partitions()
        decoded = [decode_metadata_record(encode_metadata_record(*record)) for record in result.records]
        self.image = replay(self.image, *decoded)
        for number, partition in self.partitions().items():
            if number in before:
                self.check_change(number, before[number], partition)
        self.catch_up()
        return result.response

    def partitions(self) -> dict[int, PartitionImage]:
        topic = self.image.topics.by_name.get("t")
        return {} if topic is None else topic.partitions

    def check_change(self, number: int, before: PartitionImage, after: PartitionImage) -> None:
        assert set(after.isr) <= set(after.replicas) and not set(after.isr) & set(after.elr)
        assert set(after.elr) <= set(after.replicas)
        assert after.leader == NO_LEADER or after.leader in after.isr
        assert len(set(after.replicas)) == len(after.replicas) == len(after.directories)
        assert self.elr or (after.isr and not after.elr and not after.last_known_elr)
        assert after.leader_epoch >= before.leader_epoch and after.partition_epoch >= before.partition_epoch
        if after == before:
            return
        assert after.partition_epoch > before.partition_epoch
        if after.leader != before.leader:
            assert after.leader_epoch > before.leader_epoch
            if after.leader != NO_LEADER:
                assert self.image.brokers[after.leader].is_active
                self.check_new_leader(number, before, after)

    def check_new_leader(self, number: int, before: PartitionImage, after: PartitionImage) -> None:
        log = self.log_of(after.leader, number)
        acknowledged = self.acknowledged[number]
        if after.leader_recovery_state == RECOVERING and after.isr == (after.leader,):
            self.acknowledged[number] = list(log)  # An unclean election: records may be lost.
            return
        # A broker that died may be elected until its session expires. It serves nothing before it registers again.
        if self.brokers[after.leader].is_running:
            assert log[: len(acknowledged)] == acknowledged, f"partition {number}: {before} -> {after}"

    # -- replicas

    def log_of(self, broker_id: int, number: int) -> list[int]:
        return self.brokers[broker_id].logs.setdefault(number, [])

    def is_serving(self, broker_id: int, number: int) -> bool:
        broker, found = self.brokers[broker_id], self.image.brokers.get(broker_id)
        directory = self.directory_in_metadata(broker_id, number)
        return broker.is_running and found is not None and not found.fenced and directory not in broker.failed

    def is_online(self, broker_id: int, partition: PartitionImage) -> bool:
        """Returns whether the metadata has this replica in a directory that did not fail."""
        if broker_id not in partition.replicas:
            return False
        return self.image.brokers[broker_id].has_online_directory(partition.directory_of(broker_id))

    def directory_in_metadata(self, broker_id: int, number: int) -> bytes:
        return self.partitions()[number].directory_of(broker_id)

    def led(self) -> tuple[int, PartitionImage] | None:
        """Returns a partition with a leader that can serve it."""
        found = [
            (number, partition)
            for number, partition in self.partitions().items()
            if partition.leader != NO_LEADER and self.is_serving(partition.leader, number)
        ]
        return self.chance.choice(found) if found else None

    def append(self) -> None:
        if (found := self.led()) is not None:
            number, partition = found
            self.next_record += 1
            self.log_of(partition.leader, number).append(self.next_record)
            self.acknowledge(number, partition)

    def replicate(self) -> None:
        """Lets a follower fetch: it truncates its log where it differs from the leader's, and gets some more
        records."""
        if (found := self.led()) is None:
            return
        number, partition = found
        follower = self.chance.choice(partition.replicas)
        if follower != partition.leader and self.is_serving(follower, number):
            leader_log, log = self.log_of(partition.leader, number), self.log_of(follower, number)
            same = common_prefix(leader_log, log)
            log[:] = leader_log[: self.chance.choice([len(leader_log), same + 1])]
            self.acknowledge(number, partition)

    def acknowledge(self, number: int, partition: PartitionImage) -> None:
        configured = self.image.config(BROKER_RESOURCE, "").get("min.insync.replicas", "1")
        minimum = min(int(configured), len(partition.replicas))
        if len(partition.isr) < minimum:
            return
        leader_log = self.log_of(partition.leader, number)
        committed = min(common_prefix(leader_log, self.log_of(replica, number)) for replica in partition.isr)
        if committed > len(self.acknowledged[number]):
            self.acknowledged[number] = leader_log[:committed]

    def change_isr(self) -> None:
        if (found := self.led()) is not None:
            self.request_isr(*found)

    def request_isr(self, number: int, partition: PartitionImage) -> None:
        """Lets a leader request an ISR without followers that are behind, and with those that have all acknowledged
        records."""
        leader_log = self.log_of(partition.leader, number)
        committed = self.acknowledged[number]
        isr = [partition.leader]
        epochs = []
        for replica in partition.replicas:
            log = self.log_of(replica, number)
            is_behind = log != leader_log and self.chance.random() < 0.5
            has_committed = log[: len(committed)] == committed and self.is_serving(replica, number)
            stays = replica in partition.isr and not is_behind
            enters = has_committed and log == leader_log[: len(log)]
            if replica != partition.leader and (stays or enters):
                isr.append(replica)
        for replica in isr:
            known = self.image.brokers.get(replica)
            epochs.append(-1 if known is None or self.chance.random() < 0.3 else known.epoch)
        state = 0 if len(isr) > 1 else partition.leader_recovery_state
        request = AlterPartition(
            self.topic_id, number, partition.leader_epoch, partition.partition_epoch, tuple(isr), state, tuple(epochs)
        )
        epoch = self.image.brokers[partition.leader].epoch
        self.commit(alter_partitions(self.image, partition.leader, epoch, [request]))

    @property
    def topic_id(self) -> bytes:
        return self.image.topics.by_name["t"].topic_id

    def catch_up(self) -> None:
        """Lets brokers apply the metadata: they delete replicas that were taken away, and choose directories for new
        ones."""
        for broker_id, broker in self.brokers.items():
            for number in list(broker.logs):
                if number in self.partitions() and broker_id not in self.partitions()[number].replicas:
                    del broker.logs[number]

    def assign_directories(self, broker: Broker) -> None:
        wanted = []
        for number, partition in self.partitions().items():
            if broker.broker_id not in partition.replicas:
                continue
            known = partition.directory_of(broker.broker_id)
            if known == DIRECTORY_UNASSIGNED or known not in broker.directories:
                online = [each for each in broker.directories if each not in broker.failed]
                if online:
                    wanted.append(DirectoryAssignment(self.topic_id, number, self.chance.choice(online)))
        epoch = self.image.brokers[broker.broker_id].epoch
        self.commit(assign_replicas_to_directories(self.image, broker.broker_id, epoch, wanted))

    # -- brokers

    def start(self, broker_id: int | None = None) -> None:
        """Registers a broker that does not run; its failed directories are replaced by empty ones."""
        broker = self.brokers[broker_id or self.chance.choice(BROKERS)]
        if broker.is_running:
            return
        if broker.failed:
            broker.clean_epoch = -1  # The new directory has no file that a clean shutdown left.
            broker.directories = [random_uuid() if each in broker.failed else each for each in broker.directories]
            broker.failed = set()
        wanted = registration(broker.broker_id, tuple(broker.directories), rack=f"r{broker.broker_id % 3}")
        try:
            self.commit(self.sessions.register(self.image, wanted, broker.clean_epoch, self.monotonic_ms))
        except ApiError:  # The session of the former process has not expired.
            return
        broker.is_running, broker.is_stopping, broker.clean_epoch = True, False, -1

    def heartbeat(self, broker_id: int | None = None) -> None:
        self.monotonic_ms += 100
        for broker in self.brokers.values():
            if broker.is_running and (broker_id is None or broker.broker_id == broker_id):
                self.send_heartbeat(broker)

    def send_heartbeat(self, broker: Broker) -> None:
        known = self.image.brokers[broker.broker_id]
        offset = self.image.offset - 1 - (self.chance.random() < 0.1)
        request = Heartbeat(broker.broker_id, known.epoch, offset, False, broker.is_stopping, tuple(broker.failed))
        if self.partitions():
            self.assign_directories(broker)
        response = self.commit(self.sessions.heartbeat(self.image, request, self.monotonic_ms))
        if response.should_shut_down:
            broker.is_running = False
            broker.clean_epoch = known.epoch
            assert self.image.brokers[broker.broker_id].fenced
            assert all(partition.leader != broker.broker_id for partition in self.partitions().values())

    def kill(self) -> None:
        """Ends a process and, at times, the machine: the ends of the logs that were not flushed are lost."""
        broker = self.brokers[self.chance.choice(BROKERS)]
        if broker.is_running and self.chance.random() < 0.5:
            broker.is_running = False
            # Without ELR the last replica of an ISR is trusted although it may have lost records.
            if self.elr and self.chance.random() < 0.5:
                for log in broker.logs.values():
                    del log[self.chance.randint(0, len(log)) :]

    def shut_down(self) -> None:
        """Lets a broker ask for its shutdown, which later heartbeats complete."""
        broker = self.brokers[self.chance.choice(BROKERS)]
        if broker.is_running:
            broker.is_stopping = True
            self.send_heartbeat(broker)

    def fail_directory(self) -> None:
        broker = self.brokers[self.chance.choice(BROKERS)]
        online = [each for each in broker.directories if each not in broker.failed]
        if not broker.is_running or len(online) < 2 or self.chance.random() < 0.7:
            return
        failed = self.chance.choice(online)
        broker.failed.add(failed)
        for number, partition in self.partitions().items():
            is_there = broker.broker_id in partition.replicas and partition.directory_of(broker.broker_id) == failed
            if is_there:
                broker.logs[number] = []
        self.send_heartbeat(broker)

    # -- the controller

    def expire(self) -> None:
        """Lets the sessions of the brokers expire that do not run; the others have sent a heartbeat."""
        self.monotonic_ms += SESSION_TIMEOUT_MS
        for broker in self.brokers.values():
            if broker.is_running:
                self.sessions.contact(broker.broker_id, self.image.brokers[broker.broker_id].epoch, self.monotonic_ms)
        self.monotonic_ms += 1
        while self.commit(self.sessions.fence_expired(self.image, self.monotonic_ms)):
            pass

    def elect(self) -> None:
        kind = self.chance.randrange(4)
        if kind == 0:
            self.commit(balance_leaders(self.image))
        elif kind == 1:
            self.commit(elect_unclean_leaders(self.image))
        elif kind == 2:
            self.commit(elect_leaders(self.image, 0, None))
        elif self.chance.random() < 0.2:
            self.commit(elect_leaders(self.image, 1, None))

    def reassign(self) -> None:
        number = self.chance.randrange(PARTITIONS)
        wanted = None
        if self.chance.random() < 0.6:
            wanted = self.chance.sample(BROKERS, self.chance.randint(1, 4))
        self.commit(alter_partition_reassignments(self.image, [(TopicPartition("t", number), wanted)]))

    def change_min_isr(self) -> None:
        change = ConfigChange("min.insync.replicas", 0, str(self.chance.randint(1, 3)))
        self.commit(incremental_alter_configs(self.image, self.config, {(BROKER_RESOURCE, ""): [change]}))

    def fail_over(self) -> None:
        """Replaces the active controller by another one, which knows only the image."""
        self.sessions = BrokerSessions(self.image, SESSION_TIMEOUT_MS, self.monotonic_ms)

    def heal(self) -> None:
        """Replaces failed directories, starts all brokers, and lets all followers catch up."""
        for broker in self.brokers.values():
            broker.is_running = broker.is_running and not broker.failed
        for _ in range(8):
            self.expire()
            for broker_id in BROKERS:
                self.start(broker_id)
            self.heartbeat()
        assert not any(broker.fenced for broker in self.image.brokers.values())
        for number, partition in list(self.partitions().items()):
            if partition.leader != NO_LEADER:
                for replica in partition.replicas:
                    if self.is_serving(replica, number):
                        self.log_of(replica, number)[:] = self.log_of(partition.leader, number)
                self.request_isr(number, partition)


def common_prefix(first: list[int], second: list[int]) -> int:
    for position, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return position
    return min(len(first), len(second))


def run_simulation(seed: int, *, elr: bool) -> None:
    simulation = Simulation(seed, elr=elr)
    print(f"simulation {seed}")
    for _ in range(STEPS):
        simulation.chance.choice(simulation.steps)()
    simulation.heal()
    configured = int(simulation.image.config(BROKER_RESOURCE, "").get("min.insync.replicas", "1"))
    for partition_id, partition in simulation.partitions().items():
        if partition.leader == NO_LEADER:
            # All brokers are back: the last complete replicas were in failed directories, or none is known.
            candidates = partition.isr or partition.elr or partition.last_known_elr
            assert not any(simulation.is_online(replica, partition) for replica in candidates)
            continue
        assert len(partition.isr) >= min(configured, len(partition.replicas))
        log = simulation.log_of(partition.leader, partition_id)
        acknowledged = simulation.acknowledged[partition_id]
        assert log[: len(acknowledged)] == acknowledged


@pytest.mark.parametrize("elr", [True, False])
def test_no_acknowledged_record_is_lost_without_an_unclean_election(elr):
    seed = drawn_seed()
    for number in range(SIMULATIONS):
        run_simulation(seed + number, elr=elr)
