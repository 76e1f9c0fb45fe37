"""The dispatcher with scripted handlers: responses at once, later and never; errors of every kind; blocking
handlers."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkapy.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.api_client import ApiServer, ask, request_bytes
from tests.reactor_harness import frame, receive_frame

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
