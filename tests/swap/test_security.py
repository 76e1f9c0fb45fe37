"""A directory with ACLs, SCRAM users and delegation tokens passes between Apache Kafka and kafkapy: both authenticate
the same clients, apply the same ACLs, and renew and expire each other's tokens."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from kafkapy.client.admin import (
    AccessControlEntry,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    DelegationToken,
    NewScramCredential,
    ScramMechanism,
)
from kafkapy.errors import Error
from kafkapy.security.sasl.scram_client import ScramClient
from tests.broker_process import BrokerProcess
from tests.sasl_client import SaslConnection
from tests.security.secured_brokers import ADMIN
from tests.security.token_brokers import Kafka, eventually
from tests.server_process import ServerProcess
from tests.swap.swap import end

MECHANISM = ScramMechanism.SCRAM_SHA_256


def admin_of(server: ServerProcess, user: str) -> Admin:
    """Returns an admin client that authenticates by PLAIN."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return Admin(
        {
            "bootstrap.servers": server.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{module} required username="{user}" password="{user}";',
        }
    )


def scram_error(server: ServerProcess, name: str, password: str, *, is_token: bool = False) -> Error:
    """Returns the error of an authentication by SCRAM."""
    exchange = ScramClient(MECHANISM, name, password, is_token=is_token)
    with SaslConnection(server.port) as client:
        assert client.handshake("SCRAM-SHA-256").error_code == 0
        challenge = None
        while (message := exchange.step(challenge)) is not None:
            response = client.authenticate(message)
            if response.error_code:
                return Error.of(response.error_code)
            challenge = response.auth_bytes
    return Error.NONE


def token_error(server: ServerProcess, token: DelegationToken) -> Error:
    return scram_error(server, token.token_id, b64encode(token.hmac).decode(), is_token=True)


class Content:
    """The security metadata that the directory is expected to contain."""

    def __init__(self) -> None:
        self.acls: set[AccessControlEntry] = set()
        self.users: dict[str, str] = {}
        self.tokens: dict[str, DelegationToken] = {}

    def check(self, server: ServerProcess) -> None:
        """Asserts that a server describes the content, and that its users and tokens log in."""
        with admin_of(server, ADMIN) as admin:
            assert set(admin.describe_acls()) == self.acls
            assert set(admin.describe_user_scram_credentials()) == set(self.users)
            assert {each.token_id: each for each in admin.describe_delegation_tokens()} == self.tokens
        for name, password in self.users.items():
            assert scram_error(server, name, password) is Error.NONE
            assert scram_error(server, name, password + "x") is Error.SASL_AUTHENTICATION_FAILED
        for token in self.tokens.values():
            assert token_error(server, token) is Error.NONE

    def change(self, server: ServerProcess, turn: int) -> None:
        """Adds an ACL, a SCRAM user and a token; renews the token of the turn before and expires the one before it."""
        entry = AccessControlEntry(
            AclResourceType.TOPIC, f"topic {turn}", AclPatternType.LITERAL, f"User:é{turn}", "*", AclOperation.READ,
            AclPermission.ALLOW,
        )  # fmt: skip
        before = [*self.tokens.values()]
        name, password = f"user {turn}, =", f"password {turn}"
        with admin_of(server, ADMIN) as admin:
            admin.create_acls([entry]).check()
            admin.alter_user_scram_credentials([NewScramCredential(name, MECHANISM, password)]).check()
            owned = admin.create_delegation_token(owner="User:bob", renewers=["User:ann", f"User:{turn}"])
        with admin_of(server, "ann") as ann:
            own = ann.create_delegation_token(renewers=["User:bob"], max_lifetime_ms=86_400_000 * (turn + 1))
            for token in before[-2:]:
                expiry = ann.renew_delegation_token(token.hmac, renew_period_ms=3_600_000 * turn)
                self.tokens[token.token_id] = token._replace(expiry_timestamp=expiry)
            for token in before[:-2]:
                ann.expire_delegation_token(token.hmac)
                del self.tokens[token.token_id]
        self.acls.add(entry)
        self.users[name] = password
        self.tokens |= {each.token_id: each for each in (own, owned)}


def await_content(server: ServerProcess, content: Content) -> None:
    """Waits until the broker has applied what its controller has committed."""

    def is_applied() -> bool:
        with admin_of(server, ADMIN) as admin:
            tokens = {each.token_id: each for each in admin.describe_delegation_tokens()}
            return tokens == content.tokens and set(admin.describe_acls()) == content.acls

    eventually(is_applied)


@pytest.mark.timeout(400)
def test_users_and_tokens_are_kept_when_the_broker_is_killed_and_replaced(kafka_43: Path, tmp_path: Path) -> None:
    kafka = Kafka(tmp_path)
    with kafka.config.open("a") as file:
        file.write("metadata.log.max.record.bytes.between.snapshots=2000\n")
    ours = BrokerProcess(tmp_path, config=kafka.config, port=kafka.port)
    content = Content()
    turns: list[ServerProcess] = [ours, kafka, ours, kafka, ours]
    for turn, server in enumerate(turns, 1):
        if not (kafka.log_dirs[0] / "meta.properties").exists():
            kafka.format()
        server.start()
        try:
            content.check(server)
            content.change(server, turn)
            await_content(server, content)
            content.check(server)
        finally:
            end(server, killed=True)
