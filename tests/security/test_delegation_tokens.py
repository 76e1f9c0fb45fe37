"""Delegation tokens (KIP-48): requests and logins on Apache Kafka 4.3 and kafkapy, which answer the same."""

from __future__ import annotations

import base64
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafkapy.client import Producer
from kafkapy.client.admin import Admin
from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey, response_class
from kafkapy.protocol.messages.create_acls import CreateAclsRequest
from kafkapy.protocol.messages.create_delegation_token import CreateDelegationTokenRequest
from kafkapy.protocol.messages.describe_acls import DescribeAclsRequest
from kafkapy.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from kafkapy.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kafkapy.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kafkapy.protocol.scram_mechanism import ScramMechanism
from kafkapy.security.acl import Operation, PatternType, Permission, ResourceType
from kafkapy.security.sasl.scram_client import ScramClient
from tests.api_client import ask
from tests.sasl_client import CLOSED, SaslConnection
from tests.security.secured_brokers import ADMIN, connect
from tests.security.token_brokers import Kafka, Kafkapy, eventually

pytestmark = [pytest.mark.timeout(180)]
DAY_MS = 86_400_000
FLAVOURS = [pytest.param(Kafkapy, id="kafkapy"), pytest.param(Kafka, id="kafka_43", marks=pytest.mark.peer)]


