"""The delay of a client by the response: its throttle time, and the muted connection."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy._core.bytes.message import Message
from kafkapy.metrics.request_errors import RequestErrors
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_topics import CreateTopicsResponse
from kafkapy.protocol.messages.header import RequestHeader
from kafkapy.protocol.messages.list_groups import ListGroupsResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeResponse
from kafkapy.server.handlers.metadata import EncodedResponse
from kafkapy.server.request_context import RequestContext, Session


class MutedConnection:
    """Records the response and the delay."""

    def __init__(self) -> None:
        self.id = "muted"
        self.listener = SimpleNamespace(name="PLAINTEXT")
        self.sent = b""
        self.delay_ms = 0

    def respond(self, chunks: Any) -> None:
        self.sent = b"".join(chunks)

    def mute(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms


def context_of(key: ApiKey, version: int, *, flexible: bool = False) -> tuple[RequestContext, MutedConnection]:
    services: Any = SimpleNamespace(request_errors=RequestErrors(), quotas=None, mutation_quotas=None)
    connection: Any = MutedConnection()
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=7, client_id="c")
    return RequestContext(services, connection, Session(), header, flexible, 0), connection


@pytest.mark.parametrize(("version", "throttle_ms", "delay_ms"), [(7, 700, 700), (7, 0, 0), (4, 50, 50)])
def test_the_active_controllers_throttle_time_delays_the_client(version: int, throttle_ms: int, delay_ms: int) -> None:
    flexible = version >= CreateTopicsResponse.FLEXIBLE_VERSION
    context, connection = context_of(ApiKey.CREATE_TOPICS, version, flexible=flexible)
    response = CreateTopicsResponse(throttle_time_ms=throttle_ms, topics=[]).encode(version)
    encoded = b"\0\0\0\7" + (b"\0" if flexible else b"") + response
    context.respond_encoded(encoded)
    assert connection.sent == encoded
    assert connection.delay_ms == delay_ms


def test_other_forwarded_responses_are_passed_on_as_they_are() -> None:
    context, connection = context_of(ApiKey.ALTER_CLIENT_QUOTAS, 1)
    context.respond_encoded(b"any bytes")
    assert (connection.sent, connection.delay_ms) == (b"any bytes", 0)


def test_a_response_gets_the_throttle_time_if_it_has_the_field() -> None:
    cases: list[tuple[ApiKey, int, Message]] = [
        (ApiKey.LIST_GROUPS, 2, ListGroupsResponse(groups=[])),
        (ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeResponse(mechanisms=[])),
    ]
    for key, version, response in cases:
        context, connection = context_of(key, version)
        context.respond(response, 900)
        assert connection.delay_ms == 900
        assert ((900).to_bytes(4, "big") in connection.sent) == (key is ApiKey.LIST_GROUPS)


def test_an_encoded_response_is_delayed_from_the_version_with_the_field() -> None:
    body = bytes(4) + b"body"
    assert EncodedResponse(body).delayed(2, 900).body == body
    assert EncodedResponse(body).delayed(3, 900).body == (900).to_bytes(4, "big") + b"body"
