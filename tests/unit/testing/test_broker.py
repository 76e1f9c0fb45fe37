"""The broker for tests: its settings, its errors and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kafkapy.testing import Broker, BrokerFailed, topic_name
from tests.broker_process import ROOT

# A program that starts a broker, prints its process and directory, and waits to be killed.
ABANDONED = """
import time
from kafkapy.testing import Broker
broker = Broker().start()
print(broker._process.pid, flush=True)
time.sleep(600)
"""


def await_end(pid: int) -> None:
    """Waits until a process has ended; a zombie, whose parent has not waited for it yet, counts as ended."""
    deadline = time.monotonic() + 30
    while (stat := Path(f"/proc/{pid}/stat")).exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the folder in which brokers make their directories."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_topics_are_created_with_partitions_and_configuration(temporary: Path):
    with Broker({"num.partitions": 3, "log.cleaner.enable": False}) as broker:
        name = broker.create_topic("orders", partitions=2, configs={"retention.ms": "1000"})
        with broker.admin() as admin:
            found = admin.describe_topics([name]).check()[name]
            assert len(found.partitions) == 2
        assert [path.name for path in temporary.glob("kafkapy-*/orders-1")] == ["orders-1"]
    assert list(temporary.glob("kafkapy-*")) == []
    assert not broker.is_running


def test_a_broker_can_be_started_again_without_its_data(temporary: Path):
    broker = Broker().start()
    broker.create_topic("orders")
    broker.stop()
    with broker, broker.admin() as admin:
        assert not admin.list_topics()
    broker.stop()  # without effect


def test_modules_of_the_project_are_not_visible_to_the_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "resource.py").write_text("raise RuntimeError('the module of the project')")
    monkeypatch.chdir(tmp_path)
    with Broker() as broker:
        assert broker.is_running


def test_a_setting_that_is_refused_is_named(temporary: Path):
    with pytest.raises(BrokerFailed, match=r"(?s)exit status 1.*num\.partitions"):
        Broker({"num.partitions": 0}).start()
    assert list(temporary.glob("kafkapy-*")) == []


def test_a_broker_that_is_not_running_has_no_address():
    broker = Broker()
    with pytest.raises(BrokerFailed, match="was not started"):
        _ = broker.bootstrap_servers


def test_a_second_start_is_refused():
    with Broker() as broker, pytest.raises(BrokerFailed, match="running already"):
        broker.start()


def test_a_broker_that_ended_by_itself_is_reported(temporary: Path):
    broker = Broker().start()
    assert broker._process is not None
    os.kill(broker._process.pid, signal.SIGKILL)
    broker._process.wait()
    with pytest.raises(BrokerFailed, match="ended before it was stopped"):
        broker.stop()


def test_a_broker_that_ended_by_itself_can_be_started_again(temporary: Path):
    broker = Broker().start()
    broker.create_topic("orders")
    assert broker._process is not None
    os.kill(broker._process.pid, signal.SIGKILL)
    broker._process.wait()
    with broker, broker.admin() as admin:
        broker.create_topic("prices")
        assert list(admin.list_topics()) == ["prices"]


def test_a_broker_that_does_not_become_ready_is_ended():
    sleeper = Broker(command=(sys.executable, "-c", "import time; time.sleep(600)"))
    with pytest.raises(BrokerFailed, match="not ready after"):
        sleeper.start(timeout_s=0.01)
    assert not sleeper.is_running


def test_a_broker_ends_when_its_program_is_killed(temporary: Path):
    with subprocess.Popen([sys.executable, "-c", ABANDONED], cwd=ROOT, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        pid = int(program.stdout.readline())
        assert len(list(temporary.glob("kafkapy-*"))) == 1
        program.kill()
    await_end(pid)
    assert list(temporary.glob("kafkapy-*")) == []


def test_names_of_topics_are_unique_and_valid():
    names = [topic_name("test_it[a/b c]"), topic_name("test_it[a/b c]"), topic_name("." * 9), topic_name("x" * 300)]
    assert len(set(names)) == 4
    assert names[0].startswith("test_it-a-b-c-")
    assert names[2].startswith("topic-")
    assert max(map(len, names)) <= 249
