"""CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, DescribeDelegationToken (KIP-48, KIP-373).

Delegation tokens exist only if `delegation.token.secret.key` is set. A broker checks whether the client may ask for
tokens; the active controller creates and changes them. A client that has authenticated by a token may not ask for
tokens.

Version notes: version 3 names an owner who is not the requester. Apache Kafka 4 no longer serves version 0, which 3.9
serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkapy.controller.delegation_tokens import (
    NewToken,
    TokenSettings,
    create_token,
    expire_token,
    may_change,
    renew_token,
)
from kafkapy.errors import ApiError, Error
from kafkapy.metadata.cluster_image import DelegationToken
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from kafkapy.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from kafkapy.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from kafkapy.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from kafkapy.security.acl import Operation, ResourceType
from kafkapy.security.delegation_token import token_hmac
from kafkapy.security.principal import ANONYMOUS, USER_TYPE, Principal, parse_principal
from kafkapy.server.api_registry import serves
from kafkapy.server.authorization import is_allowed
from kafkapy.server.controller_answer import answer_when_committed
from kafkapy.server.request_context import RequestContext

# The expiry time in an error response of the broker, and of the controller, as in Apache Kafka.
_NO_EXPIRY_MS = -1
_NO_EXPIRY_OF_CONTROLLER_MS = 0

# -- CreateDelegationToken


def create_delegation_token_error(
    request: CreateDelegationTokenRequest, version: int, error: Error, message: str | None
) -> CreateDelegationTokenResponse:
    return CreateDelegationTokenResponse(
        error_code=error, issue_timestamp_ms=-1, expiry_timestamp_ms=-1, max_timestamp_ms=-1
    )


@serves(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3, on_error=create_delegation_token_error)
def handle_create_delegation_token(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse | None:
    requester = context.principal
    owner = requester
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]

    error = _creation_error(context, owner, renewers)
    if error is not Error.NONE:
        response = create_delegation_token_error(request, context.api_version, error, None)
        return _with_principals(response, context.api_version, owner, requester)

    def failed(error: Error, message: str | None) -> CreateDelegationTokenResponse:
        # As in Apache Kafka, an error response of the controller has the times 0; that of a broker has -1.
        return _with_principals(CreateDelegationTokenResponse(error_code=error), context.api_version, owner, requester)

    wanted = NewToken(owner, requester, renewers, request.max_lifetime_ms)
    settings, clock = TokenSettings.from_config(context.services.config), context.services.clock

    def created(token: DelegationToken) -> CreateDelegationTokenResponse:
        assert settings.secret_key is not None, "a token was created without a secret key"
        response = CreateDelegationTokenResponse(
            issue_timestamp_ms=token.issue_timestamp,
            expiry_timestamp_ms=token.expiration_timestamp,
            max_timestamp_ms=token.max_timestamp,
            token_id=token.token_id,
            hmac=token_hmac(settings.secret_key, token.token_id),
        )
        return _with_principals(response, context.api_version, owner, requester)

    answer_when_committed(
        context, lambda image: create_token(image, wanted, settings, clock.wall_ms()), created, failed
    )
    return None


def _creation_error(context: RequestContext, owner: Principal, renewers: Sequence[Principal]) -> Error:
    """Returns the error if the client may not create a token with this owner and these renewers, otherwise NONE."""
    requester = context.principal
    if not _may_ask(context):
        return Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    is_own = (owner.type, owner.name) == (requester.type, requester.name)
    if not is_own and not is_allowed(context, Operation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        return Error.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    if any(renewer.type != USER_TYPE for renewer in renewers):
        return Error.INVALID_PRINCIPAL_TYPE
    return Error.NONE


def _with_principals(
    response: CreateDelegationTokenResponse, version: int, owner: Principal, requester: Principal
) -> CreateDelegationTokenResponse:
    response.principal_type, response.principal_name = owner.type, owner.name
    if version >= CreateDelegationTokenResponse.FIRST_VERSION_WITH_TOKEN_REQUESTER_PRINCIPAL_NAME:
        response.token_requester_principal_type = requester.type
        response.token_requester_principal_name = requester.name
    return response


# -- RenewDelegationToken


def renew_delegation_token_error(
    request: RenewDelegationTokenRequest, version: int, error: Error, message: str | None
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=_NO_EXPIRY_MS)


@serves(ApiKey.RENEW_DELEGATION_TOKEN, 0, 2, on_error=renew_delegation_token_error)
def handle_renew_delegation_token(context: RequestContext, request: RenewDelegationTokenRequest) -> None:
    _change(
        context, bytes(request.hmac), request.renew_period_ms, renew_token,
        lambda expiry_ms: RenewDelegationTokenResponse(expiry_timestamp_ms=expiry_ms),
        lambda error, _: RenewDelegationTokenResponse(
            error_code=error, expiry_timestamp_ms=_NO_EXPIRY_OF_CONTROLLER_MS
        ),
    )  # fmt: skip


# -- ExpireDelegationToken


def expire_delegation_token_error(
    request: ExpireDelegationTokenRequest, version: int, error: Error, message: str | None
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=_NO_EXPIRY_MS)


@serves(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2, on_error=expire_delegation_token_error)
def handle_expire_delegation_token(context: RequestContext, request: ExpireDelegationTokenRequest) -> None:
    _change(
        context, bytes(request.hmac), request.expiry_time_period_ms, expire_token,
        lambda expiry_ms: ExpireDelegationTokenResponse(expiry_timestamp_ms=expiry_ms),
        lambda error, _: ExpireDelegationTokenResponse(
            error_code=error, expiry_timestamp_ms=_NO_EXPIRY_OF_CONTROLLER_MS
        ),
    )  # fmt: skip


def _change(
    context: RequestContext,
    hmac: bytes,
    period_ms: int,
    decide: Callable[..., Any],
    answer: Callable[[int], Any],
    failure: Callable[[Error, str | None], Any],
) -> None:
    """Renews or expires the token whose HMAC is `hmac`: the controller runs its function `decide`, which makes the
    change.

    `decide` is called with the metadata image, the client's principal, the HMAC, the period, the settings of tokens and
    the time (ms). `period_ms` is the period that the client requests. Once the change is committed, the response is
    `answer(expiry time in ms)`, or `failure(error, message)` if the change failed.
    """
    _check_may_ask(context)
    settings, clock = TokenSettings.from_config(context.services.config), context.services.clock
    answer_when_committed(
        context,
        lambda image: decide(image, context.principal, hmac, period_ms, settings, clock.wall_ms()),
        answer,
        failure,
    )


# -- DescribeDelegationToken


def describe_delegation_token_error(
    request: DescribeDelegationTokenRequest, version: int, error: Error, message: str | None
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=error)


@serves(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 3, on_error=describe_delegation_token_error)
def handle_describe_delegation_token(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    """Describes the tokens that the client may see and of which a named principal is the owner or a renewer.

    A null list of principals means all tokens, an empty list none.
    """
    _check_may_ask(context)
    secret_key = TokenSettings.from_config(context.services.config).secret_key
    if secret_key is None:
        raise ApiError(Error.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = [Principal(each.principal_type, each.principal_name) for each in request.owners]
    tokens = context.services.metadata.image.delegation_tokens.values()
    return DescribeDelegationTokenResponse(
        tokens=[
            _described(token, secret_key, context.api_version)
            for token in tokens
            if (owners is None or any(may_change(token, owner) for owner in owners)) and _is_visible(context, token)
        ]
    )


def _is_visible(context: RequestContext, token: DelegationToken) -> bool:
    return (
        may_change(token, context.principal)
        or is_allowed(context, Operation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.token_id)
        or is_allowed(context, Operation.DESCRIBE_TOKENS, ResourceType.USER, token.owner)
    )


def _described(
    token: DelegationToken, secret_key: str, version: int
) -> DescribeDelegationTokenResponse.DescribedDelegationToken:
    owner, requester = parse_principal(token.owner), parse_principal(token.requester)
    names_requester = version >= DescribeDelegationTokenResponse.FIRST_VERSION_WITH_TOKEN_REQUESTER_PRINCIPAL_NAME
    return DescribeDelegationTokenResponse.DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        token_requester_principal_type=requester.type if names_requester else "",
        token_requester_principal_name=requester.name if names_requester else "",
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=token_hmac(secret_key, token.token_id),
        renewers=[
            DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer(
                principal_type=renewer.type, principal_name=renewer.name
            )
            for renewer in map(parse_principal, token.renewers)
        ],
    )


def _check_may_ask(context: RequestContext) -> None:
    """Raises ApiError DELEGATION_TOKEN_REQUEST_NOT_ALLOWED if the client has not authenticated, or has authenticated by
    a delegation token. A request at a controller's listener, which a broker has checked, is always allowed.
    """
    if not _may_ask(context):
        raise ApiError(Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def _may_ask(context: RequestContext) -> bool:
    """Returns whether the client has authenticated, and not by a delegation token.

    Returns True for every request at a controller's listener, because the broker that sent it has checked this.
    """
    if context.session.is_controller:
        return True
    protocol, principal = context.listener.security_protocol, context.principal
    is_anonymous = protocol == "PLAINTEXT" or (protocol == "SSL" and principal == ANONYMOUS)
    return not is_anonymous and not principal.token_authenticated
