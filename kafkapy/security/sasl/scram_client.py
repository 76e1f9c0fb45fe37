"""The client side of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677)."""

from __future__ import annotations

from base64 import b64decode, b64encode
from hmac import compare_digest

from kafkapy.protocol.scram_mechanism import MIN_ITERATIONS, ScramMechanism
from kafkapy.security.sasl import scram_formulas as formulas
from kafkapy.security.sasl.client_mechanism import GS2_HEADER, ServerNotTrusted

# More iterations would let a server keep a client busy for minutes.
_MOST_ITERATIONS = 10_000_000


class ScramClient:
    """Proves that the client knows a password, and checks that the server knows the salted password.

    If `is_token` is True, user name and password are the id and the HMAC of a delegation token (KIP-48).
    """

    def __init__(
        self,
        mechanism: ScramMechanism,
        username: str,
        password: str,
        *,
        is_token: bool = False,
        nonce: str | None = None,
    ) -> None:
        """Makes an exchange that has not begun.

        If `is_token` is True, `username` and `password` are the id and the HMAC of a delegation token. `nonce` is
        printable ASCII without commas; if it is None, a random nonce is made.
        """
        self.name = mechanism.name.replace("_", "-")
        self._hash_name = mechanism.hash_name
        self._username = formulas.to_sasl_name(username)
        self._password = password
        self._extension = ",tokenauth=true" if is_token else ""
        self._nonce = nonce or formulas.new_nonce()
        self._server_signature = b""
        self._steps = 0
        self.is_complete = False

    def step(self, challenge: bytes | None) -> bytes | None:
        """Returns the client's first message if `challenge` is None, its final message for the server's first message,
        and None after the server's final message. Raises ServerNotTrusted if the server does not prove that it knows
        the password.
        """
        self._steps += 1
        if self._steps == 1:
            return (GS2_HEADER + self._first_message_bare()).encode()
        message = _decode(challenge)
        if self._steps == 2:
            return self._final_message(message)
        self._check_signature(message)
        self.is_complete = True
        return None

    def _first_message_bare(self) -> str:
        return f"n={self._username},r={self._nonce}{self._extension}"

    def _final_message(self, server_first: str) -> bytes:
        """Returns the client's final message for the server's first message. Also stores the signature that the
        server's final message must contain."""
        nonce, salt, iterations = _parse_server_first(server_first)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ServerNotTrusted("Invalid server nonce: the server does not continue this client's nonce")
        without_proof = f"c={b64encode(GS2_HEADER.encode()).decode()},r={nonce}"
        auth_message = formulas.auth_message(self._first_message_bare(), server_first, without_proof)
        hash_name = self._hash_name
        salted = formulas.salted_password(hash_name, self._password, salt, iterations)
        client_key = formulas.client_key(hash_name, salted)
        signature = formulas.signature(hash_name, formulas.stored_key(hash_name, client_key), auth_message)
        proof = formulas.xor(client_key, signature)
        server_key = formulas.server_key(hash_name, salted)
        self._server_signature = formulas.signature(hash_name, server_key, auth_message)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def _check_signature(self, server_final: str) -> None:
        if server_final.startswith("e="):
            raise ServerNotTrusted(f"the server refused the authentication: {server_final[2:].partition(',')[0]}")
        if not server_final.startswith("v="):
            raise ServerNotTrusted("Invalid SASL/SCRAM server final message")
        found = _base64(server_final[2:].partition(",")[0])
        if not compare_digest(found, self._server_signature):
            raise ServerNotTrusted("Invalid server signature in server final message")


def _parse_server_first(message: str) -> tuple[str, bytes, int]:
    """Returns nonce, salt and iterations of the server's first message. Raises ServerNotTrusted."""
    fields = message.split(",")
    if len(fields) < 3 or [field[:2] for field in fields[:3]] != ["r=", "s=", "i="]:
        raise ServerNotTrusted("Invalid SASL/SCRAM server first message")
    nonce, salt, count = (field[2:] for field in fields[:3])
    iterations = int(count) if count.isascii() and count.isdigit() and len(count) <= 10 else 0
    if not MIN_ITERATIONS <= iterations <= _MOST_ITERATIONS:
        raise ServerNotTrusted(
            f"Requested iterations {count[:10]} is not between {MIN_ITERATIONS} and {_MOST_ITERATIONS}"
        )
    return nonce, _base64(salt), iterations


def _decode(challenge: bytes | None) -> str:
    try:
        return (challenge or b"").decode()
    except UnicodeDecodeError:
        raise ServerNotTrusted("a SASL/SCRAM message of the server is not UTF-8") from None


def _base64(text: str) -> bytes:
    try:
        return b64decode(text.encode(), validate=True)
    except ValueError:  # of binascii too
        raise ServerNotTrusted("a SASL/SCRAM message of the server has invalid base64") from None
