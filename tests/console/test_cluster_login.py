"""Users log in with their credentials of the cluster, whose ACLs then decide what they see."""

from __future__ import annotations

import pytest

from kafkapy.client import Admin
from kafkapy.client.admin import NewTopic
from tests.broker_process import BrokerProcess
from tests.console_process import ConsoleProcess, Visitor
from tests.ports import free_ports
from tests.security.test_client_oauth import AUDIENCE, MODULE, VALIDATOR
from tests.token_provider import Issuer, TokenProvider

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory):
    return Issuer(tmp_path_factory.mktemp("issuer"))


@pytest.fixture(scope="module")
def sasl_port(issuer, tmp_path_factory):
    """Yields the port of a broker with SASL, on which alice sees all topics and bob sees none."""
    port, sasl_port = free_ports(2)
    prefix = "listener.name.sasl."
    properties = {
        "listeners": f"PLAINTEXT://localhost:{port},SASL://localhost:{sasl_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        f"{prefix}sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        f"{prefix}plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-secret" user_bob="bob-secret";',
        f"{prefix}oauthbearer.sasl.jaas.config": f"{MODULE} required;",
        f"{prefix}oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
        "sasl.oauthbearer.jwks.endpoint.url": issuer.key_set.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:ANONYMOUS",
    }
    with BrokerProcess(tmp_path_factory.mktemp("sasl-broker"), properties, port=port) as broker:
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            admin.create_topics([NewTopic("secret-topic", 1, 1)]).check()
        yield sasl_port


def console_of(directory, sasl_port, mechanism, *lines):
    config = directory / "client.properties"
    config.write_text("\n".join(("security.protocol=SASL_PLAINTEXT", *lines)))
    arguments = ("--bootstrap-server", f"localhost:{sasl_port}", "--command-config", str(config), "--name", "test")
    return ConsoleProcess(directory, *arguments, "--login", "cluster", "--mechanism", mechanism)


def logged_in(console, user, password):
    visitor = Visitor(console.origin)
    reply = visitor.post("/login", {"user": user, "password": password}, follow=False)
    return visitor, reply.status


@pytest.fixture(scope="module")
def plain_console(sasl_port, tmp_path_factory):
    with console_of(tmp_path_factory.mktemp("plain"), sasl_port, "PLAIN") as console:
        yield console


def test_the_acls_of_a_user_decide_what_the_pages_show(plain_console):
    alice, status = logged_in(plain_console, "alice", "alice-secret")
    assert status == 303
    assert "secret-topic" in alice.get("/c/test/topics").plain
    bob, status = logged_in(plain_console, "bob", "bob-secret")
    assert status == 303
    assert "secret-topic" not in bob.get("/c/test/topics").plain
    assert "secret-topic" in alice.get("/c/test/topics").plain


@pytest.mark.parametrize(("user", "password"), [("alice", "guess"), ("", ""), ("alice", 'x" user_x="y')])
def test_wrong_credentials_of_the_cluster_are_refused(plain_console, user, password):
    assert logged_in(plain_console, user, password)[1] == 403


def test_users_log_in_by_oauth(sasl_port, issuer, tmp_path):
    provider = TokenProvider()
    url = f"sasl.oauthbearer.token.endpoint.url={provider.url}"
    try:
        with console_of(tmp_path, sasl_port, "OAUTHBEARER", url) as console:
            provider.answers = [(200, lambda: {"access_token": issuer.token("alice", aud=AUDIENCE)})]
            alice, status = logged_in(console, "alice-id", "its secret")
            assert status == 303
            assert "secret-topic" in alice.get("/c/test/topics").plain
            asked, form = provider.asked[0]
            assert form["grant_type"] == ["client_credentials"]
            assert asked["Authorization"] == "Basic YWxpY2UtaWQ6aXRzIHNlY3JldA=="
            provider.answers = [(200, lambda: {"access_token": issuer.token("bob", aud=AUDIENCE)})]
            bob, status = logged_in(console, "bob-id", "another secret")
            assert status == 303
            assert "secret-topic" not in bob.get("/c/test/topics").plain
            provider.answers = [(401, {"error": "invalid_client"})]
            assert logged_in(console, "carol-id", "guess")[1] == 403
            provider.answers = [(200, lambda: {"access_token": issuer.token("alice", aud="other")})]
            assert logged_in(console, "alice-id", "its secret")[1] == 403
            assert "its secret" not in console.log()
    finally:
        provider.close()


def test_a_login_by_oauth_needs_a_provider(sasl_port, tmp_path):
    with pytest.raises(AssertionError, match=r"needs the key sasl\.oauthbearer\.token\.endpoint\.url"):
        console_of(tmp_path, sasl_port, "OAUTHBEARER").start()
