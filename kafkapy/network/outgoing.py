"""Opens the reactor's connections to other nodes; a host name is resolved on another thread."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

from kafkapy._core.reactor.reactor import OutgoingConnection, Reactor, Request
from kafkapy._core.tls.tls_context import TlsContext
from kafkapy.host_names import host_addresses

# The opened connection, or the error with which it could not be opened.
OnOpened = Callable[[OutgoingConnection | OSError], None]


class OutgoingConnector:
    """Opens connections on the reactor. Used by the reactor's thread only."""

    def __init__(
        self,
        reactor: Reactor,
        run_in_background: Callable[[Callable[[], None]], None],
        *,
        tls: Callable[[], TlsContext] | None = None,
        verifies_name: bool = True,
    ) -> None:
        """Creates a connector.

        `run_in_background(work)` calls `work()`, which may wait for a name server, on another thread. `tls()` returns
        the TLS context for the next connection; None means connections without TLS. If `verifies_name` is True, the
        certificate of the server must be for the host that is connected to.
        """
        self._reactor = reactor
        self._run_in_background = run_in_background
        self._tls = tls
        self._verifies_name = verifies_name
        self._numbers = count()

    def connect(
        self,
        host: str,
        port: int,
        *,
        attempt: int,
        max_response_bytes: int,
        on_opened: OnOpened,
        on_response: Callable[[Request], None],
        on_closed: Callable[[OutgoingConnection], None],
    ) -> None:
        """Begins to open a connection, and calls `on_opened` once, possibly before this method returns.

        The argument of `on_opened` is an error, or the connection, which may not be established yet. After that
        `on_response` is called with each response, and `on_closed` once. `attempt` is the number of earlier attempts;
        it selects one of several addresses of the host.
        """

        def connect_to(addresses: list[Any] | OSError) -> None:
            if isinstance(addresses, OSError):
                on_opened(addresses)
                return
            family, address = addresses[attempt % len(addresses)]
            name = f"outgoing-{next(self._numbers)}-{host}:{port}"
            try:
                context = None if self._tls is None else self._tls()
                opened = open_connecting(family, address)
                with closed_after_error(opened):
                    connection = self._reactor.adopt_outgoing(
                        opened.fileno(), host, port, name, on_response=on_response, on_closed=on_closed,
                        max_response_bytes=max_response_bytes, tls=context, tls_server_name=host,
                        tls_verifies_name=self._verifies_name,
                    )  # fmt: skip
            except OSError as error:
                on_opened(error)
            except ValueError as error:
                on_opened(OSError(errno.EINVAL, str(error)))
            else:
                on_opened(connection)

        numeric = resolve(host, port, socket.AI_NUMERICHOST)
        if not isinstance(numeric, OSError):
            connect_to(numeric)
            return

        def look_up() -> None:
            found = resolve(host, port)
            self._reactor.post(lambda: connect_to(found))

        self._run_in_background(look_up)


def resolve(host: str, port: int, flags: int = 0) -> list[Any] | OSError:
    """Returns the (family, address) pairs of a host, IPv4 first as in the JVM. Returns, and does not raise, the OSError
    if the host cannot be resolved.

    `flags` are the flags of `socket.getaddrinfo`.
    """
    try:
        found = host_addresses(host, port, flags)
    except OSError as error:
        return error
    return sorted(((entry[0], entry[4]) for entry in found), key=lambda entry: entry[0])


@contextmanager
def closed_after_error(opened: socket.socket) -> Iterator[None]:
    """Gives up the ownership of the descriptor of `opened`, which the reactor has adopted; closes it after an error."""
    try:
        yield
    except BaseException:
        opened.close()
        raise
    opened.detach()


def open_connecting(family: int, address: Any) -> socket.socket:
    """Returns a non-blocking socket that is connecting. Raises OSError if the connection fails at once."""
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = opened.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
    except BaseException:
        opened.close()
        raise
    return opened
