"""The context of a workload: a started server, the scale of the run, and functions that measure."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from bench.process_figures import CLOCK_TICKS
from bench.programs import handshakes_program, requests_program, tail_program, throughput_program
from bench.servers import Server

Figures = dict[str, float]
LARGE_BATCHES = ("linger.ms=5", "batch.size=1000000", "batch.num.messages=1000000")
SMALL_BATCHES = ("linger.ms=0", "batch.size=16384")
QUEUES = ("queue.buffering.max.messages=1000000", "queue.buffering.max.kbytes=2000000")
# With librdkafka's defaults, a fast broker fills the client's queue, and the client then idles for a second.
CONSUMER_QUEUES = ("queued.min.messages=1000000", "fetch.queue.backoff.ms=1")
QUIET = "log_level=3"
LOAD_TIMEOUT_S = 600
LOWEST_PRIORITY = 19
LEADERS_TIMEOUT_S = 600
KTHREADD = "2"  # the parent of all kernel threads


def busy_seconds() -> float:
    """Returns the CPU time of all processes, and of other machines on the same hardware (steal)."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    user, nice, system, _, _, _, _, steal = fields[
        :8
    ]  # the time of interrupts (loopback causes them) belongs to no process
    return (user + nice + system + steal) / CLOCK_TICKS


def kernel_seconds() -> float:
    """Returns the CPU time of kernel threads; nearly all of it is writing back pages of the broker."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[1] == KTHREADD:
            ticks += int(fields[11]) + int(fields[12])
    return ticks / CLOCK_TICKS


def own_seconds() -> float:
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


class Load:
    """A running load program. `result()` waits for the program and returns the JSON that it has printed."""

    def __init__(self, *words: object, cores: set[int] | None = None, is_remote: bool = False) -> None:
        """Starts the program on the given cores, by default on any. With `is_remote` it takes the place of clients on
        other machines: it has the lowest priority, so that it does not take the broker's share of the processors."""
        self.command = list(map(str, words))

        def prepare() -> None:
            if cores:
                os.sched_setaffinity(0, cores)
            if is_remote:
                os.nice(LOWEST_PRIORITY)

        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=prepare
        )

    def result(self) -> dict[str, Any]:
        output, errors = self.process.communicate(timeout=LOAD_TIMEOUT_S)
        if self.process.returncode:
            raise RuntimeError(f"{' '.join(self.command)}: {output} {errors}")
        answer: dict[str, Any] = json.loads(output)
        return answer


class Measured(Protocol):
    """The target of loads and measurements: one broker, or all nodes of a cluster.

    `bootstrap` is for administration. Loads use `load_bootstrap` and `load_settings` (librdkafka's); `load_port` is the
    port of the broker to which `requests` and `handshakes` connect, and `port` that for `tail`.
    """

    @property
    def bootstrap(self) -> str: ...

    @property
    def port(self) -> int: ...

    @property
    def load_bootstrap(self) -> str: ...

    @property
    def load_port(self) -> int: ...

    @property
    def load_settings(self) -> tuple[str, ...]: ...

    def cpu_seconds(self) -> float: ...

    def reset_peak_memory(self) -> None: ...

    def memory_mb(self, peak: bool = False) -> float: ...


