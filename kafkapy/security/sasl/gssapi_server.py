"""GSSAPI (RFC 4752): the client proves its identity by a Kerberos ticket for the broker's principal."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.security.gssapi_library import NO_LAYER, AcceptorContext, GssError
from kafkapy.security.kerberos_names import NoShortName, ShortNames
from kafkapy.security.principal import USER_TYPE, Principal
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed, ServerMechanism, TemporaryFailure

# The offer of no security layer, and hence of a maximum message size of 0.
_OFFER = bytes((NO_LAYER, 0, 0, 0))


class GssapiServer(ServerMechanism):
    """The server's side of one GSSAPI exchange: the tokens that establish the security context, then the server's offer
    of security layers (only "none"), then the client's choice.

    Its steps may block. As in Kafka, the client's authorization id is ignored.
    """

    def __init__(self, accept: Callable[[], AcceptorContext], names: ShortNames) -> None:
        super().__init__()
        self._context = accept()
        self._names = names
        self._has_offered = False

    def step(self, token: bytes) -> bytes | None:
        try:
            if self._has_offered:
                self._choose(self._context.unwrap(token))
                return None
            if not self._context.is_established:
                answer = self._context.step(token)
                if answer or not self._context.is_established:
                    return answer
            self._has_offered = True
            return self._context.wrap(_OFFER)
        except GssError as error:
            if error.is_retriable:
                raise TemporaryFailure(str(error)) from error
            raise AuthenticationFailed(str(error)) from error

    def _choose(self, choice: bytes) -> None:
        if len(choice) < len(_OFFER) or choice[0] != NO_LAYER:
            raise AuthenticationFailed("the client chose a layer that the server does not offer")
        try:
            name = self._names.short_name(self._context.client_name)
        except NoShortName as error:
            raise AuthenticationFailed(str(error)) from error
        self._complete(Principal(USER_TYPE, name))
