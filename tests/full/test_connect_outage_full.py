"""Measures for how long distributed Connect stops copying after an outage of its broker.

Two workers copy lines from one file to another through a topic; the source connector writes in transactions. In each
run the broker is killed, and started again after more than 3 s, which is longer than its heartbeat interval. The run
measures how long after the start the line arrives that was written last before it. A task that failed during the outage
is started again, which is printed. The times of both servers are printed and not asserted. `CONNECT_RUNS` is the number
of runs.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.connect import ConnectWorker
from tests.full.conftest import NewServer
from tests.seeds import drawn_seed
from tests.server_process import ServerProcess

pytestmark = [pytest.mark.peer, pytest.mark.full, pytest.mark.timeout(7200)]

RUNS = int(os.environ.get("CONNECT_RUNS", "20"))
LONGEST_STALL_S = LONGEST_START_S = 300.0
CHECK_S = 20.0
SOURCE = {
    "connector.class": "FileStreamSource",
    "tasks.max": "1",
    "topic": "lines",
    "batch.size": "100000",  # with a small one, the connector keeps lines that it has read until the file grows
    "exactly.once.support": "requested",
    "transaction.boundary": "poll",
}
SINK = {"connector.class": "FileStreamSink", "tasks.max": "1", "topics": "lines"}


@pytest.fixture
def server(new_server: NewServer) -> Iterator[ServerProcess]:
    made = new_server()
    made.start_timeout_s = LONGEST_START_S
    with made:
        yield made


class LineWriter(threading.Thread):
    """Appends numbered lines to a file until `stop` is called."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.newest = 0
        self._file = path.open("a")
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(0.2):
            for number in range(self.newest + 1, self.newest + 21):
                self._file.write(f"line {number}\n")
            self._file.flush()
            self.newest += 20

    def stop(self) -> None:
        self._ended.set()
        self.join()
        self._file.close()


def test_lines_go_on_after_an_outage(server: ServerProcess, kafka_43: Path, tmp_path: Path) -> None:
    generator = random.Random(drawn_seed())
    source, sink = tmp_path / "source.txt", tmp_path / "sink.txt"
    source.touch()
    sink.touch()
    stalls: list[float] = []
    with (
        ConnectWorker(kafka_43, tmp_path / "worker-1", server.bootstrap) as worker,
        ConnectWorker(kafka_43, tmp_path / "worker-2", server.bootstrap),
    ):
        for name, config in (("source", {**SOURCE, "file": str(source)}), ("sink", {**SINK, "file": str(sink)})):
            create(worker, name, config)
        writer = LineWriter(source)
        writer.start()
        for run in range(RUNS):
            wait_until(lambda: worker.is_running_all("source", "sink"))
            assert wait_for_line(sink, writer.newest)
            outage_s = 3.2 + 4.8 * generator.random()
            server.kill()
            time.sleep(outage_s)
            last = writer.newest
            server.start()
            started = time.monotonic()
            while not wait_for_line(sink, last, at_most_s=CHECK_S):
                worker.is_running_all("source", "sink")
            stalls.append(time.monotonic() - started)
            print(f"{time.strftime('%H:%M:%S')} run {run}: away {outage_s:.1f} s, stall {stalls[-1]:.1f} s", flush=True)
        writer.stop()
        assert wait_for_line(sink, writer.newest)
    print("stalls in s:", *(f"{stall:.1f}" for stall in sorted(stalls)))
    copied = {line for line in sink.read_text().splitlines() if line}
    assert copied == set(source.read_text().splitlines())


def create(worker: ConnectWorker, name: str, config: dict[str, str]) -> None:
    def is_created() -> bool:
        try:
            worker.request("PUT", f"/connectors/{name}/config", config)
        except OSError:
            return False
        return True

    wait_until(is_created)


def wait_for_line(path: Path, number: int, at_most_s: float = LONGEST_STALL_S) -> bool:
    """Waits for the line; returns False if it has not arrived after `at_most_s`."""
    wanted = f"\nline {number}\n".encode()
    end = time.monotonic() + at_most_s
    while number and wanted not in tail(path):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - (1 << 20)))
        return file.read()


def wait_until(is_done: Callable[[], bool]) -> None:
    end = time.monotonic() + LONGEST_STALL_S
    while not is_done():
        assert time.monotonic() < end, f"nothing for {LONGEST_STALL_S} s"
        time.sleep(0.05)
