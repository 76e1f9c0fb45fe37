"""A broker's metrics listener with TLS and a password."""

from __future__ import annotations

import base64
import http.client
from pathlib import Path

import pytest

from kafkapy.security.tls.python_context import client_context
from kafkapy.security.tls.tls_material import load_material
from kafkapy.tools.metrics import main as metrics
from tests.broker_process import BrokerProcess
from tests.certificates import authority, pem_trust_store, server_certificate, settings
from tests.ports import free_port

PASSWORD = "planted-secret-of-the-metrics"


def test_metrics_need_tls_and_the_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()
    store = tmp_path / "server.pem"
    store.write_bytes(server_certificate().private_key + server_certificate().certificate)
    properties = {
        "kafkapy.metrics.listener": f"127.0.0.1:{port}",
        "kafkapy.metrics.tls.enable": "true",
        "kafkapy.metrics.username": "prometheus",
        "kafkapy.metrics.password": PASSWORD,
        "ssl.keystore.type": "JKS",
        "listener.name.metrics.ssl.keystore.type": "PEM",
        "listener.name.metrics.ssl.keystore.location": str(store),
    }
    trust = load_material(settings(trust_store=pem_trust_store(authority().certificate)), is_server=False)
    context = client_context(trust)

    def status(path: str, password: str | None) -> int:
        connection = http.client.HTTPSConnection("localhost", port, timeout=30, context=context)
        text = base64.b64encode(f"prometheus:{password}".encode()).decode()
        connection.request("GET", path, headers={} if password is None else {"Authorization": f"Basic {text}"})
        with connection.getresponse() as response:
            return response.status

    with BrokerProcess(tmp_path / "broker", properties) as broker:
        assert status("/metrics", PASSWORD) == 200
        assert status("/metrics", "wrong") == 401
        assert status("/metrics", None) == 401
        assert status("/ready", None) == 200
        for path in ("/v1/broker", "/v1/quotas"):
            assert [status(path, each) for each in (PASSWORD, "wrong", None)] == [200, 401, 401]
        for words in (["--config", str(broker.config)], ["--config", str(broker.config), "--match", "build_info"]):
            assert metrics(words) == 0
        assert "kafkapy_build_info" in capsys.readouterr().out
        assert metrics(["--url", f"http://prometheus:{PASSWORD}@localhost:{port}/metrics"]) == 1
        said = capsys.readouterr().err
        assert "cannot be read" in said
        assert PASSWORD not in said
    assert PASSWORD not in broker.log()
