"""Requests to the registry whose fields cannot be used: each is refused, and nothing is stored."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from kafkapy.registry.application import RegistryApi
from kafkapy.registry.service import RegistryService
from kafkapy.registry.store import SchemaStore

TEXT = '"string"'
VERSIONS = "/subjects/s/versions"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", VERSIONS, {"schema": TEXT, "metadata": {"properties": ["a"]}}, 422),
        ("POST", VERSIONS, {"schema": TEXT, "metadata": {"properties": {"a": "\ud800"}}}, 422),
        ("POST", VERSIONS, {"schema": TEXT, "references": [{"name": "a", "subject": "r", "version": True}]}, 422),
        ("PUT", "/config/s", {"alias": "\ud800"}, 422),
        ("PUT", "/config/s", {"compatibilityGroup": []}, 422),
        ("GET", "/schemas/ids/" + "9" * 5000, None, 404),
    ],
)
def test_a_field_that_cannot_be_used_is_refused(method: str, path: str, body: Any, status: int) -> None:
    store, written = SchemaStore(), []
    election = SimpleNamespace(is_leader=True, leader_url="http://h:1", await_leader=lambda timeout_s: "http://h:1")
    forwarder: Any = SimpleNamespace(is_forwarded=lambda request: False)
    api = RegistryApi(RegistryService(store, written.extend), election, forwarder, 5.0)  # type: ignore[arg-type]
    client = TestClient(api.application(), raise_server_exceptions=False)
    content = None if body is None else json.dumps(body)
    store.apply(
        b'{"keytype": "SCHEMA", "subject": "r", "version": 1, "magic": 1}',
        b'{"subject": "r", "version": 1, "id": 7, "schema": "\\"int\\""}',
    )
    response = client.request(method, path, content=content, headers={"Content-Type": "application/json"})
    assert (response.status_code, written) == (status, [])
    api.close()
