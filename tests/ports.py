"""Free TCP ports on loopback, below those that the system gives to connections, apart from those of other test runs."""

from __future__ import annotations

import itertools
import os
import socket

LOWEST, HIGHEST = 15_000, 32_000
# Each process of a run looks in its own part, and goes round in it: a port that was free stays free until it is used.
# Runs of other working copies have other places in the part: processes follow each other, so their numbers are spread.
_PART = 1_000
_PARTS = (HIGHEST - LOWEST) // _PART
_FIRST = LOWEST + os.getpid() % _PARTS * _PART
_START = os.getpid() // _PARTS * 61 % _PART
_candidates = itertools.cycle(_FIRST + (_START + step) % _PART for step in range(_PART))


def free_ports(count: int) -> list[int]:
    """Distinct ports that nobody listened on a moment ago."""
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
