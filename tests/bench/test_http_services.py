"""The benchmark of the registry and the REST proxy, with a few requests."""

from __future__ import annotations

import json

import pytest

from bench import http_services


def test_each_kind_of_request_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    http_services.main(["--requests", "20", "--connections", "2"])
    results = {line["measurement"]: line for line in map(json.loads, capsys.readouterr().out.splitlines())}
    assert list(results) == [
        "registry look-up by id",
        "registry look-up by version",
        "registry look-up by content",
        "REST produce of 1",
        "REST produce of 100",
    ]
    assert all(line["requests_per_s"] > 0 for line in results.values())
    single, many = results["REST produce of 1"], results["REST produce of 100"]
    assert single["records_per_s"] == single["requests_per_s"]
    assert many["records_per_s"] > 50 * many["requests_per_s"]


def test_a_refused_request_ends_the_measurement() -> None:
    load = http_services.Load("absent", "GET", "/subjects/absent/versions/1", None, http_services.REGISTRY_TYPE)
    with http_services.own_services() as (registry, _), pytest.raises(RuntimeError, match="returned 404"):
        http_services.measure(registry.url, load, 1, 1, registry.pid)
