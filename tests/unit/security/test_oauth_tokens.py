"""Tokens of OAUTHBEARER: signatures of every algorithm, key sets, claims, and what is refused."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.security.oauth.json_web_token import InvalidToken, parse_token
from kafkapy.security.oauth.key_set import KeySet, UnknownKey
from kafkapy.security.oauth.key_source import KeyEndpoint, KeyFile, RefreshTimes
from kafkapy.security.oauth.signatures import ALGORITHMS
from kafkapy.security.oauth.token_validation import (
    ClaimRules,
    SignedTokenValidator,
    UnsecuredTokenValidator,
    ValidToken,
)
from kafkapy.security.sasl.oauth_server import OAuthServer, parse_initial_response
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed
from tests.oauth_tokens import SigningKey, base64url, initial_response, key_set, signed_token, unsecured_token

NOW_S = int(time.time())
NO_RULES = ClaimRules()


def wall_ms() -> int:
    return NOW_S * 1000


@pytest.fixture(autouse=True)
def time_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes all tokens at the time that `wall_ms` returns, even if the tests run long after the import of this
    module."""
    monkeypatch.setattr("tests.oauth_tokens.time", SimpleNamespace(time=lambda: NOW_S))


@pytest.fixture(scope="module")
def rsa(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return SigningKey(tmp_path_factory.mktemp("keys"), "rsa-1")


def validate(key: SigningKey, text: str, rules: ClaimRules = NO_RULES) -> ValidToken:
    return SignedTokenValidator(KeySet.parse(key_set(key.json_web_key())).verify, rules, wall_ms).validate(text)


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_each_algorithm(tmp_path: Path, algorithm: str) -> None:
    key = SigningKey(tmp_path, "key", algorithm)
    found = validate(key, key.token(scope="read write", exp=NOW_S + 60))
    assert found == ValidToken("alice", (NOW_S + 60) * 1000, frozenset({"read write"}))
    header, claims, signature = key.token().split(".")
    for changed in (f"{header}.{base64url(b'{}')}.{signature}", f"{header}.{claims}.{signature[:-8]}AAAAAAAA"):
        with pytest.raises(InvalidToken):
            SignedTokenValidator(KeySet.parse(key_set(key.json_web_key())).verify, ClaimRules(), wall_ms)._verify(
                parse_token(changed)
            )


@pytest.mark.parametrize(
    ("claims", "rules", "message"),
    [
        ({"exp": NOW_S - 31}, ClaimRules(), "has expired"),
        ({"exp": NOW_S}, ClaimRules(clock_skew_s=0), "has expired"),
        ({"exp": None}, ClaimRules(), "claim exp"),
        ({"exp": "tomorrow"}, ClaimRules(), "claim exp"),
        ({"exp": True}, ClaimRules(), "claim exp"),
        ({"exp": 1e300}, ClaimRules(), "claim exp"),
        ({"iat": None}, ClaimRules(), "claim iat"),
        ({"nbf": NOW_S + 31}, ClaimRules(), "not valid yet"),
        ({"sub": None}, ClaimRules(), "claim sub"),
        ({"sub": " "}, ClaimRules(), "claim sub"),
        ({"sub": 7}, ClaimRules(), "claim sub"),
        ({}, ClaimRules(subject_claim="client"), "claim client"),
        ({"scope": 7}, ClaimRules(), "claim scope"),
        ({"scope": ["a", 7]}, ClaimRules(), "claim scope"),
        ({"iss": "other"}, ClaimRules(issuer="https://issuer"), "expected issuer"),
        ({}, ClaimRules(issuer="https://issuer"), "expected issuer"),
        ({"aud": "other"}, ClaimRules(audiences=["kafka"]), "expected audience"),
        ({}, ClaimRules(audiences=["kafka"]), "expected audience"),
        ({"aud": "kafka"}, ClaimRules(), "expected audience"),
    ],
)
def test_claims_that_are_refused(rsa: SigningKey, claims: dict[str, Any], rules: ClaimRules, message: str) -> None:
    with pytest.raises(InvalidToken, match=message):
        validate(rsa, rsa.token(**claims), rules)


@pytest.mark.parametrize(
    ("claims", "rules"),
    [
        ({"exp": NOW_S - 29}, ClaimRules()),
        ({"nbf": NOW_S + 29}, ClaimRules()),
        ({"iss": "https://issuer"}, ClaimRules(issuer="https://issuer")),
        ({"aud": ["x", "kafka"]}, ClaimRules(audiences=["kafka", "other"])),
        ({"sub": None, "client": "alice"}, ClaimRules(subject_claim="client")),
        ({"scopes": ["a", "b"]}, ClaimRules(scope_claim="scopes")),
    ],
)
def test_claims_that_are_accepted(rsa: SigningKey, claims: dict[str, Any], rules: ClaimRules) -> None:
    assert validate(rsa, rsa.token(**claims), rules).principal_name == "alice"


@pytest.mark.parametrize(
    "header", [{"alg": "none"}, {"alg": "HS256"}, {"alg": "rs256"}, {"alg": "ES256"}, {"alg": 7}, {"crit": ["x"]},
               {"kid": "other"}, {"kid": 7}, {"alg": None}]
)  # fmt: skip
def test_headers_that_are_refused(rsa: SigningKey, header: dict[str, Any]) -> None:
    with pytest.raises(InvalidToken):
        validate(rsa, rsa.token(header))


def test_a_token_without_a_signature_is_refused_with_and_without_an_algorithm(rsa: SigningKey) -> None:
    for text in (unsecured_token(), signed_token({"alg": "RS256"}, {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 9},
                                                 lambda data: b"")):  # fmt: skip
        with pytest.raises(InvalidToken):
            validate(rsa, text)


def test_a_symmetric_signature_by_the_public_key_is_refused(rsa: SigningKey) -> None:
    import hmac

    secret = json.dumps(rsa.json_web_key()).encode()
    claims = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 9}
    text = signed_token({"alg": "HS256", "kid": "rsa-1"}, claims, lambda data: hmac.digest(secret, data, "sha256"))
    with pytest.raises(InvalidToken):
        validate(rsa, text)


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a.b.c", "a.b.c.d", "e30.e30.", "!.e30.e30", "W10.e30.", "x" * 100_000]
)
def test_malformed_tokens_are_refused(text: str) -> None:
    with pytest.raises(InvalidToken):
        UnsecuredTokenValidator({}, wall_ms).validate(text)


