"""The dispatcher with scripted handlers: responses at once, later and never; errors of every kind; blocking
handlers."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafkapy.config import BrokerConfig
from kafkapy.config.listener import Listener
from kafkapy.config.listener_security import SaslSettings
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.security.principal import Principal
from kafkapy.security.principal_builder import AuthenticatedConnection, DefaultPrincipalBuilder
from kafkapy.security.sasl.plain_server import PlainServer
from kafkapy.security.sasl.server_factory import MechanismMaker
from kafkapy.security.tls.pem import parse_blocks
from kafkapy.server.listener_authentication import ListenerAuthentication
from kafkapy.server.quotas.request_cost import RequestCost
from kafkapy.server.request_context import RequestContext, RequestFilter, Session
from tests.api_client import ApiServer, ask, request_bytes
from tests.certificates import client_certificate
from tests.reactor_harness import frame, receive_frame
from tests.sasl_client import plain_token

MODULE = "tests.unit.server.scripted_handlers"
MODULES = {
    ApiKey.HEARTBEAT: MODULE,
    ApiKey.FIND_COORDINATOR: MODULE,
    ApiKey.API_VERSIONS: "kafkapy.server.handlers.api_versions",
}


@pytest.fixture
def server() -> Iterator[ApiServer]:
    running = ApiServer(MODULES)
    yield running
    running.close()
    assert running.harness.errors == []


def beat(client: socket.socket, wish: str, version: int = 3) -> HeartbeatResponse:
    answer: HeartbeatResponse = ask(
        client, ApiKey.HEARTBEAT, version, HeartbeatRequest(group_id=wish, member_id="m"), HeartbeatResponse
    )
    return answer


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_every_version_served_is_answered(server: ApiServer, version: int) -> None:
    assert beat(server.connect(), "now", version).throttle_time_ms == (len("tests") if version else 0)


def test_an_answer_may_come_later_and_the_next_request_waits_for_it(server: ApiServer) -> None:
    client = server.connect()
    both = b"".join(
        frame(request_bytes(ApiKey.HEARTBEAT, 1, HeartbeatRequest(group_id=wish, member_id="m"), number))
        for number, wish in enumerate(("later", "now"))
    )
    client.sendall(both)
    assert receive_frame(client) == b"\0\0\0\0" + HeartbeatResponse(throttle_time_ms=1).encode(1)
    assert receive_frame(client) == b"\0\0\0\1" + HeartbeatResponse(throttle_time_ms=5).encode(1)


def test_no_answer_at_all(server: ApiServer) -> None:
    client = server.connect()
    client.sendall(frame(request_bytes(ApiKey.HEARTBEAT, 1, HeartbeatRequest(group_id="never", member_id="m"))))
    assert beat(client, "now").error_code == 0


def test_a_second_answer_is_refused(server: ApiServer, caplog: pytest.LogCaptureFixture) -> None:
    client = server.connect()
    assert beat(client, "twice").throttle_time_ms == 2
    assert beat(client, "now").throttle_time_ms == 5
    assert "answered already" in caplog.text


@pytest.mark.parametrize(
    ("wish", "error", "logged"),
    [
        ("api error", Error.UNKNOWN_MEMBER_ID, ""),
        ("storage", Error.KAFKA_STORAGE_ERROR, "no space left"),
        ("bug", Error.UNKNOWN_SERVER_ERROR, "Traceback"),
    ],
)
def test_what_a_handler_raises_becomes_its_answer(
    server: ApiServer, caplog: pytest.LogCaptureFixture, wish: str, error: Error, logged: str
) -> None:
    assert beat(server.connect(), wish).error_code == error
    if logged:
        assert logged in caplog.text
    else:
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("wish", ["violation", "not encodable"])
def test_what_cannot_be_answered_closes_the_connection(server: ApiServer, wish: str) -> None:
    other, client = server.connect(), server.connect()
    client.sendall(frame(request_bytes(ApiKey.HEARTBEAT, 3, HeartbeatRequest(group_id=wish, member_id="m"))))
    assert client.recv(1) == b""
    assert beat(other, "now").error_code == 0


def test_a_blocking_handler_runs_on_the_pool(server: ApiServer) -> None:
    client = server.connect()

    def find(key: str) -> FindCoordinatorResponse:
        request = FindCoordinatorRequest(key=key)
        answer: FindCoordinatorResponse = ask(client, ApiKey.FIND_COORDINATOR, 2, request, FindCoordinatorResponse)
        return answer

    assert find("group").host.startswith("data-plane-kafka-request-handler-")
    assert find("later").host == "posted"
    failed = find("fail")
    assert (failed.error_code, failed.error_message) == (Error.COORDINATOR_NOT_AVAILABLE, "not yet")


def test_requests_of_one_connection_stay_in_order_across_the_pool(server: ApiServer) -> None:
    client = server.connect()
    stream = b""
    for number in range(20):
        if number % 2:
            body = HeartbeatRequest(group_id="now", member_id="m")
            stream += frame(request_bytes(ApiKey.HEARTBEAT, 0, body, number))
        else:
            stream += frame(request_bytes(ApiKey.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"), number))
    client.sendall(stream)
    assert [int.from_bytes(receive_frame(client)[:4], "big") for _ in range(20)] == list(range(20))


class RecordedQuotas:
    """Quotas that limit nothing, and record the principals that requests are charged to."""

    is_limiting = True
    measures_time = False

    def __init__(self) -> None:
        self.principals: list[str] = []

    def begin(
        self, connection: object, principal: Principal, client_id: str, key: int, size: int, started_ns: int
    ) -> None:
        self.principals.append(str(principal))


def test_requests_before_the_authentication_are_charged_to_nobody(server: ApiServer) -> None:
    """The principal is not known yet. The gate would otherwise serve the client by the quotas of User:ANONYMOUS, which
    it gets with the first request, ApiVersions."""
    quotas: Any = RecordedQuotas()
    services = server.services
    services.quotas = quotas
    settings = SaslSettings(BrokerConfig({"sasl.enabled.mechanisms": "PLAIN"}), "PLAINTEXT")
    alice = MechanismMaker(partial(PlainServer, lambda name, password: (name, password) == ("alice", "secret")))
    services.authentication = {
        "PLAINTEXT": ListenerAuthentication(
            settings, {"PLAIN": alice}, services.reactor, services.handler_pool, services.clock
        )
    }
    client = socket.create_connection(("127.0.0.1", server.listen("PLAINTEXT")))
    assert ask(client, ApiKey.API_VERSIONS, 0, ApiVersionsRequest(), ApiVersionsResponse).error_code == 0
    assert quotas.principals == []
    ask(client, ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN"), SaslHandshakeResponse)
    token = SaslAuthenticateRequest(auth_bytes=plain_token("alice", "secret"))
    assert ask(client, ApiKey.SASL_AUTHENTICATE, 1, token, SaslAuthenticateResponse).error_code == 0
    assert beat(client, "now").error_code == 0
    client.close()
    assert quotas.principals == ["User:alice"]


class HostBuilder(DefaultPrincipalBuilder):
    """Names clients by their address, and refuses those of a listener that it does not know."""

    def build(self, connection: AuthenticatedConnection) -> Principal:
        if connection.listener == "CONTROLLER":
            raise LookupError("unknown listener")
        assert connection.security_protocol == "PLAINTEXT"
        return Principal("Host", f"{connection.client_host} {connection.principal}")


@pytest.fixture
def server_with_builder() -> Iterator[ApiServer]:
    running = ApiServer(MODULES, properties={"principal.builder.class": f"{__name__}:HostBuilder"})
    yield running
    running.close()
    assert running.harness.errors == []


def test_the_principal_builder_names_clients_that_do_not_authenticate(server_with_builder: ApiServer) -> None:
    quotas: Any = RecordedQuotas()
    server_with_builder.services.quotas = quotas
    client = socket.create_connection(("127.0.0.1", server_with_builder.listen("PLAINTEXT")))
    assert beat(client, "now").error_code == 0
    client.close()
    assert quotas.principals == ["Host:127.0.0.1 User:ANONYMOUS"]


def test_a_client_that_the_principal_builder_refuses_is_not_served(server_with_builder: ApiServer) -> None:
    client = socket.create_connection(("127.0.0.1", server_with_builder.listen("CONTROLLER")))
    client.sendall(frame(request_bytes(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())))
    assert client.recv(1) == b""
    client.close()


def test_the_principal_builder_names_the_clients_of_ssl_listeners(server_with_builder: ApiServer) -> None:
    tls: Any = SimpleNamespace(principal=lambda certificate: Principal("User", "mapped"))
    built: list[AuthenticatedConnection] = []

    def build(facts: AuthenticatedConnection) -> Principal:
        built.append(facts)
        return Principal("Group", "staff")

    services = server_with_builder.services
    services.tls_listeners = SimpleNamespace(of=lambda name: tls)  # type: ignore[assignment]
    services.principal_builder = SimpleNamespace(build=build)  # type: ignore[assignment]
    connection: Any = SimpleNamespace(
        listener=Listener("SSL", "SSL", "", 0),
        peer_host="10.0.0.7",
        peer_certificate=lambda: parse_blocks(client_certificate().certificate.decode())[0].content,
    )
    server_with_builder.dispatcher.begin_session(connection)
    assert str(connection.state.principal) == "Group:staff"
    assert built == [
        AuthenticatedConnection(Principal("User", "mapped"), "SSL", "SSL", "10.0.0.7", "CN=alice,OU=clients,O=Test")
    ]


class TimedQuotas:
    """Quotas of request time that limit nothing, and record the time in percent of a second."""

    is_limiting = measures_time = True

    def __init__(self) -> None:
        self.percent: list[float] = []

    def begin(
        self, connection: object, principal: Principal, client_id: str, key: int, size: int, started_ns: int
    ) -> RequestCost:
        sensors: Any = self
        return RequestCost(sensors, principal, client_id, size, started_ns, is_exempt=False)

    def record(self, key: str, principal: Principal, client_id: str, value: float) -> int:
        self.percent.append(value)
        return 0


def test_the_time_in_which_a_forwarded_request_waits_for_the_controller_does_not_count() -> None:
    wait_s = 1.5
    server: ApiServer

    def forward(context: RequestContext, payload: bytes, refuse: object) -> None:
        def answer() -> None:
            server.harness.call(lambda: context.respond(ElectLeadersResponse()))

        threading.Timer(wait_s, answer).start()

    inactive: Any = SimpleNamespace(is_active=False)
    forwarding: Any = SimpleNamespace(forward=forward, controller_versions={})
    server = ApiServer(controller=inactive, make_forwarding=lambda post: forwarding)
    quotas: Any = TimedQuotas()
    server.services.quotas = quotas
    ask(server.connect(), ApiKey.ELECT_LEADERS, 2, ElectLeadersRequest(), ElectLeadersResponse)
    server.close()
    assert server.harness.errors == []
    assert 0 < sum(quotas.percent) < wait_s * 100 / 2


@pytest.mark.parametrize("waits", [True, False])
def test_a_fetch_that_has_waited_is_served_although_the_session_has_expired_since(
    server: ApiServer, waits: bool
) -> None:
    served: list[object] = []
    session = Session()
    session.authenticator = cast(RequestFilter, SimpleNamespace(is_authenticated=True, admits=lambda *_: False))
    connection: Any = SimpleNamespace(state=session, listener=Listener("SASL", "SASL_PLAINTEXT", "", 0), id="1")
    connection.respond = served.append
    payload = memoryview(bytearray(request_bytes(ApiKey.HEARTBEAT, 1, HeartbeatRequest(group_id="now", member_id="m"))))
    request: Any = SimpleNamespace(connection=connection, payload=payload, waits=waits, waited_ms=500)
    server.services.replica_manager = SimpleNamespace(hold_fetch=lambda held, serve: serve(held))  # type: ignore[assignment]
    server.dispatcher.dispatch([request])
    assert len(served) == waits
