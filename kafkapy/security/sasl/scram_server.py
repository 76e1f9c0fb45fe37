"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): client and server prove to each other that they know the
password, without sending it. Delegation tokens use the same exchange (KIP-48)."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable
from typing import NamedTuple

from kafkapy.protocol.scram_mechanism import MIN_ITERATIONS, ScramMechanism
from kafkapy.security.principal import USER_TYPE, Principal
from kafkapy.security.sasl import scram_formulas as formulas
from kafkapy.security.sasl.scram_formulas import ScramKeys
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed, ServerMechanism

# Extension of the client's first message: the name is the id of a delegation token.
TOKEN_EXTENSION = "tokenauth"

_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"
_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_SASL_NAME}))?,"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c={_BASE64},r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
# Longer messages are refused before they are parsed. The messages of usual clients are far shorter.
_LONGEST_MESSAGE = 8192


class ScramIdentity(NamedTuple):
    """The credential of a user or of a delegation token: the keys, the principal, and the wall-clock time in
    milliseconds at which a token expires (None for a user).
    """

    keys: ScramKeys
    principal: Principal
    expires_ms: int | None = None


# Returns the identity of the user with the name; None if there is none. May be called by any thread.
FindIdentity = Callable[[str], ScramIdentity | None]


def user_principal(name: str) -> Principal:
    return Principal(USER_TYPE, name)


class ScramServer(ServerMechanism):
    """The server's side of one SCRAM exchange, which has two steps."""

    def __init__(
        self, mechanism: ScramMechanism, find_user: FindIdentity, find_token: FindIdentity = lambda token_id: None,
        new_nonce: Callable[[], str] = formulas.new_nonce,
    ) -> None:  # fmt: skip
        """Makes an exchange that has not begun.

        `find_user(name)` returns the identity of a user. `find_token(id)` returns the identity of a delegation token;
        the identity's principal is the token's owner. Both return None if the user or token does not exist. `new_nonce`
        returns the server's part of the nonce.
        """
        super().__init__()
        self._hash_name = mechanism.hash_name
        self._find_user = find_user
        self._find_token = find_token
        self._new_nonce = new_nonce
        self._identity: ScramIdentity | None = None
        self._client_first_bare = self._server_first = self._nonce = ""

    def step(self, token: bytes) -> bytes:
        message = token.decode("utf-8", "replace")
        if len(message) > _LONGEST_MESSAGE or self.is_complete:
            raise AuthenticationFailed("Unexpected SCRAM message")
        return self._first(message) if self._identity is None else self._final(message, self._identity)

    def _first(self, message: str) -> bytes:
        match = _CLIENT_FIRST.fullmatch(message)
        if match is None:
            raise AuthenticationFailed("Invalid SCRAM client first message format")
        name = formulas.from_sasl_name(match["name"])
        identity = self._find(name, is_token=_is_token_login(match["extensions"]))
        if match["authorization_id"] not in (None, name):
            text = "Authentication failed: Client requested an authorization id that is different from username"
            raise AuthenticationFailed(text, client_text=text)
        if identity.keys.iterations < MIN_ITERATIONS:
            raise AuthenticationFailed(
                f"Iterations {identity.keys.iterations} is less than the minimum {MIN_ITERATIONS} of the mechanism"
            )
        salt = base64.b64encode(identity.keys.salt).decode()
        self._nonce = match["nonce"] + self._new_nonce()
        self._server_first = f"r={self._nonce},s={salt},i={identity.keys.iterations}"
        self._client_first_bare = match["bare"]
        self._identity = identity
        return self._server_first.encode()

    def _find(self, name: str, *, is_token: bool) -> ScramIdentity:
        try:
            identity = self._find_token(name) if is_token else self._find_user(name)
        except Exception as error:  # of a class that the administrator has written
            raise AuthenticationFailed("Authentication failed: Credentials could not be obtained") from error
        if identity is None:
            if is_token:
                raise AuthenticationFailed(f"Token Authentication failed: Invalid tokenId : {name}")
            raise AuthenticationFailed("Authentication failed: Invalid user credentials")
        return identity

    def _final(self, message: str, identity: ScramIdentity) -> bytes:
        match = _CLIENT_FINAL.fullmatch(message)
        if match is None:
            raise AuthenticationFailed("Invalid SCRAM client final message format")
        if match["nonce"] != self._nonce:
            raise AuthenticationFailed("Invalid client nonce in the final client message.")
        keys, signed = identity.keys, match["without_proof"]
        auth_message = formulas.auth_message(self._client_first_bare, self._server_first, signed)
        if not self._is_proof(_decoded(match["proof"]), keys, auth_message):
            raise AuthenticationFailed("Invalid client credentials")
        self._complete(identity.principal, identity.expires_ms)
        server_signature = formulas.signature(self._hash_name, keys.server_key, auth_message)
        return b"v=" + base64.b64encode(server_signature)

    def _is_proof(self, proof: bytes, keys: ScramKeys, auth_message: bytes) -> bool:
        """Returns whether the proof was made from the key whose hash is the stored key."""
        signature = formulas.signature(self._hash_name, keys.stored_key, auth_message)
        if len(proof) != len(signature):
            return False
        client_key = formulas.xor(proof, signature)
        return hmac.compare_digest(formulas.stored_key(self._hash_name, client_key), keys.stored_key)


def _is_token_login(extensions: str) -> bool:
    values = dict(each.split("=", 1) for each in extensions.split(",") if each)
    return values.get(TOKEN_EXTENSION, "").lower() == "true"


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
