"""DIGEST-MD5 (RFC 2831), by which ZooKeeper's clients prove that they know a password without sending it.

The challenge has the form that Java's servers send and that ZooKeeper's clients can read. It has no directive qop,
because the exchange protects no data that follow. MD5 is broken, and a recorded exchange allows a search for the
password, so that connections should be encrypted.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections.abc import Callable, Mapping
from enum import Enum, auto
from hashlib import md5

from kafkapy.security.principal import USER_TYPE, Principal
from kafkapy.security.sasl.plain_server import USER_OPTION_PREFIX
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed, ServerMechanism

DIGEST_MD5 = "DIGEST-MD5"
# The limit of RFC 2831 for a response.
_LONGEST_RESPONSE = 4096
_NONCE_BYTES = 30
_FIRST_NONCE_COUNT = b"00000001"
# A directive, with the comma or the end after it. A value is a quoted string or a token.
_SPACE = rb"[ \t\r\n]*"
_DIRECTIVE = re.compile(
    rb'[ \t\r\n,]*([\w-]+)%b=%b(?:"((?:[^"\\]|\\.)*)"|([^ \t\r\n",]+))%b(?:,|$)' % (_SPACE, _SPACE, _SPACE), re.DOTALL
)
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)

# Returns the password of a user; None for an unknown user.
FindPassword = Callable[[str], str | None]


class PasswordTable:
    """The users of JAAS options `user_<name>=<password>`. Its representation does not show them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._passwords = {
            key.removeprefix(USER_OPTION_PREFIX): value
            for key, value in options.items()
            if key.startswith(USER_OPTION_PREFIX)
        }

    def __len__(self) -> int:
        return len(self._passwords)

    def find(self, name: str) -> str | None:
        """Returns the password of a user; None for an unknown user."""
        return self._passwords.get(name)


class _State(Enum):
    INITIAL = auto()
    CHALLENGED = auto()
    ENDED = auto()


def new_nonce() -> str:
    return base64.b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()


class DigestMd5Server(ServerMechanism):
    """The server's side of one exchange, which has two steps. The client names the server as `service/realm`."""

    def __init__(
        self, service: str, realm: str, find_password: FindPassword, make_nonce: Callable[[], str] = new_nonce
    ) -> None:
        super().__init__()
        self._uri = f"{service}/{realm}".encode()
        self._realm = realm.encode()
        self._find_password = find_password
        self._nonce = make_nonce().encode()
        self._state = _State.INITIAL

    def step(self, token: bytes) -> bytes:
        """Returns the challenge for the first token, which is not inspected, and the proof of the server for the second
        one."""
        if self._state is _State.INITIAL:
            self._state = _State.CHALLENGED
            return b'realm="%s",nonce="%s",charset=utf-8,algorithm=md5-sess' % (self._realm, self._nonce)
        state, self._state = self._state, _State.ENDED
        if state is _State.ENDED:
            raise AuthenticationFailed("the exchange has ended, and the client sent another token")
        return self._verify(parse_directives(token))

    def _verify(self, directives: Mapping[str, bytes]) -> bytes:
        name = _required(directives, "username")
        client_nonce = _required(directives, "cnonce")
        given = _required(directives, "response")
        uri = _required(directives, "digest-uri")
        self._check(directives, uri)
        is_utf8 = directives.get("charset", b"").lower() == b"utf-8"
        user = name.decode("utf-8" if is_utf8 else "latin-1", "replace")
        password = self._find_password(user)
        # An unknown user takes as long as a wrong password.
        secret = _hashed_bytes("" if password is None else password)
        hashed_name = _hashed_bytes(user) if is_utf8 else name
        session = md5(b":".join((hashed_name, self._realm, secret))).digest() + b":%s:%s" % (self._nonce, client_nonce)
        authorization_id = directives.get("authzid")
        if authorization_id is not None:
            session += b":" + authorization_id
        expected = self._proof(session, b"AUTHENTICATE:" + uri, client_nonce)
        if not hmac.compare_digest(given.lower(), expected) or password is None:
            raise AuthenticationFailed("the user is unknown, or the password is wrong")
        self._complete(Principal(USER_TYPE, user))
        return b"rspauth=" + self._proof(session, b":" + uri, client_nonce)

    def _check(self, directives: Mapping[str, bytes], uri: bytes) -> None:
        """Raises AuthenticationFailed if a directive of the client's response (realm, nonce, nonce count or qop) has
        another value than the server expects.

        `uri` is the value of the response's directive digest-uri, which must name this server.
        """
        for key, expected in (("realm", self._realm), ("nonce", self._nonce), ("nc", _FIRST_NONCE_COUNT)):
            if directives.get(key) != expected:
                raise AuthenticationFailed(f"the directive {key} of the response is missing or wrong")
        if directives.get("qop", b"auth") != b"auth":
            raise AuthenticationFailed("the client demands a protection of the connection (qop) that was not offered")
        if uri.lower() != self._uri.lower():
            raise AuthenticationFailed("the directive digest-uri of the response names another server")

    def _proof(self, session: bytes, request: bytes, client_nonce: bytes) -> bytes:
        """Returns the hexadecimal digest that proves the knowledge of the password (RFC 2831, section 2.1.2.1).

        `session` is A1 of the RFC, and `request` is A2: `AUTHENTICATE:` and the URI for the client's proof, `:` and the
        URI for the server's proof.
        """
        parts = (_hex(session), self._nonce, _FIRST_NONCE_COUNT, client_nonce, b"auth", _hex(request))
        return _hex(b":".join(parts))


def parse_directives(token: bytes) -> dict[str, bytes]:
    """Returns the directives of a client's response by name. Raises AuthenticationFailed if the response is malformed
    or too long."""
    if len(token) > _LONGEST_RESPONSE:
        raise AuthenticationFailed(f"the response has {len(token)} bytes, more than {_LONGEST_RESPONSE}")
    found: dict[str, bytes] = {}
    pos, end = 0, len(token)
    while pos < end:
        match = _DIRECTIVE.match(token, pos)
        if match is None:
            raise AuthenticationFailed(f"the response is malformed at byte {pos}")
        key = match[1].decode().lower()
        if key in found:
            raise AuthenticationFailed(f"the response has the directive {key[:20]} twice")
        found[key] = match[3] if match[2] is None else _ESCAPED.sub(rb"\1", match[2])
        pos = match.end()
    return found


def _required(directives: Mapping[str, bytes], key: str) -> bytes:
    value = directives.get(key)
    if value is None:
        raise AuthenticationFailed(f"the response lacks the directive {key}")
    return value


def _hashed_bytes(text: str) -> bytes:
    """Encodes a name or password for the hash: in ISO 8859-1 if this encoding has all its characters, otherwise in
    UTF-8 (RFC 2831, 2.1.2.1).
    """
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _hex(data: bytes) -> bytes:
    return md5(data).hexdigest().encode()
