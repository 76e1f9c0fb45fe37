"""A share partition over a real log: the records that it acquires, and changes of the log and of the stored state."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.errors import Error
from kafkapy.replica.share import log_batches
from kafkapy.replica.share.in_flight import AckBatch
from kafkapy.replica.share.persister import PersistedState, SharePartitionKey, StateBatch
from kafkapy.replica.share.share_partition import SharePartition, SharePorts
from kafkapy.types import ZERO_UUID
from tests.harness.cleaner import CleanerHarness
from tests.harness.replica import NOW_MS, break_reads
from tests.harness.shares import Coordinator, Settings, ShareHarness

ACCEPT, RELEASE = 1, 2
HOUR_MS = 3_600_000


@pytest.fixture
def harness(tmp_path: Path) -> ShareHarness:
    return ShareHarness(tmp_path)


# -- the end of what may be read


def test_a_high_watermark_below_the_start_delivers_nothing_again(tmp_path: Path) -> None:
    """The high watermark of a new leader may be behind until its followers fetch."""
    harness = ShareHarness(tmp_path, replicas=(1, 2), isr=(1, 2))
    harness.append(*[b"value"] * 8)
    harness.coordinator.state = PersistedState(1, 5)
    assert harness.log.high_watermark == 0
    assert harness.acquire() == []
    assert harness.share_partition().in_flight.start_offset == 5
    harness.log.high_watermark = 8
    assert harness.acquire() == [(5, 7, 1)]


def test_a_fetch_waits_for_a_high_watermark_below_the_start(tmp_path: Path) -> None:
    harness = ShareHarness(tmp_path, replicas=(1, 2), isr=(1, 2))
    harness.append(*[b"value"] * 8)
    harness.coordinator.state = PersistedState(1, 5)
    assert harness.share_fetch(wait_ms=1000) == []


def test_a_log_that_has_lost_its_end_is_consumed_from_there(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 3)
    harness.coordinator.state = PersistedState(1, 5, [StateBatch(6, 9, 2, 1)])
    assert harness.acquire() == []
    harness.append(b"new")
    assert harness.acquire() == [(3, 3, 1)]


def test_records_stay_acquired_when_the_group_changes_to_read_committed(harness: ShareHarness) -> None:
    harness.append(b"a", b"b", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert harness.acquire() == [(0, 1, 1)]
    harness.settings.is_committed = True
    assert harness.acquire("b") == []
    assert harness.acknowledge("a", (0, 1, [ACCEPT])) is Error.NONE
    assert harness.share_partition().in_flight.start_offset == 2


# -- a log that cannot be read


def test_a_log_that_cannot_be_read_is_an_error_of_the_share_partition(harness: ShareHarness) -> None:
    harness.append(b"a")
    harness.share_partition()
    break_reads(harness.log)
    (found,) = harness.share_fetch()
    assert found.error is Error.KAFKA_STORAGE_ERROR
    assert harness.failures


def test_a_damaged_transaction_index_acquires_nothing(harness: ShareHarness) -> None:
    harness.append(b"a")
    harness.settings.is_committed = True
    active = harness.log.segments.active
    active.is_free_of_aborted = False
    index = Path(active.transaction_index.path)
    index.write_bytes(b"damaged")
    (found,) = harness.share_fetch()
    assert found.error is Error.UNKNOWN_SERVER_ERROR
    index.unlink()
    assert harness.acquire() == [(0, 0, 1)]


def test_headers_that_cannot_be_read_take_the_directory_offline(
    harness: ShareHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    harness.append(b"a")
    harness.share_partition()

    def fail(*arguments: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(log_batches, "_read", fail)
    (found,) = harness.share_fetch()
    assert found.error is Error.KAFKA_STORAGE_ERROR
    assert harness.failures


def test_a_log_that_cannot_be_read_ends_the_wait_of_a_share_fetch(tmp_path: Path) -> None:
    harness = ShareHarness(tmp_path, replicas=(1, 2), isr=(1, 2))
    harness.append(b"a")
    harness.append(b"b")
    found = harness.share_fetch(wait_ms=1000, min_bytes=1000)
    harness.log.high_watermark = 1  # has to be looked up in the file
    break_reads(harness.log)
    harness.manager.gate_appended(harness.partition())
    assert [each.error for each in found] == [Error.NOT_LEADER_OR_FOLLOWER]
    assert harness.failures


def test_a_start_offset_that_cannot_be_read_fails_the_load(harness: ShareHarness) -> None:
    harness.settings.reset = "by_duration:PT1H"
    harness.append(b"a")
    break_reads(harness.log)
    assert harness.share_partition() is Error.KAFKA_STORAGE_ERROR
    assert harness.failures


# -- records that the log does not have


def test_records_below_the_start_of_the_log_do_not_block(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 5)
    harness.append(*[b"value"] * 5)
    assert harness.acquire(max_records=5) == [(0, 4, 1)]
    harness.acknowledge("a", (0, 4, [RELEASE]))
    harness.partition().delete_records_on_leader(7)
    assert harness.acquire() == []
    assert harness.acquire() == [(7, 9, 1)]
    assert harness.acknowledge("a", (7, 9, [ACCEPT])) is Error.NONE
    assert harness.window() == []


class CleanedLog:
    """A partition whose log was compacted, as far as share partitions use it."""

    topic_partition = ("t", 0)
    leader_epoch = 0

    def __init__(self, harness: CleanerHarness) -> None:
        self.log: Any = harness.log_

    def check_access(self, epoch: int, *, only_leader: bool) -> None:
        """Permits everything."""

    def end_offset(self, isolation: Any) -> int:
        return int(self.log.high_watermark)


def test_offsets_that_the_cleaner_has_emptied_do_not_block(tmp_path: Path) -> None:
    cleaner = CleanerHarness(tmp_path)
    for number in range(6):
        cleaner.put([(b"key", b"%d" % number)])
    cleaner.log_.roll()
    assert cleaner.clean()
    cleaner.put([(b"key", b"new")])
    coordinator = Coordinator()
    coordinator.state = PersistedState(1, 0, [StateBatch(0, 2, 0, 1), StateBatch(4, 4, 0, 1)])
    ports: Any = SharePorts(
        coordinator,  # type: ignore[arg-type]
        Settings(),
        lambda delay_ms, work: SimpleNamespace(cancel=lambda: None),  # type: ignore[arg-type,return-value]
        cleaner.clock,
    )
    key, log = SharePartitionKey("g", ZERO_UUID, 0), CleanedLog(cleaner)
    share = SharePartition(key, log, ports, lambda each: None, lambda each: None)  # type: ignore[arg-type]
    share.load()
    acquired = share.fetch("a", 1000, 500, 500, is_exact=False)[1]
    assert [(each.first, each.last) for each in acquired] == [(5, 5)]
    assert share.in_flight.start_offset == 5


# -- a response that is not sent


def test_withdrawn_records_were_not_delivered(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 4)
    (result,) = harness.share_fetch("a")
    harness.share_partition().withdraw("b", result.acquired)
    assert harness.window() == [(0, 3, "ACQUIRED", 1)]
    harness.share_partition().withdraw("a", result.acquired)
    assert harness.window() == [(0, 3, "AVAILABLE", 0)]
    assert harness.acquire("b") == [(0, 3, 1)]


def test_a_fetch_of_a_session_that_has_ended_acquires_nothing(harness: ShareHarness) -> None:
    waiting = harness.share_fetch("a", wait_ms=1000, is_wanted=False)
    harness.append(b"value")
    assert waiting == []
    assert harness.acquire("b") == [(0, 0, 1)]


# -- bad acknowledgements


@pytest.mark.parametrize(
    ("member", "batches", "error"),
    [
        ("b", [(3, 5, [ACCEPT])], Error.INVALID_RECORD_STATE),
        ("b", [(3, 4, [ACCEPT, RELEASE])], Error.INVALID_RECORD_STATE),
        ("a", [(3, 20, [ACCEPT])], Error.INVALID_REQUEST),
        ("a", [(1, 2, [ACCEPT]), (8, 20, [ACCEPT])], Error.INVALID_REQUEST),
    ],
    ids=("not its own", "not its own, by record", "not acquired", "one of two not acquired"),
)
def test_refused_acknowledgements_change_nothing(
    harness: ShareHarness, member: str, batches: list[tuple[int, int, list[int]]], error: Error
) -> None:
    harness.append(*[b"value"] * 10)
    harness.acquire("a")
    assert harness.acknowledge(member, *batches) is error
    assert harness.window() == [(0, 9, "ACQUIRED", 1)]
    assert harness.coordinator.writes == []


def test_records_are_acknowledged_once(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 10)
    harness.acquire("a")
    assert harness.acknowledge("a", (2, 4, [ACCEPT])) is Error.NONE
    before = harness.window()
    assert harness.acknowledge("a", (2, 4, [ACCEPT])) is Error.INVALID_RECORD_STATE
    assert (harness.window(), len(harness.coordinator.writes)) == (before, 1)


# -- the stored state


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (Error.FENCED_STATE_EPOCH, Error.NOT_LEADER_OR_FOLLOWER),
        (Error.FENCED_LEADER_EPOCH, Error.NOT_LEADER_OR_FOLLOWER),
        (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_OR_PARTITION),
        (Error.NOT_COORDINATOR, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.INVALID_REQUEST, Error.UNKNOWN_SERVER_ERROR),
        (Error.NETWORK_EXCEPTION, Error.UNKNOWN_SERVER_ERROR),
    ],
)
def test_the_errors_of_the_coordinator_that_members_get(harness: ShareHarness, stored: Error, shown: Error) -> None:
    harness.append(b"value")
    harness.acquire("a")
    harness.coordinator.error = stored
    assert harness.acknowledge("a", (0, 0, [ACCEPT])) is shown


def test_altered_offsets_are_read_again(harness: ShareHarness) -> None:
    """A share partition whose offsets were altered behind it is fenced by its next write."""
    harness.append(*[b"value"] * 10)
    harness.acquire("a")
    harness.coordinator.error = Error.FENCED_STATE_EPOCH
    harness.acknowledge("a", (0, 9, [ACCEPT]))
    assert harness.shares.get(harness.key()) is None
    harness.coordinator.error, harness.coordinator.state = Error.NONE, PersistedState(2, 6)
    assert harness.acquire("a") == [(6, 9, 1)]
    harness.acknowledge("a", (6, 9, [ACCEPT]))
    assert harness.coordinator.writes[-1].state_epoch == 2


def test_locks_that_end_during_a_write_end_when_it_has_failed(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 3)
    harness.acquire("a")
    unanswered: list[Any] = []
    harness.coordinator.write = lambda key, change, on_done: unanswered.append(on_done)  # type: ignore[method-assign]
    errors: list[Error] = []
    harness.share_partition().acknowledge("a", [AckBatch(0, 2, [ACCEPT])], lambda error, message: errors.append(error))
    harness.scheduler.advance(harness.settings.lock_ms)
    assert harness.scheduler.pending() == 0, "a timer would run again and again"
    assert harness.window() == [(0, 2, "ACQUIRED", 1)]
    unanswered.pop()(Error.NETWORK_EXCEPTION, None)
    assert errors == [Error.UNKNOWN_SERVER_ERROR]
    harness.scheduler.advance(1)
    assert harness.window() == [(0, 2, "AVAILABLE", 1)]


def test_a_state_that_is_not_known_fails_the_load_and_not_the_next_one(harness: ShareHarness) -> None:
    harness.append(*[b"value"] * 3)
    unknown = 3
    harness.coordinator.state = PersistedState(1, 0, [StateBatch(0, 1, unknown, 1)])
    assert harness.share_partition() is Error.UNKNOWN_SERVER_ERROR
    harness.coordinator.state = PersistedState(1, 2)
    assert harness.acquire() == [(2, 2, 1)]


# -- the first start


@pytest.mark.parametrize(
    ("reset", "start"),
    [
        ("earliest", 0),
        ("latest", 3),
        ("by_duration:PT30M", 2),
        ("by_duration:pt1h30m", 1),
        ("by_duration:P1DT0.5S", 0),
        ("BY_DURATION:P" + "9" * 400 + "D", 0),
        ("by_duration:PT0S", 3),
    ],
)
def test_the_offset_from_which_a_group_begins(harness: ShareHarness, reset: str, start: int) -> None:
    for age_ms in (2 * HOUR_MS, HOUR_MS, 0):
        harness.append_at(NOW_MS - age_ms, b"value")
    harness.clock.advance(1)
    harness.settings.reset = reset
    assert harness.share_partition().in_flight.start_offset == start
