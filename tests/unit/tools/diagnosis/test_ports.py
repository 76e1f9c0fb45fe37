"""The doctor's checks of listeners: free ports, running brokers, advertised names."""

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


def test_a_free_port_is_good(free_port: int):
    assert found_for(f"PLAINTEXT://127.0.0.1:{free_port}") == []


def test_a_port_of_another_program_is_a_problem(taken: int):
    listener = f"PLAINTEXT://127.0.0.1:{taken}"
    assert found_for(listener) == [("problem", f"another program uses the port of {listener}")]


def test_a_running_broker_accepts_connections(taken: int):
    assert found_for(f"PLAINTEXT://127.0.0.1:{taken}", is_running=True) == []


def test_a_running_broker_without_connections_is_a_warning(free_port: int):
    (found,) = found_for(f"PLAINTEXT://127.0.0.1:{free_port}", is_running=True)
    assert found[0] == "warning"


def test_an_address_of_another_machine_is_a_problem(free_port: int):
    (found,) = found_for(f"PLAINTEXT://192.0.2.1:{free_port}")
    assert found == ("problem", f"PLAINTEXT://192.0.2.1:{free_port} cannot be bound: Cannot assign requested address")


def test_an_unknown_advertised_name_is_a_warning(free_port: int):
    advertised = f"PLAINTEXT://broker.invalid:{free_port}"
    (found,) = found_for(f"PLAINTEXT://127.0.0.1:{free_port}", advertised_listeners=advertised)
    assert found[0] == "warning"
    assert "broker.invalid" in found[1]
