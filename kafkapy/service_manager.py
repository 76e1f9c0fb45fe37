"""Notifications to systemd that the broker is ready, alive or stopping, by the protocol of sd_notify(3).

Each notification is a datagram of `KEY=value` lines to the socket that $NOTIFY_SOCKET names. If this variable is not
set, no notification is sent.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, MutableMapping

# The number of keep-alive notifications within systemd's timeout, after which it ends a process that sends none.
KEEP_ALIVES_PER_TIMEOUT = 2


class ServiceManager:
    """The service manager that started this process, if the manager expects notifications.

    Owns a socket, and from `watch` to `stopping` a thread. `ready` and `stopping` are called by one thread; any thread
    may run the work that `watch` passes to `call`.
    """

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        """Removes the protocol's variables from `environment`, so that child processes send no notifications."""
        address = environment.pop("NOTIFY_SOCKET", "")
        timeout_us = environment.pop("WATCHDOG_USEC", "")
        is_meant = environment.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if address else None
        is_watched = self._socket is not None and is_meant and timeout_us.isdigit()
        self.keep_alive_interval_s = int(timeout_us) / 1e6 / KEEP_ALIVES_PER_TIMEOUT if is_watched else 0.0
        self._stopping = threading.Event()

    def ready(self, status: str) -> None:
        """Notifies the manager that the broker serves clients; `status` is the text that `systemctl status` shows."""
        self._notify(f"READY=1\nSTATUS={status}")

    def watch(self, call: Callable[[Callable[[], None]], object]) -> None:
        """Begins to send keep-alive notifications, if the manager expects them.

        `call(work)` makes the thread that is to be watched run `work`, which sends a notification. If that thread
        hangs, no notification is sent and systemd restarts the broker.
        """
        if not self.keep_alive_interval_s:
            return

        def run() -> None:
            call(self._keep_alive)
            while not self._stopping.wait(self.keep_alive_interval_s):
                call(self._keep_alive)

        threading.Thread(target=run, name="service-manager", daemon=True).start()

    def stopping(self) -> None:
        """Notifies the manager that the broker stops, and disables the watchdog.

        The time of the stop is limited by TimeoutStopSec instead.
        """
        self._stopping.set()
        self._notify("STOPPING=1\nWATCHDOG_USEC=0")

    def _keep_alive(self) -> None:
        self._notify("WATCHDOG=1")

    def _notify(self, message: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(message.encode(), socket.MSG_DONTWAIT, self._address)
        except OSError:
            # The broker also runs if a notification cannot be sent; a manager that misses one ends the process.
            return
