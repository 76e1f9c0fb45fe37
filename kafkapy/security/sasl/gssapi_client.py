"""The client side of GSSAPI (RFC 4752) with Kerberos tickets."""

from __future__ import annotations

from kafkapy.security.gssapi_library import NO_LAYER, GssError, InitiatorContext
from kafkapy.security.sasl.client_mechanism import ClientNotAuthenticated, ServerNotTrusted

_OFFER_BYTES = 4


class GssapiClient:
    """Proves the client's identity by a ticket for the broker's principal, and checks the broker's own proof.

    The first step may block while the KDC issues tickets.
    """

    name = "GSSAPI"

    def __init__(self, context: InitiatorContext) -> None:
        self._context = context
        self._has_chosen = False
        self.is_complete = False

    def step(self, challenge: bytes | None) -> bytes | None:
        """Returns the next token for the server, or None if there is none to send. `challenge` is the server's last
        token, None at the beginning.

        While the security context is incomplete, the result is the context's token. Afterwards it is the message that
        chooses no security layer, and finally None. Raises ClientNotAuthenticated if the client has no ticket for the
        broker, and ServerNotTrusted if the broker demands a layer.
        """
        if self._has_chosen:
            self.is_complete = True
            return None
        if not self._context.is_established:
            try:
                return self._context.step(challenge or b"")
            except GssError as error:
                raise ClientNotAuthenticated(str(error)) from error
        try:
            offer = self._context.unwrap(challenge or b"")
            if len(offer) != _OFFER_BYTES or not offer[0] & NO_LAYER:
                raise ServerNotTrusted("the broker requires a GSSAPI security layer, which is not supported")
            self._has_chosen = True
            # The maximum size of a message in a layer is 0; no authorization id, so the ticket's identity counts.
            return self._context.wrap(bytes((NO_LAYER, 0, 0, 0)))
        except GssError as error:
            raise ServerNotTrusted(str(error)) from error
