"""PLAIN (RFC 4616): the client sends its name and its password."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping

from kafkapy.security.principal import USER_TYPE, Principal
from kafkapy.security.sasl.server_mechanism import AuthenticationFailed, ServerMechanism

USER_OPTION_PREFIX = "user_"

# Returns whether the password is the user's. May be called by any thread.
CheckPassword = Callable[[str, str], bool]


class UserTable:
    """The users of a JAAS entry of PlainLoginModule: its options `user_<name>=<password>`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._passwords = {
            key.removeprefix(USER_OPTION_PREFIX): value.encode("utf-8", "surrogatepass")
            for key, value in options.items()
            if key.startswith(USER_OPTION_PREFIX)
        }

    def check_password(self, name: str, password: str) -> bool:
        """Returns whether the password is the user's.

        The check takes the same time for an unknown user as for a wrong password, so that an attacker cannot find out
        which users exist.
        """
        given = password.encode("utf-8", "surrogatepass")
        expected = self._passwords.get(name)
        matches = hmac.compare_digest(given, given if expected is None else expected)
        return matches and expected is not None


class PlainServer(ServerMechanism):
    """The server's side of one PLAIN exchange, which has one step."""

    def __init__(self, check_password: CheckPassword) -> None:
        super().__init__()
        self._check_password = check_password

    def step(self, token: bytes) -> bytes:
        parts = token.decode("utf-8", "replace").split("\0", 4)
        if len(parts) != 3:
            raise _failed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
        authorization_id, name, password = parts
        if not name:
            raise _failed("Authentication failed: username not specified")
        if not password:
            raise _failed("Authentication failed: password not specified")
        try:
            is_right = self._check_password(name, password)
        except Exception as error:  # of a class that the administrator has written
            raise _failed("Authentication failed: credentials for user could not be verified") from error
        if not is_right:
            raise _failed("Authentication failed: Invalid username or password")
        if authorization_id not in ("", name):
            raise _failed("Authentication failed: Client requested an authorization id that is different from username")
        self._complete(Principal(USER_TYPE, name))
        return b""


def _failed(text: str) -> AuthenticationFailed:
    return AuthenticationFailed(text, client_text=text)
