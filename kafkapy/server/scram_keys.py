"""Sends the keys of SCRAM credentials in AlterUserScramCredentials, which in Kafka has a field for the password only.

A tool that writes a user's znode gives the broker the stored key and the server key, from which nobody can compute the
salted password that Kafka's field requires. The keys are therefore in a tagged field, which other implementations
ignore.
"""

from __future__ import annotations

from kafkapy.metadata.cluster_image import ScramCredential
from kafkapy.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkapy.protocol.scram_mechanism import MECHANISMS_BY_NUMBER

# Far above the tags that Apache Kafka assigns.
_KEYS_TAG = 10_000


def keys_request(name: str, mechanism: int, credential: ScramCredential | None) -> AlterUserScramCredentialsRequest:
    """Returns the request that stores the credential of the user `name`, or deletes it if `credential` is None."""
    kind = AlterUserScramCredentialsRequest
    if credential is None:
        return kind(deletions=[kind.ScramCredentialDeletion(name=name, mechanism=mechanism)], upsertions=[])
    upsertion = kind.ScramCredentialUpsertion(
        name=name,
        mechanism=mechanism,
        iterations=credential.iterations,
        salt=credential.salt,
        salted_password=b"",
        unknown_tagged_fields=((_KEYS_TAG, credential.stored_key + credential.server_key),),
    )
    return kind(deletions=[], upsertions=[upsertion])


def keys_of(upsertion: AlterUserScramCredentialsRequest.ScramCredentialUpsertion) -> tuple[bytes, bytes] | None:
    """Returns (stored key, server key), which kafkapy adds to a credential in AlterUserScramCredentials.

    Returns None if `upsertion` has a salted password instead of keys, or if the size of the keys does not fit the
    mechanism.
    """
    keys = dict(upsertion.unknown_tagged_fields).get(_KEYS_TAG)
    mechanism = MECHANISMS_BY_NUMBER.get(upsertion.mechanism)
    if keys is None or mechanism is None or upsertion.salted_password:
        return None
    size = mechanism.digest_size
    return (bytes(keys[:size]), bytes(keys[size:])) if len(keys) == 2 * size else None
