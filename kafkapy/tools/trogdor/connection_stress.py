"""Trogdor's ConnectionStress: opens and closes connections, at a given rate."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

from kafkapy.client.admin import Admin
from kafkapy.client.cluster import parse_addresses
from kafkapy.errors import ConfigError, KafkapyError
from kafkapy.tools.option import ToolError
from kafkapy.tools.trogdor.specification import Specification
from kafkapy.tools.trogdor.workload import Pace, Workload

_CONNECT_TIMEOUT_S = 10.0
_ACTIONS = ("CONNECT", "FETCH_METADATA")


class ConnectionStress(Workload):
    """Makes connections in `numThreads` threads until `durationMs` has passed.

    If the specification's action is CONNECT, it opens and closes a TCP connection; if it is FETCH_METADATA, it creates
    a client, describes the cluster and closes the client.
    """

    def __init__(self, specification: Specification) -> None:
        super().__init__(specification)
        self._lock = threading.Lock()
        self._count = 0
        self._failures = 0
        self._start_s = time.monotonic()

    def run(self) -> None:
        """Makes connections until the duration has passed.

        Raises ToolError if the specification has no duration, or an unknown action.
        """
        spec = self.specification
        if spec.text("action") not in _ACTIONS:
            raise ToolError(f"{spec.text('action')} is not an action of ConnectionStress: {', '.join(_ACTIONS)}")
        spec.number("durationMs")
        try:
            addresses = parse_addresses(each.strip() for each in spec.text("bootstrapServers").split(","))
        except ConfigError as error:
            raise ToolError(str(error)) from None
        count = spec.number("numThreads", 1)
        rate = spec.number("targetConnectionsPerSec") / max(count, 1)
        threads = [threading.Thread(target=self._connect, args=(addresses, Pace(rate))) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _connect(self, addresses: list[tuple[str, int]], pace: Pace) -> None:
        number = 0
        connects_only = self.specification.text("action") == "CONNECT"
        while True:
            pace.wait(self.stopped)
            if self.is_over:
                return
            try:
                if connects_only:
                    socket.create_connection(addresses[number % len(addresses)], _CONNECT_TIMEOUT_S).close()
                else:
                    with Admin(self.specification.client_properties()) as admin:
                        admin.describe_cluster()
                failed = 0
            except (KafkapyError, OSError, UnicodeError):
                failed = 1
            number += 1
            with self._lock:
                self._count += 1
                self._failures += failed

    def status(self) -> dict[str, Any]:
        """Returns the number of connections, the number of failed connections, and the connections per second, by
        Trogdor's names."""
        elapsed_s = max(time.monotonic() - self._start_s, 1e-3)
        return {
            "totalConnections": self._count,
            "totalFailedConnections": self._failures,
            "connectsPerSec": self._count / elapsed_s,
        }
