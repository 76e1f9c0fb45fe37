"""The addresses of a host name, with an OSError for every name that cannot be resolved."""

from __future__ import annotations

import socket
from typing import Any


def host_addresses(host: str | None, port: int | None = None, flags: int = 0) -> list[tuple[Any, ...]]:
    """Returns the addresses of a host for TCP, as `socket.getaddrinfo` does. May block for the resolver.

    Raises OSError if the host cannot be resolved. This includes a text that cannot be a host name, such as `a..b`, for
    which `socket.getaddrinfo` raises UnicodeError: the names that other nodes advertise may be any text.
    """
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    except ValueError as error:
        raise socket.gaierror(socket.EAI_NONAME, f"{host!r} is not the name of a host") from error
