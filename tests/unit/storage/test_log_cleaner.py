"""The log cleaner's threads, and its worker, with every kind of failure of a pass."""

import errno
import threading
from concurrent.futures import CancelledError

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.errors import ApiError, Error, StorageError
from kafkapy.storage.cleaned_segment import SegmentsChanged
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.log_cleaner_manager import CleaningAborted
from kafkapy.storage.log_cleaner_pass import CleaningPass
from tests.harness.cleaner import CleanerHarness

PATIENCE_S = 30


class Cleaner:
    """A LogCleaner over the log of a harness; the lock of the harness stands for the owner's thread."""

    def __init__(self, harness, **properties):
        named = {name.replace("_", "."): value for name, value in properties.items()}
        self.config = BrokerConfig({"process.roles": "broker,controller", "node.id": "1", **named})
        self.asked = threading.Semaphore(0)
        self.failure = None
        self.cleaner = LogCleaner(
            self.config,
            harness.logs,
            filesystem=Filesystem(),
            clock=harness.clock,
            run_on_owner=self.run_on_owner,
            schedule=lambda delay_ms, work: None,
        )

    def run_on_owner(self, work):
        if self.failure is not None:
            self.asked.release()
            raise self.failure
        result = work()
        self.asked.release()
        return result


@pytest.fixture
def harness(tmp_path):
    harness = CleanerHarness(tmp_path)
    harness.put([(b"a", b"1"), (b"a", b"2")])
    harness.log_.roll()
    return harness


def test_cleans_and_ends(harness):
    cleaner = Cleaner(harness)
    cleaner.cleaner.start()
    for _ in range(4):  # calls on the owner: described, snapshot, swap, described
        assert cleaner.asked.acquire(timeout=PATIENCE_S)
    cleaner.cleaner.stop()
    assert [record[0] for record in harness.records()] == [1]
    assert cleaner.cleaner.dead_threads == 0


def test_does_nothing_when_it_is_switched_off(harness):
    cleaner = Cleaner(harness, log_cleaner_enable="false")
    cleaner.cleaner.start()
    cleaner.cleaner.stop()
    assert len(harness.records()) == 2


def test_a_thread_that_dies_is_counted(harness, caplog):
    cleaner = Cleaner(harness)
    cleaner.failure = RuntimeError("a bug")
    cleaner.cleaner.start()
    assert cleaner.asked.acquire(timeout=PATIENCE_S)
    cleaner.cleaner.stop()
    assert cleaner.cleaner.dead_threads == 1
    assert "kafka-log-cleaner-thread-0 died" in caplog.text


def test_the_memory_is_divided_among_the_threads(harness):
    cleaner = Cleaner(harness, **{"log.cleaner.threads": "2", "log.cleaner.dedupe.buffer.size": str(128 << 20)})
    tools = cleaner.cleaner.worker()._tools
    assert tools.offsets.capacity == 2_516_581


# -- the worker


def fail_with(monkeypatch, error):
    def fail(cleaning_pass):
        raise error

    monkeypatch.setattr(CleaningPass, "run", fail)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CleaningAborted("paused"), "ended early: paused"),
        (SegmentsChanged("deleted"), "ended early: deleted"),
        (StorageError("/data", "broken"), "Cleaning of t-0 failed: "),
        (MemoryError("map"), "is postponed, because memory is short: map"),
    ],
)
def test_a_pass_that_a_later_one_can_repeat(harness, monkeypatch, caplog, error, message):
    caplog.set_level("INFO")
    fail_with(monkeypatch, error)
    assert harness.clean()
    assert message in caplog.text
    assert not harness.failures
    assert not harness.manager.uncleanable_partitions
    monkeypatch.undo()
    assert harness.clean(), "the state of the log was released"
    assert [record[0] for record in harness.records()] == [1]


