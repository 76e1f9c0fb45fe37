"""Creation, renewal and expiry of delegation tokens (KIP-48, KIP-373), as in Kafka's DelegationTokenControlManager."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from kafkapy.config.broker_config import BrokerConfig
from kafkapy.controller.result import ControllerResult
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.cluster_image import DelegationToken
from kafkapy.metadata.features import supports_delegation_tokens
from kafkapy.metadata.image import MetadataImage
from kafkapy.metadata.image_writer import MessageAndVersion
from kafkapy.named_tuple import NamedTuple
from kafkapy.protocol.messages.metadata_records import DelegationTokenRecord, RemoveDelegationTokenRecord
from kafkapy.security.delegation_token import token_hmac
from kafkapy.security.principal import USER_TYPE, Principal
from kafkapy.types import random_uuid, uuid_to_string


class TokenSettings(NamedTuple):
    """The configuration of delegation tokens. Times are milliseconds.

    If `secret_key` is None, delegation tokens are disabled.
    """

    secret_key: str | None
    max_lifetime_ms: int
    expiry_time_ms: int

    @classmethod
    def from_config(cls, config: BrokerConfig) -> TokenSettings:
        secret = config.delegation_token_secret_key
        return cls(
            None if secret is None else secret.value,
            config.delegation_token_max_lifetime_ms,
            config.delegation_token_expiry_time_ms,
        )

    def __repr__(self) -> str:
        return f"TokenSettings({self.max_lifetime_ms}, {self.expiry_time_ms})"


class NewToken(NamedTuple):
    """A delegation token to create. `requester` is the principal that has sent the request.

    `renewers` may renew the token in addition to `owner`.
    If `max_lifetime_ms` is not positive, the token may be valid as long as the configuration permits.
    """

    owner: Principal
    requester: Principal
    renewers: Sequence[Principal] = ()
    max_lifetime_ms: int = -1


def create_token(
    image: MetadataImage, wanted: NewToken, settings: TokenSettings, wall_ms: int
) -> ControllerResult[DelegationToken]:
    """Creates a token, and removes all expired tokens. The response is the new token.

    `wall_ms` is the present time in ms since 1970.

    Raises ApiError if tokens are disabled, or if a renewer is not a principal of type User.
    """
    _check_enabled(image, settings)
    lifetime_ms = settings.max_lifetime_ms
    if wanted.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, wanted.max_lifetime_ms)
    if any(renewer.type != USER_TYPE for renewer in wanted.renewers):
        raise ApiError(Error.INVALID_PRINCIPAL_TYPE)
    token = DelegationToken(
        owner=str(wanted.owner),
        requester=str(wanted.requester),
        renewers=tuple(map(str, wanted.renewers)),
        issue_timestamp=wall_ms,
        max_timestamp=wall_ms + lifetime_ms,
        expiration_timestamp=wall_ms + min(lifetime_ms, settings.expiry_time_ms),
        token_id=uuid_to_string(random_uuid()),
    )
    # A cluster of one node has no periodic tasks, so its expired tokens are removed here.
    return ControllerResult([*remove_expired_tokens(image, wall_ms).records, _record(token)], token)


def renew_token(
    image: MetadataImage, requester: Principal, hmac_bytes: bytes, period_ms: int, settings: TokenSettings, wall_ms: int
) -> ControllerResult[int]:
    """Sets the expiry of the token with the HMAC `hmac_bytes` to `period_ms` from now; `wall_ms` is the present time.

    The period is delegation.token.expiry.time.ms instead if `period_ms` is not positive or is greater than this value.
    The expiry is never after the end of the token's maximum lifetime. The response is the new expiry in ms since 1970.
    Raises ApiError if `requester` may not change the token, or if the token does not exist or has expired.
    """
    _check_enabled(image, settings)
    token = find_token(image, hmac_bytes, settings)
    _check_alive(token, wall_ms)
    _check_owner(token, requester)
    longest_ms = settings.expiry_time_ms
    return _with_expiry(token, wall_ms + (min(period_ms, longest_ms) if period_ms > 0 else longest_ms))


def expire_token(
    image: MetadataImage, requester: Principal, hmac_bytes: bytes, period_ms: int, settings: TokenSettings, wall_ms: int
) -> ControllerResult[int]:
    """Removes the token with the HMAC `hmac_bytes`, or sets its expiry.

    It is removed if `period_ms` is negative; otherwise it expires `period_ms` from now. `wall_ms` is the present time.
    The response is the expiry in ms since 1970. Raises ApiError if `requester` may not change the token, if the token
    does not exist, or if the token has expired and `period_ms` is not negative.
    """
    _check_enabled(image, settings)
    token = find_token(image, hmac_bytes, settings)
    _check_owner(token, requester)
    if period_ms < 0:
        return ControllerResult([_removal(token)], wall_ms)
    _check_alive(token, wall_ms)
    return _with_expiry(token, wall_ms + period_ms)


def remove_expired_tokens(image: MetadataImage, wall_ms: int) -> ControllerResult[bool]:
    """Removes all tokens that have expired at `wall_ms`. The response is False: no further operation is necessary."""
    expired = [token for token in image.delegation_tokens.values() if token.expiration_timestamp < wall_ms]
    return ControllerResult([_removal(token) for token in expired], False)


def find_token(image: MetadataImage, hmac_bytes: bytes, settings: TokenSettings) -> DelegationToken:
    """Returns the token with this HMAC. Raises ApiError(DELEGATION_TOKEN_NOT_FOUND) if there is none."""
    assert settings.secret_key is not None, "delegation tokens are disabled"
    for token in image.delegation_tokens.values():
        if hmac.compare_digest(token_hmac(settings.secret_key, token.token_id), hmac_bytes):
            return token
    raise ApiError(Error.DELEGATION_TOKEN_NOT_FOUND)


def may_change(token: DelegationToken, principal: Principal) -> bool:
    """Returns whether the principal is the token's owner or one of its renewers."""
    return str(principal) in (token.owner, *token.renewers)


def _check_enabled(image: MetadataImage, settings: TokenSettings) -> None:
    if settings.secret_key is None:
        raise ApiError(Error.DELEGATION_TOKEN_AUTH_DISABLED)
    if not supports_delegation_tokens(image.metadata_version):
        raise ApiError(Error.UNSUPPORTED_VERSION)


def _check_alive(token: DelegationToken, wall_ms: int) -> None:
    if token.max_timestamp < wall_ms or token.expiration_timestamp < wall_ms:
        raise ApiError(Error.DELEGATION_TOKEN_EXPIRED)


def _check_owner(token: DelegationToken, requester: Principal) -> None:
    if not may_change(token, requester):
        raise ApiError(Error.DELEGATION_TOKEN_OWNER_MISMATCH)


def _with_expiry(token: DelegationToken, expiry_ms: int) -> ControllerResult[int]:
    changed = token._replace(expiration_timestamp=min(token.max_timestamp, expiry_ms))
    return ControllerResult([_record(changed)], changed.expiration_timestamp)


def _record(token: DelegationToken) -> MessageAndVersion:
    return DelegationTokenRecord(**{**token._asdict(), "renewers": list(token.renewers)}), 0


def _removal(token: DelegationToken) -> MessageAndVersion:
    return RemoveDelegationTokenRecord(token_id=token.token_id), 0
