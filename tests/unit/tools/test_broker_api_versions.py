"""The output of broker-api-versions if one of two brokers does not answer."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from kafkapy.client.admin import BrokerVersions, Node
from kafkapy.client.admin.results import Results
from kafkapy.errors import ApiError, Error
from kafkapy.tools import broker_api_versions
from kafkapy.tools.tool import parse

NODES = [Node(1, "localhost", 9092), Node(2, "localhost", 9093)]


class OneBrokerAnswers:
    """An Admin of two brokers, of which the second does not answer."""

    def __init__(self, properties: dict[str, object]) -> None:
        pass

    def __enter__(self) -> OneBrokerAnswers:
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def describe_cluster(self) -> SimpleNamespace:
        return SimpleNamespace(brokers=NODES)

    def describe_versions(self, brokers: list[int]) -> Results[int, BrokerVersions]:
        assert brokers == [1, 2]
        results: Results[int, BrokerVersions] = Results()
        results.put(1, BrokerVersions({18: (0, 4)}, SimpleNamespace()))
        results.put(2, ApiError(Error.REQUEST_TIMED_OUT, "no answer"))
        return results


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(broker_api_versions, "Admin", OneBrokerAnswers)
    monkeypatch.setattr(broker_api_versions, "admin_properties", lambda arguments: {})
    _, arguments = parse(broker_api_versions.TOOL, ["--bootstrap-server", "localhost:9092", *words])
    return broker_api_versions.run(arguments)


def test_json_has_the_error_of_a_broker_that_does_not_answer(monkeypatch, capsys):
    assert run(monkeypatch, "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"broker": 1, "address": "localhost:9092", "apis": {"ApiVersions": [0, 4]}},
        {
            "broker": 2,
            "address": "localhost:9093",
            "error": "org.apache.kafka.common.errors.TimeoutException: no answer",
        },
    ]


def test_the_text_has_the_error_of_a_broker_that_does_not_answer(monkeypatch, capsys):
    assert run(monkeypatch) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "localhost:9092 (id: 1 rack: null isFenced: false) -> ("
    assert lines[-1] == (
        "localhost:9093 (id: 2 rack: null isFenced: false) -> "
        "ERROR: org.apache.kafka.common.errors.TimeoutException: no answer"
    )
