"""The server's side of GSSAPI without a KDC: the offer of layers, the client's choice, failures."""

from __future__ import annotations

from typing import Any

import pytest

from kafkapy.security.gssapi_library import GssError
from kafkapy.security.kerberos_names import ShortNames
from kafkapy.security.sasl.gssapi_server import GssapiServer
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed, TemporaryFailure


class Context:
    """A GSSAPI context that the token `ticket` establishes, and whose signature of data is a prefix."""

    def __init__(self, answer: bytes = b"", client_name: str = "alice@REALM.COM") -> None:
        self.is_established = False
        self.client_name = client_name
        self._answer = answer

    def step(self, token: bytes) -> bytes:
        if token != b"ticket":
            raise GssError("no ticket", is_retriable=token == b"replay")
        self.is_established = True
        return self._answer

    def wrap(self, data: bytes) -> bytes:
        return b"signed:" + data

    def unwrap(self, data: bytes) -> bytes:
        if not data.startswith(b"signed:"):
            raise GssError("bad signature")
        return data.removeprefix(b"signed:")


def server(**options: Any) -> GssapiServer:
    context: Any = Context(**options)
    return GssapiServer(lambda: context, ShortNames(["DEFAULT"], "REALM.COM"))


def test_an_exchange_without_an_answer_of_the_context() -> None:
    exchange = server()
    assert exchange.step(b"ticket") == b"signed:\1\0\0\0"
    assert exchange.step(b"signed:\1\0\0\0alice") is None
    assert exchange.is_complete
    assert str(exchange.principal) == "User:alice"
    assert exchange.expires_ms is None


def test_an_exchange_with_mutual_authentication() -> None:
    exchange = server(answer=b"mutual")
    assert exchange.step(b"ticket") == b"mutual"
    assert exchange.step(b"") == b"signed:\1\0\0\0"
    assert not exchange.is_complete
    exchange.step(b"signed:\1\0\0\0")
    assert exchange.is_complete


@pytest.mark.parametrize(
    "choice", [b"", b"\1\0\0\0", b"signed:", b"signed:\1\0\0", b"signed:\2\0\0\0", b"signed:\5\0\0\0"]
)
def test_another_layer_or_a_wrong_signature_is_refused(choice: bytes) -> None:
    exchange = server()
    exchange.step(b"ticket")
    with pytest.raises(AuthenticationFailed) as caught:
        exchange.step(choice)
    assert caught.value.client_text is None


def test_a_principal_without_a_short_name_is_refused() -> None:
    exchange = server(client_name="mallory@OTHER.COM")
    exchange.step(b"ticket")
    with pytest.raises(AuthenticationFailed, match="no rule of"):
        exchange.step(b"signed:\1\0\0\0")


def test_a_failure_that_a_client_may_try_again_is_temporary() -> None:
    with pytest.raises(TemporaryFailure):
        server().step(b"replay")
    with pytest.raises(AuthenticationFailed):
        server().step(b"nonsense")
