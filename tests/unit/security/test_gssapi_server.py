"""The server's side of GSSAPI without a KDC: the offer of layers, the client's choice, failures."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from kafkapy.security.gssapi_library import AcceptorContext, GssError, InitiatorContext, _Buffer
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


class FailingLibrary:
    """A GSSAPI library whose steps fail, and leave a token of 3 bytes that the caller has to release."""

    def __init__(self) -> None:
        self.token = ctypes.create_string_buffer(b"err")
        self.released: list[int] = []

    def _fail(self, minor: Any, *arguments: Any) -> int:
        (answer,) = [each for each in arguments if isinstance(getattr(each, "_obj", None), _Buffer)][-1:]
        answer._obj.length, answer._obj.value = 3, ctypes.addressof(self.token)
        return 0xD0000

    gss_accept_sec_context = gss_init_sec_context = _fail

    def gss_import_name(self, minor: Any, *arguments: Any) -> int:
        return 0

    def gss_display_status(self, minor: Any, *arguments: Any) -> int:
        return 1

    def gss_release_buffer(self, minor: Any, buffer: Any) -> int:
        self.released.append(buffer._obj.length)
        return 0


def test_the_token_of_a_failed_step_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each failed authentication would leak it otherwise."""
    library = FailingLibrary()
    monkeypatch.setattr("kafkapy.security.gssapi_library._library", lambda: library)
    credential: Any = SimpleNamespace(handle=None)
    contexts: list[Any] = [AcceptorContext(credential), InitiatorContext(credential, "kafka", "localhost")]
    for context in contexts:
        library.released.clear()
        with pytest.raises(GssError):
            context.step(b"token")
        assert library.released == [3]
