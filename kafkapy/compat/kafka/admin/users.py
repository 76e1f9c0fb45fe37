"""The operations that describe and alter the SCRAM credentials of users."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

from kafkapy.compat.kafka.admin.requests import AT_CONTROLLER, AdminRequests, raise_error
from kafkapy.compat.kafka.errors import IllegalArgumentError
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkapy.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest

_RANDOM_SALT_BYTES = 24


class ScramMechanism(IntEnum):
    """The SCRAM mechanisms."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def hash_name(self) -> str:
        """The name of the hash function in hashlib. Raises KeyError for UNKNOWN."""
        return {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}[self]


def _mechanism(given: Any) -> ScramMechanism:
    if isinstance(given, str):
        return ScramMechanism[given.upper().replace("-", "_")]
    return ScramMechanism(given)


class UserScramCredentialDeletion:
    """A credential to delete."""

    def __init__(self, user: str, mechanism: Any) -> None:
        self.user = user
        self.mechanism = _mechanism(mechanism)

    def __repr__(self) -> str:
        return f"UserScramCredentialDeletion({self.user}, {self.mechanism.name})"


class UserScramCredentialUpsertion:
    """A credential to create or replace; the broker gets the salted password only."""

    DEFAULT_ITERATIONS = 4096

    def __init__(
        self,
        user: str,
        mechanism: Any,
        password: bytes | str,
        iterations: int | None = None,
        salt: bytes | None = None,
    ) -> None:
        self.user = user
        self.mechanism = _mechanism(mechanism)
        if self.mechanism == ScramMechanism.UNKNOWN:
            raise IllegalArgumentError("SCRAM mechanism must not be UNKNOWN")
        self.iterations = self.DEFAULT_ITERATIONS if iterations is None else iterations
        self.salt = os.urandom(_RANDOM_SALT_BYTES) if salt is None else salt
        secret = password.encode() if isinstance(password, str) else password
        self.salted_password = hashlib.pbkdf2_hmac(self.mechanism.hash_name, secret, self.salt, self.iterations)

    def __repr__(self) -> str:
        return f"UserScramCredentialUpsertion({self.user}, {self.mechanism.name}, iterations={self.iterations})"


class UserOperations(AdminRequests):
    """The methods of KafkaAdminClient for SCRAM credentials."""

    def alter_user_scram_credentials(self, alterations: Iterable[Any]) -> dict[str, str | None]:
        """Creates, replaces and deletes SCRAM credentials; returns the error's text of each user, None after a success.

        `alterations` are UserScramCredentialUpsertions and UserScramCredentialDeletions.
        """
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[])
        for each in alterations:
            if isinstance(each, UserScramCredentialDeletion):
                request.deletions.append(
                    AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=each.user, mechanism=each.mechanism)
                )
            elif isinstance(each, UserScramCredentialUpsertion):
                request.upsertions.append(
                    AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
                        name=each.user,
                        mechanism=each.mechanism,
                        iterations=each.iterations,
                        salt=each.salt,
                        salted_password=each.salted_password,
                    )
                )
            else:
                raise IllegalArgumentError(
                    "alterations must be UserScramCredentialDeletion or UserScramCredentialUpsertion, not "
                    f"{type(each).__name__}"
                )
        response = self._ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request, AT_CONTROLLER)
        return {each.user: each.error_message if each.error_code else None for each in response.results}

    def describe_user_scram_credentials(self, users: Iterable[str] | None = None) -> dict[str, dict[str, Any]]:
        """Returns the SCRAM credentials of users, by default of all users that have some.

        The dictionary of a user has two items. `error` is the text of the error, or None after a success.
        `credential_infos` is a list with the mechanism and the iterations of each credential.
        """
        named = None if users is None else [DescribeUserScramCredentialsRequest.UserName(name=each) for each in users]
        response = self._ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, DescribeUserScramCredentialsRequest(users=named))
        raise_error(response.error_code, response.error_message)
        return {
            each.user: {
                "error": each.error_message if each.error_code else None,
                "credential_infos": [
                    {"mechanism": ScramMechanism(info.mechanism), "iterations": info.iterations}
                    for info in each.credential_infos
                ],
            }
            for each in response.results
        }
