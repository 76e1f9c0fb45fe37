"""Operations on the quotas and SCRAM credentials of users and clients."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import constant, error_of, top_level_error
from kafkapy.client.admin.results import Results
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from kafkapy.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from kafkapy.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from kafkapy.protocol.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kafkapy.protocol.scram_mechanism import MIN_ITERATIONS, ScramMechanism

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_EXACT, _DEFAULT, _ANY = 0, 1, 2


class _AnyName:
    """The class of the constant ANY_NAME, which matches every name in the filter of `describe_client_quotas`."""

    def __repr__(self) -> str:
        return "ANY_NAME"


ANY_NAME = _AnyName()
# The entity that a quota applies to: pairs of type and name; the name None is the default of that type.
QuotaEntity = tuple[tuple[str, str | None], ...]


class ScramCredential(NamedTuple):
    """A user's SCRAM credential as a broker describes it. Brokers do not return the salt and the keys."""

    mechanism: ScramMechanism
    iterations: int


class NewScramCredential(NamedTuple):
    """A credential to create or replace; only the salted password is sent. If `salt` is None, it is random."""

    user: str
    mechanism: ScramMechanism
    password: str | bytes
    iterations: int = MIN_ITERATIONS
    salt: bytes | None = None


def quota_entity(**names: str | None) -> QuotaEntity:
    """Returns the entity with these types and names, to which a quota applies.

    A name of None stands for all names of its type that have no quota of their own. For example,
    `quota_entity(user="ada", client_id=None)` is user "ada" with any client id that has no quota of its own.
    """
    return tuple(sorted((kind.replace("_", "-"), name) for kind, name in names.items()))


class PrincipalOperations(AdminLookups):
    """Operations on quotas and credentials."""

    def describe_client_quotas(
        self,
        components: Iterable[tuple[str, str | _AnyName | None]] = (),
        *,
        strict: bool = False,
        timeout: float | None = None,
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Returns the quotas that are configured for entities with all these components. Blocks.

        The result maps each entity to its quotas, which are values by the quota's name. A component is a type ("user",
        "client-id", "ip") and a name; the name can be None for the default entity of this type, or ANY_NAME for any
        name. With `strict` an entity that also has components of other types is left out.
        """
        wanted = [
            DescribeClientQuotasRequest.ComponentData(
                entity_type=kind,
                match_type=_ANY if isinstance(name, _AnyName) else _DEFAULT if name is None else _EXACT,
                match=None if isinstance(name, _AnyName) else name,
            )
            for kind, name in components
        ]
        response = self._request(
            self._any_broker,
            ApiKey.DESCRIBE_CLIENT_QUOTAS,
            lambda version: DescribeClientQuotasRequest(components=wanted, strict=strict),
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )
        return {_entity(result): {each.key: each.value for each in result.values} for result in response.entries or ()}

    def alter_client_quotas(
        self,
        quotas: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> Results[QuotaEntity, None]:
        """Sets quotas (`producer_byte_rate`, `consumer_byte_rate` and so on); the value None removes one. Blocks.

        With `validate_only` the brokers only check the request.
        """
        entries = [
            AlterClientQuotasRequest.EntryData(
                entity=[
                    AlterClientQuotasRequest.EntityData(entity_type=kind, entity_name=name) for kind, name in entity
                ],
                ops=[
                    AlterClientQuotasRequest.OpData(key=key, value=value or 0.0, remove=value is None)
                    for key, value in values.items()
                ],
            )
            for entity, values in quotas.items()
        ]
        response = self._request(
            self._controller,
            ApiKey.ALTER_CLIENT_QUOTAS,
            lambda version: AlterClientQuotasRequest(entries=entries, validate_only=validate_only),
            deadline_ms=self._deadline_ms(timeout),
        )
        results: Results[QuotaEntity, None] = Results()
        for result in response.entries:
            results.put(_entity(result), error_of(result))
        return results

    def describe_user_scram_credentials(
        self, users: Sequence[str] | None = None, *, timeout: float | None = None
    ) -> Results[str, list[ScramCredential]]:
        """Returns the credentials of users (None: all). A user without one has the error RESOURCE_NOT_FOUND. Blocks."""
        named = None if users is None else [DescribeUserScramCredentialsRequest.UserName(name=each) for each in users]
        response = self._request(
            self._any_broker,
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
            lambda version: DescribeUserScramCredentialsRequest(users=named),
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )
        results: Results[str, list[ScramCredential]] = Results()
        for result in response.results:
            credentials = [
                ScramCredential(ScramMechanism(each.mechanism), each.iterations) for each in result.credential_infos
            ]
            results.put(result.user, error_of(result) or credentials)
        return results

    def alter_user_scram_credentials(
        self,
        upserts: Iterable[NewScramCredential] = (),
        deletions: Iterable[tuple[str, ScramMechanism]] = (),
        *,
        timeout: float | None = None,
    ) -> Results[str, None]:
        """Creates or replaces the credentials `upserts`, and deletes `deletions`, which are pairs of user and
        mechanism. Blocks.

        The result of each user is None or the error.
        """
        request = AlterUserScramCredentialsRequest(
            deletions=[
                AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=user, mechanism=mechanism)
                for user, mechanism in deletions
            ],
            upsertions=[_salted(each) for each in upserts],
        )
        response = self._request(
            self._controller,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            constant(request),
            deadline_ms=self._deadline_ms(timeout),
        )
        results: Results[str, None] = Results()
        for result in response.results:
            results.put(result.user, error_of(result))
        return results


def _entity(result: Any) -> QuotaEntity:
    return tuple(sorted((each.entity_type, each.entity_name) for each in result.entity))


def _salted(new: NewScramCredential) -> AlterUserScramCredentialsRequest.ScramCredentialUpsertion:
    salt = os.urandom(32) if new.salt is None else new.salt
    password = new.password.encode() if isinstance(new.password, str) else new.password
    return AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
        name=new.user,
        mechanism=new.mechanism,
        iterations=new.iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(new.mechanism.hash_name, password, salt, new.iterations),
    )
