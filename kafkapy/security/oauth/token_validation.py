"""The claims that a broker requires of an OAuth token (KIP-768), and tokens without a signature (KIP-255)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from kafkapy.security.oauth.json_web_token import InvalidToken, JsonWebToken, parse_token


class ValidToken(NamedTuple):
    """The contents of an accepted token."""

    principal_name: str
    expires_ms: int
    scopes: frozenset[str]


class ClaimRules(NamedTuple):
    """The rules for the claims of a token.

    A token must have one of the `audiences`; if `audiences` is empty, a token with an audience is refused. It must have
    the `issuer`, unless `issuer` is None. `scope_claim` and `subject_claim` are the names of the claims with the scopes
    and with the client's name. Times may differ by `clock_skew_s` seconds from this machine's clock.
    """

    audiences: Collection[str] = ()
    issuer: str | None = None
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    clock_skew_s: int = 30


class SignedTokenValidator:
    """Accepts tokens with a valid signature and valid claims. Any thread may use the object; `verify` may block."""

    def __init__(self, verify: Callable[[JsonWebToken], None], rules: ClaimRules, wall_ms: Callable[[], int]) -> None:
        """Makes a validator that checks the claims by `rules`. `verify` raises InvalidToken if the signature is wrong;
        `wall_ms` returns the present time in milliseconds since 1970.
        """
        self._verify = verify
        self._rules = rules
        self._wall_ms = wall_ms

    def validate(self, text: str) -> ValidToken:
        """Returns the contents of the token. Raises InvalidToken.

        The claims are checked first, because that costs less than the verification of the signature.
        """
        token = parse_token(text)
        accepted = _check_claims(token.claims, self._rules, self._wall_ms())
        self._verify(token)
        return accepted


def _check_claims(claims: Mapping[str, Any], rules: ClaimRules, now_ms: int) -> ValidToken:
    skew_ms = rules.clock_skew_s * 1000
    expires_ms = _time_ms(claims, "exp")
    if now_ms - skew_ms >= expires_ms:
        raise InvalidToken("the token has expired")
    _time_ms(claims, "iat")
    if "nbf" in claims and now_ms + skew_ms < _time_ms(claims, "nbf"):
        raise InvalidToken("the token is not valid yet")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise InvalidToken("the token is not from the expected issuer")
    audiences = _strings(claims, "aud")
    # A token for other audiences must not be accepted by a broker that expects none.
    if (rules.audiences or audiences) and not audiences & set(rules.audiences):
        raise InvalidToken("the token is not for an expected audience")
    return ValidToken(_subject(claims, rules.subject_claim), expires_ms, _strings(claims, rules.scope_claim))


class UnsecuredTokenValidator:
    """Accepts tokens without a signature (algorithm none), which anybody can make: for tests only.

    The JAAS entry has these options: unsecuredValidatorPrincipalClaimName, unsecuredValidatorScopeClaimName,
    unsecuredValidatorRequiredScope (scopes separated by spaces) and unsecuredValidatorAllowableClockSkewMs.
    """

    def __init__(self, options: Mapping[str, str], wall_ms: Callable[[], int]) -> None:
        prefix = "unsecuredValidator"
        self._subject_claim = options.get(f"{prefix}PrincipalClaimName") or "sub"
        self._scope_claim = options.get(f"{prefix}ScopeClaimName") or "scope"
        self._required = frozenset(options.get(f"{prefix}RequiredScope", "").split())
        skew = options.get(f"{prefix}AllowableClockSkewMs") or "0"
        self._skew_ms = int(skew) if skew.isdecimal() else 0
        self._wall_ms = wall_ms

    def validate(self, text: str) -> ValidToken:
        """Returns the contents of the token. Raises InvalidToken."""
        token = parse_token(text)
        if token.header["alg"] != "none" or token.signature:
            raise InvalidToken("the token is signed, and this listener accepts only tokens without a signature")
        claims, now_ms = token.claims, self._wall_ms()
        expires_ms = _time_ms(claims, "exp")
        if now_ms - self._skew_ms >= expires_ms:
            raise InvalidToken("the token has expired")
        if "iat" in claims:
            issued_ms = _time_ms(claims, "iat")
            if issued_ms > now_ms + self._skew_ms or issued_ms >= expires_ms:
                raise InvalidToken("the token was issued in the future")
        scopes = _strings(claims, self._scope_claim)
        words = frozenset(word for scope in scopes for word in scope.split())
        if not self._required <= words:
            required = " ".join(sorted(self._required))
            raise InvalidToken("the token lacks a required scope", missing_scope=required)
        return ValidToken(_subject(claims, self._subject_claim), expires_ms, words)


def _time_ms(claims: Mapping[str, Any], name: str) -> int:
    """Returns the time in the claim `name`, converted from seconds to milliseconds. Raises InvalidToken if the claim is
    missing or is not a time."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**53:
        raise InvalidToken(f"the token's claim {name} is missing or is not a time")
    return int(value * 1000)


def _subject(claims: Mapping[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidToken(f"the token's claim {name} is missing or is not a name")
    return value.strip()


def _strings(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """Returns the values of a claim that is a string or a list of strings; the empty set if the claim is missing.

    Raises InvalidToken if the claim is anything else.
    """
    value = claims.get(name)
    if value is None:
        return frozenset()
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) for each in values):
        raise InvalidToken(f"the token's claim {name} is neither a string nor a list of strings")
    return frozenset(each.strip() for each in values)
