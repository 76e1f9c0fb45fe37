"""The name of a host in the broker's principal: an address is looked up, as Java's client does."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kafkapy.client.kerberos_login import host_name

NAMES = {"192.0.2.1": "broker.example", "192.0.2.2": "forged.example", "2001:db8::1": "six.example"}
ADDRESSES = {
    "broker.example": ["192.0.2.9", "192.0.2.1"],
    "forged.example": ["192.0.2.3"],
    "six.example": ["2001:0db8:0:0::1"],
}


def look_up(host: str) -> tuple[str, list[str], list[str]]:
    if host not in NAMES:
        raise socket.herror(1, "Unknown host")
    return NAMES[host], [], [host]


def addresses(name: str, port: Any, **options: Any) -> list[tuple[Any, ...]]:
    return [(0, 0, 0, "", (each, 0)) for each in ADDRESSES[name]]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("192.0.2.1", "broker.example"),
        ("2001:db8::1", "six.example"),
        ("192.0.2.2", "192.0.2.2"),  # the name has another address
        ("192.0.2.4", "192.0.2.4"),  # the resolver has no name
        ("broker.example", "broker.example"),
    ],
)
def test_an_address_becomes_the_name_that_has_this_address(
    monkeypatch: pytest.MonkeyPatch, host: str, name: str
) -> None:
    monkeypatch.setattr(socket, "gethostbyaddr", look_up)
    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    assert host_name(host) == name
