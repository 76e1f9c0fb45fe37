"""Constructs the parts of a REST proxy and serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kafkapy.client.schema import RegistryClient
from kafkapy.http.api_server import serve_api
from kafkapy.http.json_api import with_raw_paths
from kafkapy.http.settings import HttpSettings
from kafkapy.rest.cluster import ClusterClients
from kafkapy.rest.consumers import ConsumerInstances
from kafkapy.rest.formats import Formats
from kafkapy.rest.version_2 import JSON_RESPONSES, VersionTwo
from kafkapy.rest.version_3 import VersionThree

_SWEEP_S = 5.0


def serve_rest(
    settings: HttpSettings,
    *,
    producer: Mapping[str, str],
    consumer: Mapping[str, str],
    admin: Mapping[str, str],
    registry: RegistryClient | None,
    most_consumers: int,
    idle_s: float,
    largest_response: int,
) -> None:
    """Serves a REST proxy until SIGINT or SIGTERM. `producer`, `consumer` and `admin` configure the clients.

    `most_consumers` is the largest number of consumer instances. An instance is removed after `idle_s` seconds without
    a request. `largest_response` is the most bytes of records in a response. If `registry` is None, requests that need
    schemas are refused.
    """
    formats = Formats(registry)
    clients = ClusterClients(producer, admin, most_consumers=most_consumers)
    consumers = ConsumerInstances(consumer, formats, most=most_consumers, idle_s=idle_s)
    version_2 = VersionTwo(clients, formats, consumers, largest_response=largest_response)

    async def root(request: Request) -> Response:
        return JSON_RESPONSES.answer({})

    @asynccontextmanager
    async def lifespan() -> AsyncIterator[None]:
        async def sweep() -> None:
            while True:
                await asyncio.sleep(_SWEEP_S)
                await clients.run(consumers.remove_idle)

        sweeping = asyncio.create_task(sweep())
        try:
            yield
        finally:
            sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await sweeping
            await asyncio.to_thread(consumers.close)
            await clients.close()

    app = Starlette(
        routes=[Route("/", root), *version_2.routes(), *VersionThree(clients, formats).routes()],
        exception_handlers=JSON_RESPONSES.handlers(),
    )
    serve_api(
        with_raw_paths(app),
        settings,
        lambda url: print(f"kafkapy rest ready on {url}", flush=True),
        JSON_RESPONSES.refuse,
        lifespan,
    )
