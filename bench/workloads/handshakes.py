"""TLS handshakes: their rate and cost, and a good client's latency next to clients whose handshakes fail."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.programs import refuse_program
from bench.run import Figures, Load, Run
from bench.security import certificate_files
from bench.servers import wait_for_port
from bench.workloads.requests import LATENCY_CONNECTIONS, warm
from tests.ports import free_port

# Connections per second that send bytes at random, and full handshakes per second that the client refuses at their end.
GARBAGE_RATE, FAILING_RATE = 1_000, 100


def handshakes(kind: str, seconds: float) -> Callable[[Run], Figures]:
    """Returns a workload of as many handshakes as possible, `full` or `resumed`, on four connections at once."""

    def run(run: Run) -> Figures:
        run.keep("warm", lambda: run.handshakes(kind, run.seconds(3)).result())
        figures = run.measure(lambda: run.handshakes(kind, run.seconds(seconds)).result())
        figures["cpu_us_per_handshake"] = figures["cpu_seconds"] / figures["answered"] * 1e6
        return figures

    return run


def attacks(run: Run, port: int, seconds: float) -> list[Load]:
    """Starts clients that send garbage and clients that refuse the server's certificate, for some seconds."""
    return [
        run.handshakes("garbage", seconds, port=port, threads=16, rate=GARBAGE_RATE, is_remote=True),
        run.handshakes("failing", seconds, port=port, threads=8, rate=FAILING_RATE, is_remote=True),
    ]


def attacked(rate: int, seconds: float) -> Callable[[Run], Figures]:
    """Returns a workload of produce requests on a fixed schedule: alone, as a control, and while clients attack.

    In the control the attackers connect to another program, which refuses them with the least work (`refuse.c`), so
    that they share only the machine with the broker. The figures are those of the attacked broker; `times_alone` is its
    p99 latency divided by that without attackers, and `control_times_alone` that of the control.
    """

    def run(run: Run) -> Figures:
        topic = run.keep("topic", run.topic)
        warm(run, topic, LATENCY_CONNECTIONS, acks=-1)
        lasting = run.seconds(seconds)

        def load(port: int | None = None) -> Figures:
            attackers = [] if port is None else attacks(run, port, lasting + 2)
            figures = run.requests(topic, LATENCY_CONNECTIONS, lasting, acks=-1, rate=rate).result()
            if attackers:
                figures["attacks_per_second"] = sum(each.result()["per_second"] for each in attackers)
            return figures

        alone = load()
        with refusing(certificate_files(run.server.directory)) as port:
            control = load(port)
        figures = run.measure(lambda: load(run.server.load_port))
        return {
            **figures,
            "alone_p99_us": alone["p99_us"],
            "control_p99_us": control["p99_us"],
            "times_alone": figures["p99_us"] / alone["p99_us"],
            "control_times_alone": control["p99_us"] / alone["p99_us"],
        }

    return run


@contextmanager
def refusing(certificate: tuple[str, str]) -> Iterator[int]:
    """Runs the program that refuses all clients, and yields its port on loopback."""
    port = free_port()
    process = subprocess.Popen([refuse_program(), str(port), *certificate])
    try:
        wait_for_port(port, process)
        yield port
    finally:
        process.kill()
        process.wait()