@pytest.fixture(scope="module", params=FLAVOURS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with request.param(tmp_path_factory.mktemp("tokens")) as server:
        yield server


def send(server: Any, user: str, key: ApiKey, request: Any, version: int) -> Any:
    with connect(server, user) as client:
        return ask(client, key, version, request, response_class(key))


def create(server: Any, user: str, owner: str = "", renewers: tuple[str, ...] = (), **fields: Any) -> Any:
    kind, _, name = owner.partition(":")
    request = CreateDelegationTokenRequest(
        owner_principal_type=kind or None,
        owner_principal_name=name or None,
        renewers=[
            CreateDelegationTokenRequest.CreatableRenewers(principal_type=each[0], principal_name=each[2])
            for each in (renewer.partition(":") for renewer in renewers)
        ],
        **{"max_lifetime_ms": -1, **fields},
    )
    token = send(server, user, ApiKey.CREATE_DELEGATION_TOKEN, request, 3)
    if token.error_code == 0:
        # Apache Kafka answers before its broker knows the token.
        eventually(lambda: token.token_id in {each.token_id for each in describe(server, ADMIN)})
    return token


def describe(server: Any, user: str, *owners: str, everyone: bool = True) -> list[Any]:
    wanted = [
        DescribeDelegationTokenRequest.DescribeDelegationTokenOwner(principal_type="User", principal_name=owner)
        for owner in owners
    ]
    request = DescribeDelegationTokenRequest(owners=None if everyone and not owners else wanted)
    response = send(server, user, ApiKey.DESCRIBE_DELEGATION_TOKEN, request, 3)
    assert response.error_code == 0
    tokens: list[Any] = response.tokens
    return tokens


def renew(server: Any, user: str, hmac: bytes, period_ms: int = -1) -> tuple[int, int]:
    request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
    response = send(server, user, ApiKey.RENEW_DELEGATION_TOKEN, request, 2)
    return response.error_code, response.expiry_timestamp_ms


def expire(server: Any, user: str, hmac: bytes, period_ms: int = -1) -> tuple[int, int]:
    request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
    response = send(server, user, ApiKey.EXPIRE_DELEGATION_TOKEN, request, 2)
    return response.error_code, response.expiry_timestamp_ms


def allow(server: Any, principal: str, operation: Operation, resource_type: ResourceType, name: str) -> None:
    creation = CreateAclsRequest.AclCreation(
        resource_type=resource_type, resource_name=name, resource_pattern_type=PatternType.LITERAL,
        principal=principal, host="*", operation=operation, permission_type=Permission.ALLOW,
    )  # fmt: skip
    (result,) = send(server, ADMIN, ApiKey.CREATE_ACLS, CreateAclsRequest(creations=[creation]), 3).results
    assert result.error_code == 0
    wanted = DescribeAclsRequest(
        resource_type_filter=resource_type, resource_name_filter=name, pattern_type_filter=PatternType.LITERAL,
        principal_filter=principal, host_filter=None, operation=operation, permission_type=Permission.ALLOW,
    )  # fmt: skip
    eventually(lambda: bool(send(server, ADMIN, ApiKey.DESCRIBE_ACLS, wanted, 3).resources))


def test_a_token_is_created_renewed_and_expired(server: Any):
    token = create(server, "ann", renewers=("User:bob",), max_lifetime_ms=3 * DAY_MS)
    assert token.error_code == 0
    assert (token.principal_type, token.principal_name) == ("User", "ann")
    assert (token.token_requester_principal_type, token.token_requester_principal_name) == ("User", "ann")
    assert token.expiry_timestamp_ms - token.issue_timestamp_ms == DAY_MS
    assert token.max_timestamp_ms - token.issue_timestamp_ms == 3 * DAY_MS
    assert len(token.hmac) == 64 and len(token.token_id) == 22
    (described,) = describe(server, "ann")
    assert (described.token_id, described.hmac) == (token.token_id, token.hmac)
    assert [(each.principal_type, each.principal_name) for each in described.renewers] == [("User", "bob")]
    assert described.expiry_timestamp == token.expiry_timestamp_ms
    for change, period_ms, expected_ms in (
        (renew, 3_600_000, 3_600_000),
        (renew, 30 * DAY_MS, DAY_MS),
        (renew, 0, DAY_MS),
        (renew, -1, DAY_MS),
        (expire, 3_600_000, 3_600_000),
        (expire, 2 * DAY_MS, 2 * DAY_MS),
        (expire, 30 * DAY_MS, 3 * DAY_MS),
        (renew, 3_600_000, 3_600_000),
    ):
        error, expiry_ms = change(server, "bob", token.hmac, period_ms)
        assert error == 0
        assert 0 <= expiry_ms - token.issue_timestamp_ms - expected_ms < 60_000, (change, period_ms)
    assert expire(server, "ann", token.hmac)[0] == 0
    eventually(lambda: describe(server, "ann") == [])
    assert renew(server, "ann", token.hmac) == (Error.DELEGATION_TOKEN_NOT_FOUND, 0)


def test_short_lives_are_granted_and_long_ones_are_limited(server: Any):
    short = create(server, "ann", max_lifetime_ms=5000)
    assert short.max_timestamp_ms == short.expiry_timestamp_ms == short.issue_timestamp_ms + 5000
    for wanted in (0, -5, 30 * DAY_MS):
        token = create(server, "ann", max_lifetime_ms=wanted)
        assert token.max_timestamp_ms == token.issue_timestamp_ms + 7 * DAY_MS
        assert expire(server, "ann", token.hmac)[0] == 0
    assert expire(server, "ann", short.hmac)[0] == 0


def test_requests_are_refused_with_kafkas_codes(server: Any):
    token = create(server, "ann")
    assert renew(server, "eve", token.hmac) == (Error.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert expire(server, "eve", token.hmac) == (Error.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert renew(server, "eve", b"unknown") == (Error.DELEGATION_TOKEN_NOT_FOUND, 0)
    assert expire(server, "eve", b"") == (Error.DELEGATION_TOKEN_NOT_FOUND, 0)
    refused = create(server, "ann", renewers=("Group:x",))
    assert refused.error_code == Error.INVALID_PRINCIPAL_TYPE
    assert (refused.principal_name, refused.token_requester_principal_name) == ("ann", "ann")
    refused = create(server, "ann", owner="User:bob")
    assert refused.error_code == Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert (refused.hmac, refused.token_id) == (b"", "")
    assert (refused.issue_timestamp_ms, refused.expiry_timestamp_ms, refused.max_timestamp_ms) == (-1, -1, -1)
    assert (refused.principal_name, refused.token_requester_principal_name) == ("bob", "ann")
    assert expire(server, "ann", token.hmac)[0] == 0


def test_clients_that_did_not_authenticate_get_no_tokens(server: Any):
    requests = {
        ApiKey.CREATE_DELEGATION_TOKEN: CreateDelegationTokenRequest(max_lifetime_ms=-1),
        ApiKey.RENEW_DELEGATION_TOKEN: RenewDelegationTokenRequest(hmac=b"x", renew_period_ms=1),
        ApiKey.EXPIRE_DELEGATION_TOKEN: ExpireDelegationTokenRequest(hmac=b"x", expiry_time_period_ms=1),
        ApiKey.DESCRIBE_DELEGATION_TOKEN: DescribeDelegationTokenRequest(owners=None),
    }
    for key, request in requests.items():
        with socket.create_connection(("127.0.0.1", server.plain_port), timeout=30) as client:
            response = ask(client, key, 2, request, response_class(key))
        assert response.error_code == Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, key


def test_only_permitted_clients_see_a_token(server: Any):
    own, other = create(server, "ann", renewers=("User:bob",)), create(server, "bob")
    assert {each.token_id for each in describe(server, "bob")} == {own.token_id, other.token_id}
    assert {each.token_id for each in describe(server, "ann")} == {own.token_id}
    assert {each.token_id for each in describe(server, ADMIN)} == {own.token_id, other.token_id}
    assert {each.token_id for each in describe(server, ADMIN, "bob")} == {own.token_id, other.token_id}
    assert {each.token_id for each in describe(server, ADMIN, "ann")} == {own.token_id}
    assert describe(server, ADMIN, everyone=False) == describe(server, "eve") == []
    allow(server, "User:eve", Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, own.token_id)
    assert {each.token_id for each in describe(server, "eve")} == {own.token_id}
    allow(server, "User:eve", Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:bob")
    assert {each.token_id for each in describe(server, "eve")} == {own.token_id, other.token_id}
    for user, token in (("ann", own), ("bob", other)):
        assert expire(server, user, token.hmac)[0] == 0


def test_a_permitted_client_creates_a_token_for_another_owner(server: Any):
    allow(server, "User:eve", Operation.CREATE_TOKENS, ResourceType.USER, "User:ann")
    token = create(server, "eve", owner="User:ann")
    assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "ann", "eve")
    (described,) = describe(server, "ann")
    assert (described.principal_name, described.token_requester_principal_name) == ("ann", "eve")
    assert expire(server, "eve", token.hmac) == (Error.DELEGATION_TOKEN_OWNER_MISMATCH, 0)
    assert expire(server, "ann", token.hmac)[0] == 0


def token_login(server: Any, token: Any, password: str | None = None) -> dict[str, str]:
    """Returns the client's properties for a login by a token."""
    secret = password or base64.b64encode(token.hmac).decode()
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return {
        "bootstrap.servers": server.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": f'{module} required username="{token.token_id}" password="{secret}" tokenauth="true";',
    }


def test_a_client_logs_in_by_a_token_as_its_owner(server: Any):
    allow(server, "User:ann", Operation.ALL, ResourceType.TOPIC, "tokens")
    token = create(server, "ann")
    login = token_login(server, token)
    with Producer(login) as producer:
        assert producer.send("tokens", b"value").result(30).topic == "tokens"
    with Admin(login) as admin:
        assert set(admin.describe_topics().check()) == {"tokens"}
    assert expire(server, "ann", token.hmac)[0] == 0


def log_in(client: SaslConnection, token: Any) -> Any:
    """Authenticates by a token with SCRAM; returns the last response."""
    password = base64.b64encode(token.hmac).decode()
    exchange = ScramClient(ScramMechanism.SCRAM_SHA_256, token.token_id, password, is_token=True)
    assert client.handshake("SCRAM-SHA-256").error_code == 0
    challenge = None
    while (message := exchange.step(challenge)) is not None:
        response = client.authenticate(message)
        assert response.error_code == 0, response
        challenge = response.auth_bytes
    return response


def session_ends(server: Any, lifetime_ms: int, *, is_removed: bool) -> bool:
    """Checks that a session ends when its token expires or, with `is_removed`, when the token is removed.

    Returns False, without a check, if the machine was so busy that half of the token's life had passed before the
    login.
    """
    token = create(server, "ann", max_lifetime_ms=lifetime_ms)
    try:
        with SaslConnection(server.port) as client:
            if time.time() * 1000 > token.expiry_timestamp_ms - lifetime_ms // 2:
                return False
            session_ms = log_in(client, token).session_lifetime_ms
            assert session_ms <= lifetime_ms
            if is_removed:
                assert expire(server, "ann", token.hmac)[0] == 0
                eventually(lambda: token.token_id not in {each.token_id for each in describe(server, "ann")})
            is_served = client.metadata() != CLOSED
            if time.time() * 1000 > token.expiry_timestamp_ms:
                return False
            assert is_served
            assert session_ms > 0
            eventually(lambda: time.time() * 1000 > token.expiry_timestamp_ms + 100)
            assert client.metadata() == CLOSED
        expected = Error.DELEGATION_TOKEN_NOT_FOUND if is_removed else Error.DELEGATION_TOKEN_EXPIRED
        assert renew(server, "ann", token.hmac)[0] == expected
        return True
    finally:
        expire(server, "ann", token.hmac)


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_session_ends_when_its_token_expires(server: Any, is_removed: bool):
    """The end of a session is fixed at the login: a token that is removed later ends it no sooner."""
    assert any(session_ends(server, lifetime_ms, is_removed=is_removed) for lifetime_ms in (3000, 12_000, 48_000))


def test_older_versions_do_not_name_the_requester(server: Any):
    token = send(server, "ann", ApiKey.CREATE_DELEGATION_TOKEN, CreateDelegationTokenRequest(max_lifetime_ms=-1), 2)
    assert (token.error_code, token.principal_name, token.token_requester_principal_name) == (0, "ann", "")
    request = DescribeDelegationTokenRequest(owners=None)

    def described() -> list[tuple[str, str]]:
        response = send(server, "ann", ApiKey.DESCRIBE_DELEGATION_TOKEN, request, 2)
        return [(each.token_id, each.token_requester_principal_name) for each in response.tokens]

    eventually(lambda: described() == [(token.token_id, "")])
    assert expire(server, "ann", token.hmac)[0] == 0
