"""The ports of the listeners, and who has them."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.tools.diagnosis.ports import check_ports
from tests.diagnosis_machine import complaints


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def found_for(listeners: str, *, is_running: bool = False, **more: str) -> list[tuple[str, str]]:
    settings = {"listeners": listeners, **{name.replace("_", "."): value for name, value in more.items()}}
    return complaints(check_ports(BrokerConfig(settings), is_running=is_running))


def test_a_free_port(free_port: int):
    assert found_for(f"PLAINTEXT://127.0.0.1:{free_port}") == []


def test_a_port_that_another_has(taken: int):
    listener = f"PLAINTEXT://127.0.0.1:{taken}"
    assert found_for(listener) == [("problem", f"another program has the port of {listener}")]


def test_our_own_broker_has_it(taken: int):
    assert found_for(f"PLAINTEXT://127.0.0.1:{taken}", is_running=True) == []


def test_our_own_broker_does_not_answer(free_port: int):
    (found,) = found_for(f"PLAINTEXT://127.0.0.1:{free_port}", is_running=True)
    assert found[0] == "warning"


def test_an_address_that_is_not_ours(free_port: int):
    (found,) = found_for(f"PLAINTEXT://192.0.2.1:{free_port}")
    assert found == ("problem", f"PLAINTEXT://192.0.2.1:{free_port} cannot be bound: Cannot assign requested address")


def test_an_advertised_name_that_nobody_knows(free_port: int):
    advertised = f"PLAINTEXT://broker.invalid:{free_port}"
    (found,) = found_for(f"PLAINTEXT://127.0.0.1:{free_port}", advertised_listeners=advertised)
    assert found[0] == "warning"
    assert "broker.invalid" in found[1]
