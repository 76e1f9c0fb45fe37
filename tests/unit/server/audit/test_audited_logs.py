"""The partitions that the audit counts, and from which offsets it does."""

from __future__ import annotations

import pytest

from kafkapy.server.audit.audited_logs import LEADER_CHANGE_PAUSE_MS, AuditedLogs
from kafkapy.types import TopicPartition
from tests.mock_clock import MockClock


class SimulatedLog:
    """The offsets of a log."""

    def __init__(self, log_end_offset: int) -> None:
        self.log_end_offset = log_end_offset


class SimulatedPartition:
    """The fields of a partition that the audit uses."""

    def __init__(self, topic: str = "t", *, replicas: int = 3, leader_epoch: int = 0, end_offset: int = 0) -> None:
        self.topic_partition = TopicPartition(topic, 0)
        self.replicas = tuple(range(replicas))
        self.leader_epoch = leader_epoch
        self.log = SimulatedLog(end_offset)
        self.client_notes = None
        self.is_gated = True


def make(clock: MockClock, *patterns: str) -> AuditedLogs:
    return AuditedLogs(patterns, ("__kafkapy_audit",), clock)


@pytest.mark.parametrize(
    ("topic", "is_audited"),
    [("t", True), ("payments-1", True), ("Payments-1", False), ("other", False), ("__kafkapy_audit", False)],
)
def test_topics_are_chosen_by_name_and_wildcards(topic, is_audited):
    assert make(MockClock(), "t", "payments-*").is_audited(topic) is is_audited


@pytest.mark.parametrize("topic", ["__kafkapy_audit", "__consumer_offsets", "__transaction_state"])
def test_internal_topics_and_the_counts_are_never_audited(topic):
    logs = make(MockClock(), "*")
    partition = SimulatedPartition(topic)
    logs.on_leadership([partition], [])
    assert partition.client_notes is None and not logs.leaderships()
    assert logs.is_audited("any")


def test_a_leader_notes_clients_and_a_follower_does_not():
    logs = make(MockClock(), "t")
    partition = SimulatedPartition()
    logs.on_leadership([partition], [])
    notes = partition.client_notes
    [first] = logs.leaderships().values()
    logs.on_leadership([partition], [])  # a new epoch of the same leader
    assert partition.client_notes is notes and list(logs.leaderships().values()) == [first]
    logs.on_leadership([], [partition])
    assert partition.client_notes is None and not logs.leaderships()
    logs.on_leadership([partition], [])
    assert partition.client_notes is not notes
    assert logs.leaderships()[partition.topic_partition].serial != first.serial


@pytest.mark.parametrize(("replicas", "epoch", "pause"), [(1, 5, False), (3, 0, False), (3, 1, True)])
def test_a_leader_pauses_if_there_may_be_a_former_one(replicas, epoch, pause):
    clock = MockClock()
    logs = make(clock, "t")
    logs.on_leadership([SimulatedPartition(replicas=replicas, leader_epoch=epoch)], [])
    [leadership] = logs.leaderships().values()
    assert leadership.counts_from_ms - clock.monotonic_ms() == (LEADER_CHANGE_PAUSE_MS if pause else 0)


def test_counting_begins_where_the_broker_began_to_host_the_partition():
    logs = make(MockClock(), "t")
    partition = SimulatedPartition(end_offset=3)
    logs.on_leadership([], [partition])
    partition.log.log_end_offset = 10
    logs.on_leadership([partition], [])
    assert [each.begin_offset for each in logs.leaderships().values()] == [3]
    partition.is_gated = False  # the topic was deleted
    logs.on_leadership([], [partition])
    logs.on_leadership([SimulatedPartition(end_offset=1)], [])
    assert [each.begin_offset for each in logs.leaderships().values()] == [1]


def test_an_older_object_of_a_partition_does_not_end_the_new_one():
    logs = make(MockClock(), "t")
    former, present = SimulatedPartition(), SimulatedPartition()
    logs.on_leadership([former], [])
    logs.on_leadership([present], [])
    former.is_gated = False
    logs.on_leadership([], [former])
    assert len(logs.leaderships()) == 1 and present.client_notes is not None
