"""The cleaner's threads: they work, follow the configuration, end, and are counted when they die."""

import threading

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.storage.filesystem import Filesystem
from kafkapy.storage.log_cleaner import LogCleaner
from tests.harness.cleaner import CleanerHarness

PATIENCE_S = 30


class Cleaner:
    """A LogCleaner over the log of a harness; the harness's lock is the owner's thread."""

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
    for _ in range(4):  # described, snapshot, swap, described
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
