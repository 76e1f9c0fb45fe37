"""Mutated tokens of every SASL mechanism, tokens of OAuth, key sets and JAAS texts: each is accepted or refused in the
documented way, and none raises anything else."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafkapy.errors import ConfigError
from kafkapy.protocol.scram_mechanism import ScramMechanism
from kafkapy.security.jaas import parse_jaas_config, parse_jaas_file
from kafkapy.security.oauth.json_web_token import InvalidToken
from kafkapy.security.oauth.key_set import KeySet
from kafkapy.security.oauth.token_validation import UnsecuredTokenValidator
from kafkapy.security.sasl import scram_formulas as formulas
from kafkapy.security.sasl.oauth_server import OAuthServer
from kafkapy.security.sasl.plain_server import PlainServer
from kafkapy.security.sasl.scram_server import ScramIdentity, ScramServer, user_principal
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed
from tests.oauth_tokens import base64url, initial_response, unsecured_token

ROUNDS = 2000
ALICE = ScramIdentity(formulas.scram_keys("sha256", "secret", b"salt", 4096), user_principal("alice"))
TOKEN = unsecured_token(scope=["a", "b"], aud="kafka")
PIECES = (
    b"\0",
    b"\1",
    b"=",
    b",",
    b".",
    b"n,,",
    b"=2C",
    b"\xff\xfe",
    b'"',
    b"{",
    b"[" * 300,
    b"9" * 5000,
    b"e30",
    b";",
)


def mutate(numbers: random.Random, data: bytes) -> bytes:
    """Returns the data after a few random changes."""
    changed = bytearray(data)
    for _ in range(numbers.randrange(1, 5)):
        place = numbers.randrange(len(changed) + 1)
        kind = numbers.randrange(4)
        if kind == 0:
            changed[place:place] = numbers.choice(PIECES)
        elif kind == 1:
            del changed[place : place + numbers.randrange(1, 20)]
        elif kind == 2 and place < len(changed):
            changed[place] = numbers.randrange(256)
        else:
            changed[place:place] = changed[: numbers.randrange(40)]
    return bytes(changed)


def validate(text: str) -> Any:
    return UnsecuredTokenValidator({}, lambda: int(time.time() * 1000)).validate(text)


def plain(data: bytes) -> None:
    PlainServer(lambda name, password: password == "secret").step(data)


def scram_first(data: bytes) -> None:
    ScramServer(ScramMechanism.SCRAM_SHA_256, {"alice": ALICE}.get).step(data)


def scram_final(data: bytes) -> None:
    server = ScramServer(ScramMechanism.SCRAM_SHA_256, {"alice": ALICE}.get, new_nonce=lambda: "server")
    server.step(b"n,,n=alice,r=client")
    server.step(data)
    raise AssertionError(f"the proof {data!r} was accepted")


def oauth(data: bytes) -> None:
    OAuthServer(validate).step(data)


NONE = base64url(b'{"alg":"none"}')
CLAIMS = b'{"sub":"alice","exp":9007199254740990,"iat":1,"nbf":2.5,"aud":["a"],"scope":null}'
JAAS = b'org.example.Module required a="b\\"c" d=e-f; // end'

CASES: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "plain": (plain, b"\0alice\0secret"),
    "scram_first": (scram_first, b"n,a=alice,n=alice,r=nonce,tokenauth=true"),
    "scram_final": (scram_final, b"c=biws,r=clientserver,p=" + b"A" * 43 + b"="),
    "oauth": (oauth, initial_response(TOKEN, "alice", key="value")),
    "token": (lambda data: validate(data.decode("latin-1")), TOKEN.encode()),
    "claims": (lambda data: validate(f"{NONE}.{base64url(data)}."), CLAIMS),
    "key_set": (
        KeySet.parse,
        b'{"keys":[{"kty":"RSA","n":"AQAB","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"","y":""}]}',
    ),
    "jaas": (lambda data: parse_jaas_config(data.decode("latin-1")), JAAS),
    "jaas_file": (lambda data: parse_jaas_file(data.decode("latin-1")), b"KafkaServer { " + JAAS + b"\n };"),
}


def try_mutated(case: str, numbers: random.Random) -> None:
    """Runs a case with one damaged input."""
    run, valid = CASES[case]
    try:
        run(mutate(numbers, valid))
    except (AuthenticationFailed, InvalidToken, ConfigError):
        pass
    except ValueError:
        assert case == "key_set"


@pytest.mark.parametrize("case", list(CASES))
def test_mutated_input_is_accepted_or_refused(case: str) -> None:
    numbers = random.Random(case)
    for _ in range(ROUNDS):
        try_mutated(case, numbers)
