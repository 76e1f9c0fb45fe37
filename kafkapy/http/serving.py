"""Serves an ASGI application by uvicorn and h11, with limits on connections, heads and times."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from kafkapy.host_names import host_addresses
from kafkapy.http.connection import FIRST_HEAD_S, MOST_HEAD_BYTES, REQUEST_BODY_S, connection_class
from kafkapy.http.uvicorn_parts import Config, Server
from kafkapy.named_tuple import NamedTuple

ACCEPT_QUEUE = 128


class Limits(NamedTuple):
    """The limits of a server: the number of connections at a time, and the seconds for which an idle connection is kept
    open.

    The head of a request must arrive within `head_s` seconds, and its body within `body_s` seconds.
    """

    connections: int = 200
    idle_s: int = 30
    head_s: float = FIRST_HEAD_S
    body_s: float = REQUEST_BODY_S


class TlsFiles(NamedTuple):
    """The paths of a certificate chain and of its private key in PEM, and the key's password if it has one."""

    certificate: Path
    key: Path
    password: str | None = None


class _Server(Server):
    """A uvicorn server that installs no signal handlers, because the caller handles signals."""

    def __init__(
        self,
        config: Config,
        on_ready: Callable[[], None],
        lifespan: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._lifespan = lifespan

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        async with self._lifespan():
            await super().serve(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_ready()


class WebServer:
    """A server of one ASGI application on one socket. `run` blocks; `stop` may be called by any thread or signal."""

    def __init__(
        self,
        application: Any,
        bound: socket.socket,
        *,
        tls: TlsFiles | ssl.SSLContext | None = None,
        limits: Limits | None = None,
        on_ready: Callable[[], None] = lambda: None,
        lifespan: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        """Creates a server that owns the socket `bound`. `tls` names files, or is a server's context; None means no
        TLS.

        `on_ready` is called when the server accepts connections. `lifespan` is entered before that, and left at the
        end. Raises OSError or ssl.SSLError if the files of TLS cannot be used.
        """
        limits = limits or Limits()
        secured: dict[str, Any] = {}
        if isinstance(tls, TlsFiles):
            secured = {
                "ssl_certfile": str(tls.certificate),
                "ssl_keyfile": str(tls.key),
                "ssl_keyfile_password": tls.password,
            }
        config = Config(
            application,
            http=connection_class(limits.head_s, limits.body_s),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=limits.connections,
            backlog=ACCEPT_QUEUE,
            timeout_keep_alive=limits.idle_s,
            timeout_graceful_shutdown=2,
            h11_max_incomplete_event_size=MOST_HEAD_BYTES,
            **secured,
        )
        logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
        config.load()
        if isinstance(tls, ssl.SSLContext):
            config.ssl = tls
        elif config.ssl is not None:
            config.ssl.minimum_version = ssl.TLSVersion.TLSv1_2
        self._server = _Server(config, on_ready, lifespan)
        self._bound = bound

    def run(self) -> None:
        """Serves until `stop` is called. Blocks the calling thread."""
        self._server.run(sockets=[self._bound])

    def stop(self) -> None:
        """Makes `run` return; requests in progress have two seconds to end. May be called by any thread or signal
        handler."""
        self._server.should_exit = True


def listen(host: str, port: int) -> socket.socket:
    """Returns a listening socket that is bound to the address; port 0 is any free port.

    Raises OSError, whose text contains host and port, if this fails.
    """
    try:
        family, _, _, _, target = host_addresses(host, port)[0]
        # asyncio sets TCP_NODELAY only for sockets with this protocol; without it each response would take 40 ms.
        bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(target)
        bound.listen(ACCEPT_QUEUE)
        bound.setblocking(False)
    except OSError as error:
        bound.close()
        raise OSError(error.errno, f"cannot listen on {host}:{port}: {error.strerror}") from error
    return bound


def is_loopback(host: str) -> bool:
    """Returns True if all addresses of the host name belong to the loopback interface, and False if the name is
    unknown."""
    try:
        found = host_addresses(host)
    except OSError:
        return False
    return all(str(entry[4][0]).startswith("127.") or entry[4][0] == "::1" for entry in found)
