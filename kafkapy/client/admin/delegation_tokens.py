"""Operations on delegation tokens (KIP-48, KIP-373)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkapy.client.admin.lookups import AdminLookups
from kafkapy.client.admin.requests import top_level_error
from kafkapy.errors import ApiError, Error
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkapy.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkapy.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from kafkapy.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from kafkapy.security.principal import Principal, parse_principal


class DelegationToken(NamedTuple):
    """A delegation token. The principals are texts such as `User:alice`; the times are milliseconds since 1970.

    `hmac` is the token's secret: in base64 it is the password of a login with the name `token_id`. `repr` omits it.
    """

    token_id: str
    hmac: bytes
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int

    def __repr__(self) -> str:
        return f"DelegationToken(token_id={self.token_id!r}, owner={self.owner!r}, renewers={self.renewers!r})"


class DelegationTokenOperations(AdminLookups):
    """Operations on delegation tokens, for clients that have authenticated by something other than a token."""

    def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: Sequence[str] = (),
        max_lifetime_ms: int = -1,
        timeout: float | None = None,
    ) -> DelegationToken:
        """Creates a token of the client itself, or of another `owner`, which needs a broker of Kafka 3.3 or later.

        The renewers may renew the token, in addition to its owner. With a `max_lifetime_ms` below 1 the broker uses its
        `delegation.token.max.lifetime.ms`. Blocks. Raises ValueError for a principal that is not `TYPE:NAME`.
        """
        named = None if owner is None else parse_principal(owner)
        permitted = list(map(parse_principal, renewers))

        def build(version: int) -> CreateDelegationTokenRequest:
            if named is not None and version < CreateDelegationTokenRequest.FIRST_VERSION_WITH_OWNER_PRINCIPAL_NAME:
                raise ApiError(Error.UNSUPPORTED_VERSION, "The broker cannot create a token for another owner.")
            return CreateDelegationTokenRequest(
                owner_principal_type=named.type if named else "",
                owner_principal_name=named.name if named else "",
                renewers=[
                    CreateDelegationTokenRequest.CreatableRenewers(principal_type=each.type, principal_name=each.name)
                    for each in permitted
                ],
                max_lifetime_ms=max_lifetime_ms,
            )

        created: CreateDelegationTokenResponse = self._request(
            self._any_broker,
            ApiKey.CREATE_DELEGATION_TOKEN,
            build,
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )
        return DelegationToken(
            created.token_id,
            bytes(created.hmac),
            _text(created.principal_type, created.principal_name),
            _requester(created),
            tuple(map(str, permitted)),
            created.issue_timestamp_ms,
            created.expiry_timestamp_ms,
            created.max_timestamp_ms,
        )

    def renew_delegation_token(self, hmac: bytes, *, renew_period_ms: int = -1, timeout: float | None = None) -> int:
        """Makes a token expire `renew_period_ms` from now, or at the end of its maximum lifetime if that is sooner.
        Blocks.

        With a negative period the broker uses its `delegation.token.expiry.time.ms`. Returns the new time of expiry in
        milliseconds since 1970.
        """
        response = self._request(
            self._any_broker,
            ApiKey.RENEW_DELEGATION_TOKEN,
            lambda version: RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=renew_period_ms),
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )
        return int(response.expiry_timestamp_ms)

    def expire_delegation_token(self, hmac: bytes, *, expiry_period_ms: int = -1, timeout: float | None = None) -> int:
        """Makes a token expire `expiry_period_ms` from now; a negative period deletes the token at once. Blocks.

        Returns the new time of expiry in milliseconds since 1970.
        """
        response = self._request(
            self._any_broker,
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            lambda version: ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=expiry_period_ms),
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )
        return int(response.expiry_timestamp_ms)

    def describe_delegation_tokens(
        self, owners: Sequence[str] | None = None, *, timeout: float | None = None
    ) -> list[DelegationToken]:
        """Returns the tokens that these principals own or may renew (None: all), as far as the client may see them.

        Blocks. Raises ValueError for a principal that is not `TYPE:NAME`.
        """
        wanted = None if owners is None else list(map(parse_principal, owners))
        response: DescribeDelegationTokenResponse = self._request(
            self._any_broker,
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
            lambda version: DescribeDelegationTokenRequest(owners=None if wanted is None else _owners(wanted)),
            top_level_error,
            deadline_ms=self._deadline_ms(timeout),
        )
        return [
            DelegationToken(
                each.token_id,
                bytes(each.hmac),
                _text(each.principal_type, each.principal_name),
                _requester(each),
                tuple(_text(renewer.principal_type, renewer.principal_name) for renewer in each.renewers),
                each.issue_timestamp,
                each.expiry_timestamp,
                each.max_timestamp,
            )
            for each in response.tokens
        ]


def _owners(principals: Sequence[Principal]) -> list[DescribeDelegationTokenRequest.DescribeDelegationTokenOwner]:
    return [
        DescribeDelegationTokenRequest.DescribeDelegationTokenOwner(principal_type=each.type, principal_name=each.name)
        for each in principals
    ]


def _text(principal_type: str, name: str) -> str:
    return str(Principal(principal_type, name))


def _requester(answer: Any) -> str:
    """Returns the principal that has requested a token, from the token's struct in a response.

    Before version 3 a response names only the owner, because only owners could request tokens.
    """
    if answer.token_requester_principal_name:
        return _text(answer.token_requester_principal_type, answer.token_requester_principal_name)
    return _text(answer.principal_type, answer.principal_name)