def test_the_reason_of_a_refusal_does_not_contain_the_token(rsa: SigningKey) -> None:
    text = rsa.token(exp=NOW_S - 100)
    with pytest.raises(InvalidToken) as caught:
        validate(rsa, text)
    assert not any(part in str(caught.value) for part in text.split("."))
    assert text.split(".")[2] not in repr(parse_token(text))


# -- key sets ----------------------------------------------------------------------------------------------------------


def test_a_token_without_a_key_id_is_checked_with_all_keys(tmp_path: Path, rsa: SigningKey) -> None:
    other = SigningKey(tmp_path, "rsa-2")
    keys = KeySet.parse(key_set(other.json_web_key(), rsa.json_web_key()))
    keys.verify(parse_token(rsa.token({"kid": None})))
    keys.verify(parse_token(rsa.token()))
    with pytest.raises(InvalidToken):
        keys.verify(parse_token(other.token({"kid": "rsa-1"})))


@pytest.mark.parametrize(
    "extra", [{"use": "enc"}, {"alg": "RS512"}, {"kty": "oct"}, {"n": "AQAB"}, {"n": "!"}, {"e": ""}, {"kty": "EC"}]
)
def test_a_key_that_may_not_verify_the_token_is_not_used(rsa: SigningKey, extra: dict[str, Any]) -> None:
    with pytest.raises(UnknownKey):
        KeySet.parse(key_set(rsa.json_web_key(**extra))).verify(parse_token(rsa.token()))