class Turn:
    """A turn of a server or a cluster in one round: its loads, and the measurement of what they cost.

    `kept` contains what is prepared once. `scale` shortens everything for a trial; the figures of a scaled run mean
    nothing.
    """

    def __init__(self, measured: Measured, scale: float, kept: dict[str, Any]) -> None:
        self.measured = measured
        self.scale = scale
        self.kept = kept

    def count(self, number: int) -> int:
        return max(1, int(number * self.scale))

    def seconds(self, number: float) -> float:
        return max(0.2, number * self.scale)

    def keep(self, name: str, make: Callable[[], Any]) -> Any:
        """Calls `make` once for this server and workload; returns the result of this call every time."""
        if name not in self.kept:
            self.kept[name] = make()
        return self.kept[name]

    # -- loads --------------------------------------------------------------------------------------------------

    def produce(self, topic: str, messages: int, size: int, *settings: str) -> Load:
        program, measured = throughput_program(), self.measured
        words = ("produce", measured.load_bootstrap, topic, messages, size, QUIET, *QUEUES)
        return Load(program, *words, *measured.load_settings, *settings)

    def consume(self, topic: str, messages: int, partitions: int, *settings: str) -> Load:
        program, measured = throughput_program(), self.measured
        words = ("consume", measured.load_bootstrap, topic, messages, partitions, QUIET, *CONSUMER_QUEUES)
        return Load(program, *words, *measured.load_settings, *settings)

    def read_as_group(self, topic: str, seconds: float, group: str, *settings: str) -> Load:
        program, measured = throughput_program(), self.measured
        words = ("group", measured.load_bootstrap, topic, seconds, group, QUIET, *CONSUMER_QUEUES)
        return Load(program, *words, *measured.load_settings, *settings)

    def requests(
        self,
        topic: str,
        connections: int,
        seconds: float,
        *,
        acks: int = 1,
        rate: int = 0,
        kind: str = "produce",
        partitions: int = 1,
        size: int = 100,
        cores: set[int] | None = None,
    ) -> Load:
        where = ("127.0.0.1", self.measured.load_port, topic, partitions)
        how = (connections, seconds, size, acks, rate, kind, *self.measured.load_settings)
        return Load(requests_program(), *where, *how, cores=cores)

    def handshakes(
        self,
        kind: str,
        seconds: float,
        *,
        port: int | None = None,
        threads: int = 4,
        rate: int = 0,
        is_remote: bool = False,
    ) -> Load:
        """Starts TLS handshakes of a kind that the program names, with the broker or with another `port`.

        Rate 0 means as many as possible.
        """
        words = handshakes_program(), "127.0.0.1", port or self.measured.load_port, threads, seconds, rate, kind
        return Load(*words, is_remote=is_remote)

    def tail(self, topic: str, consumers: int, seconds: float, rate: int) -> Load:
        return Load(tail_program(), "127.0.0.1", self.measured.port, topic, consumers, seconds, rate)

    # -- measuring ----------------------------------------------------------------------------------------------

    def measure(self, load: Callable[[], Mapping[str, float]]) -> Figures:
        """Runs a load and returns its figures together with their costs.

        `cpu_seconds` and `peak_memory_mb` are those of the broker process, or the sums of a cluster's processes.
        `foreign_cores` is the number of cores that all other processes used, without the kernel, this process and the
        load programs, for which `load` has to wait. The broker may be started in `load`, and must not be stopped there.
        """
        self.measured.reset_peak_memory()
        kernel, busy, own = kernel_seconds(), busy_seconds(), own_seconds()
        broker, start = self.measured.cpu_seconds(), time.monotonic()
        figures = dict(load())
        took = time.monotonic() - start
        spent = self.measured.cpu_seconds() - broker
        others = busy_seconds() - busy - spent - (own_seconds() - own) - max(0.0, kernel_seconds() - kernel)
        figures["cpu_seconds"] = spent
        figures["peak_memory_mb"] = self.measured.memory_mb(peak=True)
        figures["foreign_cores"] = round(max(0.0, others / took), 3)
        return figures


class Run(Turn):
    """One server's turn in one round. `kept` is for all rounds of a workload."""

    def __init__(self, server: Server, scale: float, kept: dict[str, Any]) -> None:
        super().__init__(server, scale, kept)
        self.server = server

    def topic(self, partitions: int = 1, config: Mapping[str, str] | None = None) -> str:
        """Creates a topic and returns its name.

        Its files are new, because growing the page cache is part of producing.
        """
        topic = f"bench-{time.monotonic_ns()}"
        self.server.create_topic(topic, partitions, config or {})
        self.await_leaders(topic, partitions)
        return topic

    def await_leaders(self, topic: str, partitions: int) -> None:
        """Waits until all partitions of a new topic have leaders.

        To find out, it sends fetches, which change nothing.
        """
        deadline = time.monotonic() + LEADERS_TIMEOUT_S
        while True:
            try:
                self.requests(topic, 1, max(0.001, partitions / 5000), kind="fetch", partitions=partitions).result()
                return
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
