"""The metrics of the authorizer: counts, and rates over the last minute."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.metrics.page import Page
from kafkapy.security.access_control_entry import AccessControlEntry
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.authorizer import Action, Requester
from kafkapy.security.principal import parse_principal
from kafkapy.security.standard_authorizer import StandardAuthorizer
from kafkapy.server.exposition.authorization import AuthorizationMetrics
from tests.mock_clock import MockClock

READ = Action(Operation.READ, ResourceType.TOPIC, "t")
LABELS = '{class="StandardAuthorizer",config="authorizer.class.name",role="broker"}'


class Metrics:
    def __init__(self, authorizer: Any) -> None:
        self.clock = MockClock()
        services: Any = SimpleNamespace(authorizer=authorizer, clock=self.clock)
        self._metrics = AuthorizationMetrics(services)

    def values(self) -> dict[str, float]:
        page = Page(lambda: None)
        self._metrics.write(page)
        lines = bytes(memoryview(page.native)).decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


@pytest.fixture
def authorizer() -> StandardAuthorizer:
    made = StandardAuthorizer()
    made.load({b"1": AccessControlEntry(2, "t", PatternType.LITERAL, "User:ada", "*", 3, Permission.ALLOW)})
    made.set_loaded()
    return made


def ask(authorizer: StandardAuthorizer, principal: str, count: int) -> None:
    authorizer.authorize(Requester(parse_principal(principal), "10.0.0.1", "L", 3), [READ] * count)


def test_answers_are_counted_and_rated(authorizer: StandardAuthorizer):
    metrics = Metrics(authorizer)
    ask(authorizer, "User:ada", 30)
    ask(authorizer, "User:eve", 10)
    values = metrics.values()
    assert values[f"kafka_server_plugins_acls_total_count{LABELS}"] == 1
    assert values['kafkapy_authorizations_total{result="allowed"}'] == 30
    assert values['kafkapy_authorizations_total{result="denied"}'] == 10
    # At first, the rate is that of half a minute, as in Kafka.
    assert values[f"kafka_server_plugins_authorization_request_rate_per_minute{LABELS}"] == 80
    assert values[f"kafka_server_plugins_authorization_allowed_rate_per_minute{LABELS}"] == 60
    assert values[f"kafka_server_plugins_authorization_denied_rate_per_minute{LABELS}"] == 20


def test_rates_are_those_of_the_last_minute(authorizer: StandardAuthorizer):
    metrics = Metrics(authorizer)
    name = f"kafka_server_plugins_authorization_request_rate_per_minute{LABELS}"
    ask(authorizer, "User:ada", 60)
    rates = []
    for _ in range(5):
        metrics.clock.advance(30_000)
        rates.append(metrics.values()[name])
        ask(authorizer, "User:ada", 10)
    assert rates == [120, 70, 20, 20, 20]
    metrics.clock.advance(600_000)
    assert metrics.values()[name] == 1


def test_other_authorizers_have_no_metrics():
    assert Metrics(None).values() == {}
    assert Metrics(object()).values() == {}
