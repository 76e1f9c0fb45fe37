"""The quotas of addresses: host names are looked up on the handler pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.server.quota_listener import QuotaListener
from tests.mock_clock import MockClock

RATE = {"connection_creation_rate": 5.0}


class Node:
    """A node without a gate, whose reactor runs posted work at once; `submitted` is the work of the handler pool."""

    def __init__(self) -> None:
        self.submitted: list[Callable[[], Callable[[], object] | None]] = []
        self.rates: Mapping[str | None, float] = {}
        reactor = SimpleNamespace(post=lambda work: work(), schedule=lambda delay_ms, work: None)
        services: Any = SimpleNamespace(
            config=BrokerConfig({}), clock=MockClock(), reactor=reactor, quotas=None, mutation_quotas=None,
            handler_pool=SimpleNamespace(submit=self.submitted.append),
        )  # fmt: skip
        quotas: Any = SimpleNamespace(set_address_rates=self._set)
        self._listener = QuotaListener(services, lambda: quotas)

    def _set(self, rates: Mapping[str | None, float]) -> None:
        self.rates = rates

    def apply(self, *names: str | None) -> None:
        image: Any = SimpleNamespace(client_quotas={(("ip", name),): RATE for name in names})
        self._listener.post(image)

    def look_up(self) -> None:
        for work in self.submitted[:]:
            self.submitted.remove(work)
            apply = work()
            if apply is not None:
                apply()


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The addresses of host names; the test may change them."""
    known = {"client": ["10.0.0.2", "10.0.0.1"]}

    def find(name: str) -> list[Any]:
        if name not in known:
            raise OSError(f"{name} is unknown")
        return [(0, 0, 0, "", (address, 0)) for address in known[name]]

    monkeypatch.setattr("kafkapy.server.quota_listener.host_addresses", find)
    return known


def test_a_host_name_is_looked_up_by_the_handler_pool(hosts: dict[str, list[str]]) -> None:
    """The quorum thread, which posts the quotas, would delay the whole cluster while it waits for DNS."""
    node = Node()
    node.apply(None, "10.0.0.9", "0:0:0:0:0:0:0:1", "client")
    assert node.rates == {None: 5, "10.0.0.9": 5, "::1": 5}
    node.look_up()
    assert node.rates == {None: 5, "10.0.0.9": 5, "::1": 5, "10.0.0.1": 5, "10.0.0.2": 5}
    node.apply("client")
    assert (node.rates, node.submitted) == ({"10.0.0.1": 5, "10.0.0.2": 5}, [])
    node.apply()
    assert node.rates == {}


def test_a_name_that_is_unknown_is_looked_up_at_the_next_change(
    hosts: dict[str, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    node = Node()
    node.apply("absent")
    node.look_up()
    assert node.rates == {}
    assert "The ip quota of absent is ignored: absent is unknown" in caplog.text
    assert node.submitted == []
    hosts["absent"] = ["10.0.0.3"]
    node.apply("absent")
    node.look_up()
    assert node.rates == {"10.0.0.3": 5}


def test_names_that_are_added_during_a_look_up_are_looked_up_after_it(hosts: dict[str, list[str]]) -> None:
    hosts["second"] = ["10.0.0.4"]
    node = Node()
    node.apply("client")
    node.apply("client", "second")
    assert len(node.submitted) == 1
    node.look_up()
    assert (node.rates, len(node.submitted)) == ({"10.0.0.1": 5, "10.0.0.2": 5}, 1)
    node.look_up()
    assert node.rates == {"10.0.0.1": 5, "10.0.0.2": 5, "10.0.0.4": 5}


def test_a_quota_that_is_removed_before_the_name_is_known_has_no_effect(hosts: dict[str, list[str]]) -> None:
    node = Node()
    node.apply("client")
    node.apply()
    node.look_up()
    assert node.rates == {}
