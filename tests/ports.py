"""Free TCP ports on loopback, below the system's ephemeral ports and apart from those of other test runs."""

from __future__ import annotations

import itertools
import os
import socket

LOWEST, HIGHEST = 15_000, 32_000
# Each process of a run searches its own part of the range in a cycle, so that a free port stays free until it is used.
# Runs of other working copies begin at other places, because they have other process ids.
_PART = 1_000
_PARTS = (HIGHEST - LOWEST) // _PART
_FIRST = LOWEST + os.getpid() % _PARTS * _PART
_START = os.getpid() // _PARTS * 61 % _PART
_candidates = itertools.cycle(_FIRST + (_START + step) % _PART for step in range(_PART))


def free_ports(count: int) -> list[int]:
    """Returns distinct ports on which no process was listening."""
    ports: list[int] = []
    while len(ports) < count:
        port = next(_candidates)
        if port not in ports and is_free(port):
            ports.append(port)
    return ports


def free_port() -> int:
    return free_ports(1)[0]


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
