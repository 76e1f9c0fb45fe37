"""Tests of the tables of `metadata-quorum describe`; tests/cluster compares them with Apache Kafka's."""

from kafkapy.client.admin import QuorumDescription, QuorumReplica
from kafkapy.tools.metadata_quorum import replication_lines, status_lines

LEADER = QuorumReplica(1, bytes(16), 100, 5000, 5000)
SLOW = QuorumReplica(2, bytes(16), 90, 4000, 3000)
NEVER = QuorumReplica(3, bytes(16), -1, -1, -1)
QUORUM = QuorumDescription(1, 7, 95, (LEADER, SLOW), (NEVER,), {1: {"CONTROLLER": ("h", 1)}})


def test_the_status_shows_the_slowest_voter() -> None:
    lines = status_lines("id", QUORUM)
    assert lines[4:6] == ["MaxFollowerLag:         10", "MaxFollowerLagTimeMs:   2000"]
    assert lines[7] == 'CurrentObservers:       [{"id": 3, "directoryId": null}]'


def test_a_voter_that_never_caught_up_has_no_lag_in_time() -> None:
    quorum = QUORUM._replace(voters=(LEADER, NEVER), observers=())
    assert status_lines("id", quorum)[4:6] == ["MaxFollowerLag:         101", "MaxFollowerLagTimeMs:   -1"]


def test_times_are_ages_for_people() -> None:
    rows = [line.split("\t") for line in replication_lines(QUORUM, wall_ms=6000)]
    assert [cell.strip() for cell in rows[2]][2:6] == ["90", "10", "2000 ms ago", "3000 ms ago"]
    assert rows[3][4].strip() == "unknown"
