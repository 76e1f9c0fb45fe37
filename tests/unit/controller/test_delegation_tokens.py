"""Decisions about delegation tokens: lives, owners, and the removal of expired tokens."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from kafkapy.controller.delegation_tokens import (
    NewToken,
    TokenSettings,
    create_token,
    expire_token,
    remove_expired_tokens,
    renew_token,
)
from kafkapy.errors import ApiError, Error
from kafkapy.protocol.messages.metadata_records import FeatureLevelRecord
from kafkapy.security.delegation_token import token_hmac, token_password
from kafkapy.security.principal import Principal, parse_principal
from tests.harness.metadata import bootstrapped, commit, replay

ANN, BOB, EVE = (parse_principal(f"User:{name}") for name in ("ann", "bob", "eve"))
SETTINGS = TokenSettings("secret", max_lifetime_ms=1000, expiry_time_ms=400)
NOW_MS = 10_000


def with_token(image=None, wall_ms=NOW_MS, **fields):
    """Returns an image with a new token of ann, the token and its HMAC."""
    before = image or bootstrapped()
    result = create_token(before, NewToken(ANN, ANN, (BOB,), **fields), SETTINGS, wall_ms)
    token = result.response
    return commit(before, result), token, token_hmac("secret", token.token_id)


def error_of(call):
    with pytest.raises(ApiError) as raised:
        call()
    return raised.value.error


def test_a_token_is_in_the_metadata_without_its_secret():
    image, token, _ = with_token()
    assert image.delegation_tokens == {token.token_id: token}
    assert (token.owner, token.requester, token.renewers) == ("User:ann", "User:ann", ("User:bob",))
    assert (token.issue_timestamp, token.expiration_timestamp, token.max_timestamp) == (10_000, 10_400, 11_000)
    assert b"secret" not in repr(image).encode() and "secret" not in repr(SETTINGS)


@pytest.mark.parametrize(("wanted_ms", "expiry_ms", "max_ms"), [(0, 400, 1000), (5000, 400, 1000), (100, 100, 100)])
def test_lives_are_limited(wanted_ms, expiry_ms, max_ms):
    _, token, _ = with_token(max_lifetime_ms=wanted_ms)
    assert (token.expiration_timestamp - NOW_MS, token.max_timestamp - NOW_MS) == (expiry_ms, max_ms)


@pytest.mark.parametrize(("period_ms", "expiry_ms"), [(-1, 400), (0, 400), (300, 300), (900, 400)])
def test_renewals_are_limited_by_the_configuration(period_ms, expiry_ms):
    image, token, secret = with_token()
    result = renew_token(image, BOB, secret, period_ms, SETTINGS, NOW_MS)
    assert result.response == NOW_MS + expiry_ms
    assert commit(image, result).delegation_tokens[token.token_id].expiration_timestamp == result.response


def test_a_token_never_outlives_its_longest_life():
    image, token, secret = with_token()
    image = commit(image, expire_token(image, ANN, secret, 900, SETTINGS, NOW_MS))
    assert renew_token(image, ANN, secret, -1, SETTINGS, NOW_MS + 800).response == token.max_timestamp
    assert expire_token(image, ANN, secret, 5000, SETTINGS, NOW_MS).response == token.max_timestamp


def test_a_negative_period_removes_a_token_also_an_expired_one():
    image, _, secret = with_token()
    late_ms = NOW_MS + 500
    assert error_of(lambda: renew_token(image, ANN, secret, -1, SETTINGS, late_ms)) is Error.DELEGATION_TOKEN_EXPIRED
    assert error_of(lambda: expire_token(image, ANN, secret, 5, SETTINGS, late_ms)) is Error.DELEGATION_TOKEN_EXPIRED
    assert commit(image, expire_token(image, ANN, secret, -1, SETTINGS, late_ms)).delegation_tokens == {}


@pytest.mark.parametrize("change", [renew_token, expire_token])
def test_only_owners_and_renewers_change_a_token(change):
    image, _, secret = with_token()

    def error(requester, hmac_bytes, settings=SETTINGS):
        return error_of(lambda: change(image, requester, hmac_bytes, 1, settings, NOW_MS))

    assert error(EVE, secret) is Error.DELEGATION_TOKEN_OWNER_MISMATCH
    assert error(ANN, b"x") is Error.DELEGATION_TOKEN_NOT_FOUND
    assert error(ANN, secret, SETTINGS._replace(secret_key=None)) is Error.DELEGATION_TOKEN_AUTH_DISABLED


def test_creations_that_are_refused():
    image = bootstrapped()
    wanted = NewToken(ANN, ANN, (Principal("Group", "x"),))
    assert error_of(lambda: create_token(image, wanted, SETTINGS, NOW_MS)) is Error.INVALID_PRINCIPAL_TYPE
    old = replay(bootstrapped(), FeatureLevelRecord(name="metadata.version", feature_level=7))
    assert error_of(lambda: create_token(old, NewToken(ANN, ANN), SETTINGS, NOW_MS)) is Error.UNSUPPORTED_VERSION


def test_expired_tokens_are_removed():
    image, first, _ = with_token()
    later_ms = first.expiration_timestamp + 1
    assert remove_expired_tokens(image, later_ms - 1).records == []
    assert commit(image, remove_expired_tokens(image, later_ms)).delegation_tokens == {}
    image, second, _ = with_token(image, later_ms)
    assert set(image.delegation_tokens) == {second.token_id}


def test_the_password_of_a_token_is_its_hmac():
    expected = hmac.new(b"secret", b"id", hashlib.sha512).digest()
    assert token_hmac("secret", "id") == expected
    assert token_password("secret", "id") == base64.b64encode(expected).decode()
