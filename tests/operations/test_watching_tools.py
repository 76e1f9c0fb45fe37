"""`kafkapy metrics` and `kafkapy probe` with a running broker, and their messages without one."""

from __future__ import annotations

import csv
import io
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.metrics.probe_table import METRICS
from tests.broker_process import ROOT
from tests.operations.watched_broker import WatchedBroker
from tests.ports import free_port


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedBroker]:
    with WatchedBroker(tmp_path_factory.mktemp("watched")) as watched:
        yield watched


def run(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kafkapy", *map(str, words)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def test_a_probe_tells_how_long_records_take(broker: WatchedBroker) -> None:
    done = run("probe", "--bootstrap-server", broker.bootstrap, "--count", 3, "--interval", 0.05, "--csv")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["outcome"] for row in rows] == ["ok"] * 3
    assert all(0 < float(row["produce_ms"]) < float(row["end_to_end_ms"]) < 5000 for row in rows)


def test_a_probe_is_watched_too(broker: WatchedBroker) -> None:
    port = free_port()
    probe = subprocess.Popen(
        [
            *(sys.executable, "-m", "kafkapy", "probe", "--bootstrap-server", broker.bootstrap, "--quiet"),
            *("--interval", "0.05", "--listen", f"127.0.0.1:{port}", "--topic", "watched-probe"),
        ],
        cwd=ROOT,
    )
    try:
        deadline = time.monotonic() + 30
        page = ""
        while not re.search(r"^kafkapy_probe_up 1$", page, re.MULTILINE):
            assert time.monotonic() < deadline, page
            time.sleep(0.05)
            page = run("metrics", "--url", f"localhost:{port}").stdout
        assert all(name in page for name in METRICS)
        assert "kafkapy_probe_failures_total 0" in page
    finally:
        probe.send_signal(signal.SIGTERM)
        assert probe.wait(30) == 128 + signal.SIGTERM


def test_metrics_are_printed_and_followed(broker: WatchedBroker) -> None:
    printed = run("metrics", "--config", broker.config, "--match", "^process_").stdout.splitlines()
    assert {line.split()[0] for line in printed} >= {"process_cpu_seconds_total", "process_resident_memory_bytes"}
    assert all(line.startswith("process_") for line in printed)
    url = f"http://127.0.0.1:{broker.metrics_port}/metrics"
    followed = run("metrics", "--url", url, "--match", "metrics_pages", "--follow", 0.4, "--count", 2, "--csv")
    (row,) = csv.DictReader(io.StringIO(followed.stdout))
    assert row["metric"] == "kafkapy_metrics_pages_total:per_second"
    assert float(row["value"]) > 0


def test_without_a_listener_the_tools_say_what_is_wrong(broker: WatchedBroker, tmp_path: Path) -> None:
    unwatched = tmp_path / "server.properties"
    unwatched.write_text("node.id=1\n")
    badly_watched = tmp_path / "badly.properties"
    badly_watched.write_text("kafkapy.metrics.listener=localhost\n")
    port = free_port()
    for words, sentence in (
        (
            ("metrics", "--url", f"http://localhost:{port}"),
            f"http://localhost:{port} cannot be read: Connection refused",
        ),
        (("metrics", "--url", "ftp://x"), "ftp://x is not the address of a page"),
        (("metrics", "--url", "localhost:many"), "localhost:many is not the address of a page"),
        (("metrics", "--config", badly_watched), f"{badly_watched}: 'localhost' is not host:port"),
        (("metrics", "--config", unwatched), f"{unwatched} sets no kafkapy.metrics.listener"),
        (("metrics", "--url", f"http://localhost:{broker.metrics_port}/no"), "cannot be read: 404 Not Found"),
        (("probe", "--bootstrap-server", f"localhost:{port}"), "could not be established"),
        (
            ("probe", "--bootstrap-server", broker.bootstrap, "--listen", broker.metrics_port),
            f"the metrics listener cannot be bound to {broker.metrics_port}: Address already in use",
        ),
    ):
        done = run(*words)
        assert (done.returncode, done.stdout) == (1, ""), words
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
