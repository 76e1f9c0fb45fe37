"""Notifications to systemd, received by a socket of the test: the protocol of sd_notify(3)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.service_manager import ServiceManager
from tests.broker_process import BrokerProcess

TIMEOUT_S = 20
WATCHDOG = "200000"  # microseconds


@pytest.fixture
def manager() -> Iterator[socket.socket]:
    """Yields a notification socket in the abstract name space, where names have no length limit."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("")
        receiver.settimeout(TIMEOUT_S)
        yield receiver


def address_of(manager: socket.socket) -> str:
    return "@" + manager.getsockname()[1:].decode()


def received(manager: socket.socket) -> list[str]:
    return manager.recv(4096).decode().splitlines()


def test_a_broker_is_ready_alive_and_stopping(manager: socket.socket, tmp_path: Path):
    environment = {"NOTIFY_SOCKET": address_of(manager), "WATCHDOG_USEC": WATCHDOG}
    with BrokerProcess(tmp_path, environment=environment) as broker:
        ready, status = received(manager)
        assert ready == "READY=1"
        assert status.startswith("STATUS=kafkapy ")
        assert status.endswith(f"data in {broker.data}")
        assert received(manager) == received(manager) == received(manager) == ["WATCHDOG=1"]
        assert broker.stop() == 0
    messages = [received(manager)]
    while messages[-1] == ["WATCHDOG=1"]:
        messages.append(received(manager))
    assert messages[-1] == ["STOPPING=1", "WATCHDOG_USEC=0"]


def test_a_start_that_fails_sends_no_notification(manager: socket.socket, tmp_path: Path):
    broker = BrokerProcess(tmp_path, {"log.segment.bytes": "1"}, environment={"NOTIFY_SOCKET": address_of(manager)})
    with pytest.raises(AssertionError, match="exit 1 while starting"):
        broker.start()
    manager.setblocking(False)
    with pytest.raises(BlockingIOError):
        received(manager)


def test_a_thread_that_hangs_sends_no_keep_alive(manager: socket.socket):
    service = ServiceManager({"NOTIFY_SOCKET": address_of(manager), "WATCHDOG_USEC": "2000"})
    posted = []
    service.watch(posted.append)
    service.ready("up")
    while len(posted) < 3:
        pass
    service.stopping()
    assert received(manager)[0] == "READY=1"
    assert received(manager)[0] == "STOPPING=1"


def test_the_address_may_be_a_path(tmp_path: Path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "notify"))
        ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify")}).ready("up")
        assert received(receiver) == ["READY=1", "STATUS=up"]


def test_a_missing_manager_is_ignored(tmp_path: Path):
    ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready("up")
    ServiceManager({}).ready("up")


def test_the_environment_is_not_passed_on(manager: socket.socket):
    environment = {"NOTIFY_SOCKET": address_of(manager), "WATCHDOG_USEC": WATCHDOG, "HOME": "/"}
    assert ServiceManager(environment).keep_alive_interval_s == pytest.approx(0.1)
    assert environment == {"HOME": "/"}


@pytest.mark.parametrize(
    "environment",
    [{"WATCHDOG_USEC": WATCHDOG}, {"NOTIFY_SOCKET": "/x"}, {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "soon"}],
    ids=["no socket", "no time", "no number"],
)
def test_no_keep_alive_is_expected(environment: dict[str, str]):
    assert ServiceManager(environment).keep_alive_interval_s == 0


def test_the_watchdog_of_another_process_is_ignored():
    environment = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": WATCHDOG, "WATCHDOG_PID": str(os.getppid())}
    assert ServiceManager(environment).keep_alive_interval_s == 0
