"""The clock, sockets and thread that a client's networking uses."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable

from kafkapy.client.cluster import Node
from kafkapy.client.connection import open_socket
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import Clock, SystemClock


class Environment(NamedTuple):
    """The parts of the operating system that a client's networking uses; unit tests replace them.

    `connect(node, buffers)` returns a non-blocking socket that is connecting to `node`. Without `has_thread` the
    network makes progress only while a caller waits.
    """

    clock: Clock = SystemClock()
    connect: Callable[[Node, tuple[int, int]], socket.socket] = open_socket
    make_selector: Callable[[], selectors.BaseSelector] = selectors.DefaultSelector
    has_thread: bool = True


SYSTEM = Environment()
