"""The HTTP server of the interfaces for programs, which are the REST proxy and the schema registry. It runs until
SIGINT or SIGTERM."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext

from starlette.types import ASGIApp

from kafkapy.http.guard import LOOPBACK_NAMES, Guard
from kafkapy.http.protection import Protection, Refuse, json_refusal
from kafkapy.http.serving import Limits, WebServer, is_loopback, listen
from kafkapy.http.settings import HttpSettings
from kafkapy.security.tls.python_context import server_context
from kafkapy.security.tls.tls_material import load_material
from kafkapy.tools.tool import stops_by

log = logging.getLogger("kafkapy.http")

_HEADERS = {"x-content-type-options": "nosniff"}
_KEPT_OPEN_S = 60
# `Protection` reads a body that is too large before it refuses it; a body of this many times the limit is not read.
_DRAINED = 8


def serve_api(
    application: ASGIApp,
    settings: HttpSettings,
    on_ready: Callable[[str], None],
    refuse: Refuse = json_refusal,
    lifespan: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
) -> None:
    """Serves an application until SIGINT or SIGTERM.

    `on_ready` is called with the URL of the listener when it accepts connections. Before the application receives a
    request, `Guard` checks its host, its origin and its size, and `Protection` authenticates the user and limits the
    body. If `Protection` refuses a request, `refuse(status, reason)` makes the response. `lifespan` is entered in the
    loop of the server before it accepts connections, and left when the last request has ended. Only the main thread may
    call it. Raises OSError if the address cannot be bound, and ConfigError for TLS that cannot be used.
    """
    limits = settings.limits
    is_local = is_loopback(settings.host)
    if settings.users is None and not is_local:
        log.warning("The listener on %s is open to other machines without authentication", settings.host)
    protected = Protection(application, limits, settings.users, settings.realm, refuse)
    guarded = Guard(
        protected,
        hosts={*LOOPBACK_NAMES, settings.host} if is_local else (),
        headers=_HEADERS,
        needs_origin=False,
        largest_body=_DRAINED * limits.body_bytes,
    )
    context = None if settings.ssl is None else server_context(load_material(settings.ssl, is_server=True))
    bound = listen(settings.host, settings.port)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"{settings.scheme}://{host}:{bound.getsockname()[1]}"
    server = WebServer(
        guarded,
        bound,
        tls=context,
        limits=Limits(limits.connections, _KEPT_OPEN_S, limits.head_s, limits.body_s),
        on_ready=lambda: on_ready(url),
        lifespan=lifespan,
    )
    try:
        with stops_by(server.stop):
            server.run()
    finally:
        bound.close()
