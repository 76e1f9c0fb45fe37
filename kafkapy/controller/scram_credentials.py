"""SCRAM credentials in the metadata log (KIP-554): clients send salted passwords, and only the keys that verify them
are stored."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from kafkapy.controller.result import SUCCESS, ControllerResult, ErrorMessage
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from kafkapy.protocol.scram_mechanism import MAX_ITERATIONS, MECHANISMS_BY_NUMBER, MIN_ITERATIONS

ALTERED_TWICE = ErrorMessage(Error.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


class ScramDeletion(NamedTuple):
    name: str
    mechanism: int


class ScramUpsertion(NamedTuple):
    """A credential to store. Passwords are never sent: `salted_password` is PBKDF2's result, computed by the client.

    If the stored key and the server key are known already, `keys` has them, and `salted_password` is empty.
    """

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes
    keys: tuple[bytes, bytes] | None = None


def alter_scram_credentials(
    image: MetadataImage, deletions: Sequence[ScramDeletion], upsertions: Sequence[ScramUpsertion]
) -> ControllerResult[dict[str, ErrorMessage]]:
    """Deletes and stores credentials. The response maps the name of each user in the request to the result.

    If a user occurs more than once, none of the changes of that user is made. An error of one user does not affect the
    others.
    """
    changes: dict[str, MessageAndVersion] = {}
    errors: dict[str, ErrorMessage] = {}
    alterations: list[ScramDeletion | ScramUpsertion] = [*deletions, *upsertions]
    for alteration in alterations:
        name = alteration.name
        if name in errors:
            continue
        if name in changes:
            del changes[name]
            errors[name] = ALTERED_TWICE
            continue
        try:
            _check_user_and_mechanism(name, alteration.mechanism)
            if isinstance(alteration, ScramDeletion):
                changes[name] = _deletion(image, alteration)
            else:
                changes[name] = credential_record(alteration), 0
        except ApiError as error:
            message = None if error.error is Error.UNKNOWN_SERVER_ERROR else error.message
            errors[name] = ErrorMessage(error.error, message)
    return ControllerResult(list(changes.values()), dict.fromkeys(changes, SUCCESS) | errors)


def _check_user_and_mechanism(name: str, mechanism: int) -> None:
    if not name:
        raise ApiError(Error.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in MECHANISMS_BY_NUMBER:
        raise ApiError(Error.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")


def _deletion(image: MetadataImage, deletion: ScramDeletion) -> MessageAndVersion:
    if (deletion.name, deletion.mechanism) not in image.scram:
        raise ApiError(Error.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist")
    return RemoveUserScramCredentialRecord(name=deletion.name, mechanism=deletion.mechanism), 0


def credential_record(upsertion: ScramUpsertion) -> UserScramCredentialRecord:
    """Returns the record of a credential. It contains the keys that verify a password, but not the password.

    Raises ApiError: UNACCEPTABLE_CREDENTIAL if the number of iterations is too small or too large, and
    UNKNOWN_SERVER_ERROR if the upsertion has neither keys nor a salted password.
    """
    if upsertion.iterations > MAX_ITERATIONS:
        raise ApiError(Error.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    if upsertion.iterations < MIN_ITERATIONS:
        raise ApiError(Error.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    stored_key, server_key = upsertion.keys or _keys(upsertion)
    return UserScramCredentialRecord(
        name=upsertion.name,
        mechanism=upsertion.mechanism,
        salt=upsertion.salt,
        stored_key=stored_key,
        server_key=server_key,
        iterations=upsertion.iterations,
    )


def _keys(upsertion: ScramUpsertion) -> tuple[bytes, bytes]:
    """Returns the stored key and the server key that belong to the salted password.

    Raises ApiError(UNKNOWN_SERVER_ERROR) if the salted password is empty.
    """
    if not upsertion.salted_password:
        raise ApiError(Error.UNKNOWN_SERVER_ERROR, "Empty key")
    hash_name = MECHANISMS_BY_NUMBER[upsertion.mechanism].hash_name
    client_key = hmac.digest(upsertion.salted_password, b"Client Key", hash_name)
    server_key = hmac.digest(upsertion.salted_password, b"Server Key", hash_name)
    return hashlib.new(hash_name, client_key).digest(), server_key
