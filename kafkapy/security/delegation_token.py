"""The secret of delegation tokens (KIP-48), which is computed from the token's id and therefore not stored."""

from __future__ import annotations

import hmac
from base64 import b64encode


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Returns the HMAC-SHA-512 of a token's id, which is the token's secret. `secret_key` is the value of
    `delegation.token.secret.key`."""
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def token_password(secret_key: str, token_id: str) -> str:
    """Returns the password with which a client logs in by SCRAM under the token's id: the token's HMAC in base64."""
    return b64encode(token_hmac(secret_key, token_id)).decode()
