"""The client side of SCRAM: the example of RFC 7677, and servers that do not prove what they know."""

from __future__ import annotations

import pytest

from kafkapy.protocol.scram_mechanism import ScramMechanism
from kafkapy.security.sasl.client_mechanism import ServerNotTrusted
from kafkapy.security.sasl.scram_client import ScramClient

NONCE = "rOprNGfwEbeRWgbNEkqO"
FULL_NONCE = NONCE + "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SERVER_FIRST = f"r={FULL_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def client(username: str = "user", *, is_token: bool = False) -> ScramClient:
    return ScramClient(ScramMechanism.SCRAM_SHA_256, username, "pencil", is_token=is_token, nonce=NONCE)


def test_the_example_of_rfc_7677() -> None:
    made = client()
    assert made.name == "SCRAM-SHA-256"
    assert made.step(None) == f"n,,n=user,r={NONCE}".encode()
    proof = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert made.step(SERVER_FIRST.encode()) == f"c=biws,r={FULL_NONCE},p={proof}".encode()
    assert not made.is_complete
    assert made.step(SERVER_FINAL.encode()) is None
    assert made.is_complete


def test_a_name_is_escaped_and_a_token_is_marked() -> None:
    assert client("a=b,c").step(None) == f"n,,n=a=3Db=2Cc,r={NONCE}".encode()
    assert client(is_token=True).step(None) == f"n,,n=user,r={NONCE},tokenauth=true".encode()


def test_nonces_differ() -> None:
    first, second = (ScramClient(ScramMechanism.SCRAM_SHA_512, "user", "pencil").step(None) for _ in range(2))
    assert first != second


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (SERVER_FIRST.replace(NONCE, "other"), "server nonce"),
        (SERVER_FIRST.replace(FULL_NONCE, NONCE), "server nonce"),
        (SERVER_FIRST.replace("4096", "4095"), "iterations 4095"),
        (SERVER_FIRST.replace("4096", "99999999999999999999"), "iterations"),
        (SERVER_FIRST.replace("4096", "-4096"), "iterations"),
        (SERVER_FIRST.replace("gQ==", "gQ"), "base64"),
        (SERVER_FIRST.replace("s=", "t="), "server first message"),
        ("", "server first message"),
        ("r=\xff", "UTF-8"),
    ],
)
def test_a_first_message_that_violates_the_mechanism_is_refused(challenge: str, reason: str) -> None:
    made = client()
    made.step(None)
    with pytest.raises(ServerNotTrusted, match=reason):
        made.step(challenge.encode("latin-1"))


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (SERVER_FINAL.replace("6rri", "6rrj"), "Invalid server signature"),
        ("e=other-error", "other-error"),
        ("v=!", "base64"),
        ("x", "server final message"),
    ],
)
def test_a_server_without_the_password_is_refused(challenge: str, reason: str) -> None:
    made = client()
    made.step(None)
    made.step(SERVER_FIRST.encode())
    with pytest.raises(ServerNotTrusted, match=reason):
        made.step(challenge.encode())
    assert not made.is_complete
