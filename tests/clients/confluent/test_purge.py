"""`Producer.purge`: the records that were not sent and those in flight, the same with the original and ours."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.broker_process import BrokerProcess
from tests.clients.confluent.test_clients import PATIENCE_S, wait_for


class PausedBroker(BrokerProcess):
    """A broker that can be stopped and continued by signals."""

    def pause(self) -> None:
        """Stops all threads; returns when they have stopped."""
        os.kill(self.pid, signal.SIGSTOP)
        while any(_state(thread) not in "Tt" for thread in Path(f"/proc/{self.pid}/task").iterdir()):
            time.sleep(0.001)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)


def _state(thread: Path) -> str:
    """Returns the letter of a thread's state in /proc."""
    return (thread / "stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[PausedBroker]:
    with PausedBroker(tmp_path / "broker") as broker:
        try:
            yield broker
        finally:
            broker.go_on()


@pytest.mark.parametrize("idempotent", [False, True])
def test_purged_records_have_an_error_that_says_where_they_were(library, own_broker, idempotent):
    reports: list[tuple[bytes, str | None]] = []

    def delivered(error: Any, message: Any) -> None:
        reports.append((message.value(), None if error is None else error.name()))

    producer = library.top.Producer(
        {
            "bootstrap.servers": own_broker.bootstrap,
            "linger.ms": 0,
            "enable.idempotence": idempotent,
            "max.in.flight.requests.per.connection": 1,
            "on_delivery": delivered,
        }
    )
    producer.produce("t", "before", partition=0)
    assert producer.flush(PATIENCE_S) == 0
    assert reports.pop() == (b"before", None)

    own_broker.pause()
    producer.produce("t", "in flight", partition=0)
    # The records of the queue stay there while the only request is in flight, which no call of the client shows.
    wait_for(lambda: reports, lambda: (producer.purge(in_queue=False, in_flight=True), producer.poll(0.05)))
    assert reports.pop() == (b"in flight", "_PURGE_INFLIGHT")
    own_broker.go_on()

    wait_for(lambda: reports, lambda: (producer.produce("t", "after", partition=0), producer.poll(0.5)))
    assert producer.flush(PATIENCE_S) == 0
    assert set(reports) == {(b"after", None)}
    assert len(producer) == 0


def test_records_of_the_queue_are_purged_without_those_in_flight(library, own_broker):
    reports: list[str] = []
    producer = library.top.Producer(
        {
            "bootstrap.servers": own_broker.bootstrap,
            "linger.ms": 100_000,
            "on_delivery": lambda error, message: reports.append(error.name()),
        }
    )
    for number in range(3):
        producer.produce("t", str(number))
    producer.purge(in_queue=False, in_flight=True)
    producer.poll(0)
    assert (len(producer), reports) == (3, [])
    producer.purge(in_queue=True, in_flight=False)
    wait_for(lambda: len(reports) == 3, lambda: producer.poll(0.05))
    assert set(reports) == {"_PURGE_QUEUE"}
    assert len(producer) == 0
