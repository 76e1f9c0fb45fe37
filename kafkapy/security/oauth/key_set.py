"""JSON web key sets (RFC 7517): the public keys with which an identity provider signs tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from kafkapy.security.oauth.json_web_token import InvalidToken, JsonWebToken, decode_base64url
from kafkapy.security.oauth.signatures import (
    ALGORITHMS,
    PublicKey,
    ec_public_key,
    ecdsa_der,
    rsa_public_key,
    signature_size,
)

# A token without a key id is checked with at most this number of keys.
_MOST_CANDIDATES = 8


class UnknownKey(InvalidToken):
    """The key set has no key for the token; a newer key set may have it."""

    def __init__(self, key_id: str | None) -> None:
        super().__init__("the key set has no key that matches the token")
        self.key_id = key_id


class VerificationKey(NamedTuple):
    """A public key, and the attributes of its JSON web key that restrict its use."""

    key: PublicKey
    key_type: str
    key_id: str | None
    algorithm: str | None  # the only algorithm that may use the key; None for all algorithms of its type
    curve: str | None


class KeySet:
    """The public keys of one JSON web key set that may verify signatures. The object does not change, so that any
    thread may use it.
    """

    def __init__(self, keys: list[VerificationKey]) -> None:
        self.keys = keys

    @classmethod
    def parse(cls, text: bytes) -> KeySet:
        """Returns the RSA and EC keys of a JSON web key set, except keys with a `use` other than "sig".

        Keys that cannot be read are left out. Raises ValueError if `text` is not a JSON web key set.
        """
        try:
            document = json.loads(text)
        except RecursionError as error:
            raise ValueError("too deeply nested") from error
        entries = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(entries, list):
            raise ValueError("the key set has no list of keys")
        found = (_verification_key(entry) for entry in entries if isinstance(entry, dict))
        return cls([key for key in found if key is not None])

    def verify(self, token: JsonWebToken) -> None:
        """Raises UnknownKey if the set has no key of the id and type that the token's header names, and InvalidToken if
        none of these keys has signed the token."""
        name = token.header["alg"]
        algorithm = ALGORITHMS.get(name)
        if algorithm is None:
            raise InvalidToken(f"the token's algorithm is not one of {', '.join(ALGORITHMS)}")
        if "crit" in token.header:
            raise InvalidToken("the token's header has critical extensions")
        key_id = token.header.get("kid")
        candidates = [
            each
            for each in self.keys
            if each.key_type == algorithm.key_type
            and each.curve == algorithm.curve
            and each.algorithm in (None, name)
            and (key_id is None or each.key_id == key_id)
        ]
        if not candidates:
            raise UnknownKey(key_id if isinstance(key_id, str) else None)
        signature = token.signature
        size = signature_size(algorithm)
        if size is not None:
            if len(signature) != size:
                raise InvalidToken("the token's signature does not have the size of its algorithm")
            signature = ecdsa_der(signature)
        if not any(each.key.verify(algorithm, token.signed, signature) for each in candidates[:_MOST_CANDIDATES]):
            raise InvalidToken("the token's signature is wrong")


def _verification_key(entry: Mapping[str, Any]) -> VerificationKey | None:
    """Returns the key that an entry of a JSON web key set describes; None if the entry is not meant for signatures, is
    malformed or has an unknown type.
    """
    if entry.get("use") not in (None, "sig"):
        return None
    key_type, curve = entry.get("kty"), None
    try:
        if key_type == "RSA":
            key = rsa_public_key(_bytes_of(entry, "n"), _bytes_of(entry, "e"))
        elif key_type == "EC":
            curve = str(entry.get("crv"))
            key = ec_public_key(curve, _bytes_of(entry, "x"), _bytes_of(entry, "y"))
        else:
            return None
    except (ValueError, InvalidToken):
        return None
    key_id, algorithm = entry.get("kid"), entry.get("alg")
    return VerificationKey(key, str(key_type), key_id, algorithm if isinstance(algorithm, str) else None, curve)


def _bytes_of(entry: Mapping[str, Any], name: str) -> bytes:
    return decode_base64url(str(entry.get(name, "")), name)
