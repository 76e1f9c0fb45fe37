"""A client of TLS 1.3 by libssl itself, for what Python's `ssl` cannot do: updates of keys."""

from __future__ import annotations

import ctypes
import ctypes.util
import socket
from functools import cache

UPDATE_REQUESTED = 1  # SSL_KEY_UPDATE_REQUESTED


@cache
def library() -> ctypes.CDLL:
    found = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
    for name in ("TLS_client_method", "SSL_CTX_new", "SSL_new"):
        getattr(found, name).restype = ctypes.c_void_p
    return found


class OpenSslClient:
    """A connected session on a blocking socket, which stays the caller's."""

    def __init__(self, plain: socket.socket) -> None:
        plain.settimeout(None)
        found = library()
        self._context = ctypes.c_void_p(found.SSL_CTX_new(ctypes.c_void_p(found.TLS_client_method())))
        self._session = ctypes.c_void_p(found.SSL_new(self._context))
        found.SSL_set_fd(self._session, plain.fileno())
        assert found.SSL_connect(self._session) == 1

    def update_keys(self) -> bool:
        """Changes the own keys and asks the peer to change its keys. Returns False if the connection has ended."""
        found = library()
        return (
            bool(found.SSL_key_update(self._session, UPDATE_REQUESTED)) and found.SSL_do_handshake(self._session) == 1
        )

    def close(self) -> None:
        library().SSL_free(self._session)
        library().SSL_CTX_free(self._context)
