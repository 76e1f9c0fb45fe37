"""A REST proxy with short limits: bodies that are too large, too slow or unfinished are refused and write nothing."""

from __future__ import annotations

import contextlib
import socket

import pytest

from kafkapy.client import Consumer
from tests.ecosystem.programs import create_topics
from tests.http_process import RestProcess

TOPIC = "protected"
LIMITS = {"http.body.timeout.ms": 1000, "http.head.timeout.ms": 1000, "http.max.body.bytes": 1000}


@pytest.fixture(scope="module")
def rest(broker, tmp_path_factory):
    create_topics(broker.bootstrap, {TOPIC: 1})
    limits = [word for name, value in LIMITS.items() for word in ("--property", f"{name}={value}")]
    with RestProcess(tmp_path_factory.mktemp("rest"), broker.bootstrap, *limits) as running:
        yield running


def answer_to(rest, head, body):
    """Sends a produce request that may be unfinished; returns the response, read to the end of the connection."""
    with socket.create_connection(("127.0.0.1", rest.port), timeout=60) as connection:
        lines = f"POST /topics/{TOPIC} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        connection.sendall(f"{lines}Content-Type: application/vnd.kafka.json.v2+json\r\n{head}\r\n\r\n{body}".encode())
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(4096):
                found += part
        return found


@pytest.mark.parametrize(
    ("head", "body", "status"),
    [
        ("Content-Length: 100", '{"records": [', b"408"),
        ("Transfer-Encoding: chunked", '5\r\n{"rec\r\n', b"408"),
        ("Content-Length: 2000", "x" * 2000, b"413"),
        ("Transfer-Encoding: chunked", f"5dc\r\n{'x' * 1500}\r\n", b"413"),
    ],
    ids=["slow", "slow and chunked", "large", "large and chunked"],
)
def test_a_body_is_refused_with_the_reason(broker, rest, head, body, status):
    found = answer_to(rest, head, body)
    assert found.startswith(b"HTTP/1.1 " + status)
    assert b'"error_code":' + status in found
    with Consumer(bootstrap_servers=broker.bootstrap) as consumer:
        assert consumer.end_offsets([(TOPIC, 0)])[TOPIC, 0] == 0
    assert rest.request("GET", "/topics")[0] == 200, "the proxy goes on"
