"""The SCRAM credentials and delegation tokens of the metadata image, for the SASL mechanisms of listeners."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kafkapy.metadata.image import MetadataCache
from kafkapy.protocol.scram_mechanism import MIN_ITERATIONS, ScramMechanism
from kafkapy.security.delegation_token import token_password
from kafkapy.security.principal import parse_principal
from kafkapy.security.sasl.scram_formulas import ScramKeys, scram_keys
from kafkapy.security.sasl.scram_server import ScramIdentity, user_principal

if TYPE_CHECKING:
    from kafkapy.config.broker_config import BrokerConfig
    from kafkapy.types import Clock


class MetadataCredentials:
    """The credentials in the newest published metadata image. Any thread may use the object."""

    def __init__(self, metadata: MetadataCache, config: BrokerConfig, clock: Clock) -> None:
        self._metadata = metadata
        self._clock = clock
        secret = config.delegation_token_secret_key
        self._secret_key = None if secret is None else secret.value
        # The keys of the tokens that have logged in: they cost thousands of hashes.
        self._token_keys: dict[tuple[ScramMechanism, str], ScramKeys] = {}

    def find_user(self, mechanism: ScramMechanism, name: str) -> ScramIdentity | None:
        """Returns the SCRAM credential of a user; None if there is none."""
        found = self._metadata.image.scram.get((name, mechanism.value))
        return None if found is None else ScramIdentity(ScramKeys(*found), user_principal(name))

    def find_token(self, mechanism: ScramMechanism, token_id: str) -> ScramIdentity | None:
        """Returns the credential of a delegation token; None if there is no such token, or if it has expired.

        The principal of the credential is the token's owner.
        """
        tokens = self._metadata.image.delegation_tokens
        token = tokens.get(token_id)
        if token is None or self._secret_key is None or token.expiration_timestamp < self._clock.wall_ms():
            return None
        key = (mechanism, token_id)
        keys = self._token_keys.get(key)
        if keys is None:
            kept = {each: known for each, known in self._token_keys.items() if each[1] in tokens}
            password = token_password(self._secret_key, token_id)
            keys = kept[key] = scram_keys(mechanism.hash_name, password, os.urandom(32), MIN_ITERATIONS)
            self._token_keys = kept
        owner = parse_principal(token.owner)._replace(token_authenticated=True)
        return ScramIdentity(keys, owner, token.expiration_timestamp)
