"""Texts that cannot be host names: resolving them raises OSError, whichever part of kafkapy does it."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from kafkapy.client.cluster import Node
from kafkapy.client.connection import open_socket
from kafkapy.errors import ConfigError
from kafkapy.host_names import host_addresses
from kafkapy.http.serving import is_loopback, listen
from kafkapy.metrics.http_server import bind
from kafkapy.network.address_overrides import parse_address_limits
from kafkapy.network.outgoing import resolve
from kafkapy.tools.bootstrap import connection_failures
from tests.style.sources import PACKAGE

NO_NAME = "a..b"


@pytest.mark.parametrize("host", [NO_NAME, ".", "a" * 64, "\ud800", "a\0b"])
def test_a_text_that_cannot_be_a_name_is_an_os_error(host: str) -> None:
    with pytest.raises(socket.gaierror):
        host_addresses(host, 9092)


def test_a_name_has_the_addresses_of_the_resolver() -> None:
    assert host_addresses("127.0.0.1", 9092) == socket.getaddrinfo("127.0.0.1", 9092, type=socket.SOCK_STREAM)


@pytest.mark.parametrize(
    "use",
    [
        lambda: open_socket(Node(1, NO_NAME, 9092), (-1, -1)),
        lambda: bind(f"{NO_NAME}:9092"),
        lambda: listen(NO_NAME, 9092),
    ],
    ids=["open_socket", "bind", "listen"],
)
def test_the_error_names_the_host(use: Callable[[], object]) -> None:
    with pytest.raises(OSError, match=NO_NAME):
        use()


def test_a_node_that_advertises_no_name_cannot_be_resolved() -> None:
    assert isinstance(resolve(NO_NAME, 9092), OSError)
    assert isinstance(resolve(NO_NAME, 9092, socket.AI_NUMERICHOST), OSError)


def test_no_name_is_not_the_loopback_interface() -> None:
    assert not is_loopback(NO_NAME)


def test_a_limit_for_no_name_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=NO_NAME):
        parse_address_limits(f"{NO_NAME}:5")


def test_a_tool_says_that_a_bootstrap_server_cannot_be_resolved() -> None:
    assert connection_failures([f"{NO_NAME}:9092"], 0) == [f"{NO_NAME}:9092: the name cannot be resolved"]


def test_the_resolver_is_called_in_one_place() -> None:
    calling = [path.name for path in PACKAGE.rglob("*.py") if "getaddrinfo(" in path.read_text()]
    assert calling == ["host_names.py"]