@pytest.mark.parametrize("error", [ApiError(Error.CORRUPT_MESSAGE, "x"), ValueError("x"), AssertionError("x")])
def test_a_pass_that_no_later_one_can_repeat(harness, monkeypatch, error):
    fail_with(monkeypatch, error)
    assert harness.clean()
    assert harness.manager.uncleanable_partitions == [harness.log_.topic_partition]
    assert harness.manager.state_of(harness.log_.topic_partition) is None


def test_a_pass_without_an_owner_thread_ends_the_worker(harness, monkeypatch):
    fail_with(monkeypatch, CancelledError())
    with pytest.raises(CancelledError):
        harness.clean()
    assert not harness.manager.uncleanable_partitions
    assert harness.manager.state_of(harness.log_.topic_partition) is None


@pytest.mark.parametrize("circumstance", ["in use", "marked as deleted", "out of the table"])
def test_a_disk_error_of_a_log_in_use_takes_the_directory_offline(harness, monkeypatch, circumstance):
    def fail(cleaning_pass):
        if circumstance == "marked as deleted":
            harness.log_.mark_deleted()
        elif circumstance == "out of the table":
            harness.logs.remove(harness.log_.topic_partition)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(CleaningPass, "run", fail)
    assert harness.clean()
    assert len(harness.failures) == (1 if circumstance == "in use" else 0)


def test_a_report_of_each_pass_and_of_records_without_keys(tmp_path, caplog):
    caplog.set_level("INFO")
    harness = CleanerHarness(tmp_path, overrides={"cleanup.policy": "delete"})
    harness.put([(None, b"1"), (b"a", b"2"), (b"a", b"3")])
    harness.log_.close()
    harness.overrides["cleanup.policy"] = "compact"
    harness.reopen()
    harness.log_.roll()
    assert harness.clean()
    assert "Cleaning t-0: offsets 0 to 3, 100% of" in caplog.text
    assert "Cleaned t-0 to offset 3 in 0 ms: 1 of 3 records kept" in caplog.text
    assert "1 records without a key were dropped from t-0" in caplog.text
    caplog.clear()
    harness.put([(b"a", b"4")])
    harness.log_.roll()
    assert harness.clean()
    assert "without a key" not in caplog.text


def test_the_files_and_names_are_durable_before_and_after_the_swap(harness, monkeypatch):
    calls = []

    def recorded(name):
        original = getattr(Filesystem, name)

        def record(filesystem, *arguments):
            calls.append(name)
            return original(filesystem, *arguments)

        return record

    for name in ("sync_file", "sync_directory", "rename"):
        monkeypatch.setattr(Filesystem, name, recorded(name))
    assert harness.clean()
    first, last = calls.index("rename"), len(calls) - 1 - calls[::-1].index("rename")
    assert calls[:first] == ["sync_file"] * 3 + ["sync_directory"], "log and indexes, then their names"
    assert set(calls[first : last + 1]) == {"rename"}
    assert calls[last + 1 :][0] == "sync_directory"


@pytest.mark.parametrize("after", range(4))
def test_a_stop_ends_a_pass_at_its_next_check(harness, after):
    """The pass checks before each segment, each buffer and each group, and before the swap."""
    checks = []

    def check():
        checks.append(1)
        if len(checks) > after:
            raise CleaningAborted("stopping")

    harness.worker._tools = harness.worker._tools._replace(check=check)
    with pytest.raises(CleaningAborted):
        harness.clean()
    assert len(checks) == after + 2, "the worker asks again whether to stop"
    assert len(harness.records()) == 2


def test_all_threads_have_ended_after_a_stop(harness):
    cleaner = Cleaner(harness, log_cleaner_threads="3")
    before = threading.active_count()
    cleaner.cleaner.start()
    for _ in range(4):
        assert cleaner.asked.acquire(timeout=PATIENCE_S)
    while len(cleaner.cleaner._threads) < 3:
        assert not cleaner.cleaner.dead_threads
    cleaner.cleaner.stop()
    assert threading.active_count() == before
    assert sorted(cleaner.cleaner._threads) == [0, 1, 2]
    assert cleaner.cleaner.dead_threads == 0
