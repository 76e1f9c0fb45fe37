"""What systemd is told: that the broker is ready, that it is alive, that it stops (the protocol of sd_notify(3)).

One datagram of `KEY=value` lines for each message, to the socket that $NOTIFY_SOCKET names; without it nothing is said.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, MutableMapping

# A sign of life is due at least twice within the time after which systemd ends the process.
SIGNS_PER_TIMEOUT = 2


class ServiceManager:
    """The manager that started this process, if it wants to be told.

    Owns a socket, and a thread from `watch` to `stopping`.

    `ready` and `stopping` from one thread; the callback of `watch` may be called on any.
    """

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        """Takes what concerns this process out of the environment: its children have nothing to say."""
        address = environment.pop("NOTIFY_SOCKET", "")
        timeout_us = environment.pop("WATCHDOG_USEC", "")
        is_meant = environment.pop("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if address else None
        is_watched = self._socket is not None and is_meant and timeout_us.isdigit()
        self.sign_interval_s = int(timeout_us) / 1e6 / SIGNS_PER_TIMEOUT if is_watched else 0.0
        self._stopping = threading.Event()

    def ready(self, status: str) -> None:
        self._tell(f"READY=1\nSTATUS={status}")

    def watch(self, call: Callable[[Callable[[], None]], object]) -> None:
        """Gives signs of life from now on, if they are expected.

        `call(work)` has `work` called by the thread that must not hang: no call, no sign, and systemd starts us anew.
        """
        if not self.sign_interval_s:
            return

        def run() -> None:
            call(self._sign)
            while not self._stopping.wait(self.sign_interval_s):
                call(self._sign)

        threading.Thread(target=run, name="service-manager", daemon=True).start()

    def stopping(self) -> None:
        """A stop takes its time; TimeoutStopSec limits it, and not the signs of life."""
        self._stopping.set()
        self._tell("STOPPING=1\nWATCHDOG_USEC=0")

    def _sign(self) -> None:
        self._tell("WATCHDOG=1")

    def _tell(self, message: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(message.encode(), socket.MSG_DONTWAIT, self._address)
        except OSError:
            # a manager that does not listen is no reason to stop serving; it ends us if it misses a sign
            return
