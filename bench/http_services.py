"""`python -m bench.http_services`: measures the schema registry and the REST proxy on a broker of their own.

    python -m bench.http_services [--requests 5000] [--connections 8]
    python -m bench.http_services --registry-url URL --rest-url URL

- look-up by id, by version, and by content (is this schema registered?): requests per second to `kafkapy registry`;
- produce: requests per second, each with one record or with 100, to `kafkapy rest`.

Each connection is kept alive and sends its next request after the response, from a process of its own. With addresses,
the services of another program are measured instead; their subject and topic are created as usual.
The output is one JSON object per measurement.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from bench.process_figures import cpu_seconds
from kafkapy.client import Admin
from kafkapy.client.admin import NewTopic
from tests.broker_process import BrokerProcess
from tests.http_process import RegistryProcess, RestProcess

REGISTRY_TYPE = "application/vnd.schemaregistry.v1+json"
REST_TYPE = "application/vnd.kafka.binary.v2+json"
SUBJECT, TOPIC = "orders-value", "orders"
SCHEMA = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": f"field{number}", "type": "string"} for number in range(10)],
}
VALUE = "A" * 132  # 99 bytes as base64


@dataclass(frozen=True)
class Load:
    """A request that is sent again and again."""

    name: str
    method: str
    path: str
    body: str | None
    content_type: str
    records: int = 1


def registry_loads(schema_id: int) -> list[Load]:
    schema = json.dumps({"schema": json.dumps(SCHEMA)})
    return [
        Load("registry look-up by id", "GET", f"/schemas/ids/{schema_id}", None, REGISTRY_TYPE),
        Load("registry look-up by version", "GET", f"/subjects/{SUBJECT}/versions/1", None, REGISTRY_TYPE),
        Load("registry look-up by content", "POST", f"/subjects/{SUBJECT}", schema, REGISTRY_TYPE),
    ]


def rest_loads() -> list[Load]:
    loads = []
    for count in (1, 100):
        body = json.dumps({"records": [{"value": VALUE}] * count})
        loads.append(Load(f"REST produce of {count}", "POST", f"/topics/{TOPIC}", body, REST_TYPE, count))
    return loads


def send(connection: http.client.HTTPConnection, load: Load) -> bytes:
    """Sends the request; returns the body of the response. Raises RuntimeError if the status is not 200."""
    connection.request(load.method, load.path, load.body, {"content-type": load.content_type})
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        raise RuntimeError(f"{load.method} {load.path} returned {response.status}: {content[:500]!r}")
    return content


def repeat(url: str, load: Load, count: int) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    for _ in range(count):
        send(connection, load)
    connection.close()


def measure(url: str, load: Load, requests: int, connections: int, pid: int | None) -> None:
    """Sends the requests over the connections in parallel and prints the rates; `pid` is the service's process."""
    repeat(url, load, 50)
    share = max(1, requests // connections)
    workers = [multiprocessing.Process(target=repeat, args=(url, load, share)) for _ in range(connections)]
    used_s = cpu_seconds(pid) if pid else 0.0
    began_s = time.monotonic()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    elapsed_s = time.monotonic() - began_s
    if any(worker.exitcode for worker in workers):
        raise RuntimeError(f"a connection failed during {load.name}")
    count = share * connections
    figures = {"requests_per_s": count / elapsed_s, "records_per_s": count * load.records / elapsed_s}
    if pid:
        figures["cpu_us_per_request"] = (cpu_seconds(pid) - used_s) / count * 1e6
    rounded = {key: round(value, 1) for key, value in figures.items()}
    print(json.dumps({"measurement": load.name, **rounded}), flush=True)


def register(url: str) -> int:
    """Registers the schema; returns its id."""
    body = json.dumps({"schema": json.dumps(SCHEMA)})
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    content = send(connection, Load("", "POST", f"/subjects/{SUBJECT}/versions", body, REGISTRY_TYPE))
    connection.close()
    return int(json.loads(content)["id"])


@contextmanager
def own_services() -> Iterator[tuple[RegistryProcess, RestProcess]]:
    with tempfile.TemporaryDirectory(prefix="bench-http-") as name:
        directory = Path(name)
        with BrokerProcess(directory / "broker") as broker:
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                admin.create_topics([NewTopic(TOPIC, 3, 1)]).check()
            with (
                RegistryProcess(directory / "registry", broker.bootstrap) as registry,
                RestProcess(directory / "rest", broker.bootstrap) as rest,
            ):
                yield registry, rest


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, default=5000, help="of each kind")
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--registry-url", help="another registry, such as http://127.0.0.1:8081")
    parser.add_argument("--rest-url", help="another REST proxy, such as http://127.0.0.1:8082")
    options = parser.parse_args(None if arguments is None else list(arguments))

    def run(url: str, loads: list[Load], pid: int | None) -> None:
        for load in loads:
            measure(url, load, options.requests, options.connections, pid)

    if options.registry_url or options.rest_url:
        if options.registry_url:
            run(options.registry_url, registry_loads(register(options.registry_url)), None)
        if options.rest_url:
            run(options.rest_url, rest_loads(), None)
        return
    with own_services() as (registry, rest):
        run(registry.url, registry_loads(register(registry.url)), registry.pid)
        run(rest.url, rest_loads(), rest.pid)


if __name__ == "__main__":
    main()
