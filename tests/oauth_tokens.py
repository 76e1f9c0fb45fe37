"""An identity provider for tests: keys made by the program openssl, key sets, and signed tokens."""

from __future__ import annotations

import json
import subprocess
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from kafkapy.security.tls.der import SEQUENCE, DerReader

HASHES = {"256": "sha256", "384": "sha384", "512": "sha512"}
CURVES = {"ES256": ("P-256", 32), "ES384": ("P-384", 48), "ES512": ("P-521", 66)}


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*arguments: str, input: bytes = b"") -> bytes:
    return subprocess.run(["openssl", *arguments], input=input, capture_output=True, check=True).stdout


class SigningKey:
    """A private key in a file of `directory`."""

    def __init__(self, directory: Path, key_id: str, algorithm: str = "RS256") -> None:
        self.key_id = key_id
        self.algorithm = algorithm
        self._path = directory / f"{key_id}.pem"
        if algorithm.startswith("ES"):
            options = ["-algorithm", "EC", "-pkeyopt", f"ec_paramgen_curve:{CURVES[algorithm][0]}"]
        else:
            options = ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"]
        openssl("genpkey", *options, "-out", str(self._path))

    def json_web_key(self, **extra: Any) -> dict[str, Any]:
        """Returns the public key as an entry of a key set."""
        entry: dict[str, Any] = {"kid": self.key_id, "use": "sig"}
        encoded = openssl("pkey", "-in", str(self._path), "-pubout", "-outform", "DER")
        if self.algorithm.startswith("ES"):
            curve, size = CURVES[self.algorithm]
            point = encoded[-2 * size :]
            entry |= {"kty": "EC", "crv": curve, "x": base64url(point[:size]), "y": base64url(point[size:])}
        else:
            text = openssl("rsa", "-in", str(self._path), "-noout", "-modulus").decode()
            modulus = bytes.fromhex(text.strip().removeprefix("Modulus="))
            entry |= {"kty": "RSA", "n": base64url(modulus), "e": base64url(b"\1\0\1")}
        return entry | extra

    def sign(self, data: bytes) -> bytes:
        arguments = ["dgst", f"-{HASHES[self.algorithm[2:]]}", "-sign", str(self._path)]
        if self.algorithm.startswith("PS"):
            arguments += ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"]
        signature = openssl(*arguments, input=data)
        if not self.algorithm.startswith("ES"):
            return signature
        size = CURVES[self.algorithm][1]
        reader = DerReader(signature).enter(SEQUENCE)
        return b"".join(reader.integer().to_bytes(size, "big") for _ in range(2))

    def token(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """Returns a token of alice that is valid for an hour; None removes a claim or an entry of the header."""
        now_s = int(time.time())
        entries = {"alg": self.algorithm, "kid": self.key_id, "typ": "JWT"} | (header or {})
        body = {"sub": "alice", "iat": now_s - 60, "exp": now_s + 3600} | claims
        return signed_token(entries, body, self.sign)


def signed_token(header: dict[str, Any], claims: dict[str, Any], sign: Any) -> str:
    parts = [{key: value for key, value in part.items() if value is not None} for part in (header, claims)]
    text = ".".join(base64url(json.dumps(part).encode()) for part in parts)
    return f"{text}.{base64url(sign(text.encode()))}"


def unsecured_token(**claims: Any) -> str:
    """Returns a token with algorithm none."""
    now_s = int(time.time())
    return signed_token(
        {"alg": "none"}, {"sub": "alice", "iat": now_s - 60, "exp": now_s + 3600} | claims, lambda data: b""
    )


def key_set(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


def initial_response(token: str, authorization_id: str = "", **extensions: str) -> bytes:
    """Returns the client's first message of OAUTHBEARER."""
    header = f"n,a={authorization_id}," if authorization_id else "n,,"
    pairs = {"auth": f"Bearer {token}", **extensions}
    return "".join([header, "\1", *(f"{key}={value}\1" for key, value in pairs.items()), "\1"]).encode()
