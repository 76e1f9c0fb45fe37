"""The hot search under kill -9: records are sent while the driver and its workers are killed and restarted. At the end
the windows in Parquet and on the topic have to match the records."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from kafkapy.client import Producer
from kafkapy.tools.sample_data import Sample, search_terms
from kafkapy.tools.topic_feeder import TopicFeeder
from kafkapy.types import SystemClock
from tests.spark_session import ROOT

WINDOW_MS = 5_000
TOP = 10
# Event time runs ahead of the clock: 200 records a second, 50 ms from one to the next.
RATE, STEP_MS = 200, 50
START_MS = 1_500_000_000_000
_START_S = 120.0


class Feed:
    """A context manager that sends search terms from a thread; `expected` are the windows that result from them."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.sent: list[str] = []
        self._topic = topic
        self._stopped = threading.Event()
        self._producer = Producer(bootstrap_servers=bootstrap, linger_ms=5)
        self._feeder = TopicFeeder(
            self._producer,
            topic,
            self._noted(),
            clock=SystemClock(),
            wait=self._stopped.wait,
            rate=RATE,
            start_ms=START_MS,
            step_ms=STEP_MS,
        )
        self._thread = threading.Thread(target=self._feeder.feed)

    def _noted(self) -> Any:
        for sample in search_terms(5):
            self.sent.append(sample.text)
            yield Sample(None, sample.text, {})

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stops, and sends heartbeats to every partition, which close the last window."""
        self._feeder.stop()
        self._stopped.set()
        self._thread.join()
        end = START_MS + len(self.sent) * STEP_MS + 100 * WINDOW_MS
        for partition in range(len(self._producer.partitions_for(self._topic))):
            self._producer.send(self._topic, b"", partition=partition, timestamp=end)
        self._producer.close()

    def expected(self) -> dict[int, list[tuple[str, int]]]:
        """Returns the first terms of each window with their counts, in order, by the end of the window in ms."""
        windows: dict[int, Counter[str]] = {}
        for index, term in enumerate(self.sent):
            end = (START_MS + index * STEP_MS) // WINDOW_MS * WINDOW_MS + WINDOW_MS
            windows.setdefault(end, Counter())[term] += 1
        return {end: ordered(terms)[:TOP] for end, terms in windows.items()}


def ordered(terms: Counter[str]) -> list[tuple[str, int]]:
    """Returns the sort key of a term: by count and then by the bytes of the term, both descending."""
    return sorted(terms.items(), key=lambda entry: (entry[1], entry[0].encode()), reverse=True)


class Driver:
    """The command `kafkapy jobs submit hot-search` with both sinks, in a session of its own.

    All processes of the session are killed together.
    """

    def __init__(self, bootstrap: str, topic: str, output: str, directory: Path, *delivery: str) -> None:
        self.directory = directory
        self._log = directory / "driver.log"
        self._log_start = 0  # position at which the log of the last driver begins
        spark = ["--conf", "spark.ui.enabled=false", "--driver-memory", "700m", "--master", "local[2]"]
        spark += ["--driver-java-options", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"]
        job = ["hot-search", "--bootstrap-server", bootstrap, "--topic", topic, "--shuffle-partitions", "1"]
        windows = ["--window", "5 s", "--lateness", "20 s", "--trigger", "100 ms"]
        sinks = ["--sink", "topic", "--output-topic", output, "--sink", "parquet", "--output-path", f"{directory}/top"]
        self._command = [sys.executable, "-m", "kafkapy", "jobs", "submit", *spark, *job, *windows, *sinks]
        self._command += ["--checkpoint", f"{directory}/checkpoint", *delivery]

    def run_and_kill(self, chance: random.Random) -> None:
        """Starts a driver and kills it at a random moment after a few micro-batches of both queries.

        A driver that ended by itself because the machine was slow is replaced by another one.
        """
        wanted = {sink: count + chance.randrange(1, 4) for sink, count in self._batches().items()}
        is_killed = False
        while not is_killed:
            process = self._start()
            try:
                is_killed = self._await(process, lambda: all(self._batches()[sink] >= wanted[sink] for sink in wanted))
                time.sleep(chance.random() * 0.5)
            finally:
                with contextlib.suppress(ProcessLookupError):  # all processes have ended already
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def run_to_the_end(self) -> None:
        """Runs the job twice over the available records, because the watermark of the first run closes windows only in
        the second."""
        runs = 0
        while runs < 2:
            code = self._start("--trigger", "available-now").wait(_START_S)
            runs += code == 0
            assert code == 0 or self._was_too_slow(), self._log.read_text()[-6000:]

    def _batches(self) -> dict[str, int]:
        """Returns the number of committed micro-batches of each sink."""
        commits = {sink: self.directory / "checkpoint" / sink / "commits" for sink in ("topic", "parquet")}
        return {sink: sum(name.isdigit() for name in os.listdir(path)) if path.exists() else 0
                for sink, path in commits.items()}  # fmt: skip

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
        self._log_start = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*self._command, *words], cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def _await(self, process: subprocess.Popen[bytes], condition: Any) -> bool:
        """Waits for a condition. Returns False if the driver has ended because it was too slow."""
        deadline = time.monotonic() + _START_S
        while not condition():
            if process.poll() is not None and self._was_too_slow():
                return False
            assert process.poll() is None, self._log.read_text()[-6000:]
            assert time.monotonic() < deadline, "no micro-batch:\n" + self._log.read_text()[-6000:]
            time.sleep(0.02)
        return True

    def _was_too_slow(self) -> bool:
        """Returns whether the last driver ended because a Python worker needed more than the 10 s that Spark allows."""
        return b"Python worker failed to connect back" in self._log.read_bytes()[self._log_start :]
