"""SaslHandshake, versions 0 and 1, and SaslAuthenticate, versions 0 to 2 (KIP-43, KIP-152, KIP-368).

While a client authenticates, `server/authentication` serves these requests. The handlers in this module get them only
from clients that are authenticated already, or that need not authenticate, and respond with ILLEGAL_SASL_STATE.
"""

from __future__ import annotations

from kafkapy.errors import Error
from kafkapy.protocol.api import ApiKey
from kafkapy.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kafkapy.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kafkapy.server.api_registry import error_without_message, serves
from kafkapy.server.request_context import RequestContext

TOO_LATE = "SaslAuthenticate request received after successful authentication"


@serves(ApiKey.SASL_HANDSHAKE, 0, 1, on_error=error_without_message(SaslHandshakeResponse))
def handle_sasl_handshake(context: RequestContext, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=Error.ILLEGAL_SASL_STATE)


def sasl_authenticate_error(
    request: SaslAuthenticateRequest, version: int, error: Error, message: str | None
) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=error, error_message=message)


@serves(ApiKey.SASL_AUTHENTICATE, 0, 2, on_error=sasl_authenticate_error)
def handle_sasl_authenticate(context: RequestContext, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return sasl_authenticate_error(request, context.api_version, Error.ILLEGAL_SASL_STATE, TOO_LATE)
