"""The command `kafkapy jobs demo`: runs a broker, a generator of search terms, and the hot search over them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from kafkapy.client import Producer
from kafkapy.tools import job_catalog, sample_data, spark_submit
from kafkapy.tools.bootstrap import await_broker
from kafkapy.tools.option import DOUBLE, INTEGER, Arguments, Option, ToolError
from kafkapy.tools.topic_feeder import TopicFeeder
from kafkapy.types import SystemClock

TOPIC = "words-search"
OPTIONS = (
    Option(
        "bootstrap-server",
        "A running broker; by default the demo starts one of its own.",
        "server",
        has_default_cluster=False,
    ),
    Option("rate", "Search terms per second.", "records/s", DOUBLE, default=2000.0),
    Option("window", "The length of windows.", "length", default="10 s"),
    Option("slide", "The time between the beginnings of windows.", "length", default="5 s"),
    Option("top", "The number of terms of a window.", "count", INTEGER, default=10),
    Option("language", "The language of the output and of the page.", "language", default="en", choices=("en", "zh")),
    Option("windows", "End after this many windows; by default only when interrupted.", "count", INTEGER),
)
_BROKER_START_S = 30.0
_STOP_S = 15.0


def run_demo(arguments: Arguments) -> int:
    """Runs the demo until it has shown the wanted number of windows, or until Ctrl-C.

    Raises ToolError if one of its programs fails.
    """
    program = spark_submit.find_spark_submit(os.environ)
    with tempfile.TemporaryDirectory(prefix="kafkapy-demo-") as name:
        directory = Path(name)
        with _broker(arguments, directory) as server, _searches(server, arguments["rate"]):
            return _hot_search(program, arguments, server, directory)


@contextmanager
def _broker(arguments: Arguments, directory: Path) -> Iterator[str]:
    """Yields the address of the broker of --bootstrap-server, or of a broker that runs until the context ends."""
    if arguments.has("bootstrap-server"):
        await_broker({"bootstrap.servers": arguments["bootstrap-server"]})
        yield arguments["bootstrap-server"]
        return
    port = _free_port()
    config = directory / "server.properties"
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://localhost:{port}",
        "log.dirs": str(directory / "data"),
        "num.partitions": "3",
    }
    config.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    output = directory / "broker.log"
    # The programs have sessions of their own, so that only the demo receives Ctrl-C and stops the others in order.
    with output.open("wb") as log:
        command = [*_own_program(), "broker", "start", "--config", str(config)]
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        await_broker({"bootstrap.servers": f"localhost:{port}"}, _BROKER_START_S)
        print(f"A broker runs on localhost:{port}; search terms are sent to the topic {TOPIC}", flush=True)
        yield f"localhost:{port}"
    except ToolError as error:
        raise ToolError(f"{error}\n{output.read_text(errors='replace')[-2000:]}") from None
    finally:
        _stop(process)


@contextmanager
def _searches(server: str, rate: float) -> Iterator[None]:
    """Sends `rate` search terms per second to the demo's topic, from a thread, until the `with` block ends."""
    stopped = threading.Event()
    with Producer({"bootstrap.servers": server, "linger.ms": 20}) as producer:
        samples = sample_data.search_terms()
        feeder = TopicFeeder(producer, TOPIC, samples, clock=SystemClock(), wait=stopped.wait, rate=rate)
        thread = threading.Thread(target=feeder.feed, name="search-terms", daemon=True)
        thread.start()
        try:
            yield
        finally:
            feeder.stop()
            stopped.set()
            thread.join()


def _hot_search(program: Path, arguments: Arguments, server: str, directory: Path) -> int:
    """Runs the job and prints its output; returns 0, the exit code, when the wanted number of windows has been printed.

    Spark's log is written to a file in `directory`. If the job ends earlier, raises ToolError with the end of this log.
    """
    environment = spark_submit.spark_environment(program, os.environ)
    words = ["--bootstrap-server", server, "--window", arguments["window"], "--slide", arguments["slide"]]
    words += ["--lateness", "1 s", "--top", str(arguments["top"]), "--shuffle-partitions", "2"]
    address = f"localhost:{_free_port()}"
    words += ["--language", arguments["language"], "--http", address]
    job = job_catalog.find_job("hot-search")
    command = spark_submit.job_program(program, [], job, words, environment)
    print(f"Spark starts; the first window takes a while. The page http://{address} shows the terms", flush=True)
    errors = directory / "spark.log"
    with errors.open("wb") as log:
        process = subprocess.Popen(
            command.words, env=command.environment, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    try:
        assert process.stdout is not None
        if _pass_on(process.stdout, arguments["windows"], f"http://{address}"):
            return 0
        raise ToolError(f"the job has ended ({process.wait()}):\n{errors.read_text(errors='replace')[-4000:]}")
    finally:
        _stop(process)


def _pass_on(output: IO[bytes], windows: int | None, page: str = "") -> bool:
    """Prints the lines of `output` as they are received, until the tables of `windows` windows are complete.

    Returns True when they are complete, and False if the output ends first. If `windows` is None, it prints until the
    output ends, and returns False. A table is complete after its second horizontal rule. When the first line arrives
    and standard output is a terminal, it opens the URL `page` in a browser; "" opens nothing.
    """
    rules = 0
    is_open = not page or not sys.stdout.isatty()
    for line in output:
        if not is_open:
            is_open = True
            with suppress(webbrowser.Error):
                webbrowser.open(page)
        sys.stdout.write(line.decode("utf-8", "replace"))
        sys.stdout.flush()
        rules += line.startswith(b"=====")
        if windows is not None and rules == 2 * windows:
            return True
    return False


def _own_program() -> list[str]:
    return [sys.executable] if getattr(sys, "frozen", False) else [sys.executable, "-m", "kafkapy"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port: int = probe.getsockname()[1]
        return port


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stops a program and the processes that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
