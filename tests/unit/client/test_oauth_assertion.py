"""Assertions for an OAuth provider: their claims, and signatures that the public key verifies."""

from __future__ import annotations

import json
import subprocess
import time
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import AuthenticationError, ConfigError
from kafkapy.client.configuration import security_values
from kafkapy.client.oauth_assertion import assertion_maker
from kafkapy.security.oauth.signatures import ALGORITHMS, PublicKey, ecdsa_der

PASSPHRASE = "open sesame"
PREFIX = "sasl.oauthbearer.assertion."


def openssl(*words: str | Path) -> bytes:
    return subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True, timeout=60).stdout


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("keys")
    paths = {name: directory / f"{name}.pem" for name in ("RS256", "ES256", "encrypted")}
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", paths["RS256"])
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", paths["ES256"])
    words = ("-topk8", "-in", paths["ES256"], "-passout", f"pass:{PASSPHRASE}", "-out", paths["encrypted"])
    openssl("pkcs8", *words)
    return paths


def make(**properties: str) -> str:
    return assertion_maker(
        security_values({PREFIX + key.replace("_", "."): text for key, text in properties.items()})
    )()


def decoded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def verified(assertion: str, key: Path, algorithm: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns header and claims of an assertion after its signature has been verified."""
    header, claims, signature = assertion.split(".")
    public = PublicKey(openssl("pkey", "-in", key, "-pubout", "-outform", "DER"))
    form = decoded(signature) if algorithm == "RS256" else ecdsa_der(decoded(signature))
    assert public.verify(ALGORITHMS[algorithm], f"{header}.{claims}".encode(), form)
    return json.loads(decoded(header)), json.loads(decoded(claims))


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_an_assertion_has_the_configured_claims_and_a_signature(
    keys: dict[str, Path], algorithm: str, tmp_path: Path
) -> None:
    template = tmp_path / "template.json"
    template.write_text('{"header": {"kid": "k1"}, "payload": {"scope": "all", "iss": "other"}}')
    before_s = int(time.time())
    properties = {"claim_iss": "me", "claim_sub": "s", "claim_aud": "https://idp", "claim_jti_include": "true"}
    properties |= {"claim_exp_seconds": "100", "claim_nbf_seconds": "10", "template_file": str(template)}
    for _ in range(20):  # signatures of ECDSA differ in their length
        made = make(algorithm=algorithm, private_key_file=str(keys[algorithm]), **properties)
        header, claims = verified(made, keys[algorithm], algorithm)
    assert header == {"alg": algorithm, "typ": "JWT", "kid": "k1"}
    assert claims.pop("jti")
    issued_s = claims.pop("iat")
    assert before_s <= issued_s <= time.time()
    assert (claims.pop("exp"), claims.pop("nbf")) == (issued_s + 100, issued_s - 10)
    assert claims == {"iss": "me", "sub": "s", "aud": "https://idp", "scope": "all"}


def test_a_passphrase_opens_the_key(keys: dict[str, Path]) -> None:
    made = make(algorithm="ES256", private_key_file=str(keys["encrypted"]), private_key_passphrase=PASSPHRASE)
    verified(made, keys["ES256"], "ES256")


def test_a_finished_assertion_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "assertion"
    path.write_text("a.b.c\n")
    assert make(file=str(path)) == "a.b.c"


def test_what_is_missing_or_wrong_is_named(keys: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"private\.key\.file is missing"):
        make()
    with pytest.raises(AuthenticationError, match="the passphrase opens") as caught:
        make(algorithm="ES256", private_key_file=str(keys["encrypted"]), private_key_passphrase="wrong words")
    assert "wrong words" not in str(caught.value)
    with pytest.raises(AuthenticationError, match="the passphrase opens"):
        make(algorithm="ES256", private_key_file=str(keys["encrypted"]))
    with pytest.raises(AuthenticationError, match="not one for RS256"):
        make(private_key_file=str(keys["ES256"]))
    with pytest.raises(AuthenticationError, match="cannot be read"):
        make(private_key_file=str(tmp_path / "missing"))
    template = tmp_path / "template"
    template.write_text("[]")
    with pytest.raises(AuthenticationError, match="JSON with"):
        make(private_key_file=str(keys["RS256"]), template_file=str(template))