def test_a_point_that_is_not_on_the_curve_is_no_key(tmp_path: Path) -> None:
    key = SigningKey(tmp_path, "key", "ES256")
    assert KeySet.parse(key_set(key.json_web_key(x=base64url(bytes(31) + b"\5")))).keys == []


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": 7}', b"\xff", b"[" * 100_000])
def test_a_text_that_is_no_key_set_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  (of json, or of the key set)
        KeySet.parse(text)


# -- sources of keys ---------------------------------------------------------------------------------------------------


def test_a_file_of_keys_is_read_again_when_it_changes(tmp_path: Path, rsa: SigningKey, caplog: Any) -> None:
    path = tmp_path / "keys.json"
    path.write_bytes(key_set())
    source = KeyFile(str(path))
    token = parse_token(rsa.token())
    with pytest.raises(UnknownKey):
        source.verify(token)
    path.write_bytes(key_set(rsa.json_web_key()))
    source.verify(token)
    path.write_text("damaged")
    with caplog.at_level(logging.WARNING):
        source.verify(token)
    assert "the previous keys are used" in caplog.text
    os.unlink(path)
    source.verify(token)
    source.close()


class Endpoint:
    """An endpoint whose answers a test determines, and the thread that retrieves them."""

    def __init__(self, *answers: bytes | Exception) -> None:
        self.answers = list(answers)
        self.retrieved = threading.Semaphore(0)

    def fetch(self, url: str) -> bytes:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.retrieved.release()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def wait(self) -> None:
        assert self.retrieved.acquire(timeout=20)


SELDOM = RefreshTimes(3600, 3600, 3600)


def test_an_unknown_key_id_causes_one_retrieval(rsa: SigningKey) -> None:
    endpoint = Endpoint(key_set(), key_set(rsa.json_web_key()))
    source = KeyEndpoint("https://issuer/keys", SELDOM, endpoint.fetch)
    endpoint.wait()
    token = parse_token(rsa.token())
    with pytest.raises(UnknownKey):
        source.verify(token)
    endpoint.wait()
    deadline = time.monotonic() + 20
    while not source._keys.keys:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    source.verify(token)
    for number in range(100):
        with pytest.raises(UnknownKey):
            source.verify(parse_token(rsa.token({"kid": f"invented-{number}"})))
        break
    source.close()
    assert not endpoint.retrieved.acquire(timeout=0.1)


def test_an_endpoint_that_fails_at_the_start_is_tried_again(rsa: SigningKey, caplog: Any) -> None:
    endpoint = Endpoint(OSError("refused"), ValueError("no JSON"), key_set(rsa.json_web_key()))
    with caplog.at_level(logging.ERROR):
        source = KeyEndpoint("https://issuer/keys", RefreshTimes(3600, 0.001, 0.002), endpoint.fetch)
        for _ in range(3):
            endpoint.wait()
    deadline = time.monotonic() + 20
    while not source._keys.keys:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    source.close()
    assert "https://issuer/keys: refused" in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
    ],
)
def test_a_response_that_is_no_proper_http_is_a_failed_retrieval(answer: bytes, caplog: Any) -> None:
    """Any other exception would end the thread that retrieves the keys, or the start of the broker."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(4096)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/keys"
        KeyEndpoint(url, SELDOM).close()
        thread.join()
    assert f"could not be retrieved from {url}" in caplog.text


# -- tokens without a signature ----------------------------------------------------------------------------------------


def test_options_of_tokens_without_a_signature() -> None:
    options = {
        "unsecuredValidatorPrincipalClaimName": "client",
        "unsecuredValidatorScopeClaimName": "scopes",
        "unsecuredValidatorRequiredScope": "read write",
        "unsecuredValidatorAllowableClockSkewMs": "5000",
    }
    validator = UnsecuredTokenValidator(options, wall_ms)
    good = {"client": "bob", "scopes": ["read", "write", "other"], "exp": NOW_S - 4, "iat": NOW_S - 10}
    assert validator.validate(unsecured_token(**good)).principal_name == "bob"
    with pytest.raises(InvalidToken) as caught:
        validator.validate(unsecured_token(**{**good, "scopes": "read"}))
    assert caught.value.missing_scope == "read write"


def test_a_signed_token_is_refused_where_signatures_are_not_verified(rsa: SigningKey) -> None:
    with pytest.raises(InvalidToken):
        UnsecuredTokenValidator({}, wall_ms).validate(rsa.token())


# -- the exchange ------------------------------------------------------------------------------------------------------


def exchange() -> OAuthServer:
    return OAuthServer(UnsecuredTokenValidator({}, wall_ms).validate)


def test_a_good_token_completes_the_exchange() -> None:
    server = exchange()
    assert server.step(initial_response(unsecured_token(exp=NOW_S + 5), "alice", traceId="7")) == b""
    assert server.is_complete
    assert (str(server.principal), server.expires_ms) == ("User:alice", (NOW_S + 5) * 1000)


def test_a_bad_token_is_refused_in_two_steps() -> None:
    server = exchange()
    assert server.step(initial_response(unsecured_token(exp=1))) == b'{"status":"invalid_token"}'
    with pytest.raises(AuthenticationFailed, match="has expired") as caught:
        server.step(b"\x01")
    assert caught.value.client_text == '{"status":"invalid_token"}'


def test_another_authorization_id_is_refused_at_once() -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        exchange().step(initial_response(unsecured_token(), "bob"))
    assert caught.value.client_text == (
        "Authentication failed: Client requested an authorization id (bob) that is different from the token's "
        "principal name (alice)"
    )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,",
        b"n,,\x01\x01",
        b"y,,\x01auth=Bearer x\x01\x01",
        b"n,\x01auth=Bearer x\x01\x01",
        b"n,,x\x01auth=Bearer x\x01\x01",
        b"n,a=,\x01auth=Bearer x\x01\x01",
        b"n,b=alice,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer x\x01",
        b"n,,\x01auth=Bearer x",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01a1=b\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer x\x01a=\x01\x01",
        b"n,,\x01auth=Bearer x!\x01\x01",
        b"n,,\x01auth=Bearer x\x01\xff=b\x01\x01",
        b"\xff" * 50,
    ],
)
def test_a_malformed_first_message_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed) as caught:
        exchange().step(message)
    assert caught.value.client_text is None


def test_the_representation_of_a_message_hides_the_token() -> None:
    assert "secret" not in repr(parse_initial_response(b"n,,\x01auth=Bearer secret\x01k=secret\x01\x01"))
