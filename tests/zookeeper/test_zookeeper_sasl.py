"""The listener for ZooKeeper's clients with SASL DIGEST-MD5: clients of Python and Java, and exchanges that fail, which
end as with Apache ZooKeeper."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, InvalidACLError, NoAuthError
from kazoo.security import ACL, Id, Permissions

from kafkapy.zookeeper.errors import ZooKeeperError
from kafkapy.zookeeper.jute import JuteReader, encode_buffer, encode_int
from kafkapy.zookeeper.requests import Op
from tests.certificates import authority, server_certificate
from tests.clients.legacy.installation import jars_of, java_command
from tests.crash.refusals import assert_refused
from tests.harness.zookeeper import SocketClient, ZooKeeperReplyError, read_reply
from tests.zookeeper.digest_md5 import response
from tests.zookeeper.listening_broker import ListeningBroker
from tests.zookeeper.real_zookeeper import POM, RELEASE, RealZooKeeper

MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"
PASSWORDS = {"alice": "alice-hidden-word", "bob": "bob-hidden-word"}
JAAS = f"{MODULE} required " + " ".join(f'user_{user}="{password}"' for user, password in PASSWORDS.items()) + ";"
TIMEOUT_S = 60
SASL_REQUIRED, AUTH_FAILED = ZooKeeperError.SASL_REQUIRED, ZooKeeperError.AUTH_FAILED


def sasl_broker(directory, **properties):
    settings = {
        "zookeeper_listener_security_protocol": "SASL_PLAINTEXT",
        "listener_name_zookeeper_digest-md5_sasl_jaas_config": JAAS,
    }
    return ListeningBroker(directory, **{**settings, **properties})


def server_jaas_file(directory):
    directory.mkdir(exist_ok=True)
    path = directory / "jaas.conf"
    path.write_text(f"Server {{ {JAAS} }};\n")
    return path


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    """Yields a broker that requires SASL."""
    with sasl_broker(tmp_path_factory.mktemp("required")) as broker, connected(broker, "alice"):
        yield broker


@pytest.fixture(scope="module")
def open_broker(tmp_path_factory):
    """Yields a broker that offers SASL, with the users of a JAAS file."""
    directory = tmp_path_factory.mktemp("offered")
    with ListeningBroker(
        directory,
        zookeeper_listener_security_protocol="SASL_PLAINTEXT",
        zookeeper_listener_sasl_required="false",
        kafkapy_jaas_config_file=str(server_jaas_file(directory)),
    ) as broker:
        with connected(broker, "alice"):
            pass  # the listener serves now
        yield broker


@contextmanager
def connected(server, user=None, password=None, **options):
    if user is not None:
        options["sasl_options"] = {
            "mechanism": "DIGEST-MD5",
            "username": user,
            "password": password or PASSWORDS[user],
        }
    client = KazooClient(server.zookeeper, **options)
    try:
        client.start(timeout=TIMEOUT_S)
        yield client
    finally:
        client.stop()
        client.close()


def test_the_user_name_is_an_identity(broker):
    with connected(broker, "alice") as alice, connected(broker, "bob") as bob:
        alice.create("/mine", b"1", acl=[ACL(Permissions.ALL, Id("sasl", "alice"))])
        alice.create("/own", b"1", acl=[ACL(Permissions.ALL, Id("auth", ""))])
        alice.create("/ours", b"1", acl=[ACL(Permissions.ALL, Id("sasl", name)) for name in ("alice", "bob")])
        for path in ("/mine", "/own"):
            assert alice.get(path)[0] == b"1"
            assert alice.get_acls(path)[0] == [ACL(Permissions.ALL, Id("sasl", "alice"))]
            with pytest.raises(NoAuthError):
                bob.get(path)
        assert bob.get("/ours")[0] == b"1"


def test_a_wrong_password_is_refused(open_broker):
    with pytest.raises(AuthFailedError), connected(open_broker, "bob", "wrong-hidden-word") as client:
        client.exists("/")


def test_a_client_without_a_name_is_served_only_where_sasl_is_offered(broker, open_broker):
    with connected(open_broker) as client, connected(open_broker, "bob") as bob:
        bob.create("/bobs", acl=[ACL(Permissions.ALL, Id("sasl", "bob"))])
        bob.create("/open", b"2")
        assert client.get("/open")[0] == b"2"
        with pytest.raises(NoAuthError):
            client.get("/bobs")
        with pytest.raises(InvalidACLError):
            client.create("/x", acl=[ACL(Permissions.ALL, Id("x509", "CN=a"))])  # there is no TLS
    nameless = SocketClient(broker.zookeeper)
    nameless.connect()
    nameless.authenticate(b"user:word")  # the scheme digest is not enough
    with pytest.raises(ZooKeeperReplyError, match=str(SASL_REQUIRED.value)):
        nameless.exists("/")
    assert_closed(nameless)


def test_sasl_is_unimplemented_without_it(tmp_path):
    with ListeningBroker(tmp_path) as broker, connected(broker) as client:
        raw = SocketClient(broker.zookeeper)
        raw.connect()
        with pytest.raises(ZooKeeperReplyError, match=str(ZooKeeperError.UNIMPLEMENTED.value)):
            raw.call(Op.SASL, encode_buffer(b""))
        assert raw.exists("/").children
        with pytest.raises(InvalidACLError):
            client.create("/x", acl=[ACL(Permissions.ALL, Id("sasl", "bob"))])


def test_sasl_works_within_tls(tmp_path):
    (tmp_path / "ca.pem").write_bytes(authority().certificate)
    (tmp_path / "server.pem").write_bytes(server_certificate().private_key + server_certificate().certificate)
    prefix = "listener_name_zookeeper_ssl_keystore"
    with (
        sasl_broker(
            tmp_path / "broker",
            zookeeper_listener_security_protocol="SASL_SSL",
            **{f"{prefix}_type": "PEM", f"{prefix}_location": str(tmp_path / "server.pem")},
        ) as broker,
        connected(broker, "bob", use_ssl=True, ca=str(tmp_path / "ca.pem")) as client,
    ):
        client.create("/a", acl=[ACL(Permissions.ALL, Id("auth", ""))])
        assert client.get_acls("/a")[0] == [ACL(Permissions.ALL, Id("sasl", "bob"))]


def test_no_password_is_in_the_log(broker, open_broker):
    for server in (broker, open_broker):
        token = [lambda challenge: response(challenge, "bob", "wrong-hidden-word")]
        assert transcript(server, token)[-1] == "closed"
        assert "has not authenticated by SASL: the user is unknown, or the password is wrong" in server.log()
        assert "hidden-word" not in server.log()
        assert "Traceback" not in server.log()


@pytest.mark.parametrize(
    ("jaas", "reason"),
    [
        (f"{MODULE} required;", "needs users"),
        ('org.apache.kafka.common.security.plain.PlainLoginModule required user_bob="bob-hidden-word";', "needs users"),
        (f'{MODULE} required user_bob="bob-hidden-word"', "[hidden]"),
    ],
)
def test_a_configuration_without_users_prevents_the_start(tmp_path, jaas, reason):
    broker = sasl_broker(tmp_path, **{"listener_name_zookeeper_digest-md5_sasl_jaas_config": jaas})
    assert_refused(broker, reason)
    assert "hidden-word" not in broker.log()


# -- with Java and Apache ZooKeeper


def java_shell(server, directory, user, password, *command):
    """Runs a command of ZooKeeper's shell with a user name and password, and returns its output."""
    directory.mkdir(exist_ok=True)
    jaas = directory / f"client-{user}.conf"
    jaas.write_text(f'Client {{ {MODULE} required username="{user}" password="{password}"; }};\n')
    jars = jars_of(POM, f"zookeeper-{RELEASE}", f"-Dzookeeper.version={RELEASE}")
    options = f"-Djava.security.auth.login.config={jaas}"
    main = "org.apache.zookeeper.ZooKeeperMain"
    done = subprocess.run(
        [*java_command(), options, "-cp", f"{jars}/*", main, "-server", server.zookeeper, *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.stdout + done.stderr


@pytest.mark.peer
def test_the_java_client_authenticates(broker, tmp_path):
    shown = java_shell(broker, tmp_path, "alice", PASSWORDS["alice"], "whoami")
    assert "sasl: alice" in shown, shown


@pytest.mark.peer
def test_the_java_client_is_told_of_a_wrong_password(open_broker, tmp_path):
    shown = java_shell(open_broker, tmp_path, "alice", "wrong-hidden-word", "whoami")
    assert "AuthFailed" in shown, shown
    assert "sasl: alice" not in shown


def assert_closed(client):
    with pytest.raises((ConnectionError, AssertionError)):
        client.wait_for_frame()


# Names of exchanges -> the tokens after the first one, each a function of the challenge.
EXCHANGES = {
    "right": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"])],
    "other authorization": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], authzid=b"alice")],
    "charset": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], more=b",charset=utf-8")],
    "unknown directive": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], more=b",x=y")],
    "wrong password": [lambda challenge: response(challenge, "bob", "no")],
    "unknown user": [lambda challenge: response(challenge, "eve", "no")],
    "nonce": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], nonce=b"n")],
    "realm": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], realm=b"r")],
    "nc": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], nc=b"00000002")],
    "uri": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], uri=b"zookeeper/host")],
    "qop": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], qop=b"auth-int")],
    "oversize": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"], more=b",x=" + b"y" * 5000)],
    "large": [lambda challenge: b"x" * 1_000_000],
    "garbage": [lambda challenge: b"garbage"],
    "unterminated": [lambda challenge: b'username="bob'],
    "empty": [lambda challenge: b""],
    "after the end": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"]), lambda challenge: b""],
    "twice": [lambda challenge: response(challenge, "bob", PASSWORDS["bob"])] * 2,
}


