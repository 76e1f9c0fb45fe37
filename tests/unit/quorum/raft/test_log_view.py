"""The Raft machine's view of the log."""

import pytest

from kafkapy.quorum.raft.log_view import LogView
from kafkapy.quorum.raft.messages import FetchedBatch, VoterChange
from kafkapy.types import OffsetAndEpoch
from tests.harness.raft_harness import log_of, voters_of

ONE, TWO, THREE = voters_of(1), voters_of(1, 2), voters_of(1, 2, 3)


def history():
    """Returns a log with voter sets at the offsets -1, 3 and 7."""
    log = log_of((2, 5), (4, 5), voters=ONE)
    log.append((), (VoterChange(3, TWO), VoterChange(7, THREE)))
    return log


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 0)), (1, (0, 1)), (2, (5, 2)), (3, (5, 2)), (4, (10, 4)), (9, (10, 4))],
)
def test_the_end_of_an_epoch(epoch, expected):
    assert log_of((2, 5), (4, 5)).end_of_epoch(epoch) == OffsetAndEpoch(*expected)


def test_an_empty_log_ends_every_epoch_at_its_snapshot():
    assert LogView().end_of_epoch(3) == OffsetAndEpoch(0, 0)
    log = LogView(50, 50, snapshots=[OffsetAndEpoch(50, 4)])
    assert log.end == log.end_of_epoch(2) == OffsetAndEpoch(50, 4)


@pytest.mark.parametrize(
    ("end", "epochs", "voters"),
    [
        (8, [(2, 0), (4, 5)], THREE),
        (7, [(2, 0), (4, 5)], TWO),
        (5, [(2, 0)], TWO),
        (3, [(2, 0)], ONE),
        (0, [], ONE),
    ],
)
def test_a_truncation_removes_epochs_and_voter_sets(end, epochs, voters):
    log = history()
    log.truncate(end)
    assert (log.end_offset, log.flushed_offset, log.epochs, log.voters()) == (end, end, epochs, voters)


@pytest.mark.parametrize(("offset", "voters"), [(0, ONE), (3, ONE), (4, TWO), (7, TWO), (8, THREE), (10, THREE)])
def test_the_voters_of_a_snapshot_are_those_before_its_end(offset, voters):
    assert history().voters_before(offset) == (voters, 1)


def test_a_log_without_voters_has_kraft_version_0():
    log = log_of((2, 5))
    assert (log.voters(), log.voters_offset(), log.former_voters()) == (None, -1, None)
    assert (log.kraft_version(), log.voters_before(5)) == (0, (None, 0))


@pytest.mark.parametrize(
    ("start", "epochs", "former"),
    [(5, [(4, 5)], TWO), (7, [(4, 7)], TWO), (8, [(4, 8)], None), (10, [], None), (3, [(2, 3), (4, 5)], TWO)],
)
def test_cleaning_keeps_the_voter_set_that_counts_at_the_new_start(start, epochs, former):
    log = history()
    snapshot = OffsetAndEpoch(start, 4 if start > 5 else 2)
    log.clean(start, [snapshot])
    assert (log.start_offset, log.end_offset, log.epochs, log.snapshots) == (start, 10, epochs, [snapshot])
    assert (log.voters(), log.former_voters()) == (THREE, former)
    assert log.last_epoch == 4


def test_a_snapshot_replaces_the_log():
    log = history()
    log.start_at(OffsetAndEpoch(50, 6), TWO, 1)
    assert (log.start_offset, log.end, log.flushed_offset) == (50, OffsetAndEpoch(50, 6), 50)
    assert (log.voters(), log.voters_offset(), log.voters_before(50)) == (TWO, 49, (TWO, 1))
    log.append((FetchedBatch(50, 51, 7),), ())
    assert log.epochs == [(7, 50)]


def test_only_newer_snapshots_are_added():
    log = history()
    for snapshot in [(5, 2), (8, 4), (3, 2), (8, 4)]:
        log.add_snapshot(OffsetAndEpoch(*snapshot))
    assert log.snapshots == [(5, 2), (8, 4)]
