"""The server's side of SCRAM, step by step."""

from __future__ import annotations

import base64

import pytest

from kafkapy.protocol.scram_mechanism import ScramMechanism
from kafkapy.security.principal import Principal
from kafkapy.security.sasl import scram_formulas as formulas
from kafkapy.security.sasl.scram_server import ScramIdentity, ScramServer, user_principal
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed

MECHANISMS = list(ScramMechanism)
SALT = b"0123456789abcdef"


def identity(name: str, password: str, mechanism: ScramMechanism, iterations: int = 4096) -> ScramIdentity:
    return ScramIdentity(formulas.scram_keys(mechanism.hash_name, password, SALT, iterations), user_principal(name))


def server(mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256, *, iterations: int = 4096) -> ScramServer:
    users = {name: identity(name, "secret", mechanism, iterations) for name in ("alice", "a=b,c")}
    token = ScramIdentity(users["alice"].keys, Principal("User", "owner", True), 1234)
    return ScramServer(mechanism, users.get, {"token-id": token}.get, lambda: "server-nonce")


def proof_of(mechanism: ScramMechanism, bare: str, server_first: str, final: str, password: str = "secret") -> str:
    name = mechanism.hash_name
    key = formulas.client_key(name, formulas.salted_password(name, password, SALT, 4096))
    message = formulas.auth_message(bare, server_first, final)
    signed = formulas.signature(name, formulas.stored_key(name, key), message)
    return base64.b64encode(formulas.xor(key, signed)).decode()


def log_in(
    mechanism: ScramMechanism, bare: str, header: str = "n,,", password: str = "secret"
) -> tuple[ScramServer, bytes]:
    """Runs an exchange; returns the server and its last message."""
    exchange = server(mechanism)
    first = exchange.step((header + bare).encode()).decode()
    assert first == f"r=nonceserver-nonce,s={base64.b64encode(SALT).decode()},i=4096"
    final = "c=biws,r=nonceserver-nonce"
    assert not exchange.is_complete
    return exchange, exchange.step(f"{final},p={proof_of(mechanism, bare, first, final, password)}".encode())


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_right_password(mechanism: ScramMechanism) -> None:
    exchange, last = log_in(mechanism, "n=alice,r=nonce")
    assert exchange.is_complete
    assert (str(exchange.principal), exchange.expires_ms) == ("User:alice", None)
    name = mechanism.hash_name
    first = f"r=nonceserver-nonce,s={base64.b64encode(SALT).decode()},i=4096"
    message = formulas.auth_message("n=alice,r=nonce", first, "c=biws,r=nonceserver-nonce")
    key = formulas.server_key(name, formulas.salted_password(name, "secret", SALT, 4096))
    assert last == b"v=" + base64.b64encode(formulas.signature(name, key, message))


def test_the_exchange_of_rfc_7677() -> None:
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    found = ScramIdentity(formulas.scram_keys("sha256", "pencil", salt, 4096), user_principal("user"))
    exchange = ScramServer(
        ScramMechanism.SCRAM_SHA_256, {"user": found}.get, new_nonce=lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    assert exchange.step(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert (
        exchange.step(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
        == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )


def test_a_name_with_a_comma_and_an_equals_sign_is_escaped() -> None:
    exchange, _ = log_in(ScramMechanism.SCRAM_SHA_256, "n=a=3Db=2Cc,r=nonce")
    assert exchange.principal.name == "a=b,c"


def test_the_authorization_id_may_repeat_the_name() -> None:
    exchange, _ = log_in(ScramMechanism.SCRAM_SHA_256, "n=alice,r=nonce", header="n,a=alice,")
    assert exchange.is_complete


def test_unknown_extensions_are_ignored() -> None:
    exchange, _ = log_in(ScramMechanism.SCRAM_SHA_256, "n=alice,r=nonce,x=y,tokenauth=false")
    assert exchange.is_complete


def test_a_delegation_token_has_the_principal_of_its_owner() -> None:
    exchange, _ = log_in(ScramMechanism.SCRAM_SHA_256, "n=token-id,r=nonce,tokenauth=true")
    assert exchange.principal == Principal("User", "owner", True)
    assert exchange.expires_ms == 1234


def test_a_wrong_password() -> None:
    with pytest.raises(AuthenticationFailed, match="Invalid client credentials") as caught:
        log_in(ScramMechanism.SCRAM_SHA_256, "n=alice,r=nonce", password="wrong")
    assert caught.value.client_text is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"y,,n=alice,r=nonce",
        b"p=tls-unique,,n=alice,r=nonce",
        b"n,,n=,r=nonce",
        b"n,,n=alice,r=",
        b"n,,n=alice",
        b"n,,n=al=ice,r=nonce",
        b"n,,r=nonce,n=alice",
        b"n,,n=alice,r=non ce",
        b"n,,n=alice,r=nonce,",
        b"n,,n=alice,r=nonce,x",
        b"n,,n=alice,r=nonce\n",
        "n,,n=\u00e9,r=nonce".encode(),
        b"n,,n=alice,r=nonce\xff",
        b"n,,n=" + b"a" * 10_000 + b",r=nonce",
        b"n,,n=nobody,r=nonce",
        b"n,,n=token-id,r=nonce",
        b"n,,n=alice,r=nonce,tokenauth=true",
    ],
)
def test_a_first_message_that_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        server().step(message)
    assert caught.value.client_text is None


def test_another_authorization_id() -> None:
    with pytest.raises(AuthenticationFailed, match="different from username") as caught:
        server().step(b"n,a=bob,n=alice,r=nonce")
    assert caught.value.client_text is not None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"c=biws,r=nonceserver-nonce",
        b"c=biws,r=other,p=AAAA",
        b"c=biws,r=nonceserver-nonce,p=",
        b"c=biws,r=nonceserver-nonce,p=AAAA",
        b"c=biws,r=nonceserver-nonce,p=A",
        b"c=!,r=nonceserver-nonce,p=AAAA",
        b"r=nonceserver-nonce,c=biws,p=AAAA",
        b"\xff" * 100,
        b"c=biws,r=nonceserver-nonce,p=" + base64.b64encode(bytes(32)),
    ],
)
def test_a_final_message_that_is_refused(message: bytes) -> None:
    exchange = server()
    exchange.step(b"n,,n=alice,r=nonce")
    with pytest.raises(AuthenticationFailed):
        exchange.step(message)
    assert not exchange.is_complete


def test_too_few_iterations_are_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="Iterations 4095 is less than the minimum 4096"):
        server(iterations=4095).step(b"n,,n=alice,r=nonce")


def test_a_failure_of_the_store_is_a_failed_authentication() -> None:
    def fail(name: str) -> None:
        raise OSError("down")

    with pytest.raises(AuthenticationFailed, match="Credentials could not be obtained"):
        ScramServer(ScramMechanism.SCRAM_SHA_256, fail).step(b"n,,n=alice,r=nonce")


def test_representations_contain_no_keys() -> None:
    found = identity("alice", "secret", ScramMechanism.SCRAM_SHA_256)
    assert str(found.keys.stored_key) not in repr(found)
    assert repr(found.keys) == "ScramKeys(4096 iterations)"