def transcript(server, tokens):
    """Returns for each token the error and the form of the answer, and at the end whether the session is served."""
    client = SocketClient(server.zookeeper)
    client.connect()
    found, challenge = [], b""
    for token in [lambda challenge: b"", *tokens]:
        client.transmit(encode_int(len(found) + 1) + encode_int(Op.SASL) + encode_buffer(token(challenge)))
        client.wait_for_frame()
        reply = read_reply(client.frames.pop())
        answer = JuteReader(reply.body).read_buffer()
        challenge = challenge or answer
        shape = answer and re.sub(rb'(nonce="|rspauth=)[\w+/=]+', rb"\1", answer)
        found.append((reply.xid, reply.zxid, ZooKeeperError(reply.error).name, shape))
    try:
        client.exists("/")
    except (ConnectionError, AssertionError):
        return [*found, "closed"]
    except ZooKeeperReplyError as error:
        return [*found, error.args]
    finally:
        client.disconnect()
    return [*found, "served"]


@pytest.fixture(scope="module", params=[False, True], ids=["offered", "required"])
def pair(request, broker, open_broker, tmp_path_factory):
    """Yields our broker and Apache ZooKeeper, which both offer or both require SASL."""
    directory = tmp_path_factory.mktemp("real")
    options = {
        "java.security.auth.login.config": str(server_jaas_file(directory)),
        "zookeeper.authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        "zookeeper.sessionRequireClientSASLAuth": str(request.param).lower(),
    }
    with RealZooKeeper(directory, options) as real:
        with connected(real, "bob"):
            pass  # it serves now
        yield (broker if request.param else open_broker), real


@pytest.mark.peer
@pytest.mark.parametrize("name", EXCHANGES)
def test_an_exchange_ends_as_with_zookeeper(pair, name):
    ours, real = pair
    assert transcript(ours, EXCHANGES[name]) == transcript(real, EXCHANGES[name])


@pytest.mark.peer
@pytest.mark.parametrize("op", [Op.PING, Op.EXISTS, Op.CLOSE_SESSION, Op.MULTI])
def test_a_request_without_authentication_ends_as_with_zookeeper(pair, op):
    found = []
    for server in pair:
        client = SocketClient(server.zookeeper)
        client.connect()
        client.transmit(encode_int(-2 if op == Op.PING else 1) + encode_int(op) + encode_int(1) + b"/\0")
        client.wait_for_frame()
        reply = read_reply(client.frames.pop())
        found.append((reply.xid, reply.error == SASL_REQUIRED))
        client.disconnect()
    assert found[0] == found[1]
