"""The formulas and the notation of SCRAM (RFC 5802), which both sides use."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

_UNESCAPED_EQUALS = re.compile("=(?!2C|3D)")


class ScramKeys(NamedTuple):
    """The values that a server stores to verify a password, from which the password cannot be computed.

    `repr` shows the number of iterations only.
    """

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramKeys({self.iterations} iterations)"


def salted_password(hash_name: str, password: str, salt: bytes, iterations: int) -> bytes:
    """Returns the password after `iterations` of PBKDF2. As in Kafka, the password is not prepared (SASLprep)."""
    return hashlib.pbkdf2_hmac(hash_name, password.encode(), salt, iterations)


def client_key(hash_name: str, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Client Key", hash_name)


def server_key(hash_name: str, salted: bytes) -> bytes:
    return hmac.digest(salted, b"Server Key", hash_name)


def stored_key(hash_name: str, key: bytes) -> bytes:
    """Returns the hash of the client key `key`. The server stores this hash, and not the client key."""
    return hashlib.new(hash_name, key).digest()


def scram_keys(hash_name: str, password: str, salt: bytes, iterations: int) -> ScramKeys:
    """Returns the keys that a server stores for a password."""
    salted = salted_password(hash_name, password, salt, iterations)
    return ScramKeys(
        salt, stored_key(hash_name, client_key(hash_name, salted)), server_key(hash_name, salted), iterations
    )


def signature(hash_name: str, key: bytes, auth_message: bytes) -> bytes:
    """Returns the signature of the exchanged messages: the client's signature if `key` is the stored key, the server's
    signature if `key` is the server key."""
    return hmac.digest(key, auth_message, hash_name)


def auth_message(client_first_bare: str, server_first: str, client_final_without_proof: str) -> bytes:
    return f"{client_first_bare},{server_first},{client_final_without_proof}".encode()


def xor(first: bytes, second: bytes) -> bytes:
    """Returns the exclusive or of two byte strings of the same length."""
    return bytes(one ^ other for one, other in zip(first, second, strict=True))


def new_nonce() -> str:
    """Returns a random nonce of 24 printable characters without a comma."""
    return secrets.token_urlsafe(18)


def to_sasl_name(name: str) -> str:
    """Returns the name with `=` written as `=3D` and `,` as `=2C`."""
    return name.replace("=", "=3D").replace(",", "=2C")


def from_sasl_name(text: str) -> str:
    """Returns the name that the escaped text contains. Raises ValueError for a `=` that begins no escape."""
    if _UNESCAPED_EQUALS.search(text):
        raise ValueError(f"invalid user name: {text}")
    return text.replace("=2C", ",").replace("=3D", "=")
