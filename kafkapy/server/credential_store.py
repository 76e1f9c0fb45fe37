"""The SCRAM credentials of the metadata image, for the SASL mechanisms of listeners."""

from __future__ import annotations

from kafkapy.metadata.image import MetadataCache
from kafkapy.protocol.scram_mechanism import ScramMechanism
from kafkapy.security.sasl.scram_formulas import ScramKeys
from kafkapy.security.sasl.scram_server import ScramIdentity, user_principal


class MetadataCredentials:
    """The credentials in the newest published image. Any thread."""

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata

    def find_user(self, mechanism: ScramMechanism, name: str) -> ScramIdentity | None:
        """Returns the SCRAM credential of a user; None if there is none."""
        found = self._metadata.image.scram.get((name, mechanism.value))
        return None if found is None else ScramIdentity(ScramKeys(*found), user_principal(name))

    def find_token(self, mechanism: ScramMechanism, token_id: str) -> ScramIdentity | None:
        """Returns None: there are no delegation tokens yet."""
        return None
