"""TLS handshakes: their rate and cost, and a good client's latency next to clients whose handshakes fail."""

from __future__ import annotations

from collections.abc import Callable

from bench.run import Figures, Load, Run

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


def attacks(run: Run, seconds: float) -> list[Load]:
    """Starts clients that send garbage and clients that refuse the broker's certificate, for some seconds."""
    return [
        run.handshakes("garbage", seconds, threads=16, rate=GARBAGE_RATE, is_remote=True),
        run.handshakes("failing", seconds, threads=8, rate=FAILING_RATE, is_remote=True),
    ]
