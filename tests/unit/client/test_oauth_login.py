"""The token of OAUTHBEARER: its sources, and the time of its renewal."""

from __future__ import annotations

import json
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafkapy.client import AuthenticationError, ConfigError
from kafkapy.client.configuration import security_values
from kafkapy.client.oauth_login import OauthLogin, Renewal, RetrievedToken, Token, oauth_login, parse_token
from kafkapy.security.jaas import JaasEntry

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def token(**claims: Any) -> str:
    content = urlsafe_b64encode(json.dumps({"iat": 1000, "exp": 4600, **claims}).encode()).decode().rstrip("=")
    return f"e30.{content}.c2ln"


def login(options: dict[str, str], **properties: str) -> OauthLogin:
    values = security_values({key.replace("_", "."): text for key, text in properties.items()})
    return oauth_login(values, JaasEntry(MODULE, "REQUIRED", options))


def login_by(function: Callable[[], RetrievedToken], options: dict[str, str]) -> OauthLogin:
    values = {**security_values({}), "sasl.login.callback.handler.class": function}
    return oauth_login(values, JaasEntry(MODULE, "REQUIRED", options))


def first_message(made: OauthLogin) -> str:
    made.close()
    return (made.mechanism("localhost").step(None) or b"").decode()


def make_token() -> str:
    """Returns a token, as a function of an application would."""
    return token(sub="from-python")


def test_a_token_without_signature_is_made_of_the_options() -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_level": "3",
        "unsecuredLoginListClaim_scope": "|read|write",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_traceId": "t1",
    }
    made = first_message(login(options))
    text, extension = made.removeprefix("n,,\x01auth=Bearer ").removesuffix("\x01\x01").split("\x01")
    header, payload, signature = text.split(".")
    claims = json.loads(urlsafe_b64decode(payload + "=="))
    assert json.loads(urlsafe_b64decode(header + "==")) == {"alg": "none"}
    assert (claims["sub"], claims["level"], claims["scope"], signature) == ("alice", 3, ["read", "write"], "")
    assert claims["exp"] - claims["iat"] == 60
    assert extension == "traceId=t1"


def test_a_token_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token file"
    path.write_text(token() + "\n")
    made = login({"extension_pool": "p"}, sasl_oauthbearer_token_endpoint_url=path.as_uri())
    assert first_message(made) == f"n,,\x01auth=Bearer {token()}\x01pool=p\x01\x01"


def test_a_function_of_the_application_makes_the_token() -> None:
    made = login({}, sasl_login_callback_handler_class=f"{__name__}:make_token")
    assert make_token() in first_message(made)


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, "unsecuredLoginStringClaim_sub"),
        ({"sasl_login_callback_handler_class": HANDLER}, "token.endpoint.url is missing"),
        ({"sasl_login_callback_handler_class": "nowhere:none"}, "not found"),
        ({"sasl_oauthbearer_token_endpoint_url": "ftp://h/"}, "not a URL"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://h/"}, r"client\.credentials\.client\.id"),
    ],
)
def test_a_configuration_without_a_source_is_refused(properties: dict[str, str], expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        login({}, **properties)


def test_a_file_that_is_missing_is_an_authentication_error(tmp_path: Path) -> None:
    with pytest.raises(AuthenticationError, match="cannot be read"):
        login({}, sasl_oauthbearer_token_endpoint_url=(tmp_path / "missing").as_uri())


@pytest.mark.parametrize("text", ["", "a", "a.b.c", "a.e30.c", "a.W10.c"])
def test_a_token_without_an_end_is_refused(text: str) -> None:
    with pytest.raises(AuthenticationError, match="exp") as caught:
        parse_token(text, 0)
    assert len(text) < 2 or text not in str(caught.value)


def test_a_function_may_return_the_end_of_the_token_and_extensions() -> None:
    end_s = time.time() + 3600
    made = login_by(
        lambda: RetrievedToken("opaque", end_s, {"tenant": "two", "trace": "id"}),
        {"extension_tenant": "one", "extension_zone": "a"},
    )
    assert first_message(made) == "n,,\x01auth=Bearer opaque\x01tenant=two\x01zone=a\x01trace=id\x01\x01"


@pytest.mark.parametrize(
    ("expires_s", "extensions", "reason"),
    [
        (1.0, {}, "has expired"),
        (4e9, {"auth": "x"}, "'auth' needs a name"),
        (4e9, {"a1": "x"}, "'a1' needs a name"),
        (4e9, {"a": ""}, "extension a needs a value"),
        (4e9, {"a": "\x01b=c"}, "extension a needs a value"),
    ],
)
def test_a_token_that_cannot_be_sent_is_refused(expires_s: float, extensions: dict[str, str], reason: str) -> None:
    with pytest.raises(AuthenticationError, match=reason):
        login_by(lambda: RetrievedToken("opaque", expires_s, extensions), {})


def test_the_time_of_the_renewal() -> None:
    rules = Renewal(0.8, 0.0, min_period_s=60, buffer_s=300)
    assert rules.at_s(1000, Token("t", 1000, 4600)) == 1000 + 0.8 * 3600
    assert rules.at_s(1000, Token("t", 1000, 2000)) == 2000 - 300  # the buffer
    assert rules.at_s(4000, Token("t", 0, 4400)) == 4000 + 60  # the shortest period
    assert rules.at_s(1000, Token("t", 1000, 1100)) == 1080  # shorter than both limits together
    assert rules.at_s(1000, Token("t", 100, 990)) == 1010  # expired already: after a pause, not at once


def test_the_token_is_renewed_before_it_expires() -> None:
    now_s = int(time.time())
    texts = [token(iat=now_s, exp=now_s + 1, sub="first"), token(iat=now_s, exp=now_s + 3600, sub="second")]
    first_was_seen = threading.Event()
    given: list[str] = []

    def retrieve() -> str:
        given.append(texts[len(given)])
        if len(given) == 2:
            first_was_seen.wait(20)
        return given[-1]

    made = OauthLogin(retrieve, Renewal(0.5, 0.0, 0, 0), {})
    assert texts[0] in (made.mechanism("localhost").step(None) or b"").decode()
    first_was_seen.set()
    while texts[1] not in (made.mechanism("localhost").step(None) or b"").decode():
        time.sleep(0.01)
    made.close()
