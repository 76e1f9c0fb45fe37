"""Waiting until a descriptor can be read."""

from __future__ import annotations

import select
import socket


def is_readable(source: int | socket.socket, wait_s: float = 0) -> bool:
    """Returns whether the descriptor has bytes to read, or its end, within a number of seconds.

    It may have any number, while `select.select` refuses those from 1,024.
    """
    poll = select.poll()
    poll.register(source, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))
