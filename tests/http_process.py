"""A schema registry and a REST proxy as processes of their own, and requests to their APIs."""

from __future__ import annotations

import http.client
import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.server_process import ServerProcess

ROOT = Path(__file__).parents[1]


class HttpProcess(ServerProcess):
    """A program with an HTTP interface on a free port of the loopback interface, for the cluster at `cluster`."""

    tool = ""

    def __init__(
        self, directory: Path, cluster: str, *arguments: str, port: int | None = None, scheme: str = "http"
    ) -> None:
        super().__init__(directory, port)
        self._scheme = scheme
        self._cluster = cluster
        self.arguments = arguments

    def command(self) -> list[str]:
        return [
            *(sys.executable, "-m", "kafkapy", self.tool, "--bootstrap-server", self._cluster),
            *("--listener", self.url, *self.arguments),
        ]

    @property
    def url(self) -> str:
        """The address of the API."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        """Sends a request; returns the status and the JSON value of the response."""
        status, content = self.exchange(method, path, body, headers)
        return status, json.loads(content or b"null")

    def exchange(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Sends a request; returns the status and the body of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
            connection.request(method, path, content, {"content-type": "application/json"} | (headers or {}))
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def _working_directory(self) -> Path:
        return ROOT


class RegistryProcess(HttpProcess):
    """A schema registry."""

    tool = "registry"
    ready_line = re.compile(r"^kafkapy registry ready on (\S+)$", re.MULTILINE)


class RestProcess(HttpProcess):
    """A REST proxy."""

    tool = "rest"
    ready_line = re.compile(r"^kafkapy rest ready on (\S+)$", re.MULTILINE)


def avro(text: Any) -> dict[str, str]:
    """Returns the body of a request with an Avro schema."""
    return {"schema": text if isinstance(text, str) else json.dumps(text)}
