"""The clock, sockets and thread that a client's networking uses."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkapy.client.cluster import Node
from kafkapy.client.connection import open_socket
from kafkapy.named_tuple import NamedTuple
from kafkapy.types import Clock, SystemClock

if TYPE_CHECKING:
    from ssl import SSLContext

    from kafkapy.client.proxy import Proxy


class Environment(NamedTuple):
    """The parts of the operating system that a client's networking uses; unit tests replace them.

    `connect(node, buffers)` returns a non-blocking socket that is connecting to `node`; `buffers` are the sizes in
    bytes of its send and receive buffers, -1 for the system's default. If `has_thread` is False, the client has no
    networking thread, and sends and receives only while a caller waits. `find_tls_context` returns the TLS context for
    the next connection; None for the context that the configuration describes. If a `proxy` is given, `connect`
    connects to the proxy, which then connects to the broker.
    """

    clock: Clock = SystemClock()
    connect: Callable[[Node, tuple[int, int]], socket.socket] = open_socket
    make_selector: Callable[[], selectors.BaseSelector] = selectors.DefaultSelector
    has_thread: bool = True
    find_tls_context: Callable[[], SSLContext] | None = None
    proxy: Proxy | None = None


SYSTEM = Environment()
