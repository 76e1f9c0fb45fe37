"""Encryption and authentication of a client's connections, by `security.protocol` and the keys of TLS and SASL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafkapy.client.errors import AuthenticationError
from kafkapy.client.security_values import SecurityValues, tls_context

if TYPE_CHECKING:
    from ssl import SSLContext

    from kafkapy._core.client.tls_frame_socket import TlsFrameSocket
    from kafkapy.client.sasl_login import SaslLogin
    from kafkapy.security.jaas import JaasEntry
    from kafkapy.security.sasl.client_mechanism import ClientMechanism


class ConnectionSecurity:
    """The TLS context and the SASL login for all connections of one client. Thread-safe.

    Secrets are stored only in these two objects, whose representations do not contain them.
    """

    __slots__ = ("_find_context", "_login")

    def __init__(self, find_context: Callable[[], SSLContext] | None, login: SaslLogin | None) -> None:
        """Stores the two objects. `find_context` returns the TLS context for the next connection.

        `find_context` is None without TLS, and `login` without SASL.
        """
        self._find_context = find_context
        self._login = login

    @property
    def has_tls(self) -> bool:
        return self._find_context is not None

    def tls_frames(self, fd: int, max_frame_bytes: int, host: str) -> TlsFrameSocket:
        """Returns an object that sends and receives frames over TLS through the socket `fd`, which is connected to
        `host`.

        A received frame has at most `max_frame_bytes`. Called only if `has_tls` is True.
        """
        from kafkapy._core.client.tls_frame_socket import TlsFrameSocket

        assert self._find_context is not None
        return TlsFrameSocket(fd, max_frame_bytes, self._find_context(), host)

    def mechanism(self, host: str) -> ClientMechanism | None:
        """Returns the client's part of the SASL mechanism for one authentication with a broker at `host`; None without
        SASL.
        """
        return None if self._login is None else self._login.mechanism(host)

    def replace_login(self, values: SecurityValues) -> None:
        """Uses the credentials in `values` for the next authentications. Raises ConfigError for invalid values."""
        from kafkapy.client.sasl_login import log_in

        former, self._login = self._login, log_in(values)
        if former is not None:
            former.close()

    def close(self) -> None:
        """Ends the thread that renews the credentials, if there is one."""
        if self._login is not None:
            self._login.close()


def tls_refusal(label: str, cause: Exception) -> AuthenticationError | None:
    """Returns the error for the application if each further TLS handshake would fail in the same way, otherwise None.

    `cause` is the exception that ended the connection. If it says only that the connection was lost, the result is
    None, because another attempt may succeed. `label` names the broker. Called for connections with TLS only.
    """
    from ssl import SSLCertVerificationError, SSLEOFError, SSLError

    if not isinstance(cause, SSLError) or isinstance(cause, SSLEOFError):
        return None
    if isinstance(cause, SSLCertVerificationError):
        reason = f"the certificate of the broker is not accepted: {cause.verify_message}"
    elif cause.reason == "WRONG_VERSION_NUMBER":
        reason = "the listener of the broker does not use TLS"
    else:
        reason = (cause.reason or str(cause)).lower().replace("_", " ")
    refusal = AuthenticationError(f"SSL handshake with {label} failed: {reason}")
    refusal.__cause__ = cause
    return refusal


def connection_security(
    values: SecurityValues,
    entry: JaasEntry | None = None,
    find_context: Callable[[], SSLContext] | None = None,
) -> ConnectionSecurity | None:
    """Returns the TLS and SASL objects that a client's configuration demands; None for PLAINTEXT.

    `entry` names the login module and its options; if it is None, `sasl.jaas.config` does. `find_context()` returns the
    TLS context for the next connection; it may be None if `values` has the keys of TLS. Reads files, and may wait for
    an OAuth provider. Raises ConfigError for invalid values.
    """
    protocol = values["security.protocol"].upper()
    if protocol == "PLAINTEXT":
        return None
    login = None
    if protocol in ("SSL", "SASL_SSL"):
        if find_context is None:
            context = tls_context(values)
            find_context = lambda: context  # noqa: E731
    else:
        find_context = None
    if protocol in ("SASL_PLAINTEXT", "SASL_SSL"):
        from kafkapy.client.sasl_login import log_in

        login = log_in(values, entry)
    return ConnectionSecurity(find_context, login)
