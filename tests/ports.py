"""Free TCP ports on loopback."""

from __future__ import annotations

import socket


def free_ports(count: int) -> list[int]:
    """Distinct ports that nobody listened on a moment ago."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()


def free_port() -> int:
    return free_ports(1)[0]
